"""Runs of many ranks on the page: the heat map, and from a cell to where it ran."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import address, watched
from contract.running import serving
from kinetoscope_tb.names.python_frames import function_name
from kinetoscope_tb.views import RUN_VIEWS
from support.simulated import Truth, simulated, write
from support.waiting_run import LATE, write_waiting_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page, Response, Route

ENTRY = "data/plugin_entry.html?name=pytorch_profiler"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("ranks")
    write(simulated(Truth(ranks=6, steps=4, late={(4, None): 3_000_000})), folder / "run")
    with serving(f"--logdir={folder}") as server:
        yield server.base


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cell_tells_its_rank_and_step_and_leads_to_the_timeline(page: Page, many: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{many}{ENTRY}{address(view='rank_steps', run='run', worker='rank0', span='1')}")
    heat = page.get_by_role("slider", name=re.compile("^(Without waiting|Exposed wait) by worker and step"))
    expect(heat).to_be_visible()
    heat.focus()
    for key in ["ArrowDown"] * 4 + ["ArrowRight"]:
        heat.press(key)
    expect(heat).to_have_attribute("aria-valuetext", re.compile("^rank4 · 1: Without waiting "))
    page.get_by_label("Shown").first.select_option("exposed_wait_ns")
    expect(heat).to_have_attribute("aria-label", re.compile("^Exposed wait "))
    heat.press("Enter")
    page.get_by_role("button", name="Show in the timeline").click()
    expect(page.get_by_label("Worker")).to_have_value("rank4")
    expect(page.locator(".timeline, canvas").first).to_be_visible()


def test_the_straggler_comes_first(page: Page, many: str) -> None:
    page.goto(f"{many}{ENTRY}{address(view='stragglers', run='run', worker='rank0', span='1')}")
    first = page.locator("tr.row").first
    expect(first).to_contain_text("rank4")
    expect(first).to_contain_text("straggler")


def test_views_of_a_run_do_not_wait_for_the_selected_trace(page: Page, many: str) -> None:
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(f"{many}{ENTRY}{address(view='stragglers', run='run', worker='rank0', span='1')}")
    expect(page.locator("tr.row").first).to_contain_text("rank4")
    before = urls[: next(i for i, url in enumerate(urls) if "view=stragglers" in url)]
    assert not [url for url in before if "view=environment" in url or "view=health" in url]
    page.get_by_role("button", name="Trace health").or_(page.get_by_role("button", name="Health")).first.click()
    expect(page.get_by_role("button", name="Trace health:")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_names_the_straggler_and_leads_to_it(page: Page, many: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{many}{ENTRY}{address(view='overview', run='run', worker='rank0', span='1')}")
    verdict = page.get_by_label("Ranks", exact=True)
    expect(verdict).to_contain_text("Rank 4 computes ")
    expect(verdict).to_contain_text("in each step")
    verdict.get_by_role("button", name="Ranks: Slow ranks").click()
    expect(page.locator("tr.row").first).to_contain_text("rank4")


def test_the_advice_tab_and_the_overview_name_the_same_rank(page: Page, many: str) -> None:
    place = {"run": "run", "worker": "rank0", "span": "1"}
    words = "Make rank4 as fast as the other ranks first."
    for view in ("overview", "advice"):
        page.goto(f"{many}{ENTRY}{address(view=view, **place)}")
        expect(page.get_by_text(words).first).to_be_visible()
        expect(page.get_by_text("still being compared")).to_have_count(0)


def test_advice_of_one_row_is_not_repeated_below_its_sentence(page: Page, many: str) -> None:
    page.goto(f"{many}{ENTRY}{address(view='stragglers', run='run', worker='rank0', span='1')}")
    expect(page.locator(".verdict .sentence")).to_contain_text("Rank 4 computes ")
    expect(page.locator("tr.row").first).to_contain_text("rank4")
    expect(page.get_by_role("heading", name="Run advice")).to_have_count(0)


def test_savings_are_muted_and_no_rank_is_named_until_all_ranks_are_compared(page: Page, many: str) -> None:
    def so_far(route: Route) -> None:
        answer = route.fetch().json()
        known = {**answer, "ranks": 0} if answer["state"] == "ready" else None
        route.fulfill(json={"state": "loading", "progress": None, **({"so_far": known} if known else {})})

    place = address(view="overview", run="run", worker="rank0", span="1")
    page.route("**/answer?*", so_far)
    page.goto(f"{many}{ENTRY}{place}")
    expect(page.get_by_text("still being compared")).to_be_visible()
    worth = page.locator(".advice .worth b").first
    after = "worth => getComputedStyle(worth, '::after').content"
    assert worth.evaluate(after) == '" …"'
    expect(page.get_by_label("Ranks", exact=True)).to_have_count(0)
    page.unroute_all(behavior="wait")
    expect(page.get_by_label("Ranks", exact=True)).to_contain_text("Rank 4 computes ")
    expect(page.get_by_text("still being compared")).to_have_count(0)
    assert worth.evaluate(after) == "none"


def until_all_is_computed(page: Page, answers: list[Response]) -> None:
    """Wait until the latest answer to each question isn't that it is still being computed."""
    for _ in range(200):
        page.wait_for_timeout(100)
        latest = {answer.url: answer for answer in answers if "/view?" in answer.url or "/answer?" in answer.url}
        if latest and all(answer.json()["state"] != "loading" for answer in latest.values()):
            return
    pytest.fail(f"still computed after 20 s: {sorted(latest)}")


def test_the_overview_of_a_run_asks_each_question_once_and_for_its_ranks_with_the_answer(page: Page, many: str) -> None:
    answers: list[Response] = []
    page.on("response", lambda response: answers.append(response))  # a built-in method can't listen
    page.goto(f"{many}{ENTRY}{address(view='overview', run='run', worker='rank0', span='1')}")
    verdict, actions = page.get_by_label("Ranks", exact=True), page.get_by_role("heading", name="What to do")
    expect(actions).to_be_visible()
    expect(verdict).to_contain_text("Rank 4 computes ")
    until_all_is_computed(page, answers)  # nothing has to be asked again until it is
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.reload()
    expect(actions).to_be_visible()
    expect(verdict).to_contain_text("Rank 4 computes ")
    page.wait_for_load_state("networkidle")
    questions = [url for url in asked if url.startswith(("view?", "answer?"))]
    assert len(questions) == len(set(questions))
    assert [url for url in questions if url.startswith("answer?")] == ["answer?of=run&run=run&worker=rank0&span=1"]
    assert not [url for url in questions if "view=run_advice" in url or "view=advice" in url]


def test_the_path_across_ranks_lies_on_the_straggler_and_leads_to_its_timeline(page: Page, many: str) -> None:
    page.goto(
        f"{many}{ENTRY}{address(view='path_across_ranks', run='run', worker='rank0', span='1', **{'set.by': 'rank'})}"
    )
    expect(page.locator("tr.row").first).to_contain_text("rank4")
    expect(page.locator("label", has_text="Saved with")).to_contain_text("50 % less time")
    expect(page.get_by_role("slider", name="Saved with")).to_be_visible()
    expect(page.get_by_label("Critical path by rank and step", exact=True).locator(".heat")).to_be_visible()
    part = page.get_by_label("Path across ranks by segment", exact=True).first
    segment = part.locator("tr.row").filter(has_text="rank4").first
    expect(segment).to_contain_text("Kernels")
    segment.click()
    part.get_by_role("button", name="Show in the timeline").click()
    expect(page.get_by_label("Worker")).to_have_value("rank4")
    expect(page.get_by_label("Which critical path")).to_have_value("across")


def tip_over(page: Page, track: Locator) -> str:
    """The tooltip in the middle of a track, once it describes the path."""
    for attempt in range(300):  # whatever moves the picture takes the tip away until the pointer moves again
        canvas, line = page.get_by_role("img", name="Timeline").bounding_box(), track.bounding_box()
        assert canvas
        assert line
        page.mouse.move(canvas["x"] + canvas["width"] / 2 + attempt % 2, line["y"] + line["height"] / 2)
        page.wait_for_timeout(200)
        text = " ".join(page.locator(".tip.on-canvas").all_inner_texts())
        if "path" in text:
            return text
    pytest.fail("no tooltip described the path")


def test_the_timeline_draws_the_path_across_ranks_and_says_on_whom_it_lies_unseen(page: Page, many: str) -> None:
    page.goto(f"{many}{ENTRY}{address(view='timeline', run='run', worker='rank0', span='1', ranks='rank1')}")
    button = page.locator(".timeline .tools").get_by_role("button", name="Critical path")
    button.click()
    which = page.get_by_label("Which critical path")
    expect(which).to_have_value("own")
    page.keyboard.press("c")
    expect(which).to_have_value("across")
    expect(page).to_have_url(re.compile("critical=ranks"))
    states = page.get_by_role("list", name="The critical path")
    expect(states).to_contain_text("The path lies on rank4, not shown, for")
    states.locator("li", has_text="rank4").get_by_role("button", name="Show it").click()
    expect(page.get_by_role("button", name="3 of 6 workers")).to_be_visible()
    expect(states).not_to_contain_text("not shown")
    expect(states.get_by_role("button", name="rank4")).to_be_visible()
    page.get_by_label("Filter tracks").fill("stream 7")
    expect(page.locator("#timeline-shown")).to_contain_text("6 tracks")
    assert "path across ranks: computation" in tip_over(page, page.locator(".gutter li", has_text="stream 7").last)
    only = states.get_by_role("button", name="Show only the ranks on the path")
    only.click()
    expect(only).to_have_count(0)
    expect(page.get_by_role("button", name="2 of 6 workers")).to_be_visible()
    expect(page).to_have_url(re.compile("ranks=rank4(&|$)"))
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(states).to_have_count(0)


def test_clocks_of_a_large_run_are_compared_on_request(page: Page, tmp_path: Path) -> None:
    write(simulated(Truth(ranks=65, steps=4)), tmp_path / "run")
    with serving(f"--logdir={tmp_path}") as server:
        page.goto(f"{server.base}{ENTRY}{address(view='timeline', run='run', worker='rank0', span='1', ranks='rank1')}")
        workers = page.get_by_role("button", name="2 of 65 workers")
        workers.click()
        choice = page.get_by_role("group", name="Workers", exact=True)
        expect(choice.get_by_label("rank1", exact=True)).to_be_checked()
        expect(choice).not_to_contain_text("clock inferred")
        page.get_by_role("button", name="Compare clocks").click()
        expect(choice).to_contain_text("clock inferred from collectives to")


def test_a_late_rank_has_the_same_words_and_action_on_the_overview_and_on_ranks(page: Page, tmp_path: Path) -> None:
    write_waiting_run(tmp_path / "run")
    with serving(f"--logdir={tmp_path}") as server:
        for view in ("overview", "rank_steps"):
            page.goto(f"{server.base}{ENTRY}{address(view=view, run='run', worker='rank0', span='1')}")
            sentence = page.get_by_role("region", name="Ranks", exact=True).first
            expect(sentence).to_contain_text(f"is in {function_name(LATE[1])}")
            expect(sentence).to_contain_text("Shorten what the host does between launches")


def test_a_single_step_says_who_came_last_above_one_picture_of_all_ranks(page: Page, tmp_path: Path) -> None:
    write(simulated(Truth(ranks=4, steps=1, late={(2, None): 5_000_000})), tmp_path / "run")
    with serving(f"--logdir={tmp_path}") as server:
        page.goto(f"{server.base}{ENTRY}{address(view='rank_steps', run='run', worker='rank0', span='1')}")
        sentence = page.get_by_role("region", name="Ranks", exact=True)
        expect(sentence).to_contain_text("Rank 2 was last at")
        expect(sentence).to_contain_text("low confidence")
        picture = page.locator(".heat").first
        expect(picture.locator(".legend li")).to_have_text(
            ["Computation", "Exposed transfer", "Waiting for other ranks", "Idle otherwise"]
        )
        expect(picture.locator(".scale")).to_contain_text("the step without its waiting for other ranks")
        expect(picture.locator("text.value").last).to_have_text(re.compile(r"^[\d.]+$"))
        waits = page.get_by_label("Who waits, collective by collective", exact=True)
        expect(waits.locator("text.value", has_text="Last").first).to_be_visible()
        page.goto(f"{server.base}{ENTRY}{address(view='pace', run='run', worker='rank0', span='1')}")
        expect(page.get_by_label("Step start lag", exact=True).locator("text.value")).to_have_count(4)


def test_the_timeline_lays_ranks_on_one_clock_that_nobody_measured(page: Page, many: str) -> None:
    page.goto(f"{many}{ENTRY}{address(view='timeline', run='run', worker='rank0', span='1', ranks='rank1,rank4')}")
    page.get_by_role("button", name="3 of 6 workers").click()
    workers = page.get_by_role("group", name="Workers")
    expect(workers.locator("li", has_text="rank4")).to_contain_text("clock inferred from collectives to")
    expect(workers.locator("li", has_text="rank0")).to_contain_text("times are on its clock")


PAIRS = tuple((f"tp{i}", (2 * i, 2 * i + 1)) for i in range(4))
SHARDS = tuple((f"dp{i}", tuple(range(i, 8, 2))) for i in range(2))
EXPECTED = {  # text in the first row of each view, or instead of rows
    "rank_steps": "rank5",
    "stragglers": "rank5",
    "communication": "all_reduce",
    "links": "tp2 · ranks 4-5",
    "collectives": "all_reduce",
    "topology": "rank0",
    "clocks": "reference",
    "run_health": "missing_ranks",
    "path_across_ranks": "Kernels",
}


def test_every_view_of_a_run_of_eight_ranks_says_something(page: Page, tmp_path: Path) -> None:
    truth = Truth(ranks=8, steps=4, groups=PAIRS + SHARDS, slow={2: 1.6}, late={(5, None): 3_000_000}, missing=(3,))
    write(simulated(truth), tmp_path / "run")
    with serving(f"--logdir={tmp_path}") as server, watched(page, server.base):
        for number, view in enumerate(one for one in RUN_VIEWS.values() if one.place.kind == "tab"):
            page.emulate_media(color_scheme=("light", "dark")[number % 2])  # type: ignore[arg-type]
            page.goto("about:blank")
            page.goto(f"{server.base}{ENTRY}{address(view=view.id, run='run', worker='rank0', span='1')}")
            expect(page.get_by_role("heading", level=1)).to_have_text(view.entry)
            shown = page.locator("tr.row, .plot svg, .notice, .finding, .sentence").first
            expect(shown).to_be_visible()
            expect(page.locator(".skeleton, [aria-busy=true]")).to_have_count(0)
            if view.id in EXPECTED:
                expect(page.locator("tr.row").first).to_contain_text(EXPECTED[view.id])
