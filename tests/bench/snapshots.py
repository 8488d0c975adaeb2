"""Memory snapshots: reading, memory and opening again, compared with torch's `pickle.load` and memory_viz on the same file.

`snapshots.py ours|reopening|torch PATH` measures one in a process of its own, and prints what it measured as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import pickle
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bounds import line

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.large_snapshots import write_large_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTES, QUICK_MEGABYTES = 1000, 50
PEERS_MEGABYTES = 300  # torch's dicts take six times the file's size, and 50 s a gigabyte
LEAST_MB_PER_S = 100  # 1 GB in 10 s, 5 GB in 60 s
LARGE_MEGABYTES, LARGE_PEAK_MB, OF_ANY_FILE_MB = 5000, 2000, 90
"""Memory grows with the file, apart from what the program takes by itself."""

REOPEN_S = 0.5  # a gigabyte
AGAIN = 5
FASTER, SMALLER = 4, 3  # than torch, at that size


def peak_mb() -> float:
    """Of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_ours(path: str) -> dict[str, Any]:
    """Read a snapshot, replay it, and write it to a cache next to it."""
    from kinetoscope_tb.engine.cache import Cache
    from kinetoscope_tb.reader import read
    from kinetoscope_tb.views import VIEWS

    view = VIEWS["snapshot_levels"]  # imported before anything is measured
    begun, cpu = time.perf_counter(), time.process_time()
    trace = read(path)
    figures = {"read_s": time.perf_counter() - begun, "cpu_s": time.process_time() - cpu, "read_mb": peak_mb()}
    begun = time.perf_counter()
    view.run(trace)
    figures |= {"events": trace.meta.events, "levels_s": time.perf_counter() - begun, "mb": peak_mb()}
    Cache(cache_beside(path)).write(trace, path, "stamp")
    return figures


def measure_reopening(path: str) -> dict[str, Any]:
    """Open a snapshot from the cache next to it, which `measure_ours` wrote."""
    from kinetoscope_tb.engine.cache import Cache

    cache, seconds = Cache(cache_beside(path)), []
    for _ in range(AGAIN):
        begun = time.perf_counter()
        assert cache.open(path, "stamp").meta.events
        seconds.append(time.perf_counter() - begun)
    return {"reopen_s": statistics.median(seconds)}


def cache_beside(path: str) -> Path:
    """A private folder."""
    folder = Path(f"{path}.cache")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def measure_torch(path: str) -> dict[str, Any]:
    """Unpickle a snapshot that the generator wrote, and have memory_viz replay it, as its page does in JavaScript."""
    from torch.cuda import _memory_viz

    begun = time.perf_counter()
    with Path(path).open("rb") as file:
        snapshot = pickle.load(file)
    figures = {"read_s": time.perf_counter() - begun, "read_mb": peak_mb()}
    begun = time.perf_counter()
    _memory_viz.segsum(snapshot)
    _memory_viz.trace(snapshot)
    return {**figures, "levels_s": time.perf_counter() - begun, "mb": peak_mb()}


def report_snapshots(folder: Path, rounds: int, measured: Callable[..., Any], megabytes: int = MEGABYTES) -> None:
    """Print what a large snapshot costs, and what a smaller one costs torch."""
    folder.mkdir(exist_ok=True)
    path = folder / "snapshot.pickle"
    events = write_large_snapshot(path, megabytes * 1_000_000)
    size = path.stat().st_size / 1e6
    said = []
    for _ in range(rounds):
        sides = [measured([sys.executable, __file__, side, str(path)]).said for side in ("ours", "reopening")]
        said.append(sides[0] | sides[1])
    print(f"\na memory snapshot of {size:.0f} MB, {events:,} events")
    print(line("reading, by the clock", [size / run["read_s"] for run in said], LEAST_MB_PER_S, "MB/s", at_least=True))
    print(line("reading, by CPU time", [size / run["cpu_s"] for run in said], None, "MB/s"))
    scale = LARGE_MEGABYTES / size
    peaks = [OF_ANY_FILE_MB + (run["read_mb"] - OF_ANY_FILE_MB) * scale for run in said]
    print(line("peak memory, scaled to 5 GB", peaks, LARGE_PEAK_MB if megabytes == MEGABYTES else None, "MB"))
    print(line("from the cache, a gigabyte", [run["reopen_s"] * 1000 / size for run in said], REOPEN_S, "s"))
    print(line("replay and levels", [run["levels_s"] for run in said], None, "s"))
    path.unlink()
    if importlib.util.find_spec("torch"):
        report_torch(path, rounds, measured, min(megabytes, PEERS_MEGABYTES))


def report_torch(path: Path, rounds: int, measured: Callable[..., Any], megabytes: int) -> None:
    """Print how much faster ours is than `pickle.load` and memory_viz, with how much less memory, in pairs."""
    write_large_snapshot(path, megabytes * 1_000_000)
    pairs = [
        tuple(measured([sys.executable, __file__, side, str(path)]).said for side in ("ours", "torch"))
        for _ in range(rounds)
    ]
    print(f"  compared with torch's pickle.load and memory_viz (segsum, trace), {megabytes} MB")
    reading = [torch["read_s"] / ours["read_s"] for ours, torch in pairs]
    replaying = [(torch["read_s"] + torch["levels_s"]) / (ours["read_s"] + ours["levels_s"]) for ours, torch in pairs]
    print(line("reading, times faster", reading, FASTER, "×", at_least=True))
    print(line("with the replay, times faster", replaying, FASTER, "×", at_least=True))
    print(line("memory, times less", [torch["mb"] / ours["mb"] for ours, torch in pairs], SMALLER, "×", at_least=True))
    path.unlink()


if __name__ == "__main__":
    measures = {"ours": measure_ours, "reopening": measure_reopening, "torch": measure_torch}
    print(json.dumps(measures[sys.argv[1]](sys.argv[2])))
