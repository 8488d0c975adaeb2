"""A report opens from the disk, without a server, and asks no address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.app import address
from browser.traces import training, write
from contract.running import put
from kinetoscope_tb.cli import main
from kinetoscope_tb.views import VIEWS
from support.simulated import Truth, simulated
from support.simulated import write as write_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of the first and of all recordings of a run with a worker that can't be read, and of one with a slow rank."""
    folder = tmp_path_factory.mktemp("reports")
    write(folder, "made/rank0.5.pt.trace.json", training())
    write(folder, "made/rank1.5.pt.trace.json", training(6))
    put(folder, "made/rank2.5.pt.trace.json", text="this is no JSON")
    write_run(simulated(Truth(ranks=3, steps=4, late={(1, None): 4_000_000})), folder / "late")
    for run, out, options in (
        ("made", "one.html", ["--rows", "2"]),
        ("made", "all.html", ["--all"]),
        ("late", "late.html", []),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["report", str(folder / run), str(folder / out), *options])
        assert ended.value.code == 0
    return folder


@pytest.fixture
def offline(page: Page) -> Iterator[Page]:
    """A page that may neither log an error nor ask any address."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    own = ("file:", "data:", "blob:", "about:")
    page.on("request", lambda request: request.url.startswith(own) or problems.append(f"requested {request.url}"))
    yield page
    assert not problems


def opened(page: Page, path: Path, **place: str) -> Page:
    page.goto("about:blank")
    page.goto(path.as_uri() + address(**place))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".skeleton, [aria-busy]")).to_have_count(0)
    return page


def test_every_view_is_in_it(offline: Page, reports: Path, artifacts: Path):
    page = opened(offline, reports / "all.html")
    page.screenshot(path=artifacts / "report.png")
    for view in VIEWS.values():
        if view.place.kind != "tab":
            continue
        page.evaluate("hash => { location.hash = hash }", address(view=view.id))
        expect(page.get_by_role("heading", level=1)).to_have_text(view.entry)
        expect(page.locator(".skeleton, [aria-busy]")).to_have_count(0)
        expect(page.locator("main")).not_to_contain_text("default state of each view")
    assert not violations(page)


def test_the_report_of_a_run_begins_with_what_its_ranks_say(offline: Page, reports: Path):
    page = opened(offline, reports / "late.html")
    expect(page.get_by_role("region", name="Ranks").locator(".sentence")).to_contain_text("Rank 1 ")
    page.get_by_role("region", name="Ranks").get_by_role("button").last.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ranks")


def test_the_menus_choose_among_the_workers_and_the_address_follows(offline: Page, reports: Path):
    page = opened(offline, reports / "all.html", view="kernels")
    page.get_by_label("Worker").select_option("rank1")
    expect(page.locator("main")).to_contain_text("3 rows")
    expect(page).to_have_url(re.compile("worker=rank1"))
    page.get_by_role("button", name="Operators").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Operators")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Kernels")
    expect(page.get_by_role("button", name="Compare with…")).to_have_count(0)
    page.get_by_role("button", name="Ranks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ranks")


def test_a_worker_that_could_not_be_read_says_why(offline: Page, reports: Path):
    page = opened(offline, reports / "all.html", view="kernels")
    page.get_by_label("Worker").select_option("rank2")
    expect(page.get_by_role("alert").first).to_contain_text("rank2.5.pt.trace.json")


def test_a_table_that_was_cut_says_so(offline: Page, reports: Path):
    page = opened(offline, reports / "one.html", view="kernels")
    expect(page.locator(".cut").first).to_contain_text("the first 2 of 3 rows")
    expect(page.locator("section.view").first.locator("tr.row")).to_have_count(2)


def test_what_a_trace_says_is_never_markup(offline: Page, reports: Path):
    text = (reports / "all.html").read_text()
    assert "alert(1)" not in text
    assert re.search(r"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-", text)
    page = opened(offline, reports / "all.html", view="operators")
    expect(page.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
    assert page.locator("main img").count() == 0
