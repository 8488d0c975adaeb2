"""What the page shows of one recording is never carried over to another, whatever is opened after what."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, HeldResponses, address, comes_true

if TYPE_CHECKING:
    from browser.app import App

PLACES = (  # a page of each scope, and recordings that lack what others have
    {"view": "python_calls", "run": "modules", "worker": "rank0", "span": "5"},
    {"view": "collectives", "run": "ranks", "worker": "rank0", "span": "5"},
    {"view": "stragglers", "run": "made", "worker": "rank1", "span": "5"},
    {"view": "timeline", "run": "ranks", "worker": "rank1", "span": "5"},
    {"view": "overview", "run": "cpu_only", "worker": "rank0", "span": "5"},
)
SHOWN = """() => {
    const text = (root, without) => {
        const copy = root.cloneNode(true);
        copy.querySelectorAll(without).forEach(node => node.remove());
        return copy.textContent;
    };
    // Numbers in the panel and the badge are of answers that the page has: they may be more after a longer way.
    return [text(document.querySelector("nav"), ".figure"), text(document.querySelector("main"), ".badge, .tip")];
}"""


def shown(app: App) -> list[str]:
    """The panel and the page as text."""
    app.settle()
    texts: list[str] = app.page.evaluate(SHOWN)
    return texts


def each_after_each(count: int) -> list[int]:
    """Numbers below `count` in a row in which each follows each other one."""
    return [number for first in range(count) for second in range(first + 1, count) for number in (first, second)] + [0]


def test_a_page_is_the_same_whatever_was_open_before(fresh_app: App):
    fresh = []
    for place in PLACES:
        fresh_app.open(**place)
        fresh.append(shown(fresh_app))
    for before, place in pairwise(each_after_each(len(PLACES))):
        fresh_app.go(**PLACES[place])
        comes_true(fresh_app.page, lambda place=place: shown(fresh_app) == fresh[place])
        assert shown(fresh_app) == fresh[place], f"{PLACES[place]} after {PLACES[before]}"


def test_a_run_s_page_has_its_own_headline_after_a_run_of_one_rank(fresh_app: App):
    fresh_app.open("overview", run="modules", worker="rank0", span="5")
    fresh_app.go(**PLACES[1])
    expect(
        fresh_app.page.get_by_role("region", name="Run advice").or_(fresh_app.page.locator(".verdict"))
    ).not_to_have_count(0)
    expect(fresh_app.page.get_by_role("navigation", name="Views").get_by_role("button", name="Modules")).to_have_count(
        0
    )


@pytest.mark.parametrize("view", ["communication", "stragglers"])
def test_the_panel_asks_for_the_trace_only_once_a_run_s_page_is_answered(fresh_app: App, view: str):
    states: list[str] = []
    fresh_app.page.on("request", lambda request: "/state?" in request.url and states.append(request.url))
    held = HeldResponses(fresh_app.page, f"**/view?*view={view}*")
    fresh_app.page.goto(f"/{ENTRY}{address(**{**PLACES[1], 'view': view})}")
    held.wait_for_request()
    expect(fresh_app.page.get_by_role("heading", level=1)).to_have_text("Ranks")
    assert not states
    with fresh_app.page.expect_request("**/state?*"):
        held.release()


def test_names_have_the_labels_of_the_recording_that_is_shown(app: App):
    """A kernel that is called like an operator has a label, which operators of other recordings don't have."""
    place = {"view": "operators", "worker": "rank0", "span": "5"}
    names = app.open(run="matmuls", **place).locator("tr.row td:first-child")
    expect(names).to_have_text(["aten::mm", "aten::relu"])
    app.go(run="without_flops", **place)
    expect(names).to_have_text(["mm", "relu"])
    app.go(run="matmuls", **place)
    expect(names).to_have_text(["aten::mm", "aten::relu"])
