"""Every entry and tab of many recordings, in three widths and both themes.

`make crawl` opens all of the recordings in all widths; `make test` a tenth, each tab in another width from recording to
recording.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, FAULTS, address, watched
from browser.traces import REPOSITORY
from contract.running import Server, serving
from kinetoscope_tb.discovery.filename_patterns import is_candidate, without_extension
from support.real_traces import FOLDER, MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)

WIDTHS = (1440, 1024, 720)
"""The last one is a window of 1440 pixels at 200 %."""
HEIGHT = 900
MOST_CPU_S = 8  # of the server for a tab, with reading the recording for the first one

EVERY = int(os.environ.get("KINETOSCOPE_CRAWL_EVERY", "10"))  # recordings in CI
PLACES = ("traces", "inference", "torch-2.15/cpu", "torch-2.15/cuspy", "labelled", "causes", "cases", "snapshots")
APART = {*PLACES, "claims", "single", "derived_malformed", "cpu", "cuspy", "h100_snapshots"}  # of different jobs
NO_RECORDINGS = {".work", "capture_traces", "perf_csvs", "h100_pairs", "cpu_pairs"}
OTHER_FILES = ("truth", "execution_trace", "memory_timeline", "python_export", "level", "names", "run.json", "averages")


def is_recording(path: Path) -> bool:
    is_other = any(word in path.name for word in OTHER_FILES) or NO_RECORDINGS & {*path.parts}
    return is_candidate(path.name) and not is_other and path.stat().st_size > 0


def recordings() -> dict[str, Path]:
    """Files, and folders of recordings of one job, by the name of their run."""
    found = {}
    for root in (*(FOLDER.parent / place for place in PLACES), REPOSITORY / "samples"):
        for path in filter(is_recording, sorted(root.rglob("*"))):
            place = path if path.parent.name in APART else path.parent
            found["-".join((root.name, *place.relative_to(root).parts))] = place
    return {without_extension(run): place for run, place in found.items()}


RECORDINGS = recordings()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A TensorBoard with all of them."""
    folder = tmp_path_factory.mktemp("crawl")
    for run, place in RECORDINGS.items():
        if place.is_dir():
            (folder / run).symlink_to(place.resolve())
        else:
            (folder / run).mkdir()
            (folder / run / place.name).symlink_to(place.resolve())
    with serving(f"--logdir={folder}") as server:
        yield server


@pytest.fixture(scope="module")
def open_page(browser: Browser, server: Server) -> Iterator[Page]:
    """One page for all of them, as in a long session."""
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": HEIGHT}, color_scheme="light")
    page.goto(f"{server.base}{ENTRY}")
    yield page
    page.close()


def tabs_of(server: Server, run: str) -> tuple[dict[str, str], dict[str, str]]:
    """The first recording of a run, and the tabs that the page offers for it, each with the title of its entry."""
    runs = server.plugin("runs").json["runs"]
    found = next(known for known in runs if f"{known['name']}/".startswith(f"{run}/"))
    worker = found["workers"][0]
    place = {"run": found["name"], "worker": worker["name"], "span": worker["newest"]}
    server.settled("view", view="health", **place)  # captures of its graphs may have what it lacks
    state = server.settled("state", **place).json
    if state.get("moved"):
        place = state["moved"]
        state = server.settled("state", **place).json
    views = [view for view in server.plugin("views").json if view["place"]["kind"] == "tab"]
    offered = {view["id"]: view["entry"]["title"] for view in views if view["id"] not in state.get("missing", ())}
    return place, {**offered, "timeline": "Timeline"}


def badge_of(server: Server, place: dict[str, str]) -> str:
    """The badge with what is wrong with the recording and with its run."""
    answers = [server.settled("view", view=view, **place).json for view in ("health", "run_health")]
    levels = Counter(level for answer in answers for level in answer.get("data", {}).get("level", ()))
    words = {"loss": "losses", "warning": "warnings", "note": "notes"}
    counts = [f"{levels[word]} {word if levels[word] == 1 else words[word]}" for word in words if levels[word]]
    return f"Trace health: {', '.join(counts) or 'nothing to note'}"


def is_counted_out_of_sight(server: Server, place: dict[str, str]) -> bool:
    """Whether the badge counts what is wrong with the run, and the page lacks the view that lists it."""
    is_missing = "run_health" in server.settled("state", **place).json.get("missing", ())
    return is_missing and any(server.settled("view", view="run_health", **place).json.get("data", {}).values())


def contradictions(page: Page, title: str, badge: str) -> Iterator[str]:
    """What the open tab says that the panel or the server doesn't."""
    if title == "Timeline":
        return
    if page.get_by_role("heading", level=1).all_inner_texts() != [title]:
        yield f"the page isn't {title}"
    if page.locator("main .notice:not(.part *)", has_text="not in this trace").count():
        yield "the panel offers a tab without data"
    try:
        expect(page.locator(".badge", has_text="Trace health")).to_have_text(badge)
    except AssertionError as error:
        yield f"{badge} is right: {error}"


def looks(tabs: Sequence[str], recording: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each tab of a recording with the widths in which it is looked at.

    If that is one of them, tabs of one width come in a row: whenever it changes, the page is laid out again.
    """
    if EVERY == 1:
        yield from ((tab, WIDTHS[:: 1 if number % 2 == 0 else -1]) for number, tab in enumerate(tabs))
        return
    for first in range(len(WIDTHS)):
        width = WIDTHS[(first + recording) % len(WIDTHS)]
        yield from ((tab, (width,)) for tab in tabs[first :: len(WIDTHS)])


CHOSEN = [*RECORDINGS][::EVERY]


@pytest.mark.parametrize("run", CHOSEN)
def test_every_entry_and_tab(open_page: Page, server: Server, run: str):
    page, faults = open_page, dict[str, list[int]]()
    place, tabs = tabs_of(server, run)
    badge = badge_of(server, place)
    if is_counted_out_of_sight(server, place):
        faults[f"{badge} counts findings of the run that no view shows"] = []
    with watched(page, server.base):
        for tab, widths in looks([*tabs], CHOSEN.index(run)):
            before = server.cpu_seconds()
            page.evaluate("hash => { location.hash = hash }", address(**place, view=tab))
            for width in widths:
                page.set_viewport_size({"width": width, "height": HEIGHT})
                for fault in page.evaluate(FAULTS, width == WIDTHS[0]):
                    faults.setdefault(f"{tab}: {fault}", []).append(width)
            spent = server.cpu_seconds() - before
            if spent > MOST_CPU_S:
                faults[f"{tab}: its answers took {spent:.1f} CPU s"] = []
            faults |= {f"{tab}: {problem}": [] for problem in contradictions(page, tabs[tab], badge)}
    lines = [f"{fault} ({', '.join(map(str, where))})" if where else fault for fault, where in faults.items()]
    assert not faults, "\n".join(lines)
