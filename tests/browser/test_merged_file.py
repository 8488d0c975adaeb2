"""A file that turns out to hold several ranks: the page goes on with the first, and lists them all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from browser.app import ENTRY, App, address, watched
from browser.traces import training
from contract.running import serving
from support.merged import by_combining

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    parts = [json.loads(training(steps)) for steps in (4, 3)]
    for pid, part in zip((100, 200), parts, strict=True):
        for event in part["traceEvents"]:
            event["pid"] = 0 if event.get("cat") == "kernel" else pid
    (folder / "job").mkdir()
    (folder / "job/all.trace.json").write_text(json.dumps(by_combining(parts)))
    with serving(f"--logdir={folder}") as running:
        yield running.base.rstrip("/")


def test_the_page_goes_on_with_the_first_rank_by_itself(page: Page, server: str) -> None:
    with watched(page, server):
        page.goto(f"{server}/{ENTRY}{address(view='steps', run='job', worker='all', span='default')}")
        page.wait_for_function("decodeURIComponent(location.hash).includes('run=job/all&')")
        assert "worker=process 100" in unquote(page.url)
        App(page).settle()
        App(page).expect_column("Step", "1", "2", "3", "4")
        page.goto(f"{server}/{ENTRY}{address(view='steps', run='job/all', worker='process 200', span='default')}")
        App(page).settle()
        App(page).expect_column("Step", "1", "2", "3")
