"""How soon a trace of 70 KB is seen: by `kinetoscope open`, after installation and again, by vizviewer and by TensorBoard.

Seconds of the clock from the start of the command are right only on a machine that does nothing else; CPU seconds, of the
server with its processes and of the browser, say what there is to wait for on any. The browser runs already. After
installation nothing is in the cache. pip compiles all modules to bytecode, uv none.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
WITHIN_MS = 300_000
FRESH_S, FIRST_BYTE_S, CONTENT_S = 3, 1, 2
OURS_SHOWN = f"() => document.querySelector({CONTENT!r}) && !document.querySelector('.skeleton')"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Seen:
    """Seconds from the command to the first byte and content, and CPU seconds of server and browser until the content."""

    byte_s: float
    content_s: float
    server_cpu_s: float
    browser_cpu_s: float


def report_open(rounds: int = ROUNDS) -> None:
    """Print the medians."""
    print(f"\nfrom the command to the first picture: a trace of {TRACE.stat().st_size:,} B, {rounds} rounds")
    print(f"load of the last minute {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with _browser() as page:
        by_uv, by_pip, again, peers = [], [], [], {"vizviewer": _vizviewer, "TensorBoard with our tab": _tensorboard}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as home:
                by_uv.append(_open(page, home, "cache-uv"))
                by_pip.append(_open(page, home, "cache-pip"))
                again.append(_open(page, home, "cache-pip"))
        _report("open after pip", by_pip, None, FRESH_S)
        _report("open after uv", by_uv, None, FRESH_S)
        _report("open again", again, FIRST_BYTE_S, CONTENT_S)
        for name, measure in peers.items():
            _report(name, [measure(page) for _ in range(rounds)], None, None)


def _report(name: str, seen: list[Seen], byte_s: float | None, content_s: float | None) -> None:
    print(line(f"{name}, first byte", [one.byte_s for one in seen], byte_s, "s"))
    print(line(f"{name}, first content", [one.content_s for one in seen], content_s, "s"))
    print(line(f"{name}, server's CPU", [one.server_cpu_s for one in seen], None, "s"))
    print(line(f"{name}, browser's CPU", [one.browser_cpu_s for one in seen], None, "s"))


def _cpu_s(root: int, is_browser: bool) -> float:
    """CPU seconds of a process and those below it, or of the browsers among these."""
    below: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        fields, pid = rest.split(), int(folder.name)
        below.setdefault(int(fields[1]), []).append(pid)
        if not is_browser or "chrom" in name:
            spent[pid] = sum(map(int, fields[11:15])) / TICKS_PER_S  # with children that have ended
    pids = [root]
    for pid in pids:
        pids += below.get(pid, [])
    return sum(spent.get(pid, 0) for pid in pids)


@contextmanager
def _browser() -> Iterator[Page]:
    program = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser.new_page()
        browser.close()


def _seen(page: Page, server: int, url: str, is_shown: str, began: float, byte_s: float) -> Seen:
    """Open a page and wait for its content; the browser's page is left blank."""
    browser_s = _cpu_s(os.getpid(), is_browser=True)
    page.goto(url, wait_until="commit")
    page.wait_for_function(is_shown, timeout=WITHIN_MS)
    content_s = time.perf_counter() - began
    seen = Seen(byte_s, content_s, _cpu_s(server, is_browser=False), _cpu_s(os.getpid(), is_browser=True) - browser_s)
    page.goto("about:blank")
    return seen


def _open(page: Page, home: str, cache: str) -> Seen:
    environment = {"KINETOSCOPE_CACHE": f"{home}/{cache}", "PYTHONPYCACHEPREFIX": f"{home}/bytecode", "HOME": home}
    began = time.perf_counter()
    with opening(TRACE, "--stay", PYTHONDONTWRITEBYTECODE="", **environment) as served:
        served.enter()
        byte_s = time.perf_counter() - began
        return _seen(page, served.process.pid, served.address, OURS_SHOWN, began, byte_s)


def _tensorboard(page: Page) -> Seen:
    began = time.perf_counter()
    with serving(f"--logdir={TRACE.parents[1]}") as server:
        byte_s = time.perf_counter() - began
        place = address(run="compiled", worker="rank0", span="25", view="overview")
        return _seen(page, server.process.pid, f"{server.base}{ENTRY}{place}", OURS_SHOWN, began, byte_s)


def _vizviewer(page: Page) -> Seen:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    command = [Path(sys.executable).with_name("vizviewer"), "--server_only", "--port", str(port), str(TRACE)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _answers(url), 60)
        byte_s = time.perf_counter() - began
        return _seen(page, process.pid, url, PERFETTO_DRAWN, began, byte_s)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=10) as answer:
            return bool(answer.read(1))
    except URLError:
        return False
