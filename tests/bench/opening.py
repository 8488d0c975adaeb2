"""A page opened in a browser of its own: how long until it shows its first picture, and what its process takes then."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.conftest import BROWSERS, FLAGS  # the tests' own

VIEWPORT = {"width": 1600, "height": 900}
WITHIN_MS = 600_000
SETTLED_S = 2  # after the first picture, before the memory is looked at
# No waiting for names that can't be found: neither page gets anything from outside.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"

OURS_DRAWN = r"""() => !document.querySelector(".worker-states")
  && document.querySelector(".stage:not([aria-busy])")
  && /; [1-9][\d\s]* box/.test(document.querySelector("#timeline-shown")?.textContent ?? "")"""
PERFETTO_DRAWN = """() => window.app?.trace && document.querySelector(".pf-track")"""


@dataclass(frozen=True)
class Opened:
    """Seconds to the first picture; resident megabytes of the page's process, then and at most."""

    seconds: float
    megabytes: float
    most_megabytes: float


def opened(address: str, is_drawn: str, picture: Path | None = None) -> Opened:
    """Open the page in a new browser that has seen nothing yet.

    Args:
        address: Of the page.
        is_drawn: A function in JavaScript.
        picture: Where to save what it shows.
    """
    browser_path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=[*FLAGS, ALONE])
        page = browser.new_page(viewport=VIEWPORT)
        page.goto("about:blank")
        begun = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.wait_for_function(is_drawn, timeout=WITHIN_MS)
        seconds = time.perf_counter() - begun
        time.sleep(SETTLED_S)
        memory = [resident(pid) for pid in renderers()]
        if picture:
            page.screenshot(path=picture)
        browser.close()
    now, most = max(memory)
    return Opened(seconds, now, most)


def renderers() -> Iterator[int]:
    """The processes of pages, of the browsers that this process began: the largest is the page's."""
    parents, commands = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(folder.name)] = (folder / "cmdline").read_bytes()
            except OSError:  # it ended in the meantime
                continue
    for pid, command in commands.items():
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and b"--type=renderer" in command:
            yield pid


def resident(pid: int) -> tuple[float, float]:
    """Resident megabytes of a process: now, and at most so far."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, int(status["VmHWM"].split()[0]) / 1024


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, whose files are sent as they are."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
