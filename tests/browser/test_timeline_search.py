"""Finding slices in the timeline: by words, and from the rows of other views."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.accessibility import violations
from browser.app import App, HeldResponses
from browser.timeline_page import rests
from browser.traces import sources

PLACE = {"run": "made", "worker": "rank0", "span": "5"}
KERNEL = "GEMM cuBLAS ampere 32x32 fp32"


def box(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Find slices")


def count(page: Page) -> Locator:
    return page.get_by_role("search").get_by_role("status")


def shown(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=f"Slice {name}", exact=True)


@pytest.mark.parametrize("pause_ms", [145, 155])
def test_what_is_typed_while_the_search_begins_stays(app: App, pause_ms: int):
    page = app.open("timeline", **PLACE)
    page.keyboard.press("/")
    page.keyboard.type("aten:: -relu", delay=pause_ms)
    expect(box(page)).to_have_value("aten:: -relu")
    expect(count(page)).to_have_text("4 results")


def test_words_find_slices_in_all_of_the_recording_and_enter_walks_through_them(app: App):
    page = app.open("timeline", **PLACE)
    page.keyboard.press("/")
    page.keyboard.type("aten:: -relu")
    expect(count(page)).to_have_text("4 results")
    names = page.get_by_role("list", name="Matching names").get_by_role("listitem")
    expect(names).to_have_text([re.compile(r"^aten::addmm4100 %200 µs$")])
    box(page).press("Enter")
    expect(count(page)).to_have_text("1 of 4")
    box(page).press("Enter")
    expect(count(page)).to_have_text("2 of 4")
    box(page).press("Shift+Enter")
    box(page).press("Shift+Enter")
    expect(count(page)).to_have_text("4 of 4")  # before the first comes the last
    page.wait_for_function("location.hash.includes('find=')")
    box(page).press("Escape")
    expect(box(page)).to_have_value("")
    expect(count(page)).to_have_count(0)


def test_enter_walks_also_outside_the_box(app: App):
    page = app.open("timeline", **PLACE, find=json.dumps({"text": "aten::relu"}))
    expect(count(page)).to_have_text("4 results")
    page.keyboard.press("Enter")
    expect(count(page)).to_have_text("1 of 4")
    page.keyboard.press("Shift+Enter")
    expect(count(page)).to_have_text("4 of 4")
    expect(shown(page, "aten::relu")).to_be_visible()


def test_keys_that_are_faster_than_the_answers_are_all_heeded(fresh_app: App):
    page = fresh_app.open("timeline", **PLACE, find=json.dumps({"text": "aten::relu"}))
    expect(count(page)).to_have_text("4 results")
    held = HeldResponses(page, "**/timeline/find?*")
    for key in ("Enter", "Enter", "Enter", "Shift+Enter"):
        page.keyboard.press(key)
    held.wait_for_request()
    assert len(held) == 1  # each step begins where the one before has led
    held.release()
    expect(count(page)).to_have_text("2 of 4")


def test_hits_of_all_workers_are_walked_in_order_of_time(app: App):
    page = app.open("timeline", **PLACE, ranks="rank1", find=json.dumps({"text": "aten::relu"}))
    expect(count(page)).to_have_text("7 results")
    for place in range(1, 8):
        page.keyboard.press("Enter")
        expect(count(page)).to_have_text(f"{place} of 7")
    page.keyboard.press("Shift+Enter")
    expect(count(page)).to_have_text("6 of 7")


def test_an_empty_search_is_reported(app: App):
    page = app.open("timeline", **PLACE)
    box(page).fill("no such name")
    expect(count(page)).to_have_text("no results")
    expect(page.get_by_role("region", name="Results")).to_contain_text("No results for “no such name”")


def test_an_invalid_pattern_is_reported_and_not_requested(app: App):
    page = app.open("timeline", **PLACE)
    box(page).fill("re:(")
    expect(page.get_by_role("search").get_by_role("alert")).to_contain_text("Invalid pattern")
    box(page).fill("re:(relu|addmm)$")
    expect(count(page)).to_have_text("8 results")


def test_a_name_of_the_list_narrows_the_search(app: App):
    page = app.open("timeline", **PLACE, find=json.dumps({"text": "aten"}))
    page.get_by_role("list", name="Matching names").get_by_role("button", name="aten::relu").click()
    expect(count(page)).to_have_text("4 results")
    expect(page.get_by_role("list", name="Matching names").get_by_role("listitem")).to_have_count(1)
    page.get_by_role("button", name="Remove this query").click()
    expect(count(page)).to_have_count(0)


@pytest.mark.parametrize(
    ("view", "name", "matches"),
    [("operators", "aten::relu", 4), ("kernels", KERNEL, 4), ("launches", "cudaLaunchKernel", 12)],
)
def test_a_row_of_a_view_shows_its_slices_and_links_back(app: App, view: str, name: str, matches: int):
    page = app.open(view, **PLACE)
    page.locator("tr.row", has_text=name).first.click()
    page.get_by_role("button", name="Show in the timeline").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")
    expect(count(page)).to_have_text(re.compile(f"^{matches} results?$"))
    page.go_back()
    expect(page.locator(".row-drawer")).to_be_visible()


def test_a_step_is_shown_in_the_timeline(app: App):
    page = app.open("steps", **PLACE)
    page.locator("tr.row").nth(1).click()
    page.get_by_role("button", name="Show in the timeline").click()
    expect(page.get_by_text("Step 2", exact=False).or_(page.locator("canvas")).first).to_be_visible()
    page.wait_for_function("/profiler.from=8650\\d\\d/.test(location.hash)")  # 15 % of 900 µs before it


def test_the_verdict_leads_to_the_slice_that_is_to_blame_in_three_clicks(app: App, base_url: str):
    if not any(source.name == "resnet50_num_workers_0" for source in sources()):
        pytest.skip("the real trace isn't here; KINETOSCOPE_TRACES says where it lies")
    page = app.open(run="resnet50_num_workers_0")
    page.get_by_role("region", name="Verdict").get_by_role("button", name="Show in timeline").click()
    gap = page.get_by_role("list", name="Longest gaps").get_by_role("listitem").first
    expect(gap).to_contain_text("waited for a batch of the data loader")
    gap.get_by_role("button").click()
    page.wait_for_function("/profiler.from=-?\\d+/.test(location.hash)")
    app.settle()
    rests(page)
    thread = page.locator(".track", has_text="main thread").first.bounding_box()
    canvas = page.locator("canvas.body-canvas").bounding_box()
    assert thread is not None
    assert canvas is not None
    second_lane = thread["y"] + 27  # below the step's
    page.mouse.click(canvas["x"] + canvas["width"] / 2, second_lane)
    expect(page.get_by_role("article")).to_have_attribute(
        "aria-label", "Slice enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_results_are_accessible(app: App, artifacts: Path, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    for name, find in {
        "found": {"text": "aten"},
        "nothing": {"text": "no such name"},
        "row": {"view": "operators", "name": "aten::relu"},
    }.items():
        page = app.open("timeline", **PLACE, find=json.dumps(find))
        expect(count(page)).to_contain_text("result")
        page.screenshot(path=artifacts / f"timeline-{name}-{scheme}.png")
        assert not violations(page)


def test_the_timeline_opens_where_the_row_s_slices_are(app: App):
    page = app.open("timeline", run="deep", worker="rank0", span="5")
    name = page.locator(".gutter .scrolled li").filter(has_text="thread 2").locator(".name")
    rests(page)
    expect(name).not_to_be_in_viewport()
    app.go(run="deep", worker="rank0", span="5", view="operators")
    page.locator("tr.row").filter(has_text="aten::far_below").click()
    page.get_by_role("button", name="Show in the timeline").first.click()
    expect(count(page)).to_have_text("1 result")
    expect(name).to_be_in_viewport()
    rests(page)
    expect(name).to_be_in_viewport()
