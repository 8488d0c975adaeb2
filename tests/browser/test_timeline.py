"""The drawn timeline, by mouse and by keyboard, and its state in the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, App, HeldResponses, address
from browser.timeline_page import Drawn, draw_frames, rests

if TYPE_CHECKING:
    from playwright.sync_api import Page

KERNEL = "void <script>alert(1)</script>(int)"  # the third of each step; in the first from 310 µs, for 30 µs
STREAM, MAIN = "stream 7", "annotations"


def is_green(color: tuple[int, int, int]) -> bool:
    return color[1] > color[0] + 20 and color[1] > color[2] + 20


def thread(page: Page) -> str:
    """The line of the thread that has the operators."""
    return page.locator(".gutter li.of-axis").nth(1).inner_text().split("\n")[1]


def test_first_shown_is_the_first_step_with_device_work(app: App):
    drawn = Drawn(app, end=0)
    drawn.says("972 µs from −36 µs")
    drawn.says("step 1;")
    expect(drawn.page).to_have_url(re.compile("from=-36000&.*to=936000"))


def test_kernels_are_drawn_where_they_ran_in_the_ink_of_kernels(app: App):
    drawn = Drawn(app)
    drawn.until(lambda: is_green(drawn.color_at(STREAM, 325_000)))
    assert not is_green(drawn.color_at(STREAM, 300_000))
    assert not is_green(drawn.color_at(STREAM, 350_000))


def test_a_click_selects_a_slice_and_the_address_brings_it_back(app: App):
    drawn = Drawn(app)
    drawn.click(STREAM, 325_000)
    drawn.says(f"selected: {KERNEL}, Kernel, 30 µs, at 310 µs")
    page = drawn.page
    expect(page).to_have_url(re.compile("slice="))
    page.reload()
    app.settle()
    drawn.says(f"selected: {KERNEL}, Kernel, 30 µs, at 310 µs")
    assert drawn.range == (0, 1_000_000)


def test_pointing_at_a_slice_tells_its_whole_name_and_its_times(app: App):
    drawn = Drawn(app)
    drawn.page.mouse.move(*drawn.spot(STREAM, 325_000))
    tip = drawn.page.locator(".tip.on-canvas")
    expect(tip).to_contain_text(KERNEL)
    expect(tip).to_contain_text("30 µs · at 310 µs")
    expect(tip).to_contain_text("Kernel · stream 7 · GPU 0")
    drawn.page.mouse.move(*drawn.spot(STREAM, 800_000))
    expect(tip).to_have_count(0)


def test_held_keys_zoom_at_the_pointer_and_pan(app: App):
    drawn = Drawn(app)
    drawn.page.mouse.move(*drawn.spot(STREAM, 250_000))
    drawn.hold("w")
    start, end = drawn.range
    assert 0 < start < 250_000 < end < 1_000_000
    assert (250_000 - start) / (end - start) == pytest.approx(0.25, abs=0.01)
    drawn.hold("d")
    assert drawn.range[0] > start
    assert drawn.range[1] - drawn.range[0] == pytest.approx(end - start, rel=1e-3)
    drawn.hold("s", 900)
    assert drawn.range[1] - drawn.range[0] > end - start
    drawn.page.keyboard.press("0")
    expect(drawn.page).to_have_url(re.compile("to=3900000"))


def test_wheel_with_control_zooms_and_with_shift_pans(app: App):
    drawn = Drawn(app)
    page = drawn.page
    page.mouse.move(*drawn.spot(STREAM, 500_000))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    drawn.comes_to(lambda start, end: end - start < 700_000 and start < 500_000 < end)
    page.keyboard.up("Control")
    zoomed = drawn.range
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 100)
    drawn.comes_to(lambda start, end: start > zoomed[0] and end > zoomed[1])
    page.keyboard.up("Shift")


def test_a_drag_marks_a_time_whose_edges_are_those_of_slices_exactly(app: App):
    drawn = Drawn(app)
    page = drawn.page
    x, y = drawn.spot(STREAM, 210_000)
    to, _ = drawn.spot(STREAM, 340_000)
    page.mouse.move(x + 3, y)
    page.mouse.down()
    page.mouse.move(to - 2, y, steps=5)
    page.mouse.up()
    drawn.says("area of 130 µs")  # from the start of the second kernel to the end of the third
    expect(page).to_have_url(re.compile(r"area=210000~340000~0"))
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("area="))


def test_a_drag_beyond_the_right_edge_moves_on_in_time(app: App):
    drawn = Drawn(app)
    page = drawn.page
    box = drawn.canvas.bounding_box()
    assert box
    drawn.until(lambda: is_green(drawn.color_at(STREAM, 325_000)))
    x, y = drawn.spot(STREAM, 800_000)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, y, steps=4)
    draw_frames(page, 60)  # the address, which says where the picture is, follows only when it rests
    page.mouse.up()
    drawn.comes_to(lambda start, end: start > 0 and end - start == pytest.approx(1_000_000, abs=1))
    drawn.says("area of")
    page.wait_for_url(lambda _url: drawn.place("area") != "")
    begin, end = map(int, drawn.place("area").split("~")[:2])
    assert begin == pytest.approx(800_000, abs=10_000)
    assert end > 1_000_000


@pytest.mark.parametrize(
    ("start", "at", "edge", "end"), [(2_600_000, 3_400_000, -1, 3_900_000), (300_000, 500_000, -60, 0)]
)
def test_a_drag_held_at_an_edge_rests_at_the_end_of_the_recording(app: App, start: int, at: int, edge: int, end: int):
    drawn = Drawn(app, start=start, end=start + 1_000_000)
    page = drawn.page
    box = drawn.canvas.bounding_box()
    assert box
    x, y = drawn.spot(STREAM, at)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + (box["width"] if end else 0) + edge, y, steps=4)
    drawn.comes_to(lambda *shown: end in shown)  # the address follows only when the picture rests
    page.mouse.up()
    page.wait_for_url(lambda _url: drawn.place("area") != "")
    area = [int(time) for time in drawn.place("area").split("~")[:2]]
    assert 0 <= area[0] < area[1] <= 3_900_000
    assert sorted(area) == pytest.approx(sorted([at, end]), abs=10_000)


def test_a_drag_beyond_the_bottom_scrolls_the_tracks_and_takes_them_all(app: App):
    drawn = Drawn(app, run="modules", start=0, end=600_000, panel="gaps", drawer="560", folded="t2")
    page = drawn.page
    box = drawn.canvas.bounding_box()
    assert box
    lines = page.get_by_role("list", name="Tracks", exact=True).get_by_role("listitem")
    last = lines.last.bounding_box()
    assert last
    assert last["y"] > box["y"] + box["height"]  # out of sight
    page.mouse.move(*drawn.spot("stream 7", 100_000))
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + box["height"] + 40, steps=4)
    drawn.until(lambda: (lines.last.bounding_box() or last)["y"] < box["y"] + box["height"])
    page.mouse.up()
    drawn.says("area of")
    page.wait_for_url(lambda _url: drawn.place("area") != "")
    assert drawn.place("area").split("~")[2].replace("%2C", ",").split(",") == ["0", "1", "2"]


def test_shift_and_drag_pans(app: App):
    drawn = Drawn(app)
    page = drawn.page
    page.mouse.move(*drawn.spot(STREAM, 500_000))
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(*drawn.spot(STREAM, 600_000), steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    drawn.comes_to(lambda start, _end: start == pytest.approx(-78_000, abs=100))
    assert drawn.place("area") == ""


def test_the_keyboard_alone_selects_slices_and_their_times(app: App):
    drawn = Drawn(app, slice="2")  # the third kernel of the first step is the third slice of the first track
    drawn.says(f"selected: {KERNEL}, Kernel, 30 µs")
    page = drawn.page
    page.keyboard.press(".")
    drawn.says("Kernel, 20 µs, at 1.11 ms")  # the first kernel of the second step
    page.keyboard.press(",")
    drawn.says(f"selected: {KERNEL}, Kernel, 30 µs")
    page.keyboard.press("m")
    drawn.says("area of 30 µs")
    page.keyboard.press("[")
    drawn.says("selected: cudaLaunchKernel, Runtime, 5 µs")
    page.keyboard.press("]")
    drawn.says(f"selected: {KERNEL}, Kernel, 30 µs")
    page.keyboard.press("f")
    drawn.comes_to(lambda start, end: (start + end) / 2 == pytest.approx(325_000, rel=0.001))
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("slice="))


def test_double_click_zooms_to_a_slice_and_back_returns(app: App):
    drawn = Drawn(app)
    drawn.page.mouse.dblclick(*drawn.spot(STREAM, 325_000))
    drawn.comes_to(lambda start, end: start < 310_000 < 340_000 < end < start + 60_000)
    drawn.page.go_back()
    expect(drawn.page).to_have_url(re.compile("from=0&.*to=1000000"))
    drawn.says("1 ms from 0 ns")


def test_a_step_is_marked_by_a_click_and_shown_by_a_double_click(app: App):
    drawn = Drawn(app, start=0, end=3_000_000)
    head = drawn.page.locator(".head-canvas").bounding_box()
    assert head
    x, y = head["x"] + head["width"] * 0.45, head["y"] + 52  # the second step
    drawn.page.mouse.click(x, y)
    expect(drawn.page).to_have_url(re.compile("area=1000000~1900000~"))
    drawn.page.mouse.dblclick(x, y)
    drawn.says("972 µs from 964 µs")


def test_the_window_over_the_whole_is_dragged(app: App):
    drawn = Drawn(app)
    head = drawn.page.locator(".head-canvas").bounding_box()
    assert head
    drawn.page.mouse.move(head["x"] + head["width"] * 0.6, head["y"] + 20)
    drawn.page.mouse.down()
    drawn.page.mouse.move(head["x"] + head["width"] * 0.8, head["y"] + 20, steps=4)
    drawn.page.mouse.up()
    whole = 3_900_000
    drawn.comes_to(lambda start, end: [start, end] == pytest.approx([0.6 * whole, 0.8 * whole], rel=0.01))


def test_tracks_fold_pin_and_filter_and_the_address_keeps_it(app: App):
    drawn = Drawn(app, run="modules", start=0, end=600_000)
    page = drawn.page
    python = page.locator(".gutter").get_by_role("button", name=re.compile("^Python"))
    expect(python).to_have_attribute("aria-expanded", "false")
    python.click()
    expect(python).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="Pin stream 7").dispatch_event("click")
    expect(page.get_by_role("list", name="Pinned tracks").get_by_role("listitem")).to_have_count(1)
    page.get_by_role("searchbox", name="Filter tracks").fill("nothing like it")
    expect(page.get_by_role("list", name="Tracks", exact=True).get_by_role("listitem")).to_have_count(0)
    page.get_by_role("searchbox", name="Filter tracks").fill("")
    rests(page)
    page.reload()
    app.settle()
    expect(python).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("list", name="Pinned tracks").get_by_role("listitem")).to_have_count(1)


def test_coarser_tiles_are_shown_until_finer_ones_come(fresh_app: App):
    drawn = Drawn(fresh_app)
    held = HeldResponses(drawn.page, "**/timeline/tiles?*")
    drawn.page.mouse.move(*drawn.spot(STREAM, 325_000))
    drawn.hold("w", 500)
    expect(drawn.page.locator(".stage")).to_have_attribute("aria-busy", "true")
    assert held
    drawn.until(lambda: is_green(drawn.color_at(STREAM, 325_000)))
    held.release()
    expect(drawn.page.locator(".stage")).not_to_have_attribute("aria-busy", "true")
    drawn.until(lambda: is_green(drawn.color_at(STREAM, 325_000)))


def test_workers_are_stacked_on_one_clock(app: App):
    drawn = Drawn(app, ranks="rank1")
    names = drawn.page.locator(".gutter li.of-source")
    expect(names).to_have_count(2)
    expect(names).to_have_text([re.compile("rank0"), re.compile("rank1")])
    drawn.until(lambda: is_green(drawn.color_at(STREAM, 325_000)))


def test_names_are_requested_beside_boxes_and_gaps_once_these_are_drawn(fresh_app: App):
    page = fresh_app.page
    labels, tiles, gaps = (
        HeldResponses(page, f"**/{route}") for route in ("timeline/labels?*", "timeline/tiles?*", "view?*view=gaps*")
    )
    page.goto(f"/{ENTRY}{address(view='timeline', run='made')}")
    labels.wait_for_request()
    tiles.wait_for_request()
    stage = page.locator(".stage")
    expect(stage.locator(".outline")).to_be_visible()
    assert not gaps
    tiles.release()
    gaps.wait_for_request()
    expect(stage.locator(".outline")).to_have_count(0)
    expect(stage).to_have_attribute("aria-busy", "true")  # until the names are there
    labels.release()
    expect(stage).not_to_have_attribute("aria-busy", "true")
    gaps.release()


def test_the_gaps_of_each_worker_are_requested_once(fresh_app: App):
    urls: list[str] = []
    fresh_app.page.on("request", lambda request: urls.append(request.url) if "view=gaps" in request.url else None)
    drawn = Drawn(fresh_app, ranks="rank1")
    drawn.until(lambda: len(urls) == 2)
    drawn.page.get_by_role("button", name="2 of 2 workers").click()
    drawn.page.get_by_role("button", name="rank0 alone").click()
    expect(drawn.page.locator(".gutter li.of-source")).to_have_count(0)
    fresh_app.settle()
    assert ["worker=rank1" in url for url in urls] == [False, True]


def test_the_hint_goes_away_for_good(fresh_app: App):
    drawn = Drawn(fresh_app)
    hint = drawn.page.locator(".hint")
    expect(hint).to_be_visible()
    hint.get_by_role("button").click()
    expect(hint).to_have_count(0)
    drawn.page.reload()
    fresh_app.settle()
    expect(hint).to_have_count(0)


def test_the_sheet_of_keys_is_the_timeline_s(app: App):
    drawn = Drawn(app)
    drawn.page.keyboard.press("?")
    expect(drawn.page.get_by_role("dialog")).to_contain_text("Zoom in and out at the pointer")


def test_letters_after_g_go_to_entries_and_do_not_move(app: App):
    drawn = Drawn(app)
    drawn.page.keyboard.press("g")
    drawn.page.keyboard.press("k")
    expect(drawn.page.get_by_role("heading", level=1)).to_have_text("Kernels")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_follows_the_theme(app: App, scheme: str):
    drawn = Drawn(app)
    drawn.page.emulate_media(color_scheme=scheme)
    drawn.until(lambda: (max(drawn.color_at(STREAM, 980_000)) < 80) == (scheme == "dark"))  # beside the gap's words
    drawn.until(lambda: is_green(drawn.color_at(STREAM, 325_000)))


def test_a_trace_without_device_shows_its_host(app: App):
    drawn = Drawn(app, run="cpu_only", end=0)
    drawn.says("step 1;")
    expect(drawn.page.locator(".gutter li.of-process").first).to_contain_text("process")


def test_what_is_looked_for_keeps_its_ink_and_the_rest_is_dimmed(app: App):
    drawn = Drawn(app)
    full = drawn.color_at(STREAM, 325_000)
    drawn.page.keyboard.press("/")
    drawn.page.keyboard.type("script")
    drawn.says("4 results")
    drawn.until(lambda: min(drawn.color_at(STREAM, 225_000)) > 200)  # the second kernel, on a light page
    drawn.until(lambda: drawn.color_at(STREAM, 325_000) == full)


def test_counters_tell_their_value_under_the_pointer(app: App):
    drawn = Drawn(app, run="memory", start=0, end=1_000_000)
    x, y = drawn.spot("Allocated memory", 400_000)
    drawn.page.mouse.move(x, y)
    expect(drawn.page.locator(".tip.on-canvas")).to_contain_text("768 MiB")
    drawn.page.mouse.move(drawn.spot("Allocated memory", 800_000)[0], y)
    expect(drawn.page.locator(".tip.on-canvas")).to_contain_text("256 MiB")
