"""Keys and pixels of the timeline that few use at first: tools, lanes above and below, marks on all tracks, tinted gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import App, HeldResponses
from browser.timeline_page import LANE, Drawn

if TYPE_CHECKING:
    from playwright.sync_api import Page

STREAM = "stream 7"
KERNEL = "Kernel, 30 µs, at 310 µs"


def drag(drawn: Drawn, start: int, end: int, down: int = 0) -> None:
    x, y = drawn.spot(STREAM, start)
    drawn.page.mouse.move(x, y)
    drawn.page.mouse.down()
    drawn.page.mouse.move(drawn.spot(STREAM, end)[0], y + down, steps=4)
    drawn.page.mouse.up()


def test_digits_choose_what_dragging_does(app: App):
    drawn = Drawn(app)
    stage = drawn.page.locator(".stage")
    drawn.page.keyboard.press("2")
    expect(stage).to_have_attribute("data-mode", "pan")
    drag(drawn, 600_000, 500_000)
    drawn.comes_to(lambda start, end: start == pytest.approx(100_000, rel=0.01) and end - start == 1_000_000)
    drawn.page.keyboard.press("3")
    expect(stage).to_have_attribute("data-mode", "zoom")
    drag(drawn, 600_000, 600_000, down=-60)
    drawn.comes_to(lambda start, end: 100_000 < start < 600_000 < end < 1_100_000)
    drawn.page.keyboard.press("1")
    expect(stage).to_have_attribute("data-mode", "area")
    drag(drawn, 550_000, 650_000)
    drawn.says("area of")


def test_shift_and_arrows_go_from_lane_to_lane(app: App):
    drawn = Drawn(app, slice="2")
    drawn.says(KERNEL)
    drawn.page.keyboard.press("Shift+ArrowDown")
    drawn.says("selected: Step 1")
    drawn.click("calls", 125_000)
    drawn.says("selected: aten::relu")
    drawn.page.keyboard.press("Shift+ArrowUp")
    drawn.says("selected: Step 1")


def test_every_goal_of_an_arrow_is_reached(app: App):
    drawn = Drawn(app, slice="2", drawer="260")
    drawn.says(KERNEL)
    page = drawn.page
    page.keyboard.press("Shift+ArrowDown")
    drawn.says("selected: Step 1")
    place = page.locator(".details .flow-position")
    expect(page.get_by_role("article", name="Slice Step 1")).to_be_visible()
    for nth, start in enumerate(("110", "210", "310", "110")):
        page.keyboard.press("]")  # a kernel leads nowhere: then the next one of those of the step
        drawn.says(f"at {start} µs")
        expect(place).to_contain_text(f"{nth % 3 + 1} of 3 that Step 1 leads to")
    page.keyboard.press("Shift+{")
    drawn.says("at 310 µs")
    page.keyboard.press("Shift+}")
    drawn.says("at 110 µs")
    page.keyboard.press("[")
    drawn.says("selected: cudaLaunchKernel")
    expect(place).to_contain_text("1 of 2 that lead to")
    page.keyboard.press("[")
    drawn.says("selected: aten::relu")


def test_keys_that_are_faster_than_the_answers_lead_as_far(fresh_app: App):
    drawn = Drawn(fresh_app, slice="2")
    drawn.says(KERNEL)
    page = drawn.page
    held = HeldResponses(page, "**/timeline/slice?*")
    for key in (",", ",", "m"):
        page.keyboard.press(key)
    held.wait_for_request()
    held.release()
    drawn.says("Kernel, 10 µs, at 110 µs; area of 10 µs")


def test_r_marks_on_all_tracks_what_m_marks_on_one(app: App):
    drawn = Drawn(app, slice="2")
    drawn.says(KERNEL)
    drawn.page.keyboard.press("m")
    drawn.says("area of 30 µs")
    drawn.page.wait_for_function("/area=310000~340000~0(&|$)/.test(location.hash)")
    drawn.page.keyboard.press("r")
    drawn.page.wait_for_function("/area=310000~340000~(&|$)/.test(location.hash)")


def test_the_time_in_which_the_device_waits_is_tinted(app: App):
    drawn = Drawn(app)

    def is_tinted() -> bool:
        red, green, blue = drawn.color_at(STREAM, 160_000)  # the first kernel has ended, and the second hasn't begun
        return red > max(green, blue) + 5

    drawn.until(is_tinted)


def pixels(drawn: Drawn, worker: int, start: int, end: int) -> list[int]:
    """The picture around a time of a worker's stream."""
    line = drawn.page.locator(".gutter li", has_text=STREAM).nth(worker).bounding_box()
    box = drawn.canvas.bounding_box()
    assert line
    assert box
    left, right = (round(drawn.spot(STREAM, time)[0] - box["x"]) for time in (start, end))
    code = "(canvas, [x, y, w, h]) => [...canvas.getContext('2d').getImageData(x, y, w, h).data]"
    return drawn.canvas.evaluate(code, [left - 4, round(line["y"] - box["y"]), right - left + 8, LANE])


LATE_CLOCKS = """
const soon = globalThis.fetch;
const isLate = address => String(address).includes("view=clocks");
const late = () => new Promise(done => setTimeout(done, 3000));
globalThis.fetch = async (...request) => { if (isLate(request[0])) await late(); return await soon(...request); };
"""


def test_a_worker_moves_when_its_clock_is_the_last_to_arrive(fresh_app: App):
    fresh_app.page.add_init_script(LATE_CLOCKS)
    drawn = Drawn(fresh_app, run="ranks", worker="rank0", span="5", ranks="rank1")
    collective = (300_000, 340_000)  # on both workers, once their clocks are compared
    drawn.until(lambda: pixels(drawn, 0, *collective) == pixels(drawn, 1, *collective))


def test_pointing_at_a_collective_marks_it_on_the_other_ranks(app: App):
    drawn = Drawn(app, run="ranks", worker="rank0", span="5", ranks="rank1")
    other = (300_000, 340_000)  # its first collective too, from which a clock offset of 0.6 ms is inferred
    drawn.until(lambda: pixels(drawn, 0, *other) == pixels(drawn, 1, *other))
    before = pixels(drawn, 1, *other)
    drawn.page.mouse.move(*drawn.spot(STREAM, 320_000))
    drawn.until(lambda: pixels(drawn, 1, *other) != before)
    drawn.page.mouse.move(*drawn.spot(STREAM, 100_000))
    drawn.until(lambda: pixels(drawn, 1, *other) == before)


@pytest.fixture
def sharp_page(browser, base_url: str) -> Page:
    context = browser.new_context(base_url=base_url, device_scale_factor=2, viewport={"width": 1300, "height": 700})
    yield context.new_page()
    context.close()


def test_a_screen_of_high_density_gets_all_its_pixels(sharp_page: Page):
    drawn = Drawn(App(sharp_page))
    box = drawn.canvas.bounding_box()
    assert box
    size = drawn.canvas.evaluate("canvas => [canvas.width, canvas.height]")
    assert size == pytest.approx([2 * box["width"], 2 * box["height"]], abs=2)
    edge = (drawn.spot(STREAM, 310_000)[0] - box["x"]) * 2  # where the third kernel begins, in the screen's pixels
    y = (drawn.spot(STREAM, 310_000)[1] - box["y"]) * 2
    code = "(canvas, [x, y, w]) => [...canvas.getContext('2d').getImageData(x, y, w, 1).data]"
    inks = drawn.canvas.evaluate(code, [round(edge) - 3, round(y), 6])
    assert inks[:4] != inks[-4:]
