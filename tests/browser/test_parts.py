"""Several views on one page: parts, opened rows, and shared parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser.accessibility import violations
from browser.app import App

TIMES = [{"name": name, "kind": "number", "choices": []} for name in ("from_ns", "to_ns")]
DEVICE = {"name": "device", "kind": "number", "choices": []}
PHASE = {"name": "phase", "kind": "choice", "choices": ["all", "forward"]}
NAME = {"name": "name", "kind": "text", "choices": []}
COLUMNS = [
    {"name": "name", "kind": "text", "doc": "Name."},
    {"name": "device", "kind": "id", "doc": "Device."},
    {"name": "calls", "kind": "count", "doc": "Calls."},
]


def entry(name: str, parameters: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    blank = dict.fromkeys(("weight", "picture", "slices", "time", "reference"))
    named = {"id": name, "title": name.title(), "doc": f"The {name}.", "hint": "Record it."}
    return {
        **named,
        "entry": {"title": "Curves", "question": "What is on a page?", "section": "device", "figure": None},
        "place": {"kind": "tab", "label": name.title()},
        "comparable_columns": [],
        "columns": COLUMNS,
        "key": ["name"],
        "parameters": parameters,
        **blank,
        **fields,
    }


VIEWS = (
    entry("curve", [*TIMES, DEVICE]),
    entry("peaks", [*TIMES, PHASE], place={"kind": "part", "of": "curve"}),
    entry("lives", [DEVICE], place={"kind": "part", "of": "curve"}),
    entry("stacks", [NAME], place={"kind": "detail", "of": "lives", "also": []}),
)


def rows(query: dict[str, str]) -> dict[str, list[Any]]:
    """Three names on two devices; a chosen device leaves its own."""
    every = [("alpha", 0, 3), ("beta", 0, 2), ("gamma", 1, 1)]
    matching = [row for row in every if query.get("device") in (None, str(row[1]))]
    names, devices, calls = zip(*matching, strict=True)
    return {"name": [f"{query['view']} {name}" for name in names], "device": [*devices], "calls": [*calls]}


@pytest.fixture
def queries(fresh_app: App) -> Iterator[list[dict[str, str]]]:
    """The requests for the test views, which are answered here."""
    requests: list[dict[str, str]] = []

    def views(route: Route) -> None:
        route.fulfill(json=[*route.fetch().json(), *VIEWS])

    def view(route: Route) -> None:
        query = {name: value for name, (value,) in parse_qs(urlsplit(route.request.url).query).items()}
        if not any(view["id"] == query["view"] for view in VIEWS):
            return route.continue_()
        requests.append(query)
        answer = {"state": "ready", "view": query["view"], "columns": COLUMNS, "data": rows(query)}
        if query["view"] == "peaks":
            answer = {"state": "missing", "view": "peaks", "hint": "Record the memory."}
        return route.fulfill(json=answer)

    fresh_app.page.route("**/views?*", views)
    fresh_app.page.route("**/view?*", view)
    yield requests
    fresh_app.page.unroute_all(behavior="ignoreErrors")


def part(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def test_parts_stand_below_in_order_with_tools_of_their_own(fresh_app: App, queries: list[dict[str, str]]):
    page = fresh_app.open("curve")
    expect(page.locator(".part > h2")).to_have_text(["Peaks", "Lives"])
    expect(page.get_by_role("navigation").get_by_role("button", name="Lives")).to_have_count(0)
    part(page, "Lives").get_by_label("Filter rows").fill("beta")
    expect(part(page, "Lives").locator("tr.row")).to_have_count(1)
    expect(page.locator("tr.row", has_text="curve")).to_have_count(3)
    page.wait_for_function("location.hash.includes('lives.filter=beta')")
    page.reload()
    expect(part(page, "Lives").get_by_label("Filter rows")).to_have_value("beta")


def test_a_part_without_data_shows_its_hint_and_no_card(fresh_app: App, queries: list[dict[str, str]]):
    page = fresh_app.open("curve")
    expect(part(page, "Peaks").get_by_text("Record the memory.")).to_be_visible()
    expect(part(page, "Peaks").locator(".notice")).to_have_css("border-top-width", "0px")
    expect(part(page, "Peaks").get_by_role("heading")).to_have_count(1)
    expect(part(page, "Lives").locator("tr.row")).to_have_count(3)


def test_times_and_device_go_to_all_that_take_them(fresh_app: App, queries: list[dict[str, str]]):
    page = fresh_app.open("curve", **{"set.from_ns": "1000", "set.to_ns": "2500"})
    expect(page.locator(".zoom")).to_contain_text("Only 1 µs to 2.5 µs")
    ends = {query["view"]: (query.get("from_ns"), query.get("to_ns")) for query in queries}
    assert ends == {"curve": ("1000", "2500"), "peaks": ("1000", "2500"), "lives": (None, None)}
    page.get_by_role("button", name="Whole recording").click()
    expect(page.locator(".zoom")).to_have_count(0)
    fresh_app.settle()
    page.get_by_role("combobox", name="Device").select_option("1")
    expect(part(page, "Lives").locator("tr.row")).to_have_count(1)
    assert {query["view"] for query in queries if query.get("device") == "1"} == {"curve", "lives"}
    expect(page.get_by_label("Device").get_by_role("option")).to_have_text(["all", "0", "1"])
    page.go_back()
    expect(part(page, "Lives").locator("tr.row")).to_have_count(3)


def test_an_opened_row_shows_the_views_about_it(fresh_app: App, queries: list[dict[str, str]]):
    page = fresh_app.open("curve")
    part(page, "Lives").locator("tr.row", has_text="beta").click()
    detail = page.locator("details.about", has_text="Stacks")
    expect(detail.locator("tr.row")).to_have_count(3)
    assert [query["name"] for query in queries if query["view"] == "stacks"] == ["lives beta"]
    detail.locator("tr.row").nth(2).click()
    expect(detail.locator(".row-drawer")).to_be_visible()
    page.wait_for_function("location.hash.includes('stacks.row=2') && location.hash.includes('lives.row=1')")
    assert not violations(page)


def test_keys_go_to_the_table_in_use(fresh_app: App, queries: list[dict[str, str]], clipboard: Callable[[], str]):
    page = fresh_app.open("curve")
    page.keyboard.press("j")
    chosen = page.locator("tr.row[aria-selected=true]")
    expect(chosen).to_have_text(["curve alpha03"])
    part(page, "Lives").get_by_label("Filter rows").click()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(chosen).to_have_text(["curve alpha03", "lives beta02"])
    page.keyboard.press("/")
    page.keyboard.type("gamma")
    expect(part(page, "Lives").locator("tr.row")).to_have_text(["lives gamma11"])


def test_another_trace_keeps_filters_and_forgets_times(fresh_app: App, queries: list[dict[str, str]]):
    page = fresh_app.open("curve", **{"set.from_ns": "1", "set.to_ns": "2", "lives.filter": "beta", "lives.row": "1"})
    page.get_by_label("Span").select_option("9")
    expect(page.locator(".zoom")).to_have_count(0)
    expect(part(page, "Lives").get_by_label("Filter rows")).to_have_value("beta")
    page.wait_for_function("!location.hash.includes('lives.row')")
