"""The page of `kinetoscope open` in a browser: its first content, a file that is dropped, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import watched
from browser.traces import training, write
from contract.opening import opening

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from contract.opening import OpenPage

DROP = """async ([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  for (const type of ["dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
  }
}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "job/rank0.5.pt.trace.json", training())
    return tmp_path


def see(page: Page, served: OpenPage) -> None:
    page.goto(served.address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".skeleton, [aria-busy=true]")).to_have_count(0)


def test_the_page_shows_the_recording_and_opens_a_file_that_is_dropped(page: Page, folder: Path) -> None:
    with opening(folder) as served, watched(page, served.base):
        see(page, served)
        assert page.title() == f"{folder.name} · Kinetoscope"
        assert "token" not in page.url
        assert served.place["run"] == "job"
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.evaluate(DROP, ["rank7.9.pt.trace.json", training(6)])
        page.wait_for_url("**/#*worker=rank7*")
        assert "run=dropped" in page.url
        expect(page.get_by_text("6 steps").or_(page.get_by_text("steps 1–6")).first).to_be_visible()
        expect(page.locator(".notice.failed")).to_have_count(0)


def test_the_server_ends_when_the_page_is_closed(page: Page, folder: Path) -> None:
    with opening(folder, "--end-after", "0") as served:
        see(page, served)
        page.goto("about:blank")
        assert served.wait_for_end() == 0
