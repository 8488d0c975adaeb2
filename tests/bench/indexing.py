"""Runs of many ranks: how indexing scales with processes and with ranks, and how fast a thousand of them open.

Run as a program, it measures what is opened: `indexing.py FOLDER RANKS` makes summaries of a simulated run in an empty
cache, then opens the heat map from them, and prints the seconds as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # where the simulation is

from isal import igzip  # noqa: E402

import ranks  # noqa: E402
from bounds import line  # noqa: E402

RANKS, MEGABYTES = 64, 20
LEAST_EFFICIENCY, PROCESSES = 0.8, 2
MANY, MOST_S = 1024, 2
MOST_GROWTH = 1.2  # of the peak memory, from a quarter of the ranks to all
SLICES_A_MEGABYTE = 7_300  # of what `ranks` writes


def report_indexing(folder: Path, rounds: int, measured: Callable[..., object]) -> None:
    """Print what indexing costs, and what opening a run of many ranks does."""
    few, many = folder / "few", folder / "many"
    _write(many)
    few.mkdir()
    for file in sorted(many.iterdir())[: RANKS // 4]:
        os.link(file, few / file.name)
    times: dict[int, list[float]] = {1: [], PROCESSES: []}
    peaks = {RANKS // 4: _index(few, folder, PROCESSES, measured)[1]}  # compiles, and brings files into memory
    efficiencies = []
    for _ in range(rounds):
        for processes in times:
            seconds, peaks[RANKS] = _index(many, folder, processes, measured)
            times[processes].append(seconds)
        efficiencies.append(times[1][-1] / times[PROCESSES][-1] / PROCESSES)
    one, several = (statistics.median(found) for found in times.values())
    print(f"\nindexing {RANKS} ranks of {MEGABYTES} MB: {one:.1f} s by 1 process, {several:.1f} s by {PROCESSES}")
    print(line(f"efficiency of {PROCESSES} processes", efficiencies, LEAST_EFFICIENCY, "×", at_least=True))
    for who in ("parent", "worker"):
        fewer, more = (peaks[count][f"{who}_mb"] for count in (RANKS // 4, RANKS))
        print(f"  peak memory of the {who}: {fewer:.0f} MB for {RANKS // 4} ranks, {more:.0f} MB for {RANKS}")
        print(line(f"growth of the {who}", [more / fewer], MOST_GROWTH, "×"))
    cache = {"KINETOSCOPE_CACHE": str(folder / "kept")}
    said = measured([sys.executable, __file__, str(folder / "simulated"), str(MANY)], cache).said  # type: ignore[attr-defined]
    print(line(f"heat map of {MANY} ranks from summaries", [said["opened_s"]], MOST_S, "s"))
    print(f"  stragglers of the same {said['stragglers_s']:.2f} s, clocks {said['clocks_s']:.2f} s")


def _write(folder: Path) -> None:
    """The ranks' files: those of the first one, who says of itself that it is another."""
    ranks.write_ranks(folder, MEGABYTES * SLICES_A_MEGABYTE, 1)
    first = folder / "rank0.1.pt.trace.json.gz"
    with igzip.open(first) as file:
        text = file.read()
    before, said, rest = text.partition(b'"rank": 0, "world_size": 1')
    assert said
    for rank in range(RANKS):
        with igzip.open(folder / f"rank{rank}.1.pt.trace.json.gz", "wb", compresslevel=1) as file:
            file.write(before + f'"rank": {rank}, "world_size": {RANKS}'.encode())
            file.write(rest)


_PROGRAM = """
import json, os, sys
from pathlib import Path
from kinetoscope_tb.cli import main
def peak_mb(process):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0)
try:
    main(sys.argv[1:])
except SystemExit as end:
    threads = Path("/proc/self/task").iterdir()
    workers = [child for thread in threads for child in (thread / "children").read_text().split()]  # idle by now
    peaks = {"parent_mb": peak_mb("self"), "worker_mb": max(map(peak_mb, workers))}
    print(json.dumps(peaks), flush=True)
    os._exit(end.code)
"""


def _index(run: Path, folder: Path, processes: int, measured: Callable[..., object]) -> tuple[float, dict[str, float]]:
    """(seconds, megabytes of the parent and of the largest worker) of indexing into an empty cache."""
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-c", _PROGRAM, "index", str(run), "--processes", str(processes)]
    found = measured(command, {"KINETOSCOPE_CACHE": str(cache)})
    return found.seconds, found.said  # type: ignore[attr-defined]


def main() -> None:
    """Make summaries, open them, print."""
    from kinetoscope_tb.discovery import list_path
    from kinetoscope_tb.engine.answers import compute
    from kinetoscope_tb.engine.cache import configured_cache
    from kinetoscope_tb.engine.cache.summary_entry import pack_summary
    from kinetoscope_tb.engine.executors import local_executors
    from kinetoscope_tb.engine.summary_loader import files_of, load_summaries, ranks_of
    from kinetoscope_tb.views import RUN_VIEWS
    from kinetoscope_tb.web import encode
    from kinetoscope_tb.web.json_text import json_text
    from support.simulated import Truth, simulated, summary_of

    folder, count, cache = Path(sys.argv[1]), int(sys.argv[2]), configured_cache()
    assert cache is not None
    made = simulated(Truth(ranks=count, steps=10, groups=_mesh(count)))
    folder.mkdir(parents=True)
    for rank in range(count):
        (folder / f"rank{rank}.1.pt.trace.json").write_text('{"traceEvents": []}')
    listing = list_path(str(folder))
    for file in listing.files:
        cache.write_summary(
            pack_summary(summary_of(made, int(file.worker.removeprefix("rank")))), file.path, file.stamp
        )
    figures = {}
    begun = time.perf_counter()
    files = files_of(listing, listing.files[0], "span")
    run = ranks_of(listing, files[0], files, load_summaries(files, cache, local_executors(1)))
    for name, view in (("opened_s", "rank_steps"), ("stragglers_s", "stragglers"), ("clocks_s", "clocks")):
        json_text(encode.view_answer(RUN_VIEWS[view], compute(RUN_VIEWS[view], run, {})))
        figures[name] = time.perf_counter() - begun
        begun = time.perf_counter()
    print(json.dumps(figures))


def _mesh(count: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Groups of eight neighbors, and those of the same place in them."""
    near = [(f"tp{i}", tuple(range(8 * i, 8 * i + 8))) for i in range(count // 8)]
    return (*near, *((f"dp{i}", tuple(range(i, count, 8))) for i in range(8)))


if __name__ == "__main__":
    main()
