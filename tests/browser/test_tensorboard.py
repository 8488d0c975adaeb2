"""The page inside TensorBoard: its address, its history, its theme, its reloads, its failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, FrameLocator, Page, expect

from browser.app import ENTRY, App, address, watched
from browser.traces import training, write
from contract.running import serving


def frame(page: Page) -> FrameLocator:
    return page.frame_locator("iframe")


def heading(page: Page, text: str) -> None:
    expect(frame(page).get_by_role("heading", level=1)).to_have_text(text)


def test_a_copied_address_shows_the_same(shell: Page, context: BrowserContext):
    shell.goto(f"/{address(run='made')}&p.other_plugin.key=kept")
    frame(shell).get_by_role("button", name="Operators").click()
    frame(shell).get_by_label("Filter rows").fill("add c++ &=")
    frame(shell).get_by_role("columnheader", name="Calls").get_by_role("button").click()
    shell.wait_for_function("location.hash.includes('sort=-calls')")
    expect(shell).to_have_url(re.compile(r"p\.other_plugin\.key=kept"))
    copy = context.new_page()
    copy.goto(shell.url)
    heading(copy, "Operators")
    expect(frame(copy).get_by_label("Filter rows")).to_have_value("add c++ &=")
    expect(frame(copy).get_by_role("columnheader", name="Calls")).to_have_attribute("aria-sort", "descending")


def test_back_and_forward_go_through_views_and_runs_without_a_reload(shell: Page):
    shell.goto(f"/{address(run='made')}")
    heading(shell, "Overview")
    shell.frames[-1].evaluate("window.mark = 'same page'")
    frame(shell).get_by_role("button", name="Operators").click()
    frame(shell).get_by_label("Filter rows").fill("addmm")
    expect(frame(shell).locator(".sums")).to_contain_text("1 of 3")
    frame(shell).get_by_label("Run").select_option("cpu_only")
    expect(frame(shell).get_by_label("Worker")).to_have_value("rank0")
    frame(shell).get_by_role("button", name="Critical path", exact=True).click()
    heading(shell, "Critical path")
    shell.go_back()
    heading(shell, "Operators")
    shell.go_back()
    expect(frame(shell).get_by_label("Run")).to_have_value("made")
    expect(frame(shell).get_by_label("Filter rows")).to_have_value("addmm")
    shell.go_back()
    heading(shell, "Overview")
    shell.go_forward()
    heading(shell, "Operators")
    assert shell.frames[-1].evaluate("window.mark") == "same page"


def test_dark_mode_follows_tensorboard(shell: Page):
    shell.goto(f"/{address(run='made')}")
    heading(shell, "Overview")
    body = frame(shell).locator("body")
    expect(body).to_have_css("background-color", "rgb(255, 255, 255)")
    shell.evaluate("document.body.classList.add('dark-mode')")
    expect(body).to_have_css("background-color", "rgb(48, 48, 48)")


def test_tensorboards_reload_button_shows_a_new_trace_at_once(shell: Page, logdir: Path):
    shell.goto(f"/{address(run='made', view='operators', filter='aten')}")
    heading(shell, "Operators")
    write(logdir, "late/rank0.5.pt.trace.json", training())
    shell.locator(".reload-button").click()
    expect(frame(shell).get_by_label("Run").get_by_role("option", name="late")).to_have_count(1)
    expect(frame(shell).get_by_label("Filter rows")).to_have_value("aten")


def test_a_trace_that_is_rewritten_with_as_many_bytes_is_reloaded(page: Page, tmp_path: Path):
    write(tmp_path, "made/rank0.5.pt.trace.json", training())
    with serving(f"--logdir={tmp_path}") as server, watched(page, server.base):
        page.goto(server.base + ENTRY + address(run="made", view="operators"))
        expect(page.get_by_text("aten::addmm").first).to_be_visible()
        write(tmp_path, "made/rank0.5.pt.trace.json", training().replace("aten::addmm", "aten::again"))
        expect(page.get_by_text("aten::again").first).to_be_visible()


def test_a_path_prefix_changes_nothing(page: Page, tmp_path: Path):
    write(tmp_path, "made/rank0.5.pt.trace.json", training())
    with serving(f"--logdir={tmp_path}", "--path_prefix=/some/where") as server, watched(page, server.base):
        page.goto(f"{server.base}#pytorch_profiler")
        expect(frame(page).get_by_role("heading", name="Where each step goes")).to_be_visible()


def test_menus_show_times_as_dates_and_runs_without_the_trainer_s_folders(page: Page, tmp_path: Path):
    spans = ["1733769848514071115", "1733770537022695153"]
    for span in spans:
        write(tmp_path, f"job/torch_traces/host_1.{span}.pt.trace.json", training())
    with serving(f"--logdir={tmp_path}") as server, watched(page, server.base):
        page.goto(server.base + ENTRY)
        expect(page.get_by_role("heading", name="Where each step goes")).to_be_visible()
        expect(page.get_by_label("Run").get_by_role("option")).to_have_text(["job"])
        options = page.get_by_label("Span", exact=True).get_by_role("option")
        expect(options).to_have_text(["2024-12-09 18:44:08 UTC", re.compile("^2024-12-09 18:55:37 UTC · step")])
        page.get_by_label("Span", exact=True).select_option(spans[0])
        page.wait_for_function("location.hash.includes('span=1733769848514071115')")
        expect(page).to_have_url(re.compile("run=job(%2F|/)torch_traces"))


def test_the_newest_run_opens(page: Page, tmp_path: Path):
    for day in (22, 24, 23):
        write(tmp_path, f"run-202611{day}/rank0.5.pt.trace.json", training())
    with serving(f"--logdir={tmp_path}") as server, watched(page, server.base):
        page.goto(server.base + ENTRY)
        expect(page.get_by_role("heading", name="Where each step goes")).to_be_visible()
        expect(page).to_have_url(re.compile("run=run-20261124"))


def test_an_empty_logdir_says_how_to_record_and_shows_what_comes(page: Page, tmp_path: Path, artifacts: Path):
    with serving(f"--logdir={tmp_path}") as server, watched(page, server.base):
        page.goto(server.base + ENTRY)
        expect(page.get_by_text("No traces here yet")).to_be_visible()
        page.screenshot(path=artifacts / "empty.png")
        write(tmp_path, "first/rank0.5.pt.trace.json", training())
        expect(page.get_by_role("heading", name="Where each step goes")).to_be_visible()


def test_an_unreachable_server_is_reported_and_polled(page: Page, base_url: str):
    page.route("**/view?*", lambda route: route.fulfill(status=502, body="Bad gateway"))
    page.goto(f"/{ENTRY}{address(run='made', view='operators')}")
    expect(page.get_by_role("alert")).to_contain_text("502")
    page.unroute("**/view?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("tr.row").first).to_be_visible()


@pytest.mark.parametrize("state", ["half way", "unknown"])
def test_a_loading_trace_shows_how_far_it_is(shell: Page, state: str, artifacts: Path):
    progress_half_way = {"stage": "reading", "fraction": 0.41, "bytes_per_second": 310_000_000, "seconds_left": 1.2}
    unknown = dict.fromkeys(("fraction", "bytes_per_second", "seconds_left"))
    progress = progress_half_way if state == "half way" else {"stage": "waiting", **unknown}
    shell.route("**/view?*", lambda route: route.fulfill(json={"state": "loading", "progress": progress}))
    shell.goto(f"/{ENTRY}{address(run='made', view='operators')}")
    line = shell.locator(".skeleton [role=status]")
    expect(line).to_have_text(
        "Reading · 41 % · 310 MB/s · 1.2 s left" if state == "half way" else re.compile("^Preparing")
    )
    shell.screenshot(path=artifacts / f"loading-{state}.png")
    shell.unroute("**/view?*")
    expect(shell.locator("tr.row").first).to_be_visible()


# What the page's own files may take on the wire: 3,000 of it are the bands of memory snapshots, with the ranges above
# them, the memory of a step or an operator in its drawer, and the way from a trace to its snapshot; 1,300 how runs are found and what a page of none says;
# 300 the base's curve;
# 1,700 the bars of the critical path and of phases, with the sentences of tabs;
# 300 readable names of Python's own functions, labels that fit into their bars, and a badge that is complete;
# 1,700 why a step takes longer than the base's: bars, terms, and their work on both sides;
# 1,200 the runs of a job over time: the chart of their steps, and where a row leads;
# 400 numbers with three significant digits, aligned at their points; 900 work without FLOPs on the roofline, ranges as
# bars, and equal layers as one box;
# 1,000 why a run hangs or ended: its sentence, tables, and the step times of its last minutes.
# 1,500 sentences below each other, causes that say how much of a gap they are, and names that say what differs.
# 500 that ranks are still being compared, and why a timeline is empty.
# 300 idle time in the same words as in Idle, labels of a crowded roofline's largest points, and sliders within their claims.
# 300 rows in sight before those around them, names first in tables, and means of curves.
# 700 the picture and the sentence of the steps, words that columns declare, and places in the code with their line.
# 400 what takes less time in a long step, the part of the time that a mean is of, and lists without a value as missing.
# 500 what is wrong with the run in the sentence and the card of Trace health, and of how many ranks there is a recording.
# 500 the mean of dense curves, and totals, scales and units that say of what.
# 200 of how much of the kernel time an occupancy is, and how often kernels run.
MOST_BYTES = 140_000


def test_the_page_is_small(fresh_app: App):
    """What the server sends of the page's files in all; the answers about traces aren't among them."""
    responses = []
    fresh_app.page.on("response", lambda response: "/static/" in response.url and responses.append(response))
    fresh_app.open("kernels", row="0", open="1")
    assert [response.url.rpartition("/")[2] for response in responses] == ["index.js"]
    assert sum(response.request.sizes()["responseBodySize"] for response in responses) <= MOST_BYTES
