"""The runs of a job on the page: since when a step takes longer, and a row per run that leads to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.app import App
from contract.opening import opening
from contract.test_history import RUNS, SLOWER_AT, write_run
from kinetoscope_tb.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of runs, whose summaries are in a cache."""
    folder = tmp_path_factory.mktemp("history")
    for nth in range(RUNS):
        write_run(folder / "runs", nth)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KINETOSCOPE_CACHE", str(folder / "cache"))
        with pytest.raises(SystemExit, match="0"):
            main(["index", str(folder / "runs")])
        yield folder / "runs"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_change_is_a_sentence_a_line_and_a_row_that_opens_its_run(
    page: Page, indexed: Path, artifacts: Path, scheme: str
):
    page.emulate_media(color_scheme=scheme)
    with opening(indexed) as served:
        page.goto(served.address)
        app = App(page)
        app.settle()
        page.get_by_role("button", name="History").click()
        app.settle()
        expect(page.locator(".sentence")).to_contain_text(f"Since run {SLOWER_AT + 1} (nightly-12")
        expect(page.locator(".run-chart circle")).to_have_count(RUNS)
        expect(page.locator(".run-chart")).to_contain_text(f"run {SLOWER_AT + 1}: +6 %")
        page.screenshot(path=artifacts / f"history-{scheme}.png")
        assert not violations(page)
        page.locator(".run-chart circle").nth(SLOWER_AT).click()
        app.settle()
        drawer = page.get_by_role("region", name="Details of a row of Runs")
        drawer.get_by_role("button", name="Compare with nightly-11").click()
        app.settle()
        expect(page.get_by_label("Base run")).to_have_value("nightly-11")
        expect(page.locator(".sentence")).to_contain_text("The typical step (")
        page.go_back()
        page.go_back()
        page.go_back()
        app.settle()
        page.get_by_role("button", name="Open this run").click()
        app.settle()
        expect(page).to_have_url(re.compile("run=nightly-12"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
