"""Every view of every run draws without an error; in both themes, and on a narrow page."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.app import ENTRY, FAULTS, App, address
from browser.traces import sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import BrowserContext, Page


def answer(base_url: str, route: str) -> list[dict] | dict:
    with urllib.request.urlopen(f"{base_url}/data/plugin/pytorch_profiler/{route}") as answer:
        return json.load(answer)


def place(base_url: str, source: str) -> dict[str, str]:
    """The first span of the first run of a folder in the logdir."""
    run = next(run for run in answer(base_url, "runs")["runs"] if run["name"].split("/")[0] == source)
    worker = run["workers"][0]
    return {"run": run["name"], "worker": worker["name"], "span": worker["spans"][0]["name"]}


def tabs(base_url: str) -> list[dict]:
    """The views that are tabs; the others are drawn on these, or in a row."""
    return [view for view in answer(base_url, "views") if view["place"]["kind"] == "tab"]


def is_drawn(page: Page, view: dict) -> None:
    """The page has the title of its entry, and all its parts have an answer."""
    expect(page.get_by_role("heading", level=1)).to_have_text(view["entry"]["title"])
    selected = page.get_by_role("tab", selected=True)
    if selected.count():
        expect(selected).to_have_text(view["place"]["label"])
    expect(page.locator("main tr.row, main .card, main table").first).to_be_visible()
    expect(page.locator("main .skeleton")).to_have_count(0)
    expect(page.locator("main .failed")).to_have_count(0)


SOURCES = [source.name for source in sources()]


class View:
    """An open view whose window and theme change, and what is wrong with it in each."""

    def __init__(self, app: App, context: BrowserContext, artifacts: Path) -> None:
        self.page = app.page
        self._devices, self._artifacts = context.new_cdp_session(app.page), artifacts
        self.faults: dict[tuple[str, str], Sequence[str]] = {}

    def window(self, width: int, height: int, zoom: int) -> None:
        """Change the window, and how many of its pixels are one of the page."""
        size = {"width": width, "height": height, "deviceScaleFactor": zoom}
        self._devices.send("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})

    def look(self, view: str, how: str, rules: Sequence[str] = ()) -> None:
        """Keep the rules of accessibility that it breaks: of all rules, or of these."""
        self._keep(violations(self.page, rules), view, how)

    def look_at_narrow_windows(self, view: str, run: str) -> None:
        for how, window in NARROW.items():
            self.window(*window)
            self._keep(self.page.evaluate(FAULTS, False), f"{view} of {run}", how)
        self.window(*WIDE)

    def _keep(self, faults: Sequence[str], view: str, how: str) -> None:
        """Note them if there are any, and take a picture of the page."""
        if faults:
            self.faults[view, how] = faults
            self.page.screenshot(path=self._artifacts / f"{view}-{how}.png")


WIDE = (1360, 860, 1)
NARROW = {"900 pixels": (900, 700, 1), "200 percent": (680, 700, 2)}
OF_COLORS = ["color-contrast", "link-in-text-block"]  # the rules that another theme can break


def test_every_view_is_accessible_in_both_themes_and_fits_a_narrow_page(
    fresh_app: App, context: BrowserContext, base_url: str, artifacts: Path
):
    source = "resnet50_num_workers_0" if "resnet50_num_workers_0" in SOURCES else "made"
    fresh_app.open(**place(base_url, source))
    shown = View(fresh_app, context, artifacts)
    for view in tabs(base_url):
        fresh_app.go(view=view["id"], **place(base_url, source))
        is_drawn(fresh_app.page, view)
        shown.look(view["id"], "light")
        fresh_app.page.emulate_media(color_scheme="dark")
        fresh_app.settle()
        shown.look(view["id"], "dark", OF_COLORS)
        fresh_app.page.emulate_media(color_scheme="light")
        shown.look_at_narrow_windows(view["id"], source)
        if (view["picture"] or {}).get("kind") == "tree":
            fresh_app.go(view=view["id"], **place(base_url, "modules"))
            is_drawn(fresh_app.page, view)
            shown.look_at_narrow_windows(view["id"], "modules")
    assert not shown.faults


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cards_and_sheets_are_accessible(app: App, artifacts: Path, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    page = app.open("kernels", run="cpu_only")
    page.screenshot(path=artifacts / f"missing-{scheme}.png")
    assert not violations(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert not violations(page)
    page = app.open("kernels", run="made", row="0", open="1")
    expect(page.locator(".row-drawer")).to_be_visible()
    assert not violations(page)


def test_what_a_trace_says_is_never_markup(app: App):
    page = app.open("operators")
    expect(page.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
    assert page.locator("main img").count() == 0


def test_a_view_without_data_says_how_to_record_it(app: App):
    page = app.open("overview", run="cpu_only")
    listed = page.get_by_role("navigation", name="Views")
    expect(listed.get_by_role("button", name="Kernels")).to_have_count(0)
    listed.get_by_text("Not in this trace").click()
    kernels = listed.get_by_role("listitem").filter(has=page.get_by_role("button", name="Kernels", exact=True))
    expect(kernels).to_contain_text("ProfilerActivity.CUDA")
    kernels.get_by_role("button").click()
    expect(page.locator(".notice")).to_contain_text("ProfilerActivity.CUDA")


def test_a_broken_trace_says_which_and_why(app: App, artifacts: Path):
    page = app.open("overview", run="broken")
    expect(page.get_by_role("alert")).to_contain_text("rank0.5.pt.trace.json")
    page.screenshot(path=artifacts / "broken.png")
    page.get_by_label("Run").select_option("made")
    expect(page.get_by_role("heading", name="Where each step goes")).to_be_visible()


@pytest.mark.parametrize("width", [1440, 1024])
@pytest.mark.parametrize("view", ["kernel_efficiency", "operator_efficiency", "idle"])
def test_what_the_rows_go_by_is_marked_and_in_sight(app: App, view: str, width: int):
    app.page.set_viewport_size({"width": width, "height": 900})
    page = app.open(view, run="h100/training")
    expect(page.get_by_role("treegrid").first.locator("th[aria-sort]")).to_have_count(1)
    assert page.evaluate(FAULTS, False) == []


def test_no_kernel_is_shown_before_the_state_that_has_its_label(fresh_app: App):
    page, held = fresh_app.page, []
    page.route("**/state?*", lambda route: held.append(route))
    with page.expect_response("**/view?*view=kernels*"):
        page.goto(f"/{ENTRY}{address(view='kernels', run='h100/training')}")
    rows = page.get_by_role("treegrid")
    expect(page.locator(".skeleton").first).to_be_visible()
    expect(rows).to_have_count(0)
    assert held
    page.unroute("**/state?*")  # which lets them go on
    expect(rows.first).to_be_visible()
    assert page.evaluate(FAULTS, False) == []


def test_a_view_of_python_offers_threads_only_where_there_are_several(app: App):
    page = app.open("python_functions", run="modules")
    expect(page.locator("tr.row").first).to_be_visible()
    expect(page.get_by_label("Thread")).to_have_count(0)
