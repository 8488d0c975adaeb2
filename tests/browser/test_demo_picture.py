"""The moving picture of the guide: twenty seconds in the page of `kinetoscope open`; `make pictures` takes it again."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from playwright.sync_api import expect

from browser.app import watched
from browser.traces import REPOSITORY
from contract.opening import opening
from support.real_traces import FOLDER, MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)

SIZE = {"width": 1240, "height": 760}
SECONDS = 20
MOST_BYTES = 2_000_000


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
    yield context.new_page()
    context.close()


def scenes(page: Page) -> Iterator[bytes]:
    """What a user sees from the verdict to a slice of the timeline."""

    def entry(name: str) -> None:
        page.get_by_role("navigation", name="Views").get_by_role("button", name=name, exact=True).click()

    def shown() -> bytes:
        expect(page.locator(".skeleton, .failed, [aria-busy=true]")).to_have_count(0)
        page.wait_for_timeout(800)  # finer tiles take the place of coarser ones, without a word
        return page.screenshot()

    yield shown()
    page.mouse.move(700, 400)
    page.mouse.wheel(0, 560)
    yield shown()
    entry("Idle")
    yield shown()
    entry("Operators")
    yield shown()
    page.locator("main tr.row").nth(1).click()
    yield shown()
    page.keyboard.press("Escape")
    entry("Timeline")
    yield shown()
    page.evaluate("document.activeElement.blur()")  # keys are the timeline's, not the button's
    page.mouse.move(760, 420)
    for _ in range(8):
        page.keyboard.press("w")
    yield shown()
    page.mouse.click(700, 420)
    yield shown()


def test_the_moving_picture_of_the_guide(page: Page, artifacts: Path) -> None:
    with opening(FOLDER / "runs" / "resnet50_num_workers_0") as served, watched(page, served.base):
        page.goto(served.address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        pictures = [
            Image.open(io.BytesIO(scene)).convert("P", palette=Image.Palette.ADAPTIVE) for scene in scenes(page)
        ]
    folder = REPOSITORY / "docs" / "pictures" if os.environ.get("UPDATE_SCREENSHOTS") else artifacts
    path = folder / "demo.png"
    first, *rest = pictures
    lasts = SECONDS * 1000 // len(pictures)
    first.save(path, save_all=True, append_images=rest, duration=lasts, loop=0, optimize=True)
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)
    assert path.stat().st_size < MOST_BYTES
