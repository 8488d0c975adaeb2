"""What py-spy and VizTracer recorded of the same process lies next to the recording on the timeline, on one clock if both have it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.app import address, watched
from browser.traces import training, write
from contract.opening import opening

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

BASE_NS = 1_700_000_000_000_000_000  # the zero of the recording


def speedscope() -> str:
    frames = [{"name": "main", "file": "train.py", "line": 9}, {"name": "load", "file": "train.py", "line": 3}]
    profile = {"type": "sampled", "name": "Thread 1", "unit": "milliseconds", "startValue": 0}
    schema = "https://www.speedscope.app/file-format-schema.json"
    profiles = [profile | {"samples": [[0], [0, 1]], "weights": [1, 2]}]
    return json.dumps({"$schema": schema, "profiles": profiles, "shared": {"frames": frames}, "exporter": "py-spy@0.4"})


def viztracer() -> str:
    event = {"ph": "X", "cat": "fee", "pid": 1, "tid": 1, "name": "decode (data.py:3)", "ts": 1000, "dur": 500}
    about = {"version": "1.1.1", "baseTimeNanoseconds": BASE_NS + 1_000_000}
    return json.dumps({"traceEvents": [event], "viztracer_metadata": about})


def test_other_profilers_are_lanes_of_their_own_below_the_recording(page: Page, tmp_path: Path) -> None:
    write(tmp_path, "job/rank0.5.pt.trace.json", training())
    write(tmp_path, "job/rank0.speedscope.json", speedscope())
    write(tmp_path, "job/viztracer.json", viztracer())
    with opening(tmp_path / "job") as served, watched(page, served.base):
        assert served.place["worker"] == "rank0"
        page.goto(served.address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        place = {"run": "job", "worker": "rank0", "span": "5", "ranks": "rank0.speedscope,viztracer"}
        page.goto(f"{served.base}{address(view='timeline', **place)}")
        expect(page.locator(".gutter")).to_contain_text("process 0 · py-spy")
        page.get_by_role("button", name="3 of 3 workers").click()
        expect(page.get_by_text("no common clock: drawn as if both had begun at once")).to_be_visible()
        expect(page.get_by_text("viztracer", exact=True).last).to_be_visible()
        page.keyboard.press("Escape")
        page.get_by_label("Find slices").fill("decode")
        page.keyboard.press("Enter")
        expect(page.get_by_text("1 result").first).to_be_visible()
        page.keyboard.press("Enter")
        shown = page.locator(
            "#timeline-shown"
        )  # centered: it is at 1 to 1.5 ms of the recording, which begins at 1 ms of its zero
        expect(shown).to_contain_text(re.compile(r"from 764(\.0)? µs"))
