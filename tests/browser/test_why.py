"""A run that ended badly says why, first thing, and has a page of its own; a job that runs shows its steps, live."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.app import ENTRY, App, address, watched
from browser.traces import training, write
from contract.running import serving
from support.job_ends import write_dead_run, write_living_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from kinetoscope.journal.journal import JournalWriter

SENTENCE = "Rank 1 was killed by the kernel's out-of-memory killer in step 200 at "
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[JournalWriter]]]:
    """The address of a server with a job that died, one that runs and one without a Tracer; the journals of the second."""
    folder = tmp_path_factory.mktemp("server")
    for run in ("dead", "live", "foreign"):
        write(folder, f"{run}/rank0.5.pt.trace.json", training())
    for run in ("dead", "without_trace"):
        write_dead_run(folder / run)
    (folder / "damaged" / ".work").mkdir(parents=True)
    journals = write_living_run(folder / "live")
    with serving(f"--logdir={folder}") as server:
        server.settled("view", view="overview", run="dead", worker="rank0", span="5")
        yield server.base.rstrip("/"), journals


def opened(page: Page, server: str, run: str, view: str = "overview") -> App:
    page.goto(f"{server}/{ENTRY}{address(view=view, run=run, worker='rank0', span='5')}")
    app = App(page)
    app.settle()
    return app


def test_a_run_that_ended_badly_begins_with_why(page: Page, site: tuple[str, list[JournalWriter]]) -> None:
    server, _ = site
    with watched(page, server):
        opened(page, server, "dead")
        banner = page.get_by_role("region", name="Why it ended")
        expect(banner).to_contain_text(SENTENCE)
        expect(banner).to_contain_text("fewer loader workers")
        banner.get_by_role("button", name="Why it ended").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Why it ended")
        expect(page.get_by_role("region", name="Why it ended")).to_contain_text(SENTENCE)
        ranks = page.get_by_role("table", name="Ranks").get_by_role("row")
        expect(ranks).to_have_count(5)
        expect(ranks.nth(2)).to_contain_text("was killed by the kernel's out-of-memory killer")
        minutes = page.get_by_role("table", name="Last minutes").get_by_role("row")
        expect(minutes.nth(2)).to_contain_text("16 GiB")
        expect(page.locator(".curves .point text")).to_contain_text("checkpoint on ranks 0–3: ")
        expect(page.locator(".curves text.name")).to_have_text(["Rank 1", "Rank 3", "Rank 2", "Rank 0"])
        assert not violations(page)


def test_a_job_that_left_no_trace_has_a_page_that_says_why(page: Page, site: tuple[str, list[JournalWriter]]) -> None:
    server, _ = site
    with watched(page, server):
        opened(page, server, "dead")
        runs = page.get_by_role("combobox", name="Run")
        runs.select_option(label="without_trace (no trace)")
        expect(page.get_by_role("heading", level=1)).to_have_text("Why it ended")
        expect(page.get_by_role("region", name="Why it ended")).to_contain_text(SENTENCE)
        expect(page.get_by_role("navigation", name="Views").get_by_role("button")).to_have_text(["Why it endedg w"])
        expect(page.get_by_role("table", name="Ranks").get_by_role("row")).to_have_count(5)
        assert not violations(page)
        runs.select_option(label="damaged (no trace)")
        expect(page.get_by_role("heading", name="This run has no trace")).to_be_visible()
        runs.select_option(label="dead")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_a_job_that_runs_shows_its_steps_live(page: Page, site: tuple[str, list[JournalWriter]]) -> None:
    server, journals = site
    with watched(page, server):
        opened(page, server, "live", "why")
        expect(page.get_by_role("region", name="Last minutes")).to_contain_text("ranks 0–3 run.")
        expect(page.get_by_role("heading", name="Step times, live")).to_be_visible()
        row = page.get_by_role("table", name="Last minutes").get_by_role("row").nth(1)
        expect(row).to_contain_text("199")
        for journal in journals:
            journal.add("s", 200, 1_795_650_000 * SECOND, 1_795_650_001 * SECOND)
            journal.write()
        expect(row).to_contain_text("200")


def test_a_run_without_a_tracer_has_no_such_page(page: Page, site: tuple[str, list[JournalWriter]]) -> None:
    server, _ = site
    with watched(page, server):
        opened(page, server, "foreign")
        expect(page.get_by_role("navigation", name="Views")).to_contain_text("Timeline")
        expect(page.get_by_role("navigation", name="Views")).not_to_contain_text("Why it ended")
        expect(page.get_by_role("navigation", name="Views")).not_to_contain_text("Last minutes")
