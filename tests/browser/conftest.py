"""A TensorBoard with traces, and a page in a browser that may neither log an error nor ask another address."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browser.app import PATIENCE_S, App, watched
from browser.lasting_page import LastingPage, lasting_app, lasting_page
from browser.traces import (
    REPOSITORY,
    backwards,
    chain,
    collectives,
    deep,
    labels,
    launches_only,
    layers,
    many_gaps,
    matmuls,
    memory,
    modules,
    ranges,
    sources,
    training,
    without_flops,
    write,
)
from contract.running import serving

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HEADLESS = ("chromium-headless-shell", *BROWSERS)  # the first draws the same pages with a third less CPU time
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

expect.set_options(timeout=PATIENCE_S * 1000)

# KINETOSCOPE_SLOWER_PAGE=4 make test ARGS=tests/browser shows what depends on a fast machine.
SLOWER = float(os.environ.get("KINETOSCOPE_SLOWER_PAGE", "1"))
# Answers come late and in any order.
LATE = """
const soon = globalThis.fetch;
const later = () => new Promise(done => setTimeout(done, Math.random() * 300));
globalThis.fetch = async (...request) => { await later(); const answer = await soon(...request); await later(); return answer; };
"""


@pytest.fixture(scope="session")
def chromium() -> str:
    executable = next(filter(None, map(shutil.which, HEADLESS)), None)
    if executable:
        return executable
    reason = f"no browser on PATH (looked for {', '.join(BROWSERS)}); on Debian: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser_type_launch_args(chromium: str, browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": chromium, "args": list(FLAGS)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "viewport": {"width": 1360, "height": 860}, "color_scheme": "light"}


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    """A context in which clicks and addresses have as much time as what is expected to be seen."""
    context.set_default_timeout(PATIENCE_S * 1000)
    return context


def slow_down(page: Page) -> None:
    """Let a page compute and be answered as slowly as on a busy machine, if the environment asks for it."""
    if SLOWER > 1:
        page.add_init_script(LATE)
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})


@pytest.fixture
def page(page: Page) -> Page:
    slow_down(page)
    return page


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated traces, the samples, and real traces if they are installed."""
    folder = tmp_path_factory.mktemp("logdir")
    write(folder, "made/rank0.5.pt.trace.json", training())
    write(folder, "made/rank0.9.pt.trace.json", training(6))
    write(folder, "made/rank1.5.pt.trace.json", training(3))
    write(folder, "many_steps/rank0.5.pt.trace.json", training(12))
    write(folder, "cpu_only/rank0.5.pt.trace.json", training(device=False))
    write(folder, "backwards/rank0.5.pt.trace.json", backwards())
    write(folder, "launches_only/rank0.5.pt.trace.json", launches_only())
    write(folder, "modules/rank0.5.pt.trace.json", modules())
    write(folder, "deep/rank0.5.pt.trace.json", deep())
    write(folder, "chain/rank0.5.pt.trace.json", chain())
    write(folder, "matmuls/rank0.5.pt.trace.json", matmuls())
    write(folder, "without_flops/rank0.5.pt.trace.json", without_flops())
    write(folder, "ranges/rank0.5.pt.trace.json", ranges())
    write(folder, "layers/rank0.5.pt.trace.json", layers())
    write(folder, "memory/rank0.5.pt.trace.json", memory())
    write(folder, "labels/rank0.5.pt.trace.json", labels(70))
    write(folder, "labels/rank0.9.pt.trace.json", labels(3_000))
    write(folder, "many_gaps/rank0.5.pt.trace.json", many_gaps())
    write(folder, "broken/rank0.5.pt.trace.json", "this is no JSON")
    for rank, start in enumerate((100_000, 700_000)):
        write(folder, f"ranks/rank{rank}.5.pt.trace.json", collectives(start))
    write(folder, "half/rank0.5.pt.trace.json", training())
    write(folder, "half/rank1.5.pt.trace.json", "this is no JSON")
    for source in sources():
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("*.py", "*.md"))
    return folder


@pytest.fixture(scope="session")
def base_url(logdir: Path) -> Iterator[str]:
    """The address from which `page.goto` goes."""
    with serving(f"--logdir={logdir}") as server:
        # The first answers take longest: on a busy machine long enough for a page to be taken for broken.
        for run in ("made", "modules", "memory", "ranks"):
            where = {"run": run, "worker": "rank0", "span": "5"}
            server.settled("timeline", **where)
            server.settled("view", view="overview", **where)
        yield server.base.rstrip("/")


@pytest.fixture(scope="session")
def lasting(browser: Browser, base_url: str, browser_context_args: dict[str, Any]) -> Iterator[LastingPage]:
    with lasting_page(browser, base_url, slow_down, **browser_context_args) as page:
        yield page


@pytest.fixture(scope="module")
def large_page(browser: Browser) -> Iterator[Callable[[str], LastingPage]]:
    """Opens a page of 1440 by 900 pixels of another server, for all tests of a file."""
    with ExitStack() as stack:
        viewport = {"width": 1440, "height": 900}
        yield cache(lambda origin: stack.enter_context(lasting_page(browser, origin, slow_down, viewport=viewport)))


@pytest.fixture
def app(lasting: LastingPage) -> Iterator[App]:
    """The page, which may have been at other places before."""
    with lasting_app(lasting) as app:
        yield app


@pytest.fixture
def fresh_app(page: Page, base_url: str) -> Iterator[App]:
    """The page in a context of its own, for tests of its requests, its first answers, or faked ones."""
    with watched(page, base_url):
        yield App(page)


@pytest.fixture
def shell(page: Page, base_url: str) -> Iterator[Page]:
    """TensorBoard's page; the plugin is in its frame."""
    with watched(page, base_url):
        yield page


@pytest.fixture(scope="session")
def artifacts() -> Path:
    folder = REPOSITORY / ".artifacts"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def clipboard(request: pytest.FixtureRequest) -> Callable[[], str]:
    app: App = request.getfixturevalue("fresh_app" if "fresh_app" in request.fixturenames else "app")
    app.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return lambda: app.page.evaluate("navigator.clipboard.readText()")
