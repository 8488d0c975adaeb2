"""The page under test, and how to get to a place in it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page, Route

NOT_OURS = ("favicon.ico", "font-roboto")  # TensorBoard asks for its own fonts without the path prefix
PATIENCE_S = 120  # how long the tests of the page wait for anything: a busy machine is no failure
ENTRY = "data/plugin_entry.html?name=pytorch_profiler"
FAULTS = (Path(__file__).parent / "faults.js").read_text()  # asks the page what is wrong with it


def address(**place: str) -> str:
    return "#pytorch_profiler" + "".join(f"&p.pytorch_profiler.{key}={quote(value)}" for key, value in place.items())


def load(page: Page, place: str) -> None:
    """Load the plugin's page at a place, also if it is there already."""
    if page.url != "about:blank":
        page.goto("about:blank")
    page.goto(f"/{ENTRY}{place}")


def comes_true(page: Page, condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds that `expect` can't state; whether it does. The page's events go on meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not (is_true := condition()) and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    return is_true


class App:
    """The plugin's own page, without the TensorBoard around it."""

    def __init__(self, page: Page, show: Callable[[str], None] | None = None) -> None:
        """Take a page.

        Args:
            page: The page.
            show: Shows a place of it; by default it is loaded there.
        """
        self.page = page
        self._show = show or (lambda place: load(page, place))

    def open(self, view: str = "overview", *, run: str = "made", **place: str) -> Page:
        """Open a place by its address, by default of the first recording of `made`; wait until nothing is loading."""
        place = {"span": "5", **place} if run == "made" else place
        self._show(address(view=view, run=run, **place))
        self.settle()
        return self.page

    def go(self, **place: str) -> None:
        """Change the address of the open page, as the back button would."""
        self.page.evaluate("hash => { location.hash = hash }", address(**place))
        self.settle()

    def settle(self) -> None:
        expect(self.page.get_by_role("heading", level=1).or_(self.page.locator(".notice"))).not_to_have_count(0)
        for _ in range(2):  # what begins only after something else is there is seen two frames later
            expect(self.page.locator(".skeleton, [aria-busy=true]")).to_have_count(0)
            self.page.evaluate("() => new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)))")

    def column(self, name: str) -> list[str]:
        """The cells in sight of a column of the page's first table."""
        table = self.page.get_by_role("treegrid").first
        headings = table.get_by_role("columnheader").all_inner_texts()
        index = next(i for i, heading in enumerate(headings) if heading.strip().startswith(name))
        cells = table.locator(f"tr.row td:nth-child({index + 1})").all_inner_texts()
        return [cell.strip() for cell in cells]  # numbers are aligned by spaces

    def expect_column(self, name: str, *cells: str) -> None:
        """Wait until the first cells of a column are these."""
        comes_true(self.page, lambda: self.column(name)[: len(cells)] == list(cells))
        assert self.column(name)[: len(cells)] == list(cells)


class HeldResponses:
    """Responses to requests of one kind, held back until they are released."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page, self._is_open = page, False
        self._routes: list[Route] = []
        page.route(pattern, self._take)

    def __len__(self) -> int:
        return len(self._routes)

    def _take(self, route: Route) -> None:
        if self._is_open:
            route.continue_()
        else:
            self._routes.append(route)

    def wait_for_request(self) -> None:
        """Wait for the first request, and fail if there is none."""
        if not comes_true(self._page, lambda: bool(self._routes)):
            pytest.fail("no request was made")

    def release(self) -> None:
        """Let the held and all further responses pass."""
        self._is_open = True
        for route in self._routes:
            route.continue_()


def watch(page: Page, origin: str) -> list[str]:
    """What goes wrong on a page from now on: errors that it logs, requests of another address."""
    problems: list[str] = []
    host = "/".join(origin.split("/")[:3])

    def on_console(message: Any) -> None:
        if message.type == "error" and not any(name in message.location["url"] for name in NOT_OURS):
            problems.append(f"{message.text} ({message.location['url']})")

    def on_request(request: Any) -> None:
        if not request.url.startswith((host, "data:", "blob:")):
            problems.append(f"requested another address: {request.url}")

    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", on_console)
    page.on("request", on_request)
    return problems


@contextmanager
def watched(page: Page, origin: str) -> Iterator[None]:
    """Fails if the page logs an error or requests another address meanwhile."""
    problems = watch(page, origin)
    yield
    if problems:
        pytest.fail("\n".join(problems))
