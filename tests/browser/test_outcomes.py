"""Notes from a run's `run.json`: the page shows them as text, whatever they hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, App, address, watched
from browser.traces import training, write
from contract.running import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

HOSTILE = "<img src=x onerror=alert(1)> the disk is full"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    for rank in (0, 1):
        write(folder, f"job/rank{rank}.5.pt.trace.json", training())
    outcomes = {
        "0": {"state": "saved", "file": "rank0.5.pt.trace.json"},
        "1": {"state": "partial", "reason": "sigterm", "file": "rank1.5.pt.trace.json"},
        "2": {"state": "lost", "problem": HOSTILE},
        "3": {"state": "missing", "reason": "the process was killed"},
    }
    manifest = {"schema": 1, "run": "job", "world_size": 4, "windows": [{"span": 5, "ranks": outcomes}]}
    (folder / "job" / "run.json").write_text(json.dumps(manifest))
    write(folder, "whole/rank0.5.pt.trace.json", training())
    with serving(f"--logdir={folder}") as server:
        server.settled("view", view="overview", run="job", worker="rank0", span="5")
        yield server.base.rstrip("/")


def opened(page: Page, server: str, run: str) -> None:
    page.goto(f"{server}/{ENTRY}{address(view='overview', run=run, worker='rank0', span='5')}")
    App(page).settle()


def test_the_panel_names_each_rank_that_has_no_whole_recording(page: Page, server: str) -> None:
    with watched(page, server):
        opened(page, server, "job")
        notes = page.locator("details", has_text="2 recordings of this run missing")
        notes.locator("summary").click()
        assert sorted(notes.locator("li").all_inner_texts()) == [
            f"loss\nSpan 5: rank 2: the recording is lost: {HOSTILE}.",
            "loss\nSpan 5: rank 3: no trace: the process was killed.",
            "warning\nSpan 5: rank 1: ended early: sigterm.",
        ]
        assert page.locator("img[src=x]").count() == 0


def test_a_complete_run_has_no_notes(page: Page, server: str) -> None:
    with watched(page, server):
        opened(page, server, "whole")
        expect(page.get_by_text("recordings of this run missing")).to_have_count(0)
        expect(page.get_by_text("About this run")).to_have_count(0)
