"""Curves: their values, and how pointer and keys narrow the page to a time range."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.accessibility import violations
from browser.app import App


@pytest.fixture
def opened(app: App) -> Page:
    return app.open("memory_curve", run="memory")


def plot(page: Page, device: str = "cuda:0") -> Locator:
    return page.locator(".curves").first.get_by_role("slider", name=device)


def place(curve: Locator, share: float) -> tuple[float, float]:
    """A point of the page by the share of the time; the labels of the grid give the ends."""
    lines = curve.locator("line.zero").bounding_box()
    assert lines
    return lines["x"] + share * lines["width"], lines["y"] - 20


def dragged(page: Page, begin: float, end: float) -> None:
    page.mouse.move(*place(plot(page), begin))
    page.mouse.down()
    page.mouse.move(*place(plot(page), (begin + end) / 2))
    page.mouse.move(*place(plot(page), end))
    page.mouse.up()


def part(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def test_each_device_has_a_curve_with_its_peak_and_what_failed(opened: Page):
    expect(opened.locator(".curves").first.locator("figcaption b")).to_have_text(["cuda:0", "cpu"])
    expect(plot(opened).locator(".point text")).to_have_text(["peak 768 MiB", "out of memory 256 MiB"])
    expect(plot(opened).locator("text.name")).to_have_text(["Reserved", "Allocated"])
    expect(plot(opened, "cpu").locator(".point text")).to_have_text(["peak 64 B"])


def test_hovering_tells_exact_numbers(opened: Page):
    opened.mouse.move(*place(plot(opened), 0.45))
    expect(opened.get_by_role("tooltip")).to_contain_text("Allocated: 768 MiB (805")
    expect(opened.get_by_role("tooltip")).to_contain_text(re.compile(r"cuda:0 at 4[45]\d(\.\d)? µs"))
    opened.mouse.move(*place(plot(opened), 0.1))
    expect(opened.get_by_role("tooltip")).to_contain_text("Reserved: missing")
    opened.mouse.move(5, 5)
    expect(opened.get_by_role("tooltip")).to_have_count(0)


def test_dragging_narrows_the_whole_page_and_a_double_click_widens_it(opened: Page):
    dragged(opened, 0.65, 0.95)
    opened.wait_for_function("/set.from_ns=6[45]/.test(location.hash) && /set.to_ns=9[45]/.test(location.hash)")
    expect(plot(opened).locator(".point text")).to_have_text(["peak 256 MiB", "out of memory 256 MiB"])
    opened.get_by_role("tab", name="Events").click()
    expect(opened.locator("tr.row")).to_have_count(1)
    expect(opened.locator("tr.row")).to_contain_text("out of memory")
    opened.get_by_role("tab", name="Curve and peak").click()
    opened.mouse.dblclick(*place(plot(opened), 0.5))
    expect(opened.locator(".zoom")).to_have_count(0)
    opened.get_by_role("tab", name="Events").click()
    expect(opened.locator("tr.row")).to_have_count(3)


def test_a_click_alone_narrows_nothing(opened: Page):
    opened.mouse.click(*place(plot(opened), 0.5))
    expect(opened.get_by_role("tooltip")).to_be_visible()
    assert "from_ns" not in opened.evaluate("location.hash")


def test_keys_go_from_row_to_row_and_zoom(opened: Page):
    plot(opened).focus()
    for key in ("Home", "ArrowRight"):
        opened.keyboard.press(key)
    expect(plot(opened)).to_have_attribute("aria-valuenow", "1")
    expect(plot(opened)).to_have_attribute("aria-valuetext", re.compile("200 µs"))
    opened.keyboard.press("+")
    opened.wait_for_function("location.hash.includes('set.to_ns=450')")
    expect(opened.locator(".zoom")).to_be_visible()
    App(opened).settle()  # the curve of the selected time is redrawn
    plot(opened).focus()
    expect(plot(opened)).to_be_focused()
    opened.keyboard.press("0")
    expect(opened.locator(".zoom")).to_have_count(0)


def test_an_opened_allocation_is_marked_on_the_curve_of_its_device(opened: Page):
    opened.get_by_role("tab", name="Events").click()
    opened.locator("tr.row", has_text="aten::mm").first.click()
    opened.get_by_role("tab", name="Curve and peak").click()
    expect(plot(opened).locator(".moments text")).to_have_text(["Allocated", "Released"])
    expect(plot(opened, "cpu").locator(".moments text")).to_have_count(0)


def test_one_device_can_be_chosen(opened: Page):
    opened.get_by_role("combobox", name="Device").select_option("cpu")
    expect(opened.locator(".curves").first.locator("figcaption b")).to_have_text(["cpu"])
    expect(part(opened, "At the peak").locator("tr.row")).to_have_count(1)


def test_the_rows_of_a_curve_are_folded_at_first(opened: Page):
    expect(opened.get_by_role("treegrid", name="Memory")).to_have_count(0)
    opened.get_by_text("rows of the curve as a table").first.click()
    expect(opened.get_by_role("treegrid", name="Memory")).to_be_visible()
    opened.wait_for_function("location.hash.includes('rows=1')")
    opened.reload()
    expect(opened.get_by_role("treegrid", name="Memory")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["memory_curve", "gpu_activity"])
def test_curves_are_accessible(app: App, view: str, scheme: str):
    app.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page = app.open(view, run="memory")
    expect(plot(page, "cuda:0" if view == "memory_curve" else "Device 0")).to_be_visible()
    assert not violations(page)


def test_a_share_has_its_mean_and_a_level_has_none(app: App):
    page = app.open("gpu_activity")
    caption = page.locator("figcaption", has_text="GPU 0")
    expect(caption).to_contain_text(re.compile(r"Utilization [\d.]+\s% to [\d.]+\s%, mean [\d.]+\s%"))
    page = app.open("memory_curve", run="memory")
    expect(page.locator("figcaption").first).to_contain_text(" to ")
    expect(page.locator("figcaption", has_text="mean")).to_have_count(0)


def test_a_curve_keeps_the_focus_when_keys_zoom(opened: Page):
    plot = opened.get_by_role("slider").first
    plot.focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("+")
    expect(opened.locator(".zoom")).to_be_visible()
    expect(opened.locator("[aria-busy=true]")).to_have_count(0)
    expect(opened.get_by_role("slider").first).to_be_focused()
    opened.keyboard.press("0")
    expect(opened.locator(".zoom")).to_have_count(0)
