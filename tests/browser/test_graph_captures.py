"""Which recording says what the graphs launch: shown with its share, and another one can be chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, address, watched
from contract.running import serving
from support.graphs import GraphRecording, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

WORK = tuple(Operator("aten::mm", (4, 4), 0, (f"gemm_{number}",)) for number in range(4))
OTHER = tuple(replace(one, name="aten::linear") for one in WORK)
FILES = {
    "graphs/rank0.1.pt.trace.json": GraphRecording("rocm").replayed(WORK, 1),
    "graphs/capture_traces/rank0.json": GraphRecording("rocm").captured(WORK),
    "graphs/rank1.1.pt.trace.json": GraphRecording("rocm").eager(OTHER),
    "plain/rank0.1.pt.trace.json": GraphRecording("rocm").eager(WORK),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("graphs")
    for name, recording in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(recording.builder.text())
    with serving(f"--logdir={folder}") as running:
        yield running.base.rstrip("/")


def test_another_capture_can_be_chosen_and_is_in_the_address(page: Page, server: str) -> None:
    with watched(page, server):
        page.goto(f"{server}/{ENTRY}{address(view='graphs', run='graphs', worker='rank0', span='1')}")
        choice, main = page.get_by_label("Graph capture", exact=True), page.locator("main")
        expect(main).to_contain_text("capture_traces/rank0.json")
        expect(main).to_contain_text("aten::mm")
        expect(choice).to_have_value("")
        choice.select_option("graphs/rank1.1.pt.trace.json")
        expect(main).to_contain_text("aten::linear")
        expect(main).not_to_contain_text("aten::mm")
        page.wait_for_function("globalThis.location.hash.includes('capture=graphs')")
        page.reload()
        expect(main).to_contain_text("aten::linear")
        expect(choice).to_have_value("graphs/rank1.1.pt.trace.json")
        choice.select_option("none")
        expect(main).to_contain_text("nothing")
        expect(main).not_to_contain_text("aten::linear")
        page.get_by_label("Run", exact=True).select_option("plain")
        expect(choice).to_have_count(0)
