"""The pictures of the guide and the README, of real traces: `make pictures` takes them again.

Those of the timeline are in test_timeline_pictures.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import App, watched
from browser.traces import REPOSITORY
from contract.running import Server, serving
from support.job_ends import write_dead_run
from support.real_traces import FOLDER, MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)

PANEL = 208
TRACES = {  # run → the folder or file among the real traces, and its worker and span
    "resnet50": ("runs/resnet50_num_workers_0", "worker0", "1623143089861"),
    "dlrm": ("runs/dlrm_8gpu_nccl", "rank0", "1694128201545"),
    "owlv2": ("claims/tracelens_h100_owlv2.json.gz", "rank0", "1"),
    "decode": ("single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz", "TP-0-DECODE", "1"),
    "memory/snapshot": ("../snapshots/train_long_sequence.pickle", "snapshot", "default"),
}
DEAD = "llama"
"""The job that died; it left no trace."""
EARLIER = {"base_run": "resnet50", "base_worker": "worker0", "base_span": "1623143566756"}

# name → the trace, the view, how many pixels of the page, and what else the address says
PICTURES: dict[str, tuple[str, str, int, dict[str, str]]] = {
    "overview": ("resnet50", "overview", 820, {}),
    "idle": ("owlv2", "idle", 700, {}),
    "overlap": ("dlrm", "exposed_time", 290, {}),
    "critical_path": ("owlv2", "critical_path", 560, {}),
    "operators": ("resnet50", "operators", 560, {}),
    "efficiency": ("owlv2", "operator_efficiency", 640, {}),
    "modules": ("owlv2", "modules", 560, {}),
    "python": ("owlv2", "python_calls", 560, {}),
    "annotations": ("dlrm", "annotations_by_name", 620, {}),
    "kernels": ("owlv2", "kernels", 560, {}),
    "gpu_activity": ("resnet50", "gpu_activity", 640, {}),
    "memory_curve": ("owlv2", "memory_curve", 960, {}),
    "snapshot": ("memory/snapshot", "snapshot_levels", 1160, {}),
    "ranks": ("dlrm", "rank_steps", 560, {}),
    "compare": ("resnet50", "overview", 640, EARLIER),
    "decode": ("decode", "overview", 820, {}),
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A TensorBoard with the traces of the pictures."""
    folder = tmp_path_factory.mktemp("pictures")
    for run, (source, worker, span) in TRACES.items():
        path = (FOLDER / source).resolve()
        if path.is_dir():
            (folder / run).symlink_to(path)
        elif path.suffix == ".pickle":
            (folder / run).parent.mkdir()
            (folder / f"{run}.pickle").symlink_to(path)
        else:
            (folder / run).mkdir()
            (folder / run / f"{worker}.{span}.pt.trace.json.gz").symlink_to(path)
    write_dead_run(folder / DEAD)
    with serving(f"--logdir={folder}") as server:
        yield server


@pytest.fixture
def empty(browser: Browser, real: Server) -> Iterator[Page]:
    context = browser.new_context(
        base_url=real.base.rstrip("/"), viewport={"width": 1360, "height": 860}, color_scheme="light"
    )
    page = context.new_page()
    with watched(page, real.base):
        yield page
    context.close()


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_guide(empty: Page, artifacts: Path, name: str):
    run, view, height, more = PICTURES[name]
    _, worker, span = TRACES[run]
    empty.set_viewport_size({"width": 1360, "height": max(860, height)})
    page = App(empty).open(view, run=run, worker=worker, span=span, **more)
    expect(page.locator("main tr.row, main .card, main table").first).to_be_visible()
    expect(page.locator("main .skeleton, main .failed")).to_have_count(0)
    if name == "overview":
        expect(page.locator(".slider output").first).to_contain_text("step")
    left = 0 if name in ("overview", "decode") else PANEL
    take(page, artifacts, name, left, height)


def test_the_picture_of_a_job_that_died(empty: Page, artifacts: Path):
    page = App(empty).open("why", run=DEAD)
    expect(page.get_by_role("region", name="Why it ended")).to_be_visible()
    rename = """name => {
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(name, "node1");
    }"""
    page.evaluate(rename, socket.gethostname())
    take(page, artifacts, "why", PANEL, 860)


def take(page: Page, artifacts: Path, name: str, left: int, height: int) -> None:
    """Take a picture of the page without its panel, into the docs if they are to be updated."""
    docs = REPOSITORY / "docs"
    path = (docs if name == "overview" else docs / "pictures") / f"{name}.png"
    page.screenshot(
        path=path if os.environ.get("UPDATE_SCREENSHOTS") else artifacts / f"guide-{name}.png",
        clip={"x": left, "y": 0, "width": 1360 - left, "height": height},
    )
