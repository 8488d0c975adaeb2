"""The pictures of the timeline in the guide and in the README."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from browser.app import App
from browser.test_views import SOURCES, place
from browser.traces import REPOSITORY

RESNET = "resnet50_num_workers_0"
RANKS = "dlrm_8gpu_nccl"
KERNEL = {"slice": "100"}

# name → (the trace, its place in the timeline, how many pixels of the page)
PICTURES: dict[str, tuple[str, dict[str, str], int]] = {
    "timeline": (RESNET, {**KERNEL, "drawer": "330"}, 860),
    "timeline-gaps": (RESNET, {"panel": "gaps", "drawer": "300"}, 860),
    "timeline-search": (
        RESNET,
        {
            "find": json.dumps({"text": "conv2d"}),
            "panel": "found",
            "drawer": "140",
            "from": "70500000",
            "to": "76000000",
        },
        860,
    ),
    "timeline-path": (RESNET, {"critical": "1", "panel": "closed"}, 640),
    "timeline-path-across": (
        RANKS,
        {"worker": "rank4", "span": "1694128201547", "ranks": "rank7", "critical": "ranks", "panel": "closed"},
        860,
    ),
    "timeline-area": (RESNET, {"area": "0~187948000~0", "panel": "area", "drawer": "330"}, 860),
    "timeline-ranks": (
        RANKS,
        {
            "ranks": "rank1,rank2,rank3",
            "find": json.dumps({"text": "nccl", "category": "Communication"}),
            "panel": "closed",
        },
        520,
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_timeline(app: App, base_url: str, artifacts: Path, name: str):
    source, where, height = PICTURES[name]
    if source not in SOURCES:
        pytest.skip(f"the real trace {source} isn't here; KINETOSCOPE_TRACES says where such traces lie")
    last = "path" if "critical" in where else "labels"
    with app.page.expect_response(f"**/timeline/{last}*"):
        page = app.open("timeline", side="folded", **{**place(base_url, source), **where})
    if name == "timeline-ranks":
        page.get_by_label("Filter tracks").fill("stream 84")
    if where.get("critical") == "ranks":
        page.get_by_role("list", name="The critical path").get_by_role("button", name="rank7").click()
    hint = page.locator(".hint").get_by_role("button")
    if hint.count():
        hint.click()
    page.wait_for_timeout(1500)  # finer tiles take the place of coarser ones, without a word
    folder = REPOSITORY / "docs" / "pictures" if os.environ.get("UPDATE_SCREENSHOTS") else artifacts
    page.screenshot(path=folder / f"{name}.png", clip={"x": 36, "y": 0, "width": 1324, "height": height})
    assert page.locator(".failed").count() == 0
