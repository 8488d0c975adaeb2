"""The timeline's drawer and its choices: a slice's details, idle gaps, workers."""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.accessibility import violations
from browser.app import ENTRY, App, HeldResponses, address
from browser.timeline_page import Drawn, range_of

PLACE = {"run": "made", "worker": "rank0", "span": "5"}
MODULES = {"run": "modules", "worker": "rank0", "span": "5"}
RANKS = {"run": "ranks", "worker": "rank0", "span": "5"}
SGEMM, SGEMM_LABEL = "ampere_sgemm_32x32_sliced1x4_tn", "GEMM cuBLAS ampere 32x32 fp32"
ALL_REDUCE, ALL_REDUCE_LABEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "NCCL AllReduce fp32 ring ll sum"
LABELS = {SGEMM: SGEMM_LABEL, ALL_REDUCE: ALL_REDUCE_LABEL}


def settled(base_url: str, route: str, **query: str) -> dict[str, Any]:
    address = f"{base_url}/data/plugin/pytorch_profiler/{route}?{urllib.parse.urlencode(query)}"
    while True:
        with urllib.request.urlopen(address) as answer:
            answered = json.load(answer)
        if answered["state"] != "loading":
            return answered


def slice_called(base_url: str, name: str, nth: int = 0, **place: str) -> str:
    """The number of the nth slice of that name."""
    meta = settled(base_url, "timeline", **place)
    every = (
        settled(base_url, "timeline/slice", slice=str(number), stamp=meta["stamp"], **place)
        for number in range(meta["slices"])
    )
    matches = sorted((one["start_ns"], one["slice"]) for one in every if one["name"] == name)
    return str(matches[nth][1])


def drawer(page: Page) -> Locator:
    return page.get_by_role("region", name="Details", exact=True)


def details(page: Page, name: str) -> Locator:
    """The details of a slice, once they are of this one."""
    shown = drawer(page).get_by_role("article", name=f"Slice {LABELS.get(name, name)}", exact=True)
    expect(shown).to_be_visible()
    return shown


def section(inside: Locator, title: str) -> Locator:
    return inside.get_by_role("region", name=title, exact=True)


def test_an_operator_tells_the_gpu_time_below_it_and_leads_to_its_kernels(app: App, base_url: str):
    page = app.open("timeline", **PLACE, slice=slice_called(base_url, "aten::addmm", 1, **PLACE))
    op = details(page, "aten::addmm")
    expect(op.locator(".facts")).to_contain_text("50 µs")
    expect(op.locator(".facts")).to_contain_text("5.6 % of step 2")
    expect(section(op, "GPU time below")).to_contain_text("40 µs in 1 kernel")
    op.get_by_role("button", name=SGEMM_LABEL).click()
    kernel = details(page, SGEMM)
    expect(kernel.get_by_role("heading", level=2)).to_have_text(SGEMM_LABEL)
    expect(kernel.locator(".full-name")).to_have_text(SGEMM)
    expect(kernel.locator(".facts")).to_contain_text("stream 7")
    by = section(kernel, "Launched by")
    expect(by).to_contain_text("cudaLaunchKernel")
    by.get_by_role("button", name="aten::addmm").click()
    details(page, "aten::addmm")
    page.go_back()
    details(page, SGEMM)


def test_a_kernel_leads_to_its_module_and_python_calls(app: App, base_url: str):
    page = app.open("timeline", **MODULES, slice=slice_called(base_url, "gemm", **MODULES))
    kernel = details(page, "gemm")
    expect(section(kernel, "Launched by")).to_contain_text("nn.Module: Linear_0")
    calls = section(kernel, "Python, the innermost first")
    expect(calls.get_by_role("listitem").last).to_contain_text("main (train.py:9)")
    section(kernel, "Launched by").get_by_role("button", name="nn.Module: Linear_0").click()
    expect(section(details(page, "nn.Module: Linear_0"), "GPU time below")).to_contain_text("60 µs in 1 kernel")


def test_slices_of_the_same_name_have_statistics_and_places_to_go(app: App, base_url: str):
    kernel = SGEMM
    page = app.open("timeline", **PLACE, slice=slice_called(base_url, kernel, **PLACE))
    same = section(details(page, kernel), "Of the same name")
    expect(same).to_contain_text("4 slices, 200 µs in all")
    numbers = dict(zip(same.locator("dt").all_inner_texts(), same.locator("dd").all_inner_texts(), strict=True))
    assert numbers == {"Mean": "50 µs", "Median": "40 µs", "95 % within": "80 µs"}
    expect(same.locator(".durations text")).to_have_text(["20 µs", "80 µs"])
    expect(same.get_by_role("button", name="Fastest")).to_be_disabled()
    same.get_by_role("button", name="Slowest").click()
    expect(details(page, kernel).locator(".facts")).to_contain_text("step 4")
    expect(same.get_by_role("button", name="Slowest")).to_be_disabled()


def test_the_name_is_copied_in_full_and_markup_stays_text(app: App, base_url: str, clipboard: Callable[[], str]):
    name = "void <script>alert(1)</script>(int)"
    page = app.open("timeline", **PLACE, slice=slice_called(base_url, name, **PLACE))
    shown = details(page, name)
    shown.get_by_role("button", name="Copy name").click()
    expect(shown.get_by_role("status")).to_have_text("Copied")
    assert clipboard() == name
    assert page.locator("main img, main script").count() == 0


def test_the_whole_event_opens_in_place_also_that_of_another_worker(app: App, base_url: str):
    other = {**PLACE, "worker": "rank1"}
    number = slice_called(base_url, "aten::relu", **other)
    page = app.open("timeline", **PLACE, ranks="rank1", slice=f"{number}.rank1")
    shown = details(page, "aten::relu")
    shown.get_by_role("button", name="Show the whole event").click()
    event = page.get_by_role("region", name="Event at byte")
    expect(event).to_contain_text("Input Dims")
    offset = settled(base_url, "timeline/slice", slice=number, stamp=stamp(base_url, **other), **other)["offset"]
    expect(event).to_contain_text(f"Bytes {offset} to")


def stamp(base_url: str, **place: str) -> str:
    return settled(base_url, "timeline", **place)["stamp"]


def test_a_slice_leads_to_its_rows_and_back(app: App, base_url: str):
    page = app.open("timeline", **PLACE, slice=slice_called(base_url, SGEMM, **PLACE))
    elsewhere = section(details(page, SGEMM), "In other views")
    elsewhere.get_by_role("button", name="Kernels", exact=True).click()
    app.settle()
    app.expect_column("Name", SGEMM_LABEL)
    expect(page.get_by_role("treegrid").first.locator("tr.row")).to_have_count(1)
    page.go_back()
    details(page, SGEMM)


def test_keys_and_tabs_open_and_close_the_drawer(app: App, base_url: str):
    page = app.open("timeline", **PLACE, slice=slice_called(base_url, "aten::relu", **PLACE))
    shown = details(page, "aten::relu")
    page.keyboard.press("q")
    expect(shown).to_have_count(0)
    page.wait_for_function("location.hash.includes('panel=closed')")
    page.keyboard.press("q")
    expect(shown).to_be_visible()
    edge = page.get_by_role("slider", name="Height of the drawer")
    before = int(edge.get_attribute("aria-valuenow") or 0)
    edge.focus()
    page.keyboard.press("ArrowUp")
    expect(edge).to_have_attribute("aria-valuenow", str(before + 20))
    page.wait_for_function(f"location.hash.includes('drawer={before + 20}')")
    page.get_by_role("button", name="Idle gaps").click()
    expect(page.get_by_role("list", name="Longest gaps")).to_be_visible()
    page.get_by_role("button", name="Idle gaps").click()
    expect(page.get_by_role("list", name="Longest gaps")).to_have_count(0)


def test_a_gap_says_who_is_to_blame_and_is_shown_by_a_click(app: App):
    page = app.open("timeline", **PLACE, panel="gaps")
    longest = page.get_by_role("list", name="Longest gaps").get_by_role("listitem").first
    # The third kernel of step 1 ends 340 µs after the origin, the first of step 2 begins 1.11 ms after it.
    expect(longest).to_contain_text("770 µs")
    expect(longest).to_contain_text("Host late: the next work was launched")
    expect(longest).to_contain_text("aten::relu launched")
    longest.get_by_role("button").click()
    page.wait_for_function(
        "location.hash.includes('profiler.from=224500&') && location.hash.includes('profiler.to=1225500')"
    )
    page.get_by_label("Filter gaps").fill("dependency")
    expect(page.get_by_text("No gap matches.")).to_be_visible()
    page.get_by_label("Filter gaps").fill("host late")
    expect(longest).to_be_visible()
    page.get_by_role("button", name="As a table").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Idle")


def test_why_is_my_gpu_idle_here_a_click_on_a_gap_answers(app: App):
    drawn = Drawn(app, start=200_000, end=1_300_000)
    page = drawn.page
    chosen = page.get_by_role("region", name="The selected gap")
    drawn.until(lambda: drawn.click("Stream 7", 700_000) is None and chosen.count() > 0)
    expect(chosen).to_contain_text("770 µs idle")
    expect(chosen).to_contain_text("Host late: the next work was launched")
    expect(chosen.get_by_role("list", name="What the host was doing")).to_contain_text("Host")
    drawn.until(lambda: drawn.place("gap") == "340000~0")
    page.reload()
    expect(chosen).to_contain_text("770 µs idle")
    page.get_by_role("button", name="Zoom to it").click()
    drawn.comes_to(lambda start, end: (start, end) == (224_500, 1_225_500))


def test_gaps_are_listed_by_the_hundred_and_beyond_the_longest_ones_where_they_are_visible(app: App):
    page = app.open("timeline", run="many_gaps", panel="gaps", drawer="420", **{"from": "0", "to": "100000"})
    gaps = page.get_by_role("list", name="Longest gaps").get_by_role("listitem")
    expect(gaps).to_have_count(100)
    expect(drawer(page)).to_contain_text("The 5000 longest gaps")
    page.get_by_role("button", name="Show 100 more of 4900 shorter ones").click()
    expect(gaps).to_have_count(200)
    page.get_by_label("Only visible ones").check()
    expect(gaps).to_have_count(10)  # each of less than 1.2 µs: shorter than all of the 5,000 longest
    expect(gaps.first).to_contain_text("1.01 µs")


def test_without_a_device_the_gaps_say_what_would_show_them(app: App):
    page = app.open("timeline", run="cpu_only", panel="gaps")
    expect(drawer(page)).to_contain_text("not in this trace")


def test_workers_are_stacked_and_the_address_keeps_them(app: App):
    page = app.open("timeline", **PLACE)
    page.get_by_role("button", name="1 of 2 workers").click()
    choice = page.get_by_role("group", name="Workers", exact=True)
    expect(choice.get_by_label("rank0")).to_be_disabled()
    choice.get_by_label("rank1").check()
    expect(page.get_by_role("button", name="2 of 2 workers")).to_be_visible()
    choice.get_by_label("Align by").select_option("the start of step 2")
    page.keyboard.press("Escape")
    expect(choice).to_have_count(0)
    page.wait_for_function("location.hash.includes('ranks=rank1') && location.hash.includes('align=')")
    page.reload()
    page.get_by_role("button", name="2 of 2 workers").click()
    expect(choice.get_by_label("Align by")).to_have_value(
        json.dumps({"by": "step", "step": "2"}, separators=(",", ":"))
    )
    choice.get_by_role("button", name="rank0 alone").click()
    expect(page.get_by_role("button", name="1 of 2 workers")).to_be_visible()


def test_workers_are_aligned_by_the_end_of_a_collective(app: App, base_url: str):
    page = app.open("timeline", **RANKS, ranks="rank1", slice=slice_called(base_url, ALL_REDUCE, 1, **RANKS))
    details(page, ALL_REDUCE).get_by_role("button", name="Align all workers by its end").click()
    page.wait_for_function("location.hash.includes('align=')")
    page.get_by_role("button", name="2 of 2 workers").click()
    chosen = page.get_by_label("Align by").locator("option:checked")
    expect(chosen).to_have_text("the end of NCCL AllReduce fp32 ring ll sum, category Communication, number 2")
    page.keyboard.press("Escape")
    # The other rank's is 600 µs later by its own times, and is now where this one is.
    other = slice_called(base_url, ALL_REDUCE, 1, **{**RANKS, "worker": "rank1"})
    app.go(**RANKS, view="timeline", ranks="rank1", slice=f"{other}.rank1", align=align_of(page))
    details(page, ALL_REDUCE)
    app.settle()  # both workers are where they belong
    page.keyboard.press("f")
    # Centered: from 300 to 340 µs it lasts, so 320 µs is in the middle.
    page.wait_for_function("/profiler.from=-220000&/.test(location.hash) && /profiler.to=860000/.test(location.hash)")


def test_clocks_that_cannot_be_compared_are_named_and_compared_again(fresh_app: App, base_url: str):
    page = fresh_app.page
    answer = {"state": "failed", "code": "broken", "message": "a rank can't be read"}
    page.route("**/view?*view=clocks*", lambda route: route.fulfill(json=answer), times=1)
    page.goto(f"/{ENTRY}{address(view='timeline', **RANKS, ranks='rank1')}")
    expect(page.get_by_role("alert")).to_contain_text("clocks not compared")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="2 of 2 workers").click()
    expect(page.get_by_role("group", name="Workers", exact=True)).to_contain_text("clock inferred from collectives")


def test_late_clocks_move_no_aligned_worker_and_close_nothing(fresh_app: App, base_url: str):
    held = HeldResponses(fresh_app.page, "**/view?*view=clocks*")
    second = slice_called(base_url, ALL_REDUCE, 1, **{**RANKS, "worker": "rank1"})
    align = json.dumps({"by": "collective", "find": {"name": ALL_REDUCE}, "before": 1})
    place = {**RANKS, "ranks": "rank1", "slice": f"{second}.rank1", "align": align}
    page = fresh_app.page
    page.goto(f"/{ENTRY}{address(view='timeline', **place)}")
    held.wait_for_request()
    details(page, ALL_REDUCE).get_by_role("button", name="Show the whole event").click()
    event = page.get_by_role("region", name="Event at byte")
    expect(event).to_contain_text(ALL_REDUCE)
    expect(page.get_by_text("aligning…")).to_be_visible()
    held.release()
    fresh_app.settle()
    expect(page.get_by_text("aligning…")).to_have_count(0)
    expect(event).to_be_visible()
    page.get_by_role("button", name="2 of 2 workers").click()
    expect(page.get_by_role("group", name="Workers", exact=True)).to_contain_text("clock inferred from collectives")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    # As if there were no clocks: from 300 to 340 µs it lasts.
    page.wait_for_function("location.hash.includes('profiler.from=')")
    page.wait_for_url(lambda _: sum(range_of(page)) == 2 * 320_000)


def align_of(page: Page) -> str:
    return page.evaluate("decodeURIComponent(location.hash.match(/align=([^&]*)/)[1])")


def test_a_broken_worker_hides_no_other(app: App):
    page = app.open("timeline", run="half", worker="rank0", span="5", ranks="rank1")
    states = page.get_by_role("list", name="Workers that aren't shown yet")
    expect(states.get_by_role("alert")).to_contain_text("rank1.5.pt.trace.json")
    expect(page.get_by_role("button", name=re.compile("main thread|thread")).first).to_be_visible()
    states.get_by_role("button", name="Hide it").click()
    expect(states).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_drawer_and_the_choices_are_accessible(app: App, base_url: str, artifacts: Path, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    kernel = slice_called(base_url, "gemm", **MODULES)
    places: dict[str, dict[str, str]] = {
        "details": {**MODULES, "slice": kernel, "drawer": "420"},
        "gaps": {**PLACE, "panel": "gaps"},
        "area": {**PLACE, "area": "0~2000000~"},
        "area-flames": {**PLACE, "area": "1010000~1800000~", "area_form": "flame", "area_side": "host"},
        "area-counters": {**PLACE, "area": "0~2000000~", "area_form": "counters"},
        "compared": {**PLACE, "area": "1000000~1900000~", "marks": "A~0~900000~,B~1000000~1900000~0", "against": "A"},
        "workers": {**PLACE, "ranks": "rank1"},
        "broken-worker": {"run": "half", "worker": "rank0", "span": "5", "ranks": "rank1"},
    }
    broken, page = {}, app.open("timeline", **PLACE)
    for name, place in places.items():
        page.mouse.move(0, 0)  # no tip is shown of what is below it
        app.go(view="timeline", **place)
        if name == "details":
            details(page, "gemm").get_by_role("button", name="Show the whole event").click()
            expect(page.get_by_role("region", name="Event at byte")).to_contain_text("Bytes")
        if name == "gaps":
            expect(page.get_by_role("list", name="Longest gaps")).to_be_visible()
        if name == "workers":
            page.get_by_role("button", name="2 of 2 workers").click()
        page.screenshot(path=artifacts / f"timeline-{name}-{scheme}.png")
        if found := violations(page):
            broken[name] = found
    assert not broken


def area(page: Page) -> Locator:
    """The table of the selected area."""
    return page.get_by_role("region", name="Area, rank0")


def test_an_area_has_a_table_by_name_that_sorts_filters_and_finds(app: App, clipboard: Callable[[], str]):
    page = app.open("timeline", **PLACE, area="0~2000000~", drawer="420")  # steps 1 and 2, on all tracks
    expect(drawer(page)).to_contain_text("Δt 2 ms, from 0 ns to 2 ms, on all tracks")
    row = area(page).locator("tr.row", has_text=SGEMM_LABEL)
    expect(row).to_contain_text("Kernel")
    expect(row.locator("td").nth(4)).to_have_text("2")
    area(page).get_by_role("button", name="Host", exact=True).click()
    expect(row).to_have_count(0)
    area(page).get_by_label("Filter rows").fill("aten::relu")
    expect(area(page).locator("tr.row")).to_have_count(1)
    area(page).get_by_role("button", name="Copy", exact=True).click()
    expect(area(page).get_by_text("1 row copied")).to_be_visible()
    name, category, _self, total, calls = clipboard().splitlines()[1].split("\t")[:5]
    assert (name, category, calls, total) == ("aten::relu", "Operator", "2", "100000")
    area(page).locator("tr.row").click()
    area(page).get_by_role("button", name="Show its slices in the timeline").click()
    expect(page.get_by_role("search").get_by_role("status")).to_have_text("4 results")
    page.get_by_role("button", name="Clear").click()
    expect(area(page)).to_have_count(0)


def test_an_area_in_which_nothing_ran_says_so(app: App):
    page = app.open("timeline", **PLACE, area="500000~500001~0")
    expect(area(page)).to_contain_text("Nothing ran here")


def test_an_area_is_grouped_by_what_launched_its_kernels(app: App):
    page = app.open("timeline", **PLACE, area="0~2000000~", drawer="420")
    page.get_by_label("Group by").select_option("operator")
    expect(area(page).locator("tr.row", has_text="aten::addmm")).to_have_count(1)
    page.get_by_label("Group by").select_option("thread")
    expect(area(page).locator("tr.row").first).to_contain_text("stream 7")
    page.wait_for_function("location.hash.includes('area_by=thread')")
    page.reload()
    expect(area(page).locator("tr.row").first).to_contain_text("stream 7")


def test_what_is_around_an_area_is_apart_from_what_ran_in_it(app: App):
    page = app.open("timeline", **PLACE, area="10000~1900000~", drawer="420", area_side="host")
    expect(area(page).locator("tr.row").first).to_be_visible()
    expect(area(page).get_by_role("note")).to_have_count(0)
    app.go(**PLACE, view="timeline", area="1010000~1800000~", drawer="420", area_side="host")
    expect(area(page).get_by_role("note")).to_contain_text("Around the whole area, and not listed: Step 2")
    expect(area(page).locator("tr.row", has_text=re.compile(r"Step( |#)2"))).to_have_count(0)


def test_an_area_is_a_flame_graph(app: App):
    page = app.open("timeline", **MODULES, area="0~2000000~", drawer="480", area_form="flame", area_side="host")
    flames = area(page).get_by_label("Flame graph by Total").first
    expect(flames).to_be_visible()
    flames.focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    status = flames.get_by_role("status")
    expect(status).to_contain_text("main (train.py:9)")
    expect(status).to_contain_text("% of all")
    calls = area(page).get_by_role("treegrid", name="Calls in the area")
    main = calls.locator("tr.row", has_text="main (train.py:9)")
    expect(main).to_have_count(1)
    area(page).get_by_role("button", name="None", exact=True).click()
    expect(main).to_have_count(0)
    area(page).get_by_role("button", name="All", exact=True).click()
    expect(main).to_have_count(1)
    main.click()
    expect(area(page).get_by_label("Details of a row of Calls in the area")).to_contain_text("main (train.py:9)")
    page.keyboard.press("Escape")
    area(page).get_by_role("button", name="GPU", exact=True).click()
    expect(area(page).get_by_text("in all")).to_contain_text("100 µs")


def test_counters_have_statistics_in_an_area(app: App):
    page = app.open("timeline", **PLACE, area="0~1000000~", drawer="420", area_form="counters")
    rows = page.get_by_role("region", name="Counters, rank0").locator("tr.row")
    expect(page.get_by_role("columnheader", name="Mean while recorded")).to_be_visible()
    busy = rows.filter(has_text="GPU utilization")
    expect(busy.locator("td").nth(2)).to_have_text("6 %")
    expect(busy.locator("td").nth(4)).to_have_text("100 %")
