"""The table: sorting, filtering, copying, charts, keys."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect

from browser.app import App

# WCAG 2's contrast ratio of a box's placeholder.
CONTRAST = """box => {
    const channel = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const luminance = ({ color, backgroundColor }, part) => {
        const [r, g, b] = (part ? color : backgroundColor).match(/[0-9.]+/g).map(value => channel(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const text = luminance(getComputedStyle(box, '::placeholder'), true), back = luminance(getComputedStyle(box), false);
    return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
}"""


def test_a_click_on_a_heading_sorts_and_another_turns_it_around(app: App):
    page = app.open("kernels")
    app.expect_column("Total", "300", "200", "100")
    heading = page.get_by_role("treegrid").first.get_by_role("columnheader", name="Total")
    expect(heading).to_have_attribute("aria-sort", "descending")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    app.expect_column("Total", "100", "200", "300")


def test_shift_adds_a_second_column(app: App):
    page = app.open("operators_by_shape")
    page.get_by_role("columnheader", name="Calls").get_by_role("button").click()
    page.get_by_role("columnheader", name="Name").get_by_role("button").click(modifiers=["Shift"])
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    assert app.column("Name") == sorted(app.column("Name"))


def test_the_filter_knows_words_exclusions_and_patterns(app: App):
    page = app.open("operators")
    box = page.get_by_label("Filter rows").first
    box.fill("aten -relu")
    expect(page.locator(".sums")).to_contain_text("1 of 3 rows")
    box.fill("re:add|relu")
    expect(page.locator(".sums")).to_contain_text("2 of 3 rows")
    box.fill("re:(")
    expect(page.get_by_role("alert")).to_contain_text("Invalid pattern")
    expect(page.locator(".sums")).to_contain_text("3 rows")


def test_copies_and_files_hold_exact_base_units_and_full_names(app: App, clipboard: Callable[[], str]):
    page = app.open("kernels", filter="relu_functor")
    page.get_by_role("button", name="Copy", exact=True).first.click()
    expect(page.get_by_text("1 row copied")).to_be_visible()
    header, row = (line.split("\t") for line in clipboard().splitlines())
    copied = dict(zip(header, row, strict=True))
    assert copied["total_ns"] == "100000"
    assert copied["name"].endswith("relu_functor<float>>(int, float*)")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").first.click()
    (saved,) = csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))
    assert saved == copied
    assert download.value.suggested_filename == "made.rank0.5.kernels.csv"


@pytest.mark.parametrize(("width", "columns"), [(1360, 3), (700, 1)], ids=["wide", "narrow"])
def test_sentences_are_shown_whole_on_as_many_lines_as_they_take(app: App, width: int, columns: int):
    app.page.set_viewport_size({"width": width, "height": 860})
    page = app.open("advice")
    rows = page.get_by_role("treegrid").first.locator("tr.row")
    expect(rows.last).to_contain_text("nothing to fix")
    cut = "cells => cells.filter(c => c.scrollHeight > c.clientHeight || c.textContent.includes('…')).length"
    expect(page.locator("td.prose")).to_have_count(
        columns * rows.count()
    )  # in narrow tables they stand below each other
    expect(page.locator("td.prose > div")).to_have_count(3 * rows.count())
    assert page.locator("td.prose").evaluate_all(cut) == 0
    boxes = [box for row in rows.all() if (box := row.bounding_box())]
    assert max(box["height"] for box in boxes) > 26
    ends = [box["y"] + box["height"] for box in boxes]
    assert ends[:-1] == pytest.approx([box["y"] for box in boxes[1:]])
    rows.nth(0).click()
    expect(page.locator(".row-drawer")).to_be_visible()


@pytest.mark.parametrize(
    ("width", "columns", "behind"),
    [(1440, 3, 0), (1024, 1, 0), (720, 1, 1)],
    ids=["large", "small", "twice as large on 1440 pixels"],
)
def test_all_sentences_and_the_saving_are_in_sight(app: App, width: int, columns: int, behind: int):
    app.page.set_viewport_size({"width": width, "height": 768})
    page = app.open("advice", run="many_steps")
    cells = page.locator("tr.row").first.locator("td")
    kinds = cells.evaluate_all("cells => cells.map(cell => cell.classList.contains('prose'))")
    before = len(kinds) - columns - behind
    assert (
        kinds == [False] * before + [True] * columns + [False] * behind
    )  # what has no room stands behind the sentences
    edges = [(box["x"], box["x"] + box["width"]) for cell in cells.all() if (box := cell.bounding_box())]
    table = page.locator(".scroll").first.bounding_box()
    assert table
    end = table["x"] + table["width"]
    assert edges[1][1] <= end  # the saving
    assert all(right - left >= 140 and right <= end + 1 for left, right in edges[before : before + columns])
    assert all(left >= end - 24 for left, _ in edges[before + columns :])
    expect(cells.nth(before + columns - 1)).to_contain_text("Action" if columns == 1 else re.compile("."))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_an_empty_box_asks_for_can_be_read(app: App, scheme: Literal["light", "dark"]):
    app.page.emulate_media(color_scheme=scheme)
    page = app.open("kernels")
    assert page.get_by_label("Filter rows").evaluate(CONTRAST) >= 4.5


def many_operators() -> dict[str, object]:
    """An answer with a hundred thousand rows."""
    count = 100_000
    data = {"name": [f"aten::op{i}" for i in range(count)], "host_self_ns": list(range(count, 0, -1))}
    columns = [
        {"name": "name", "kind": "text", "doc": "Name."},
        {"name": "host_self_ns", "kind": "duration", "doc": "Self."},
    ]
    return {"state": "ready", "view": "operators", "columns": columns, "data": data}


def test_a_hundred_thousand_rows_draw_the_few_in_sight(fresh_app: App):
    fresh_app.page.route("**/view?view=operators&*", lambda route: route.fulfill(json=many_operators()))
    page = fresh_app.open("operators")
    expect(page.locator(".sums")).to_contain_text("100\u202f000 rows")
    assert page.locator("tr.row").count() <= 60
    page.locator(".scroll").evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(page.get_by_role("cell", name="aten::op99999").or_(page.get_by_text("aten::op99999"))).not_to_have_count(0)
    assert page.locator("tr.row").count() <= 60
    page.get_by_label("Filter rows").first.fill("op4242")
    expect(page.locator(".sums")).to_contain_text("11 of 100\u202f000 rows")


SCROLL_FAR = "document.querySelector('.scroll').scrollTop = 1e6"
SORT = "document.querySelectorAll('.scroll th button')[1].click()"
DRAWN = "() => [...document.querySelectorAll('tr.row')].map(row => [+row.dataset.place, row.id])"
# The rows at the bottom and the top of the box, and all rows, in the first frame that differs after what a hand does.
AFTER = """act => new Promise(done => {
    const box = document.querySelector(".scroll"), { left, top, bottom } = box.getBoundingClientRect();
    const before = String((DRAWN)());
    const look = () => {
        const rows = [top + 60, Math.min(bottom, innerHeight) - 20]
            .map(y => document.elementFromPoint(left + 20, y).closest("tr.row"));
        const drawn = (DRAWN)();
        if (String(drawn) === before) requestAnimationFrame(look);
        else done({ inSight: rows.map(row => [+row.dataset.place, row.id]), drawn });
    };
    new Function(act)();
    requestAnimationFrame(look);
})""".replace("DRAWN", DRAWN)


@pytest.mark.parametrize(("act", "row_at"), [(SCROLL_FAR, lambda place: place), (SORT, lambda place: 99_999 - place)])
def test_rows_in_sight_are_drawn_before_those_around_them(fresh_app: App, act: str, row_at: Callable[[int], int]):
    fresh_app.page.route("**/view?view=operators&*", lambda route: route.fulfill(json=many_operators()))
    page = fresh_app.open("operators")
    before = page.evaluate(DRAWN)
    after = page.evaluate(AFTER, act)
    is_right = [identity == f"row-{row_at(place)}" for place, identity in after["inSight"]]
    assert all(is_right), after["inSight"]
    assert any(row in before for row in after["drawn"]), "rows out of sight wait"
    page.wait_for_function(
        f"before => !({DRAWN})().some(row => before.includes(String(row)))", arg=list(map(_text, before))
    )
    drawn = page.evaluate(DRAWN)
    places = [place for place, _ in drawn]
    assert places == list(range(places[0], places[0] + len(before)))
    assert [identity for _, identity in drawn] == [f"row-{row_at(place)}" for place in places]


# Remembers what is shown whenever anything changes: the count, the first rows, and how the first column is sorted.
WATCH = """() => {
    globalThis.shown = [];
    const look = () => {
        const first = [0, 1, 2].map(place => document.querySelector(`tr.row[data-place="${place}"]`)?.id);
        const count = document.querySelector(".sums b").textContent, heading = document.querySelector(".scroll th");
        const now = [count.replaceAll("\u202f", ""), ...first, heading.getAttribute("aria-sort") ?? "unsorted"].join(" ");
        if (now !== shown.at(-1)) shown.push(now);
    };
    const everything = { subtree: true, childList: true, attributes: true, characterData: true };
    new MutationObserver(look).observe(document.querySelector("main"), everything);
    look();
}"""
TYPED = "box.dispatchEvent(new InputEvent('input', { bubbles: true }))"
SORT_BY_NAME = "document.querySelector('.scroll th button').click();"


def typing(text: str) -> str:
    """JavaScript that enters a filter."""
    return f"{{ const box = document.querySelector('.filter input'); box.value = '{text}'; {TYPED}; }}"


@pytest.mark.parametrize(
    ("acts", "last"),
    [
        (typing("op99") + typing("op4242"), "11 of 100000 rows row-4242 row-42420 row-42421 unsorted"),
        (
            typing("op1") + SORT_BY_NAME + typing("op4242") + SORT_BY_NAME,
            "11 of 100000 rows row-42429 row-42428 row-42427 descending",
        ),
        (SORT_BY_NAME * 2, "100000 rows row-99999 row-99998 row-99997 descending"),
        (SORT_BY_NAME * 3, "100000 rows row-0 row-1 row-2 ascending"),
    ],
    ids=["two filters", "filters and orders", "an order turned around", "the same order again"],
)
def test_the_rows_before_stay_until_those_of_the_newest_request_are_found(fresh_app: App, acts: str, last: str):
    fresh_app.page.route("**/view?view=operators&*", lambda route: route.fulfill(json=many_operators()))
    page = fresh_app.open("operators")
    page.evaluate(WATCH)
    page.evaluate(acts)
    page.wait_for_function("last => shown.at(-1) === last", arg=last)
    page.wait_for_timeout(500)  # dropped work would have been shown by then
    assert page.evaluate("shown") == ["100000 rows row-0 row-1 row-2 unsorted", last]


def _text(row: list[object]) -> str:
    """A row as JavaScript's String() writes it."""
    return ",".join(map(str, row))


BARS = """() => [...document.querySelectorAll('tr.row')].map(row => {
    const { backgroundPositionX, backgroundSize } = getComputedStyle(row.querySelector('td.share'));
    return [backgroundPositionX, backgroundSize];
})"""


def test_a_bar_is_as_long_as_its_value_and_begins_where_a_full_one_does(app: App):
    page = app.open("kernels")
    app.expect_column("Total", "300", "200", "100")
    full, *others = page.evaluate(BARS)
    assert full == ["calc(100% - 10px)", "48px 8px"]
    assert others == [["calc(100% - 26px)", "32px 8px"], ["calc(100% - 42px)", "16px 8px"]]


def test_cells_stand_below_their_headings(app: App):
    page = app.open("kernels")
    edges = "cells => cells.map(cell => { const { left, right } = cell.getBoundingClientRect(); return [left, right] })"
    headings = page.locator(".scroll").first.locator("th").evaluate_all(edges)
    assert headings == page.locator(".scroll").first.locator("tr.row").first.locator("td").evaluate_all(edges)


def test_columns_are_chosen_and_the_address_has_them(app: App):
    page = app.open("kernels")
    headings = page.get_by_role("columnheader")
    before = headings.count()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("group", name="Columns").get_by_label("Max").uncheck()
    expect(headings).to_have_count(before - 1)
    expect(page.get_by_role("columnheader", name="Max")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Columns")).to_be_hidden()
    page.wait_for_function("location.hash.includes('columns=max_ns')")
    page.reload()
    expect(headings).to_have_count(before - 1)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("button", name="Reset").click()
    expect(headings).to_have_count(before)


def test_columns_with_one_value_are_hidden_until_they_are_chosen(fresh_app: App):
    columns = [
        {"name": "name", "kind": "text", "doc": "Name."},
        {"name": "device", "kind": "id", "doc": "Device."},
        {"name": "calls", "kind": "count", "doc": "Calls."},
    ]
    data = {"name": [f"gemm{i}" for i in range(9)], "device": [3] * 9, "calls": [1] * 9}
    answer = {"state": "ready", "view": "kernels", "columns": columns, "data": data}
    fresh_app.page.route("**/view?view=kernels&*", lambda route: route.fulfill(json=answer))
    page = fresh_app.open("kernels")
    device = page.get_by_role("treegrid").get_by_role("columnheader", name="Device")
    expect(device).to_have_count(0)
    expect(page.locator(".sums")).to_contain_text("1 column hidden")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("group", name="Columns").get_by_label("Device").check()
    expect(device).to_have_count(1)
    expect(page.locator(".sums")).not_to_contain_text("hidden")
    page.get_by_role("button", name="Reset").click()
    expect(device).to_have_count(0)


def test_columns_are_resized_by_hand_and_by_keys(app: App):
    page = app.open("kernels")
    name = page.get_by_role("columnheader", name="Name")
    width = name.bounding_box()["width"]
    edge = name.locator(".edge").bounding_box()
    page.mouse.move(edge["x"] + 3, edge["y"] + 20)
    page.mouse.down()
    page.mouse.move(edge["x"] - 97, edge["y"] + 20, steps=4)
    page.mouse.up()
    page.wait_for_function("location.hash.includes('widths=name')")
    assert name.bounding_box()["width"] == pytest.approx(width - 100, abs=2)
    name.get_by_role("button").focus()
    page.keyboard.press("Alt+ArrowRight")
    page.wait_for_function(f"document.querySelector('th').offsetWidth > {width - 90}")
    assert name.bounding_box()["width"] == pytest.approx(width - 84, abs=2)
    expect(name).not_to_have_attribute("aria-sort", re.compile("."))
    name.locator(".edge").dblclick()
    page.wait_for_function("!location.hash.includes('widths')")
    assert name.bounding_box()["width"] == pytest.approx(width, abs=2)


def test_a_table_says_that_it_goes_on_to_the_right(app: App):
    app.page.set_viewport_size({"width": 900, "height": 700})
    page = app.open("kernels")
    frame = page.locator(".fading").first
    expect(frame).to_have_class(re.compile("more"))
    name = page.get_by_role("columnheader").first
    left = name.bounding_box()["x"]
    frame.locator(".scroll").evaluate("box => box.scrollTo(box.scrollWidth, 0)")
    expect(frame).not_to_have_class(re.compile("more"))
    assert name.bounding_box()["x"] == left


def test_everything_goes_by_keyboard(app: App, clipboard: Callable[[], str]):
    page = app.open("overview")
    page.keyboard.press("g")
    page.keyboard.press("k")
    expect(page.get_by_role("heading", level=1)).to_have_text("Kernels")
    app.settle()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr.row[aria-selected=true]")).to_contain_text("GEMM cuBLAS")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    drawer = page.get_by_role("region", name="Details of a row of Kernels")
    expect(drawer).to_contain_text("1 of 3")
    page.get_by_role("button", name="Copy name").click()
    assert clipboard() == "void <script>alert(1)</script>(int)"
    page.locator("main h1").click()
    page.keyboard.press("Enter")
    expect(drawer).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("jk")
    expect(page.get_by_label("Filter rows").first).to_have_value("jk")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Filter the rows")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_heading_explains_itself_on_focus(app: App):
    page = app.open("kernels")
    page.get_by_label("Filter rows").first.focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('th') !== null"):
            break
    expect(page.get_by_role("tooltip").filter(has_text="Click sorts")).to_be_visible()


def test_a_tip_has_names_in_the_type_of_code(app: App):
    page = app.open("operators")
    page.get_by_role("tab", name="Operators", exact=True).hover()
    tip = page.get_by_role("tooltip")
    expect(tip.locator("code")).to_have_text("[unattributed]")
    expect(tip).not_to_contain_text("`")


def test_the_step_chart_tells_each_step_by_arrow_keys(app: App):
    page = app.open("overview", run="many_steps")
    chart = page.get_by_role("slider", name="Step time breakdown")
    chart.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tooltip")).to_contain_text("Step 1")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tooltip")).to_contain_text("Step 2")


def test_notes_of_trace_health_are_sorted_by_level_and_wide_enough_to_read_at_200_percent(app: App):
    app.page.set_viewport_size({"width": 720, "height": 900})
    page = app.open("health")
    expect(page.locator("td.prose").first).to_be_visible()
    expect(page.locator("th[aria-sort]")).to_have_count(0)
    assert all(note.bounding_box()["width"] >= 200 for note in page.locator("td.prose").all())


def test_categories_that_take_nothing_of_any_step_are_hidden(app: App):
    page = app.open("steps", run="cpu_only")
    expect(page.get_by_role("columnheader", name="CPU Exec")).to_have_count(1)
    expect(page.get_by_role("columnheader", name="Kernel")).to_have_count(0)
    expect(page.locator(".sums")).to_contain_text("columns hidden")
    page.locator(".columns summary").click()
    page.get_by_label("Kernel", exact=True).check()
    expect(page.get_by_role("columnheader", name="Kernel")).to_have_count(1)


def test_another_run_keeps_view_filter_and_order(app: App):
    page = app.open("operators", filter="aten", sort="-calls")
    page.get_by_label("Span").select_option("9")
    expect(page.locator(".sums")).to_contain_text("2 of 3 rows")
    page.get_by_label("Run").select_option("cpu_only")
    app.settle()
    expect(page.get_by_role("heading", level=1)).to_have_text("Operators")
    expect(page.get_by_label("Filter rows").first).to_have_value("aten")
    expect(page.get_by_role("columnheader", name="Calls")).to_have_attribute("aria-sort", "descending")


def test_an_address_of_no_view_says_so_and_offers_the_nearest(app: App):
    page = app.open("kernls")
    expect(page.locator(".banner")).to_contain_text("There is no view “kernls”.")
    page.get_by_role("button", name="Open Kernels").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Kernels")
    expect(page.locator(".banner")).to_have_count(0)
