"""Runs of many ranks on the page: the heat map, and from a cell to where it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browser.app import address
from contract.running import serving
from playwright.sync_api import expect

from simulated import Truth, simulated, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ENTRY = "data/plugin_entry.html?name=pytorch_profiler"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("ranks")
    write(simulated(Truth(ranks=6, steps=4, late={(4, None): 3_000_000})), folder / "run")
    with serving(f"--logdir={folder}") as server:
        yield server.base


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cell_tells_its_rank_and_step_and_leads_to_the_timeline(page: Page, many: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{many}{ENTRY}{address(view='rank_steps', run='run', worker='rank0', span='1')}")
    heat = page.locator(".heat [role=slider]")
    expect(heat).to_be_visible(timeout=60_000)
    heat.focus()
    for key in ["ArrowDown"] * 4 + ["ArrowRight"]:
        heat.press(key)
    assert (heat.get_attribute("aria-valuetext") or "").startswith("rank4 · 1: Own ")
    page.get_by_label("Shown").select_option("wait_ns")
    assert "Wait" in (heat.get_attribute("aria-label") or "")
    page.get_by_role("button", name="Step 1 of rank4 in the timeline").click()
    expect(page.get_by_label("Worker")).to_have_value("rank4")
    expect(page.locator(".timeline, canvas").first).to_be_visible(timeout=60_000)


def test_the_straggler_comes_first(page: Page, many: str) -> None:
    page.goto(f"{many}{ENTRY}{address(view='stragglers', run='run', worker='rank0', span='1')}")
    first = page.locator("tr.row").first
    expect(first).to_contain_text("rank4", timeout=60_000)
    expect(first).to_contain_text("straggler")
