"""The timeline beside Perfetto's offline copy, and a run of many ranks: pages in a browser, side by side in one run."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from bounds import line
from generate import write
from opening import OURS_DRAWN, PERFETTO_DRAWN, Opened, opened, served
from ranks import write_ranks

sys.path.insert(0, str(Path(__file__).parents[1]))

from contract.running import PLUGIN, Server, serving  # the tests' own
from kinetoscope_tb.web.perfetto import folder as perfetto_folder

FASTER, SMALLER = 8, 3
FIRST_PICTURE_S, RANKS_PICTURE_S, PAGE_MB, FULL_VIEW_MS = 2, 3, 400, 16
RANKS = 8
CACHE_SIZE = "40G"


def median(runs: list[Opened]) -> Opened:
    """The medians of some openings."""
    return Opened(*(statistics.median(getattr(run, field) for run in runs) for field in Opened.__dataclass_fields__))


def words(run: Opened) -> str:
    """An opening in words."""
    return f"{run.seconds:6.2f} s, {run.megabytes:5.0f} MB (at most {run.most_megabytes:.0f} MB)"


@contextmanager
def cached(folder: Path) -> Iterator[None]:
    """Traces and timelines are kept in a folder meanwhile."""
    before = {name: os.environ.get(name) for name in ("KINETOSCOPE_CACHE", "KINETOSCOPE_CACHE_SIZE")}
    os.environ.update(KINETOSCOPE_CACHE=str(folder), KINETOSCOPE_CACHE_SIZE=CACHE_SIZE)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def place_of(run: dict, worker: dict) -> dict[str, str]:
    """The names of a worker's first recording."""
    return {"run": run["name"], "worker": worker["name"], "span": worker["spans"][0]["name"]}


def our_page(server: Server, place: dict[str, str], window: tuple[int, int], ranks: list[str]) -> str:
    """The address of the timeline at a range, with further workers."""
    address = {**place, "view": "timeline", "from": str(window[0]), "to": str(window[1]), "ranks": ",".join(ranks)}
    pairs = "".join(f"&p.pytorch_profiler.{key}={quote(value)}" for key, value in address.items())
    return f"{server.base}data/plugin_entry.html?name=pytorch_profiler#pytorch_profiler{pairs}"


def perfetto_page(base: str, file: str) -> str:
    """The address of Perfetto's page with a file."""
    return f"{base}index.html#!/?mode=embedded&hideSidebar=true&url={quote(file, safe='')}"


def report_opening(folder: Path, megabytes: int, rounds: int, artifacts: Path | None = None) -> None:
    """Print how one trace opens here and there."""
    logdir, site = folder / "one", folder / "site"
    logdir.mkdir()
    site.mkdir()
    path = logdir / "rank0.1.pt.trace.json"
    events = write(path, megabytes)
    (site / path.name).symlink_to(path)
    for item in perfetto_folder().iterdir():
        (site / item.name).symlink_to(item)
    print(
        f"\ntimeline of {path.stat().st_size / 1e6:.0f} MB, {events:,} events, opened in Chromium: first picture, memory"
    )
    with cached(folder / "cache"), serving(f"--logdir={logdir}") as server, served(site) as theirs:
        run = server.plugin("runs").json["runs"][0]
        place = place_of(run, run["workers"][0])
        begun = time.perf_counter()
        meta = server.settled("timeline", **place).json
        read_s = time.perf_counter() - begun
        export = f"{server.base}{PLUGIN}timeline/export?{urlencode({**place, 'stamp': meta['stamp']})}"
        pages = {
            "ours": (our_page(server, place, meta["window"], []), OURS_DRAWN),
            "Perfetto, the file": (perfetto_page(f"{theirs}/", f"{theirs}/{path.name}"), PERFETTO_DRAWN),
            "Perfetto, our export": (perfetto_page(f"{server.base}{PLUGIN}timeline/perfetto/", export), PERFETTO_DRAWN),
        }
        runs: dict[str, list[Opened]] = {name: [] for name in pages}
        for nth in range(rounds):
            for name, (address, is_drawn) in pages.items():
                picture = artifacts / f"bench-{name.replace(' ', '-')}.png" if artifacts and not nth else None
                runs[name].append(opened(address, is_drawn, picture))
    print(f"  our server had read the file before, once, in {read_s:.1f} s")
    for name, some in runs.items():
        print(f"  {name:<21} {words(median(some))}")
    pairs = list(zip(runs["ours"], runs["Perfetto, the file"], strict=True))
    faster = [their.seconds / our.seconds for our, their in pairs]
    smaller = [their.megabytes / our.megabytes for our, their in pairs]
    print(line("first picture", [run.seconds for run in runs["ours"]], FIRST_PICTURE_S, "s"))
    print(line("faster than Perfetto", faster, FASTER, "×", at_least=True))
    print(line("less memory than Perfetto", smaller, SMALLER, "×", at_least=True))


def report_ranks(folder: Path, slices: int, rounds: int, measured, artifacts: Path | None = None) -> None:
    """Print how a run of many ranks opens, and what one full view of it costs the server."""
    logdir = folder / "ranks"
    count = write_ranks(logdir / "job", slices, RANKS)
    with cached(folder / "cache"):
        with serving(f"--logdir={logdir}") as server:
            run = server.plugin("runs").json["runs"][0]
            places = [place_of(run, worker) for worker in run["workers"]]
            metas = [server.settled("timeline", **place).json for place in places]
            window = (min(m["window"][0] for m in metas), max(m["window"][1] for m in metas))
            page = our_page(server, places[0], window, [place["worker"] for place in places[1:]])
            picture = artifacts / "bench-ranks.png" if artifacts else None
            some = []
            for nth in range(rounds):
                some.append(opened(page, OURS_DRAWN, None if nth else picture))
                server.settled("view", view="clocks", **places[0])  # what the page asks for behind its first picture
        query = measured([sys.executable, str(Path(__file__).parent / "full_view.py"), str(logdir)]).said
    print(f"\ntimeline of {RANKS} ranks, {count:,} slices: {words(median(some))}; the first time {words(some[0])}")
    print(line("first picture of all ranks", [run.seconds for run in some], RANKS_PICTURE_S, "s"))
    print(line("memory of the page", [run.megabytes for run in some], PAGE_MB, "MB"))
    print(f"  a full view has {query['bytes'] / 1e6:.2f} MB; the first takes {query['first_ms']:.1f} ms")
    p95s = [statistics.quantiles(times, n=20)[-1] for times in query["ms"]]
    print(line(f"full view of {query['slices']:,} slices, p95", p95s, FULL_VIEW_MS, "ms"))
