"""Trees and flame graphs, and the stacks of an operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.accessibility import violations
from browser.app import App


def shown(page: Page) -> list[str]:
    """The names of the rows in sight, without the marks that fold them."""
    return [name.lstrip("▾▸") for name in page.locator("tr.row td:first-child").all_inner_texts()]


def test_a_row_folds_by_its_mark_and_by_keys(app: App):
    page = app.open("modules", run="modules")
    assert shown(page) == ["Net_0", "Linear_0", "ReLU_0"]
    page.get_by_role("button", name="Fold Net_0").click()
    expect(page.locator("tr.row")).to_have_count(1)
    page.get_by_role("treegrid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("tr.row")).to_have_count(3)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("row", selected=True)).to_contain_text("Linear_0")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("row", selected=True)).to_contain_text("Net_0")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("tr.row")).to_have_count(1)


def test_a_tree_unfolds_level_by_level(app: App):
    page = app.open("python_calls", run="modules")
    page.get_by_role("button", name="None", exact=True).click()
    assert shown(page) == ["thread 1"]
    page.get_by_role("button", name="One level more").click()
    assert shown(page) == ["thread 1", "main"]
    page.get_by_role("button", name="All", exact=True).click()
    assert shown(page)[-1] == "aten::relu"


def test_a_filter_keeps_what_is_around_its_matches_and_sums_each_once(app: App):
    page = app.open("modules", run="modules", filter="linear")
    assert shown(page) == ["Net_0", "Linear_0"]
    expect(page.locator(".sums")).to_contain_text("1 of 3 rows")
    expect(page.locator(".sums")).to_contain_text("Device total 60 µs")
    app.go(view="modules", run="modules", worker="rank0", span="5")
    expect(page.locator(".sums")).to_contain_text("Device total 100 µs")


def test_siblings_sort_within_the_row_around_them(app: App):
    page = app.open("modules", run="modules", sort="device_total_ns")
    assert shown(page) == ["Net_0", "ReLU_0", "Linear_0"]


def box_at(page: Page, x: float, line: int) -> dict[str, float]:
    """A point in the flame graph: `x` from 0 to 1, in a line of boxes."""
    size = page.locator(".flames").bounding_box()
    assert size
    return {"x": x * size["width"], "y": 20 * line + 10}


def crumbs(page: Page) -> list[str]:
    """The way to the box that is zoomed to."""
    return page.get_by_role("navigation", name="Zoomed to").get_by_role("button").all_inner_texts()


def test_a_box_of_the_flame_graph_zooms_and_escape_goes_back(app: App):
    page = app.open("modules", run="modules")
    page.locator(".flames").click(position=box_at(page, 0.3, 1))
    expect(page.get_by_role("row", selected=True)).to_contain_text("Linear_0")
    assert crumbs(page) == ["Fit all", "Net_0", "Linear_0"]
    page.locator(".flames").focus()
    page.keyboard.press("Escape")
    assert crumbs(page) == ["Fit all", "Net_0"]
    page.keyboard.press("Escape")
    assert crumbs(page) == ["Fit all"]


def test_boxes_are_reached_by_keys_and_tell_their_numbers(app: App):
    page = app.open("modules", run="modules")
    page.locator(".flames").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    status = page.locator(".flames").get_by_role("status")
    expect(status).to_contain_text("ReLU_0")
    expect(status).to_contain_text("40 % of all")
    page.keyboard.press("Enter")
    assert crumbs(page) == ["Fit all", "Net_0", "ReLU_0"]


def test_a_search_sums_what_it_hits(app: App):
    page = app.open("modules", run="modules", filter="linear")
    expect(page.locator(".flame figcaption")).to_contain_text("1 match: 60 µs (60 %)")


def test_a_chain_of_calls_is_one_box_until_it_is_clicked(app: App):
    page = app.open("python_calls", run="chain")
    status = page.locator(".flames").get_by_role("status")
    page.locator(".flames").click(position=box_at(page, 0.5, 1))
    expect(status).to_have_text(re.compile(r"^main\ntrain"))
    page.locator(".flames").press("ArrowDown")
    expect(status).to_have_text(re.compile(r"^outer"))
    page.locator(".flames").press("ArrowUp")
    page.locator(".flames").press("Space")
    expect(status).to_contain_text("main › … 1 call … › inner")


def test_a_sandwich_has_the_callers_of_a_function_above_and_its_callees_below(app: App):
    page = app.open("modules", run="modules", flame="sandwich")
    functions = page.get_by_role("listbox", name="Functions")
    expect(functions.get_by_role("option", selected=True)).to_contain_text("Linear_0")
    caption = page.locator(".flame figcaption")
    expect(caption).to_contain_text("60 µs in all, 60 µs itself")
    page.locator(".flames").focus()
    page.keyboard.press("ArrowDown")
    status = page.locator(".flames").get_by_role("status")
    expect(status).to_contain_text("Linear_0")
    page.keyboard.press("ArrowUp")
    expect(status).to_contain_text("Net_0")
    functions.get_by_role("option").nth(1).click()
    expect(caption.locator("b")).to_have_text("ReLU_0")
    expect(caption).to_contain_text("40 µs in all")


def test_the_picture_of_a_flame_graph_has_its_boxes(app: App):
    page = app.open("modules", run="modules")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save by Device total as SVG").click()
    assert 'href="data:image/png' in Path(download.value.path()).read_text(encoding="utf-8")


def test_the_width_of_boxes_can_be_another_column(app: App):
    page = app.open("modules", run="modules")
    page.get_by_label("Width").select_option("Host total")
    expect(page.locator(".flame figcaption")).to_contain_text("300 µs in all")


def call_stacks(page: Page) -> Locator:
    """The call stacks in the drawer, unfolded."""
    about = page.locator("details.about", has_text="Call stacks")
    about.locator("summary").first.click()
    return about


def test_an_operator_tells_from_where_it_was_called(app: App, clipboard: Callable[[], str]):
    page = app.open("operators", run="modules", filter="linear")
    page.locator("tr.row").click()
    about = call_stacks(page)
    about.locator("tr.row").click()
    expect(about.locator(".stack li")).to_have_text(["nn.Module: Linear_0", "nn.Module: Net_0", "main (train.py:9)"])
    about.get_by_role("button", name="Copy stack").click()
    assert clipboard().splitlines()[-1] == "train.py(9): main"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["modules", "python_calls", "operators"])
def test_trees_and_stacks_are_accessible(app: App, view: str, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    page = app.open(view, run="modules")
    page.locator("tr.row").nth(1).click()
    if view == "operators":
        about = call_stacks(page)
        about.locator("tr.row").first.click()
        expect(about.locator(".stack li")).not_to_have_count(0)
    app.settle()
    assert not violations(page)
