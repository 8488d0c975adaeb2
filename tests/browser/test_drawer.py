"""The drawer of a row: what it says, and how it opens and closes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.accessibility import violations
from browser.app import App


def drawer(page: Page) -> Locator:
    return page.get_by_role("region", name=re.compile("^Details of a row of")).first


def section(page: Page, name: str) -> Locator:
    return drawer(page).get_by_role("region", name=name)


def test_a_row_opens_a_drawer_beside_the_table_and_moves_no_row(app: App):
    page = app.open("kernels")
    row = page.locator("tr.row").nth(1)
    before = row.bounding_box()
    row.click()
    expect(drawer(page)).to_be_visible()
    after, table, panel = (one.bounding_box() for one in (row, page.locator(".scroll"), drawer(page)))
    assert before
    assert after
    assert table
    assert panel
    assert after["y"] == before["y"]
    assert table["x"] + table["width"] <= panel["x"]


def test_who_launched_a_kernel_with_which_shapes_how_long_and_in_which_steps(app: App):
    page = app.open("kernels")
    page.locator("tr.row").nth(1).click()
    expect(section(page, "Launched by")).to_contain_text(re.compile(r"Operator.*aten::\w+.*100 %"))
    shapes = section(page, "Shapes and launch")
    expect(shapes).to_contain_text("[32, 8], [8] fp32")
    expect(section(page, "Its 4 calls by duration").locator(".durations text")).to_have_text(["20 µs", "80 µs"])
    expect(section(page, "By step").locator(".durations g")).to_have_count(4)
    section(page, "Its 4 calls").get_by_role("button", name="Slowest call in the timeline").click()
    expect(page.get_by_role("article", name=re.compile("^Slice")).locator(".facts").first).to_contain_text("80 µs")
    page.go_back()
    expect(drawer(page)).to_be_visible()


def test_the_address_is_the_state_and_escape_gives_the_focus_back(app: App):
    page = app.open("kernels")
    page.locator("tr.row").nth(0).click()
    expect(drawer(page)).to_contain_text("1 of 3")
    page.keyboard.press("ArrowDown")
    expect(drawer(page)).to_contain_text("2 of 3")
    drawer(page).get_by_role("button", name="Next row").click()
    expect(drawer(page)).to_contain_text("3 of 3")
    page.keyboard.press("Escape")
    expect(drawer(page)).to_have_count(0)
    expect(page.get_by_role("treegrid")).to_be_focused()
    expect(page.locator("tr.row[aria-selected=true]")).to_have_attribute("data-place", "2")
    page.go_back()
    expect(drawer(page)).to_contain_text("3 of 3")
    page.go_back()
    expect(drawer(page)).to_have_count(0)
    page.go_forward()
    expect(drawer(page)).to_be_visible()
    page.reload()
    expect(drawer(page)).to_contain_text("3 of 3")


def test_the_drawer_shows_what_the_table_does_not(app: App):
    page = app.open("kernels", row="0", open="1")
    facts = drawer(page).locator(".facts").first
    expect(drawer(page)).to_contain_text("Its 4 calls by duration")
    expect(facts.locator("dt").filter(has_text=re.compile("^Total$"))).to_have_count(0)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("group", name="Columns").get_by_label("Calls").uncheck()
    expect(drawer(page).locator("dt").filter(has_text=re.compile("^Calls$"))).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1360, 1024, 680], ids=["wide", "1024", "200 %"])
def test_the_drawer_is_accessible_and_covers_a_narrow_page(app: App, scheme: str, width: int):
    app.page.emulate_media(color_scheme=scheme)
    app.page.set_viewport_size({"width": width, "height": 860})
    page = app.open("operators")
    page.locator("tr.row").nth(0).click()
    expect(section(page, "Shapes and launch")).to_be_visible()
    box = drawer(page).bounding_box()
    assert box
    assert (box["width"] == width) == (width < 1100)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not violations(page)
    if width < 1100:
        expect(drawer(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(drawer(page)).to_have_count(0)
    expect(page.get_by_role("treegrid")).to_be_focused()
