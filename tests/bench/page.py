"""The page in Chromium: how soon each entry shows something on a million events, and how evenly charts and tables move.

Times of a page are of the clock, so they are right only on a machine that does nothing else. Beside each stands the CPU
time of the page's main thread, and of the server where one is asked, which other programs disturb little.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

import training
from bounds import line
from generate import write
from wide import write_wide

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.app import ENTRY, address  # the tests' own
from browser.conftest import BROWSERS, FLAGS
from contract.running import Server, serving
from support.large_snapshots import write_large_snapshot
from support.waiting import wait_for

CONTENT_MS, FRAME_MS = 150, 16.7
REST_MS = 1000  # before a click, as a hand takes: the page does nothing by then, but Chromium stores what it compiled
P95 = 0.95
EVENTS_MB, CALLS, SNAPSHOT_MB, ROUNDS = 260, 100_000, 770, 5  # a million events; rows of a table; five million events
QUICK_MB, QUICK_CALLS, QUICK_SNAPSHOT_MB, QUICK_ROUNDS = 13, 5_000, 20, 1
FRAMES, PAUSE = 120, 6  # of a movement; from one action to the next
WITHIN_MS = 120_000
WARM_S = 600  # to read a trace and to compute a view of it
VIEWPORT = {"width": 1440, "height": 900}
MILLION, WIDE, SNAPSHOT_FOLDER = "million", "wide", "snapshot"
SNAPSHOT = f"{SNAPSHOT_FOLDER}/memory"  # the run of the snapshots in that folder

CONTENT = """main :is([role=treegrid] tr.row, svg, canvas, .card, .strip, .sentence, .notice):not(.skeleton *)"""
OPEN = """([title, content]) => new Promise(done => {
  const button = [...document.querySelectorAll("nav[aria-label=Views] button")].find(one => one.firstChild.data === title);
  const began = performance.now();
  button.click();
  const look = () => {
    const isOpen = document.querySelector("nav [aria-current=page]") === button;
    const stage = document.querySelector(".stage");
    const isThere = stage ? !stage.matches("[aria-busy]") : document.querySelector(content);
    if (isOpen && isThere) done(performance.now() - began);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
"""Clicks an entry, and says after how many milliseconds a frame has its content."""

MOVE = """async ([prepare, act, frames, pause]) => {
  const frame = () => new Promise(requestAnimationFrame);
  const step = new Function("i", "on", act), times = [];
  const on = (selector, kind, Kind, more) => {
    const target = document.querySelector(selector), box = target.getBoundingClientRect();
    const at = { clientX: box.left + box.width * (more.x ?? 0.5), clientY: box.top + box.height * (more.y ?? 0.5) };
    target.dispatchEvent(new Kind(kind, { bubbles: true, cancelable: true, ...at, ...more }));
  };
  new Function("on", prepare)(on);
  for (let i = 0; i < 10; i++) await frame();
  for (let i = 0; i < frames; i += 1) {
    if (i % pause === 0) step(i / pause, on);
    times.push(await frame());
  }
  const shown = 1000 / 60, took = times.slice(1).map((time, i) => Math.round((time - times[i]) / shown) * shown);
  return Array.from({ length: Math.ceil(took.length / pause) }, (_, i) =>
    Math.max(...took.slice(i * pause, (i + 1) * pause)));
}"""
"""Acts in one of each `pause` frames, and returns the longest frame after each action, in milliseconds: whole ones of a
display that shows 60 a second."""


@dataclass(frozen=True)
class Movement:
    """What a hand does with a picture or a table.

    Args:
        name: What moves.
        view: Where.
        ready: The selector of what has to be there.
        act: JavaScript of the nth action; `on` dispatches an event at a place of an element.
        prepare: JavaScript before the first.
        pause: Frames from one action to the next.
        place: More of the address.
        run: Whose.
    """

    name: str
    view: str
    ready: str
    act: str
    prepare: str = ""
    pause: int = 1
    place: dict[str, str] = field(default_factory=dict)
    run: str = WIDE


def table(name: str, view: str, **place: str) -> list[Movement]:
    """Scrolling, sorting and filtering a table."""
    ready, box = "[role=treegrid] tr.row", "document.querySelector('[role=treegrid]').parentElement"
    sort = "const heads = document.querySelectorAll('[role=treegrid] th button'); heads[i % Math.min(4, heads.length)].click()"
    text = "const box = document.querySelector('.filter input'); box.value = ['', '9', '99', '99 1', '-7'][i % 5];"
    typed = f"{text} box.dispatchEvent(new InputEvent('input', {{bubbles: true}}))"
    return [
        Movement(f"{name}: scroll", view, ready, f"{box}.scrollTop += 300", place=place),
        Movement(f"{name}: jump", view, ready, f"{box}.scrollTop = (i * 7919 % 97) / 97 * 1e6", place=place),
        Movement(f"{name}: sort", view, ready, sort, pause=PAUSE, place=place),
        Movement(f"{name}: filter", view, ready, typed, pause=PAUSE, place=place),
    ]


POINT = "on('{}', 'pointermove', PointerEvent, {{x: (i * 7 % 100) / 100, y: 0.2 + (i % 5) / 10}})"
ZOOM = "on('{}', 'wheel', WheelEvent, {{deltaY: i % 60 < 30 ? -40 : 40, ctrlKey: true, x: 0.4}})"
PAN = "on('{}', 'wheel', WheelEvent, {{deltaX: i % 60 < 30 ? 40 : -40}})"
ZOOMED = "for (let i = 0; i < 10; i++) on('{}', 'wheel', WheelEvent, {{deltaY: -100, ctrlKey: true}})"
FLAME, TIMELINE, CURVE, BANDS = ".flames canvas", ".body-canvas", ".curves .plot", ".bands canvas"
DRAWN = ".stage:not([aria-busy]) .body-canvas"
MOVEMENTS = [
    *table("operators", "operators"),
    *table("kernels", "kernels"),
    Movement("flame graph: zoom", "python_calls", FLAME, ZOOM.format(FLAME)),
    Movement("flame graph: pan", "python_calls", FLAME, PAN.format(FLAME), prepare=ZOOMED.format(FLAME)),
    Movement("flame graph: point", "python_calls", FLAME, POINT.format(FLAME)),
    Movement("treemap: point", "memory_peak_categories", ".treemap svg g", POINT.format(".treemap svg")),
    Movement("roofline: point", "operator_efficiency", ".roofline svg", POINT.format(".roofline svg")),
    Movement("memory curve: point", "memory_curve", CURVE, POINT.format(CURVE)),
    Movement("timeline: zoom", "timeline", DRAWN, ZOOM.format(TIMELINE), run=MILLION),
    Movement("timeline: pan", "timeline", DRAWN, PAN.format(TIMELINE), run=MILLION),
    Movement("timeline: point", "timeline", DRAWN, POINT.format(TIMELINE), run=MILLION),
    Movement("timeline, nothing repeats: zoom", "timeline", DRAWN, ZOOM.format(TIMELINE)),
    Movement("snapshot, blocks over time: zoom", "snapshot_levels", BANDS, ZOOM.format(BANDS), run=SNAPSHOT),
    Movement("snapshot, blocks over time: point", "snapshot_levels", BANDS, POINT.format(BANDS), run=SNAPSHOT),
]


def p95(values: list[float]) -> float:
    """The value that 95 % of them don't exceed: one of them."""
    return sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]


class Clock:
    """CPU milliseconds of the page's main thread and of the server since it began."""

    def __init__(self, session: CDPSession, server: Server) -> None:
        self._session, self._server = session, server
        self._began = self._now()

    def _now(self) -> tuple[float, float]:
        metrics = {one["name"]: one["value"] for one in self._session.send("Performance.getMetrics")["metrics"]}
        return metrics["ThreadTime"] * 1e3, self._server.cpu_seconds() * 1e3

    def spent(self) -> tuple[float, float]:
        """(of the page, of the server)."""
        (page, server), (page_before, server_before) = self._now(), self._began
        return page - page_before, server - server_before


class Browser:
    """Chromium, with a new page for each round: nothing is cached but by the server."""

    def __init__(self, launched: Any, server: Server) -> None:
        self._launched, self._server = launched, server

    @contextmanager
    def page(self) -> Iterator[tuple[Page, Callable[[], Clock]]]:
        """(a page that has seen nothing yet, what starts a clock)."""
        context = self._launched.new_context(viewport=VIEWPORT, color_scheme="light")
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable")
        try:
            yield page, lambda: Clock(session, self._server)
        finally:
            context.close()

    def open(self, page: Page, ready: str, **place: str) -> None:
        """Open a place and wait for an element."""
        page.goto("about:blank")
        page.goto(f"{self._server.base}{ENTRY}{address(**place)}")
        page.wait_for_selector(ready, timeout=WITHIN_MS, state="attached")
        page.wait_for_function("!document.querySelector('main .skeleton')", timeout=WITHIN_MS)


@contextmanager
def chromium(server: Server) -> Iterator[Browser]:
    """A browser."""
    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield Browser(launched, server)
        launched.close()


def warm_up(server: Server, run: str) -> None:
    """Let the server compute all that a page asks for."""
    place = {"run": run, "worker": "rank0", "span": "1"}
    wait_for(lambda: server.plugin("timeline", **place).json["state"] != "loading", WARM_S)
    for view in server.plugin("views").json:
        wait_for(
            lambda view=view["id"]: b'"loading"' not in server.plugin("view", view=view, **place).body[:100],
            WARM_S,
        )


def entries_of(browser: Browser) -> list[str]:
    """The titles of the entries that the trace of a million events has."""
    with browser.page() as (page, _):
        browser.open(page, CONTENT, run=MILLION, view="health")
        page.wait_for_selector("nav[aria-label=Views]:not([aria-busy])")
        titles: list[str] = page.eval_on_selector_all(
            "nav[aria-label=Views] li > button[data-tip]", "all => all.map(one => one.firstChild.data)"
        )
    return titles


def report_content(browser: Browser, rounds: int) -> None:
    """Print how long after a click each entry shows its first content."""
    titles = entries_of(browser)
    took: dict[str, list[float]] = {title: [] for title in titles}
    spent: dict[str, list[tuple[float, float]]] = {title: [] for title in titles}
    for _ in range(rounds):
        for title in titles:
            with browser.page() as (page, clock):
                other = "kernels" if title == "Trace health" else "health"
                browser.open(page, CONTENT, run=MILLION, view=other)
                page.wait_for_timeout(REST_MS)
                started = clock()
                milliseconds = page.evaluate(OPEN, [title, CONTENT])
                took[title].append(milliseconds)
                spent[title].append(started.spent())
    print("\nfirst content of each entry after a click, from a warm server; CPU time of the page and of the server")
    for title in titles:
        print(with_cpu(line(title, took[title], CONTENT_MS, "ms"), spent[title]))
    print(line("95th percentile of all", [p95([one for some in took.values() for one in some])], CONTENT_MS, "ms"))


def report_movements(browser: Browser, rounds: int, calls: int) -> None:
    """Print how long the frames of each movement take."""
    print(f"\nframes, 95th percentile of each round; tables of {calls:,} rows; CPU time of the page per action")
    for movement in MOVEMENTS:
        frames, spent = [], []
        for _ in range(rounds):
            with browser.page() as (page, clock):
                browser.open(page, movement.ready, run=movement.run, view=movement.view, **movement.place)
                started = clock()
                took = page.evaluate(MOVE, [movement.prepare, movement.act, FRAMES, movement.pause])
                frames.append(p95(took))
                spent.append((started.spent()[0] / len(took), 0.0))
        print(with_cpu(line(movement.name, frames, FRAME_MS, "ms"), spent))


def with_cpu(words: str, spent: list[tuple[float, float]]) -> str:
    """The line, with the medians of the CPU times."""
    page, server = (statistics.median(side) for side in zip(*spent, strict=True))
    return f"{words}; page {page:.1f} ms" + (f", server {server:.0f} ms" if server else "")


def report_page(folder: Path, *, is_quick: bool) -> None:
    """Print all of it."""
    full, quick = (EVENTS_MB, CALLS, SNAPSHOT_MB, ROUNDS), (QUICK_MB, QUICK_CALLS, QUICK_SNAPSHOT_MB, QUICK_ROUNDS)
    megabytes, calls, snapshot_megabytes, rounds = quick if is_quick else full
    logdir, recording = folder / "logdir", folder / "training.json.gz"
    for run in (MILLION, WIDE, SNAPSHOT_FOLDER):
        (logdir / run).mkdir(parents=True)
    training.write_recording(recording)
    events = write(logdir / MILLION / "rank0.1.pt.trace.json", megabytes, recording)
    wide = write_wide(logdir / WIDE / "rank0.1.pt.trace.json", calls)
    blocks = write_large_snapshot(logdir / SNAPSHOT_FOLDER / "rank0.1.memory.pickle", snapshot_megabytes * 1_000_000)
    print(
        f"\nthe page in Chromium, of {events:,} events, of {wide:,} of which none repeats, and of {blocks:,} of a snapshot"
    )
    with serving(f"--logdir={logdir}") as server, chromium(server) as browser:
        for run in (MILLION, WIDE, SNAPSHOT):
            warm_up(server, run)
        report_content(browser, rounds)
        report_movements(browser, rounds, calls)
