"""How soon a trace of 70 KB is seen: by `kinetoscope open`, after installation and again, by vizviewer and by TensorBoard.

Seconds of the clock from the start of the command, so they are right only on a machine that does nothing else. The
browser runs already. After installation nothing is in the cache, and no module is compiled to bytecode.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Page, sync_playwright

from bounds import line
from opening import PERFETTO_DRAWN
from page import CONTENT

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.app import ENTRY, address  # the tests' own
from browser.conftest import BROWSERS, FLAGS
from contract.opening import opening
from contract.running import serving
from support.waiting import wait_for

TRACE = Path(__file__).parents[2] / "samples" / "h100" / "compiled" / "rank0.25.pt.trace.json.gz"
ROUNDS = 5
FRESH_S, FIRST_BYTE_S, CONTENT_S = 3, 1, 2
OURS_SHOWN = f"() => document.querySelector({CONTENT!r}) && !document.querySelector('.skeleton')"
Seen = tuple[float, float]  # seconds to the first byte, and to the first content


def report_open(rounds: int = ROUNDS) -> None:
    """Print the medians."""
    print(f"\nfrom the command to the first picture: a trace of {TRACE.stat().st_size:,} B, {rounds} rounds")
    with _browser() as page:
        fresh, again, peers = [], [], {"vizviewer": _vizviewer, "TensorBoard with our tab": _tensorboard}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as home:
                fresh.append(_open(page, home))
                again.append(_open(page, home))
        print(line("open after installation, byte", [byte for byte, _ in fresh], FRESH_S, "s"))
        print(line("open after installation, content", [content for _, content in fresh], None, "s"))
        print(line("open again, first byte", [byte for byte, _ in again], FIRST_BYTE_S, "s"))
        print(line("open again, first content", [content for _, content in again], CONTENT_S, "s"))
        for name, measure in peers.items():
            seen = [measure(page) for _ in range(rounds)]
            print(line(f"{name}, first byte", [byte for byte, _ in seen], None, "s"))
            print(line(f"{name}, first content", [content for _, content in seen], None, "s"))


@contextmanager
def _browser() -> Iterator[Page]:
    program = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser.new_page()
        browser.close()


def _shown(page: Page, url: str, is_shown: str, began: float) -> float:
    """Seconds until the page shows its content; it is left blank."""
    page.goto(url, wait_until="commit")
    page.wait_for_function(is_shown, timeout=60_000)
    seconds = time.perf_counter() - began
    page.goto("about:blank")
    return seconds


def _open(page: Page, home: str) -> Seen:
    environment = {"KINETOSCOPE_CACHE": f"{home}/cache", "PYTHONPYCACHEPREFIX": f"{home}/bytecode", "HOME": home}
    began = time.perf_counter()
    with opening(TRACE, "--stay", PYTHONDONTWRITEBYTECODE="", **environment) as served:
        served.enter()
        first_byte = time.perf_counter() - began
        return first_byte, _shown(page, served.address, OURS_SHOWN, began)


def _tensorboard(page: Page) -> Seen:
    began = time.perf_counter()
    with serving(f"--logdir={TRACE.parents[1]}") as server:
        first_byte = time.perf_counter() - began
        place = address(run="compiled", worker="rank0", span="25", view="overview")
        return first_byte, _shown(page, f"{server.base}{ENTRY}{place}", OURS_SHOWN, began)


def _vizviewer(page: Page) -> Seen:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    command = [Path(sys.executable).with_name("vizviewer"), "--server_only", "--port", str(port), str(TRACE)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _answers(url), 60)
        return time.perf_counter() - began, _shown(page, url, PERFETTO_DRAWN, began)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=10) as answer:
            return bool(answer.read(1))
    except URLError:
        return False
