"""The original event that a finding is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from browser.accessibility import violations
from browser.app import App
from browser.traces import backwards

PLACE = {"run": "backwards", "worker": "rank0", "span": "5"}
START = backwards().index('{"ph": "X", "cat": "cpu_op", "name": "void')
EVENT = backwards()[START:]
EVENT = EVENT[: json.JSONDecoder().raw_decode(EVENT)[1]]


def screenshot(page: Page, path: Path) -> None:
    """Saves a screenshot, and fails if the page is not accessible."""
    page.get_by_role("region", name="Event at byte").scroll_into_view_if_needed()
    page.screenshot(path=path)
    assert page.locator(".row-drawer").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert not violations(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_diagnostic_shows_its_event(app: App, clipboard: Callable[[], str], artifacts: Path, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    page = app.open("health", **PLACE)
    page.locator("tr.row", has_text="negative duration").click()
    page.get_by_role("button", name=f"Show the event at byte {START}").focus()
    page.keyboard.press("Enter")
    event = page.get_by_role("region", name=f"Event at byte {START}")
    expect(event.get_by_role("heading").first).to_contain_text("void <script>alert(1)</script>")
    expect(event).to_contain_text("Category cpu_op")
    rows = dict(zip(event.locator("dt").all_inner_texts(), event.locator("dd").all_inner_texts(), strict=True))
    assert rows["dur"] == "-0.005"
    assert rows["External id"] == "9223372036854775807"
    assert rows["Input Dims"] == "[[32, 8], [8]]"
    assert rows["Call stack"] == "train.py(7): step\n<img src=x onerror=alert(1)>"
    assert rows["Concrete Inputs"].splitlines()[:2] == ["{", f'  "input 0": {list(range(12))},']
    assert event.locator("img, script").count() == 0
    expect(event).to_contain_text(f"Bytes {START} to {START + len(EVENT) - 1}")
    event.get_by_role("button", name="Copy the original").click()
    expect(event.get_by_text("characters copied")).to_be_visible()
    assert clipboard() == EVENT
    screenshot(page, artifacts / f"event-{scheme}.png")
    page.get_by_role("button", name="Hide the event").click()
    expect(event).to_have_count(0)


def test_the_address_keeps_the_event_open(app: App):
    page = app.open("health", **PLACE)
    page.locator("tr.row", has_text="negative duration").click()
    page.get_by_role("button", name="Show the event").click()
    page.wait_for_function("location.hash.includes('open=event')")
    page.reload()
    expect(page.get_by_role("region", name="Event at byte")).to_contain_text("5 arguments")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("state", "answer", "text"),
    [
        (
            "none",
            {
                "state": "failed",
                "code": "not_found",
                "message": "There is no event that begins at byte '220'; there is one at 49.",
            },
            f"No event begins at byte {START}",
        ),
        (
            "failed",
            {"state": "failed", "code": "trace_error", "message": "a.json: the file has changed since it was read."},
            "The event can't be shown",
        ),
        (
            "damaged",
            {
                "state": "ready",
                "offset": START,
                "length": 30,
                "text": '{"name": "aten::add", "ts": 1}}',
                "value": None,
                "problem": "This event is damaged at byte 30; its text is shown as recorded.",
            },
            "This event is damaged at byte 30",
        ),
    ],
)
def test_the_wait_for_an_event_ends_in_words(
    fresh_app: App, artifacts: Path, state: str, answer: dict[str, object], text: str, scheme: str
):
    fresh_app.page.emulate_media(color_scheme=scheme)
    unknown = dict.fromkeys(("fraction", "bytes_per_second", "seconds_left"))
    is_there = False

    def reply(route: Route) -> None:
        loading = {"state": "loading", "progress": {"stage": "searching", **unknown}}
        route.fulfill(json=answer if is_there else loading)

    fresh_app.page.route("**/event?*", reply)
    page = fresh_app.open("health", **PLACE)
    page.locator("tr.row", has_text="negative duration").click()
    page.get_by_role("button", name="Show the event").click()
    event = page.get_by_role("region", name="Event at byte")
    expect(event.get_by_role("status")).to_contain_text("Searching")
    screenshot(page, artifacts / f"event-loading-{scheme}.png")
    is_there = True
    expect(event).to_contain_text(text)
    expect(event.get_by_role("button", name="Try again")).to_have_count(1 if state == "failed" else 0)
    screenshot(page, artifacts / f"event-{state}-{scheme}.png")
