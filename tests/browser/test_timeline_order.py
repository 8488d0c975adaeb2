"""The order of workers, processes, threads and streams in the timeline, by pointer and by keyboard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.timeline_page import Drawn

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.app import App

GPU, HOST = re.compile("GPU 0"), re.compile("process 1")


def heads(drawn: Drawn, kind: str) -> Locator:
    return drawn.page.locator(f".gutter li.of-{kind}")


def carry(drawn: Drawn, what: Locator, y: float) -> None:
    """Drags the head of a line to a height on the page."""
    box = what.bounding_box()
    assert box
    mouse = drawn.page.mouse
    mouse.move(box["x"] + 40, box["y"] + 8)
    mouse.down()
    mouse.move(box["x"] + 40, (box["y"] + y) / 2)
    mouse.move(box["x"] + 40, y)
    expect(drawn.page.locator(".gutter .drop")).to_be_visible()
    mouse.up()
    expect(drawn.page.locator(".gutter .drop")).to_have_count(0)


def test_a_process_is_moved_by_the_keyboard_and_back_to_its_natural_place(app: App):
    drawn = Drawn(app)
    page = drawn.page
    processes = heads(drawn, "process")
    expect(processes).to_have_text([GPU, HOST])
    host = processes.nth(1).get_by_role("button")
    host.focus()
    page.keyboard.press("Alt+ArrowUp")
    expect(processes).to_have_text([HOST, GPU])
    expect(processes.nth(0).get_by_role("button")).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")  # it can't go further
    page.wait_for_function("location.hash.includes('.order=')")
    page.reload()
    app.settle()
    expect(processes).to_have_text([HOST, GPU])
    page.get_by_role("button", name="Natural order").click()
    expect(processes).to_have_text([GPU, HOST])
    expect(page.get_by_role("button", name="Natural order")).to_have_count(0)
    page.wait_for_function("!location.hash.includes('.order=')")


def test_the_tree_ends_where_the_drawer_begins_and_the_wheel_scrolls_it_to_its_end(app: App):
    drawn = Drawn(app, ranks="rank1", drawer="460")
    drawn.page.keyboard.press("q")
    expect(drawn.page.get_by_role("slider", name="Height of the drawer")).to_be_visible()

    def bottom(what: Locator) -> float:
        box = what.bounding_box()
        return box["y"] + box["height"] if box else float("inf")

    tabs, last = drawn.page.locator(".drawer"), drawn.page.locator(".gutter .scrolled li").last
    drawn.until(lambda: bottom(drawn.canvas) <= (tabs.bounding_box() or {"y": 0})["y"] + 1)
    heads(drawn, "source").first.hover()
    drawn.page.mouse.wheel(0, 5000)
    expect(heads(drawn, "source").filter(has_text="rank0")).not_to_be_in_viewport()
    drawn.until(lambda: bottom(last) <= bottom(drawn.canvas) + 1)


def test_a_process_is_dragged_below_another_and_isn_t_folded_by_that(app: App):
    drawn = Drawn(app)
    processes = heads(drawn, "process")
    expect(processes).to_have_text([GPU, HOST])
    canvas = drawn.canvas.bounding_box()
    assert canvas
    carry(drawn, processes.first, canvas["y"] + canvas["height"] - 60)
    expect(processes).to_have_text([HOST, GPU])
    expect(processes.nth(1).get_by_role("button")).to_have_attribute("aria-expanded", "true")
    expect(heads(drawn, "axis").filter(has_text="stream 7")).to_have_count(1)
    box = processes.first.bounding_box()
    assert box
    carry(drawn, processes.nth(1), box["y"] - 2)
    expect(processes).to_have_text([GPU, HOST])
    drawn.page.wait_for_function("!location.hash.includes('.order=')")


def test_workers_and_pinned_streams_change_places_too(app: App):
    drawn = Drawn(app, ranks="rank1")
    page = drawn.page
    workers = heads(drawn, "source")
    expect(workers).to_have_text([re.compile("rank0"), re.compile("rank1")])
    workers.nth(1).get_by_role("button").hover()
    page.keyboard.press("Alt+ArrowUp")
    expect(workers).to_have_text([re.compile("rank1"), re.compile("rank0")])
    page.wait_for_function("location.hash.includes('.order=s.rank1')")
    pinned = page.get_by_role("list", name="Pinned tracks").locator("li.of-axis")
    for count in (1, 2):
        page.get_by_role("list", name="Tracks", exact=True).get_by_role(
            "button", name="Pin stream 7"
        ).first.dispatch_event("click")
        expect(pinned).to_have_count(count)
    first, second = (pinned.nth(place).get_attribute("data-line") for place in (0, 1))
    assert [first, second] == ["a0.rank1", "a0"]
    pinned.nth(1).locator("button.name").focus()
    page.keyboard.press("Alt+ArrowUp")
    expect(pinned.nth(0)).to_have_attribute("data-line", "a0")
    expect(pinned.nth(1)).to_have_attribute("data-line", "a0.rank1")
