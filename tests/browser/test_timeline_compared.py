"""Two time ranges of the timeline compared: steps of the ruler, and an area with a bookmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.timeline_page import Drawn

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.app import App

LARGEST = "void <script>alert(1)</script>(int)"  # 30 µs in the first step, 60 in the second, 90 in the third


def step(drawn: Drawn, nth: int, *, shift: bool = False) -> None:
    """Clicks a step of the ruler; 0 to 4 ms are in sight."""
    box = drawn.page.locator(".head-canvas").bounding_box()
    assert box
    keys = drawn.page.keyboard
    if shift:
        keys.down("Shift")
    drawn.page.mouse.click(box["x"] + box["width"] * (nth + 0.4) / 4, box["y"] + 52)
    if shift:
        keys.up("Shift")


def compared(drawn: Drawn) -> Locator:
    return drawn.page.get_by_role("region", name="Areas compared")


def row(drawn: Drawn, name: str) -> list[str]:
    cells = compared(drawn).locator("tr.row", has_text=name).locator("td")
    return [cell.strip() for cell in cells.all_inner_texts()]


def test_shift_and_click_compare_a_step_with_the_one_that_was_clicked(app: App):
    drawn = Drawn(app, start=0, end=4_000_000, drawer="420")
    page = drawn.page
    step(drawn, 0)
    page.wait_for_function("/area=0~900000~(&|$)/.test(location.hash)")
    step(drawn, 1, shift=True)
    expect(compared(drawn).get_by_role("note")).to_contain_text("The area is as long as the base, A.")
    expect(compared(drawn).locator("tr.row").first).to_contain_text(LARGEST)
    name, category, *numbers = row(drawn, LARGEST)
    assert (name, category) == (LARGEST, "Kernel")
    assert numbers == ["+30", "30", "60", "+30", "30", "60", "0", "1", "1"]
    assert row(drawn, "ProfilerStep#")[2] == "0"
    step(drawn, 2, shift=True)
    expect(compared(drawn).locator("tr.row", has_text=LARGEST)).to_contain_text("+60")
    page.wait_for_function("/against=A(&|$)/.test(location.hash) && location.hash.includes('area=2000000~2900000~')")
    page.reload()
    app.settle()
    expect(compared(drawn).locator("tr.row", has_text=LARGEST)).to_contain_text("+60")
    step(drawn, 1)
    expect(page.get_by_role("region", name="Area, rank0")).to_be_visible()
    expect(compared(drawn)).to_have_count(0)


def test_an_area_is_compared_with_any_bookmark_on_its_own_tracks(app: App):
    marks = "A~0~900000~0,B~1000000~1900000~0"  # the stream alone
    drawn = Drawn(app, start=0, end=4_000_000, drawer="420", area="2000000~2900000~0", marks=marks)
    page = drawn.page
    choice = page.get_by_role("combobox", name="Compare with")
    choice.select_option("B, 900 µs")
    expect(compared(drawn).locator("tr.row")).to_have_count(3)
    expect(compared(drawn).locator("tr.row", has_text=LARGEST)).to_contain_text("+30")
    choice.select_option("A, 900 µs")
    expect(compared(drawn).locator("tr.row", has_text=LARGEST)).to_contain_text("+60")
    compared(drawn).get_by_label("Filter rows").fill("relu")
    expect(compared(drawn).locator("tr.row")).to_have_count(1)
    page.get_by_role("list", name="Bookmark labels").get_by_role("button", name="Remove bookmark A").click()
    expect(compared(drawn)).to_have_count(0)
    expect(choice).to_have_value("")


def test_ranks_are_compared_by_bookmarks_of_each(app: App):
    drawn = Drawn(app, ranks="rank1", drawer="420", area="0~900000~0", marks="A~0~900000~0.rank1", against="A")
    expect(compared(drawn).get_by_role("note")).to_contain_text("The two cover different tracks")
    expect(compared(drawn).locator("tr.row", has_text=LARGEST)).to_be_visible()
    assert row(drawn, LARGEST)[2:5] == ["0", "30", "30"]
