"""The page makes a running job record and opens the recording; a page under a foreign name may not."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, watched
from contract.running import put, serving
from kinetoscope.journal.status import rank_statuses
from kinetoscope.scheduling.request import WORK
from support.processes import Started, ended
from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserType, Page

JOB = Path(__file__).parents[1] / "torture" / "listening.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a job that ends by a signal")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A logdir into which a job is recording, and another one has."""
    folder = tmp_path_factory.mktemp("capture")
    process = Started(str(JOB), str(folder))
    try:
        wait_for(
            lambda: rank_statuses(folder / "logdir" / "job"),
            is_right=lambda ranks: any(rank.completed for rank in ranks),
        )
        put(folder / "logdir", "older/rank0.5.pt.trace.json")
        yield folder / "logdir"
    finally:
        process.terminate()
        ended(process)


@pytest.fixture(scope="module")
def address(recorded: Path) -> Iterator[str]:
    with serving(f"--logdir={recorded}") as server:
        yield server.base.rstrip("/")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_running_job_records_what_the_page_asks_for(page: Page, address: str, artifacts: Path, scheme: str):
    page.emulate_media(color_scheme=scheme)
    with watched(page, address):
        page.goto(f"{address}/{ENTRY}")
        page.get_by_role("button", name="Capture…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Job")).to_have_value("job")
        expect(dialog).to_contain_text("1 rank, ")
        dialog.get_by_label("Steps", exact=True).fill("2")
        dialog.get_by_label("Call stacks").check()
        dialog.screenshot(path=artifacts / f"capture-{scheme}-form.png")
        dialog.get_by_role("button", name="Record", exact=True).click()
        opens = dialog.get_by_role("button", name="Open span")
        expect(opens).to_be_visible()
        dialog.screenshot(path=artifacts / f"capture-{scheme}-saved.png")
        span = opens.inner_text().split()[-1]
        opens.click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("combobox", name="Run", exact=True)).to_have_value("job")
        expect(page.get_by_label("Span", exact=True)).to_have_value(span)
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        expect(page.locator("main")).to_contain_text(f"{int(span) - 2}–{int(span) - 1}, 2 complete")


def test_a_page_under_a_foreign_name_shows_why_it_may_not_record(
    browser_type: BrowserType, browser_type_launch_args: dict[str, Any], address: str, recorded: Path
):
    rebinding = f"--host-resolver-rules=MAP evil.example {urlsplit(address).hostname}"
    arguments = [*browser_type_launch_args.get("args", []), rebinding]
    with closing(browser_type.launch(**{**browser_type_launch_args, "args": arguments})) as browser:
        page = browser.new_page()
        page.goto(f"http://evil.example:{urlsplit(address).port}/{ENTRY}")
        page.get_by_role("button", name="Capture…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("alert")).to_contain_text("The server doesn't know the name 'evil.example:")
        expect(dialog.get_by_role("alert")).to_contain_text("KINETOSCOPE_HOSTS")
        expect(dialog.get_by_role("button", name="Record", exact=True)).to_be_disabled()
        status = page.evaluate(
            """async () => {
                const headers = { "Content-Type": "application/json", "X-Kinetoscope-Token": "" };
                const body = JSON.stringify({ run: "job" });
                const response = await fetch("/data/plugin/pytorch_profiler/capture", { method: "POST", headers, body });
                return response.status;
            }"""
        )
    assert status == 403
    assert not (recorded / "job" / WORK / "trace").exists()
