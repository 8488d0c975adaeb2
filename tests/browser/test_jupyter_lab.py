"""A notebook in JupyterLab: a recording and a view as they are, and the page, whose questions the kernel answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

import kinetoscope_tb
from browser.app import watched
from browser.jupyter import jupyter_lab, run_all
from browser.traces import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

SAMPLE = REPOSITORY / "samples" / "gloo_2ranks" / "ddp"
CELLS = [
    f"import kinetoscope_tb\nprofile = kinetoscope_tb.open({str(SAMPLE)!r})\nprofile",
    "profile.operators",
    "profile.timeline(step=11)",
    "profile.page('operators')",
]
READS_THE_NOTEBOOK = "() => { try { return parent.document.title } catch (error) { return error.name } }"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with jupyter_lab(tmp_path_factory.mktemp("jupyter"), CELLS) as address:
        yield address


def test_a_notebook_shows_answers_the_timeline_and_the_page(page: Page, address, artifacts):
    profile = kinetoscope_tb.open(SAMPLE)
    slowest = profile.operators["name"][0]
    with watched(page, address):
        run_all(page, address)
        outputs = page.locator(".jp-OutputArea")
        expect(outputs.nth(0)).to_contain_text(profile.answer.verdict.title)
        expect(outputs.nth(0).get_by_role("cell", name="aten::mkldnn_convolution")).to_have_css("text-align", "left")
        expect(outputs.nth(1).get_by_role("cell", name=slowest, exact=True)).to_be_visible()

        timeline = outputs.nth(2).frame_locator("iframe")
        expect(timeline.locator("#timeline-shown")).to_contain_text("53.1 ms from")
        expect(timeline.locator("#timeline-shown")).to_contain_text("step 11")
        expect(timeline.locator("#timeline-shown")).to_contain_text("boxes")

        whole = outputs.nth(3).frame_locator("iframe")
        expect(whole.get_by_role("heading", level=1)).to_have_text("Operators")
        expect(whole.get_by_role("treegrid").first.get_by_text(slowest, exact=True)).to_be_visible()
        whole.get_by_role("button", name="Ranks").click()
        expect(whole.get_by_role("heading", level=1)).to_have_text("Ranks")
        page.screenshot(path=artifacts / "jupyter_lab.png")
        frames = [frame for frame in page.frames if frame.parent_frame]
        assert [frame.evaluate(READS_THE_NOTEBOOK) for frame in frames] == ["SecurityError"] * 2
