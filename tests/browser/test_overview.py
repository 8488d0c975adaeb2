"""The overview answers first, in one screen, and leads to the rows and the moments that show it."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

import kinetoscope_tb
from browser.accessibility import violations
from browser.app import ENTRY, App, address
from browser.lasting_page import LastingPage, lasting_app
from browser.traces import write
from contract.running import serving
from kinetoscope_tb.names.text import time, time_range
from support.machine import MS, Machine
from support.real_traces import FOLDER, MISSING
from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Locator, Page, Route

MADE = {"run": "made", "worker": "rank0", "span": "5"}


def answer(base_url: str, view: str, **query: str) -> dict[str, list]:
    """The columns of a view, once they are computed."""
    url = f"{base_url}/data/plugin/pytorch_profiler/view?{urlencode({'view': view, **query})}"

    def ask() -> dict[str, Any]:
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)

    return wait_for(ask, is_right=lambda got: got["state"] != "loading")["data"]


def test_the_verdict_is_the_first_advice_and_its_link_opens_its_rows(app: App, base_url: str):
    page = app.open("overview")
    expect(page.get_by_label("Verdict")).to_be_visible()
    first = {name: values[0] for name, values in answer(base_url, "advice", **MADE).items()}
    expect(page.get_by_label("Verdict")).to_contain_text(first["title"].split("%")[-1])
    page.locator(".advice details[open] .links button").first.click()
    expect(page.get_by_label("Verdict")).to_have_count(0)
    app.settle()
    filters = [box.input_value() for box in page.get_by_role("searchbox").all()]
    assert (first["filter"] or "") in filters


def test_each_step_has_one_bar_and_nothing_is_a_ring(app: App):
    page = app.open("overview")
    steps = page.get_by_role("list", name="Steps, in")
    expect(steps.get_by_role("listitem")).to_have_count(4)
    expect(steps.get_by_role("img").first).to_have_attribute("aria-label", re.compile("Step 1.*\n.*Kernel"))
    expect(page.locator(".overview svg[role=img]")).to_have_count(0)
    expect(steps.locator(".stacked span")).to_have_text([re.compile(r"^\d+ µs$")] * 4)


def test_a_recording_without_steps_has_a_unit_at_each_of_its_times(app: App):
    times = app.open("overview", run="modules").locator(".shares dd:not(.quiet)")
    expect(times.first).to_be_visible()
    expect(times).to_have_text([re.compile(r"\d (ns|µs|ms|s)$")] * times.count())


@pytest.fixture(scope="module")
def loading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A training that loads data for 6 of 14 ms of each step, while the GPU waits."""
    folder = tmp_path_factory.mktemp("loading")
    machine = Machine()

    def step(_: int) -> None:
        machine.load(6 * MS)
        machine.copy(2 * MS)
        machine.kernel(6 * MS)
        machine.wait()

    machine.steps(step)
    write(folder, "run/rank0.5.pt.trace.json", machine.builder.text())
    with serving(f"--logdir={folder}") as server:
        for view in ("overview", "advice", "what_if", "activity_strip"):
            server.settled("view", view=view, run="run", worker="rank0", span="5")
        yield server.base.rstrip("/")


@pytest.fixture
def overview(large_page: Callable[[str], LastingPage], loading: str) -> Iterator[Page]:
    with lasting_app(large_page(loading)) as app:
        yield app.open("overview", run="run", worker="rank0", span="5")


def strip(page: Page) -> Locator:
    return page.get_by_role("slider", name="Activity over time")


def test_the_strip_says_in_words_what_it_draws(overview: Page):
    expect(strip(overview)).to_have_attribute("aria-valuetext", re.compile("GPU 0: kernels"))
    expect(strip(overview)).to_have_attribute("aria-valuetext", re.compile(r"idle: waiting for data [\d.]+ %"))
    expect(overview.locator(".strips text").first).to_contain_text("ms")
    gaps = overview.locator(".strips g:has(> rect)")
    assert gaps.count() == gaps.filter(has=overview.locator("text")).count() > 0


def test_the_strip_is_read_and_opened_with_keys(overview: Page):
    strip(overview).focus()
    overview.keyboard.press("ArrowRight")
    expect(strip(overview)).to_have_attribute("aria-valuetext", re.compile("GPU 0, 0 ns to"))
    for _ in range(3):
        overview.keyboard.press("PageDown")
    overview.keyboard.press("End")
    expect(strip(overview)).to_have_attribute("aria-valuenow", "559")
    overview.keyboard.press("Home")
    overview.keyboard.press("Enter")
    expect(overview).to_have_url(re.compile("view=timeline.*from="))


def test_a_click_on_the_strip_opens_the_gap_there_in_the_timeline(overview: Page, loading: str):
    gaps = answer(loading, "gaps", run="run", worker="rank0", span="5")
    steps = answer(loading, "steps", run="run", worker="rank0", span="5")
    begin, end = steps["start_ns"][0], steps["start_ns"][-1] + steps["total_ns"][-1]
    gap, dur = gaps["start_ns"][0], gaps["dur_ns"][0]
    box = strip(overview).bounding_box()
    assert box
    strip(overview).click(position={"x": box["width"] * (gap + dur / 2 - begin) / (end - begin), "y": 10})
    expect(overview).to_have_url(re.compile("view=timeline.*to="))
    place = dict(part.split("=") for part in overview.url.split("&p.pytorch_profiler.")[1:])
    assert int(place["from"]) < gap
    assert int(place["to"]) > gap + dur
    assert int(place["to"]) - int(place["from"]) < 2 * dur


def test_dragging_over_the_strip_shows_that_time_alone(overview: Page):
    box = strip(overview).bounding_box()
    assert box
    overview.mouse.move(box["x"] + 100, box["y"] + 10)
    overview.mouse.down()
    overview.mouse.move(box["x"] + 400, box["y"] + 10)
    overview.mouse.up()
    overview.get_by_role("button", name="Show all", exact=True).click()
    expect(overview.get_by_role("button", name="Show all", exact=True)).to_have_count(0)


def test_the_slider_shows_the_step_of_the_server_s_what_if(overview: Page, loading: str):
    slider = overview.get_by_role("slider", name="If data loading took")
    result = overview.locator(".slider output").first
    expect(slider).to_have_value("50")
    for value, key in (("50", ""), ("55", "ArrowRight"), ("100", "End"), ("0", "Home")):
        if key:
            slider.press(key)
        expect(slider).to_have_value(value)
        what_if = answer(loading, "what_if", run="run", worker="rank0", span="5", less=f"data_loading:{value}")
        expect(result).to_contain_text(f"step {time(what_if['step_ns'][0])}")
        low, high = (what_if[f"saved_{end}_ns"][0] for end in ("low", "high"))
        expect(result.locator("small")).to_have_text([f"saves {time_range(low, high)}"] if high else [])
    expect(result).to_have_js_property("tagName", "OUTPUT")  # changes are announced to screen readers


def test_a_closed_item_says_what_it_is_about_also_where_nothing_can_be_told(page: Page, loading: str):
    unknown = {"id": "recording_faults", "title": "What costs most can't be said.", "confidence": "cannot_tell"}

    def with_unknown(route: Route) -> None:
        response = route.fetch()
        summary = response.json()
        if "verdict" in summary:
            summary["also"].insert(0, {**summary["verdict"], **unknown, "action": "Copy the file again."})
        route.fulfill(response=response, json=summary)

    page.route("**/answer?*", with_unknown)
    page.goto(f"{loading}/{ENTRY}{address(view='overview', run='run', worker='rank0', span='5')}")
    App(page).settle()
    item = page.locator(".advice > li").nth(1)
    expect(item.locator("summary small")).to_have_text(unknown["title"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_is_accessible(overview: Page, scheme: str):
    overview.emulate_media(color_scheme=scheme)
    closed = overview.locator(".advice details:not([open]) > summary")
    while closed.count():
        closed.first.click()
    assert not violations(overview)


REAL = {
    "one_step": "claims/tracelens_h100_owlv2.json.gz",
    "six_steps": "claims/resnet50_num_workers_4",
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not FOLDER.is_dir():
        pytest.skip(MISSING)
    folder: Path = tmp_path_factory.mktemp("real")
    for run, path in REAL.items():
        source = FOLDER / path
        files = sorted(source.iterdir())[:1] if source.is_dir() else [source]
        (folder / run).mkdir()
        for file in files:
            (folder / run / f"rank0.1.pt.trace.json{'.gz' if file.suffix == '.gz' else ''}").symlink_to(file.resolve())
    with serving(f"--logdir={folder}") as server:
        for run in REAL:
            for view in ("overview", "advice", "what_if", "activity_strip", "gpus", "memory_devices"):
                server.settled("view", view=view, run=run, worker="rank0", span="1")
        yield server.base.rstrip("/")


@pytest.mark.parametrize("run", REAL)
def test_the_first_screen_holds_verdict_strip_breakdown_and_top_lists(
    large_page: Callable[[str], LastingPage], real: str, run: str
):
    with lasting_app(large_page(real)) as app:
        page = app.open("overview", run=run, worker="rank0", span="1")
        expect(page.locator(".top")).to_have_count(2)
        expect(page.locator(".top header span").first).to_have_text(
            re.compile(r"^of [\d.]+ ms kernel time (?:per step|in step \d+)$")
        )
        expect(page.locator(".top").first.locator("tbody small").first).to_have_text(re.compile(r"^[\d. ]+× by \S+"))
        sections = page.locator(".verdict, .card.strip, .tiles, .overview .card, .rail")
        boxes = [section.bounding_box() for section in sections.all()]
        assert len(boxes) > 8
        for box in boxes:
            assert box
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 900
            assert box["x"] + box["width"] <= 1440
        assert not violations(page)


UNITS = {"µs": 1e3, "ms": 1e6, "s": 1e9}
SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A logdir with the samples, and a server of it."""
    folder = tmp_path_factory.mktemp("samples")
    for sample in ("h100/training", "h100/server", "gloo_2ranks/ddp"):
        shutil.copytree(SAMPLES / sample, folder / Path(sample).name)
    with serving(f"--logdir={folder}") as server:
        yield folder, server.base.rstrip("/")


@pytest.mark.parametrize("run", ["training", "server", "ddp"])
def test_the_page_says_what_the_summary_says(
    large_page: Callable[[str], LastingPage], samples: tuple[Path, str], run: str
):
    folder, base_url = samples
    answer = kinetoscope_tb.open(str(folder / run)).answer
    verdict, *others = [claim for claim in answer.claims if claim.about == "recording"]
    with lasting_app(large_page(base_url)) as app:
        page = app.open("overview", run=run, worker=answer.worker, span=answer.span)
        shown = page.get_by_label("Verdict", exact=True)
        expect(shown).to_contain_text(verdict.title.replace("`", ""))
        if verdict.saving_ns:
            about = "up to" if verdict.saving_low_ns is None else "about"
            number, unit = re.search(rf"{about} −([\d.]+)\s([mµ]?s)", shown.inner_text()).groups()  # type: ignore[union-attr]
            assert float(number) * UNITS[unit] == pytest.approx(verdict.saving_ns, rel=5e-3)
        if answer.usual_step_ns:
            expect(shown).to_contain_text("of a step without the profiler")
        items = page.locator(".advice > li")
        expect(items).to_have_count(1 + len(others))
        for item, claim in zip(items.all(), (verdict, *others), strict=True):
            expect(item).to_contain_text((claim.title if claim.is_in_order else claim.action).replace("`", ""))
        names = page.locator(".top tbody button").all_inner_texts()
        assert names == [row["label"] for row in answer.rows["top"]]
