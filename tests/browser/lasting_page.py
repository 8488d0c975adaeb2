"""A page that is loaded once, and goes from test to test by its address.

To load the page takes ten times the CPU time of going to another place of it. What a test leaves behind must not reach
the next one, so between two of them the page goes to a run that there isn't: all that belongs to a place ends there. It
is loaded again if it then doesn't look as it did when it was loaded, or if it has drawn the timeline, whose state
outlives its place. The answers that the page keeps stay. A test of what the page asks, of its first answers or of others than the server's
needs a page of its own: `fresh_app`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browser.app import PATIENCE_S, App, address, load, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

NOWHERE = address(view="overview", run="(none)")
LASTING = ("route", "on", "once", "add_init_script", "expose_function", "expose_binding")  # refused

MOVE = """hash => new Promise(done => {
    const drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
    if (location.hash === hash) return drawn();
    addEventListener("hashchange", drawn, { once: true });
    location.hash = hash;
})"""
KEEP_REQUESTS = "performance.setResourceTimingBufferSize(1_000_000)"
# All that can be seen, what boxes hold, what is scrolled, and what a test may have replaced. Axe stays where it is.
LOOKS = """() => [
    document.documentElement.textContent,
    ...[...document.querySelectorAll("*")].map(({ tagName, attributes, value, checked, scrollTop, scrollLeft }) =>
        [tagName, ...[...attributes].map(({ name, value }) => `${name}=${value}`).sort(),
            value, checked, scrollTop, scrollLeft].join(" ")),
    ...Object.keys(globalThis).filter(name => !name.startsWith("axe")),
    ...Object.keys(navigator.clipboard ?? {}),
].join("\\n")"""
# How the page looks nowhere; null if it has drawn the timeline.
LEAVE = f"""async hash => {{
    localStorage.clear();
    sessionStorage.clear();
    document.activeElement.blur();
    getSelection().removeAllRanges();
    const asked = performance.getEntriesByType("resource").map(({{ name }}) => new URL(name));
    if (asked.some(({{ pathname }}) => pathname.includes("/timeline"))) return null;
    await ({MOVE})(hash);
    return ({LOOKS})();
}}"""


class LastingPage:
    """A page of one server for many tests.

    Args:
        page: A page of a context of its own; tests may not add to it what lasts longer than they do.
        origin: The server's address.
    """

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.problems = watch(page, origin)
        self._origin, self._window = origin, page.viewport_size or {"width": 0, "height": 0}
        self._looks = ""  # nowhere, as it was loaded
        self._is_nowhere, self._is_shown = False, False
        for name in LASTING:
            setattr(page, name, _refuse)

    def show(self, place: str) -> None:
        """Go to a place as if the page had just been loaded there."""
        if self._is_shown:
            self._leave()
        self._is_shown = True
        if is_timeline(place):
            load(self.page, place)
            self.page.evaluate(KEEP_REQUESTS)
            return
        if not self._is_nowhere:
            self._load_nowhere()
        self.page.evaluate(MOVE, place)

    def tidy(self) -> None:
        """End what a test left behind."""
        context = self.page.context
        for page in context.pages:
            if page != self.page:
                page.close()
        context.clear_permissions()
        if self._is_shown:
            self._leave()
        self.page.emulate_media(color_scheme="light")
        if self.page.viewport_size != self._window:
            self.page.set_viewport_size(self._window)
        self.problems.clear()

    def _leave(self) -> None:
        """Go nowhere if the page is then as it was loaded there; otherwise it is to be loaded again."""
        page = self.page
        self._is_shown = self._is_nowhere = False
        if page.url.startswith(self._origin):
            page.mouse.move(0, 0)
            self._is_nowhere = page.evaluate(LEAVE, NOWHERE) == self._looks != ""
        if not self._is_nowhere:
            page.goto("about:blank")

    def _load_nowhere(self) -> None:
        load(self.page, NOWHERE)
        self.page.evaluate(KEEP_REQUESTS)
        expect(self.page.locator(".notice")).to_be_visible()
        self.page.evaluate(MOVE, NOWHERE)
        self._looks = self.page.evaluate(LOOKS)


@contextmanager
def lasting_page(
    browser: Browser, origin: str, prepare: Callable[[Page], None], **options: Any
) -> Iterator[LastingPage]:
    """Such a page in a light theme, which is closed with the block.

    Args:
        browser: Opens it.
        origin: The server's address.
        prepare: Is done to it first.
        options: Of its context.
    """
    context = browser.new_context(**{**options, "base_url": origin, "color_scheme": "light"})
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    prepare(page)
    yield LastingPage(page, origin)
    context.close()


@contextmanager
def lasting_app(lasting: LastingPage) -> Iterator[App]:
    """The page for one test. Fails if it logs an error or requests another address meanwhile."""
    try:
        yield App(lasting.page, lasting.show)
        if lasting.problems:
            pytest.fail("\n".join(lasting.problems))
    finally:
        lasting.tidy()


def is_timeline(place: str) -> bool:
    return "view=timeline" in place


def _refuse(*_args: object, **_options: object) -> None:
    raise AssertionError("this page lasts longer than the test: take fresh_app")
