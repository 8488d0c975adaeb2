"""Servers: which recording says what the graphs launch, another one can be chosen; and iterations are called so."""

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
MARK = "execute_context_0(0)_generation_8(8)"  # vLLM
OTHER = tuple(replace(one, name="aten::linear") for one in WORK)
FILES = {
    "graphs/rank0.1.pt.trace.json": GraphRecording("rocm").replayed(WORK, 1),
    "graphs/capture_traces/rank0.json": GraphRecording("rocm").captured(WORK),
    "graphs/rank1.1.pt.trace.json": GraphRecording("rocm").eager(OTHER),
    "plain/rank0.1.pt.trace.json": GraphRecording("rocm").eager(WORK),
    "server/rank0.1.pt.trace.json": GraphRecording("rocm").eager(WORK, mark=MARK).eager(WORK, mark=MARK),
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
        expect(main).to_contain_text("no capture found")
        expect(main).not_to_contain_text("aten::linear")
        page.get_by_role("combobox", name="Run", exact=True).select_option("plain")
        expect(choice).to_have_count(0)


def test_the_base_of_a_comparison_has_a_capture_of_its_own(page: Page, server: str) -> None:
    base = {"base_run": "graphs", "base_worker": "rank0", "base_span": "1"}
    with watched(page, server):
        place = address(view="operators", run="plain", worker="rank0", span="1", columns="device_self_ns", **base)
        page.goto(f"{server}/{ENTRY}{place}")
        choice, main = page.get_by_label("Base Graph capture", exact=True), page.locator("main")
        expect(choice).to_have_value("")
        expect(main).to_contain_text("aten::mm")
        choice.select_option("graphs/rank1.1.pt.trace.json")
        expect(main).to_contain_text("aten::linear")
        page.wait_for_function("globalThis.location.hash.includes('base_capture=graphs')")
        page.get_by_role("button", name="Swap").click()
        expect(page.get_by_label("Graph capture", exact=True)).to_have_value("graphs/rank1.1.pt.trace.json")
        expect(main).to_contain_text("aten::linear")
        expect(choice).to_have_count(0)


def test_a_server_s_iterations_are_called_so(page: Page, server: str) -> None:
    with watched(page, server):
        page.goto(f"{server}/{ENTRY}{address(view='kernels', run='server', worker='rank0', span='1')}")
        page.locator("tr.row").first.click()
        expect(page.locator("main")).to_contain_text("By iteration")
        expect(page.locator("main")).not_to_contain_text("By step")
        page.goto(f"{server}/{ENTRY}{address(view='timeline', run='server', worker='rank0', span='1')}")
        page.get_by_role("button", name="Perfetto").click()
        expect(page.get_by_role("dialog")).to_contain_text("Iteration 0 (")
