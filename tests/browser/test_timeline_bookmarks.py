"""Bookmarks of the timeline: they stay drawn, are restored from the address, selected and removed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.timeline_page import Drawn

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.app import App

STREAM = "stream 7"
KERNEL = "Kernel, 30 µs, at 310 µs"


def labels(drawn: Drawn) -> Locator:
    """The letters in the ruler."""
    return drawn.page.get_by_role("list", name="Bookmark labels").locator("button[aria-pressed]")


def is_violet(ink: tuple[int, int, int]) -> bool:
    """Whether it is the color of bookmarks, which is neither that of the area nor that of idle gaps."""
    red, green, blue = ink
    return green < min(red, blue)


def drag(drawn: Drawn, start: int, end: int) -> None:
    drawn.page.mouse.move(*drawn.spot(STREAM, start))
    drawn.page.mouse.down()
    drawn.page.mouse.move(*drawn.spot(STREAM, end), steps=4)
    drawn.page.mouse.up()


def test_bookmarks_are_added_selected_and_removed(app: App):
    drawn = Drawn(app, end=500_000, slice="2")
    drawn.says(KERNEL)
    page = drawn.page
    page.keyboard.press("Shift+M")
    expect(labels(drawn)).to_have_text(["A 30 µs"])
    expect(labels(drawn)).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("/area=310000~340000~0(&|$)/.test(location.hash)")
    page.keyboard.press(",")
    drawn.says("Kernel, 20 µs, at 210 µs")
    page.keyboard.press("Shift+R")
    expect(labels(drawn)).to_have_text(["B 20 µs", "A 30 µs"])
    drag(drawn, 400_000, 470_000)
    drawn.says("2 bookmarks")
    expect(labels(drawn)).to_have_count(2)
    expect(labels(drawn).and_(page.locator("[aria-pressed=true]"))).to_have_count(0)
    page.wait_for_function("/marks=A~310000~340000~0,B~210000~230000~(&|$)/.test(decodeURIComponent(location.hash))")
    page.reload()
    app.settle()
    expect(labels(drawn)).to_have_text(["B 20 µs", "A 30 µs"])
    labels(drawn).nth(1).click()
    page.wait_for_function("/area=310000~340000~0(&|$)/.test(location.hash)")
    expect(page.get_by_role("button", name="Bookmark A", exact=True)).to_be_visible()
    page.keyboard.press("Delete")
    expect(labels(drawn)).to_have_text(["B 20 µs"])
    page.wait_for_function("!location.hash.includes('.area=')")
    page.go_back()
    expect(labels(drawn)).to_have_count(2)
    page.get_by_role("list", name="Bookmark labels").get_by_role("button", name="Remove bookmark B").click()
    expect(labels(drawn)).to_have_text(["A 30 µs"])


def test_a_bookmark_has_a_name_in_the_ruler_and_in_the_address(app: App):
    drawn = Drawn(app, end=500_000, slice="2")
    drawn.says(KERNEL)
    page = drawn.page
    page.keyboard.press("Shift+M")
    expect(labels(drawn)).to_have_text(["A 30 µs"])
    name = page.get_by_label("Name of bookmark A")
    name.fill("<b>slow~1, ä")
    name.press("Enter")
    expect(labels(drawn)).to_have_text(["A <b>slow~1, ä"])
    expect(page.get_by_role("button", name="Bookmark A <b>slow~1, ä", exact=True)).to_be_visible()
    page.wait_for_function("decodeURIComponent(location.hash).includes('marks=A%3A')")
    page.reload()
    app.settle()
    expect(labels(drawn)).to_have_text(["A <b>slow~1, ä"])
    expect(name).to_have_value("<b>slow~1, ä")
    name.fill("")
    name.press("Enter")
    expect(labels(drawn)).to_have_text(["A 30 µs"])


def test_what_was_dragged_last_is_bookmarked(app: App):
    drawn = Drawn(app, slice="2")
    drawn.says(KERNEL)
    page = drawn.page
    drag(drawn, 500_000, 700_000)
    page.wait_for_function("location.hash.includes('.area=')")
    area = drawn.place("area")
    page.keyboard.press("Shift+M")
    drawn.says("1 bookmark")
    expect(page.get_by_role("button", name="Bookmark A", exact=True)).to_be_visible()
    page.wait_for_function("location.hash.includes('.marks=')")
    assert drawn.place("area") == area
    bookmarks = page.get_by_role("region", name="Bookmarks", exact=True)
    page.keyboard.press("Shift+R")
    drawn.says("2 bookmarks")
    expect(bookmarks.get_by_role("listitem").last).to_contain_text("on all tracks")
    bookmarks.get_by_role("button", name="Select bookmark A").click()
    expect(page.get_by_role("button", name="Bookmark A", exact=True)).to_be_visible()
    bookmarks.get_by_role("button", name="Remove all 2").click()
    expect(bookmarks).to_have_count(0)
    expect(labels(drawn)).to_have_count(0)


def test_bookmarks_of_the_address_are_read_as_text_and_drawn_in_place(app: App):
    good, *bad = "A~700000~900000~", "B~9~5~", "<img src=x onerror=alert(1)>~0~9~", "C~0~1e999~", "A~0~9~"
    drawn = Drawn(app, marks=",".join([good, *bad]))
    expect(labels(drawn)).to_have_text(["A 200 µs"])
    drawn.until(lambda: is_violet(drawn.color_at(STREAM, 790_000)))
    assert not is_violet(drawn.color_at(STREAM, 610_000))
    drawn.page.keyboard.press("0")
    drawn.comes_to(lambda _start, end: end > 3_000_000)
    expect(labels(drawn)).to_have_text([re.compile("^A")])


def test_bookmarks_survive_another_view(app: App):
    drawn = Drawn(app, end=500_000, slice="2")
    drawn.says(KERNEL)
    page = drawn.page
    page.keyboard.press("Shift+M")
    expect(labels(drawn)).to_have_text(["A 30 µs"])
    page.get_by_role("button", name="Kernels", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Kernels")
    page.get_by_role("button", name="Timeline", exact=True).click()
    expect(labels(drawn)).to_have_text(["A 30 µs"])
    page.get_by_label("Span").select_option(index=1)
    drawn.says(re.compile("box"))
    expect(labels(drawn)).to_have_count(0)
