"""The timeline under test: its slices, its description, its pixels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import PATIENCE_S, comes_true

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from browser.app import App

LANE = 18
RESTED_MS = 500  # the address follows 320 ms after the picture's last movement


def rests(page: Page) -> None:
    """Waits until the picture moves no more: until its address stays as it is.

    The page itself waits, so that on a busy machine what it does before that comes first.
    """
    before = ""
    while page.url != before:
        before = page.url
        page.evaluate("ms => new Promise(done => setTimeout(done, ms))", RESTED_MS)


def draw_frames(page: Page, count: int) -> None:
    """Waits until the page has drawn so many times, however fast the machine is."""
    code = """count => new Promise(done => {
        const next = () => count-- > 0 ? requestAnimationFrame(next) : done();
        next();
    })"""
    page.evaluate(code, count)


def address_value(page: Page, key: str) -> str:
    """The value of a key in the address; empty without one."""
    match = re.search(rf"&p\.pytorch_profiler\.{key}=([^&]*)", page.url)
    return match[1] if match else ""


def range_of(page: Page) -> tuple[int, int]:
    """The two times of the address, which follows the picture once that rests."""
    return int(address_value(page, "from")), int(address_value(page, "to"))


class Drawn:
    """The timeline of a run, between two times."""

    def __init__(self, app: App, run: str = "made", start: int = 0, end: int = 1_000_000, **place: str) -> None:
        place |= {"from": str(start), "to": str(end)} if end else {}
        self.page: Page = app.open("timeline", run=run, **place)
        self.canvas = self.page.get_by_role("img", name="Timeline")
        self.says(re.compile("box"))

    @property
    def words(self) -> str:
        return self.page.locator("#timeline-shown").inner_text()

    def says(self, text: str | re.Pattern[str]) -> None:
        """Waits until the description has the text."""
        expect(self.page.locator("#timeline-shown")).to_contain_text(text)

    def place(self, key: str) -> str:
        """The value of a key in the address; empty without one."""
        return address_value(self.page, key)

    @property
    def range(self) -> tuple[int, int]:
        return range_of(self.page)

    def comes_to(self, is_there: Callable[[int, int], bool]) -> None:
        """Waits until the two times of the address are right: it follows the picture once that rests."""
        self.page.wait_for_url(lambda _url: is_there(*self.range))

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits until a condition on the picture holds; fails with the page's own status otherwise."""
        if not comes_true(self.page, holds):
            states = [
                *self.page.get_by_role("status").all_inner_texts(),
                *self.page.get_by_role("alert").all_inner_texts(),
            ]
            pytest.fail(f"not in {PATIENCE_S} s: {self.words}, {states}, {self.page.url}")

    def spot(self, track: str, time: int, lane: int = 0) -> tuple[float, float]:
        """The point on the page where a lane of a track shows a time."""
        line = self.page.locator(".gutter li", has_text=track).first.bounding_box()
        box = self.canvas.bounding_box()
        assert line
        assert box
        start, end = self.range
        return box["x"] + (time - start) / (end - start) * box["width"], line["y"] + lane * LANE + LANE / 2

    def color_at(self, track: str, time: int, lane: int = 0) -> tuple[int, int, int]:
        """The color at a time of a lane, below its letters."""
        x, y = self.spot(track, time, lane)
        box = self.canvas.bounding_box()
        assert box
        code = "(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)"
        red, green, blue = self.canvas.evaluate(code, [round(x - box["x"]), round(y - box["y"] + LANE / 2 - 3)])
        return red, green, blue

    def click(self, track: str, time: int, lane: int = 0) -> None:
        self.page.mouse.click(*self.spot(track, time, lane))

    def hold(self, key: str, milliseconds: int = 300) -> None:
        """Holds a key, and waits until the address has the result."""
        before = self.range
        self.page.keyboard.down(key)
        self.page.wait_for_timeout(milliseconds)
        self.page.keyboard.up(key)
        expect(self.page).not_to_have_url(re.compile(f"from={before[0]}&.*to={before[1]}(&|$)"))
        rests(self.page)
