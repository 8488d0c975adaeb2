"""Files of other programs open with their writer, the busy time of their lanes, and a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, App, address, watched
from browser.traces import write
from contract.running import serving
from support.foreign_files import JAX, VIZTRACER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("foreign")
    write(folder, "viztracer/result.json", VIZTRACER)
    write(folder, "jax/perfetto_trace.json", JAX)
    with serving(f"--logdir={folder}") as server:
        yield server.base.rstrip("/")


def opened(page: Page, server: str, run: str, view: str) -> None:
    page.goto(f"{server}/{ENTRY}{address(view=view, run=run)}")
    App(page).settle()


def test_a_file_of_another_program_says_whose_it_is_and_which_lanes_were_busy(page: Page, server: str) -> None:
    with watched(page, server):
        opened(page, server, "viztracer", "overview")
        expect(page.get_by_label("Verdict")).to_contain_text("written by VizTracer, not by torch.profiler")
        lanes = page.get_by_role("region", name="Busy time by lane")
        row = lanes.get_by_role("row", name="MainThread (6553)")
        expect(row).to_contain_text("MainProcess (6553)")
        expect(row).to_contain_text("35.9")
        expect(page.get_by_text("ProfilerActivity")).to_have_count(0)
        expect(page.get_by_text("0 ns", exact=True)).to_have_count(0)
        opened(page, server, "viztracer", "timeline")
        expect(page.locator("canvas").first).to_be_visible()
        expect(page.get_by_role("button", name="process 6553 · MainProcess")).to_be_visible()


def test_kernels_of_another_program_have_their_tables(page: Page, server: str) -> None:
    with watched(page, server):
        opened(page, server, "jax", "overview")
        expect(page.get_by_label("Verdict")).to_contain_text("JAX (XLA's profiler)")
        expect(page.get_by_role("region", name="Top kernels")).to_contain_text("loop_add_fusion")
        opened(page, server, "jax", "lanes")
        expect(page.get_by_role("row", name="stream 13")).to_be_visible()
