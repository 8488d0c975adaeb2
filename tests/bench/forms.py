"""The same recording as JSON and as Perfetto's protobuf: events read a second, in pairs that take turns."""

from __future__ import annotations

import gzip
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope_tb.reader import read
from support.perfetto import training

STEPS, OPERATORS = 20, 3000
FORMS = ("json", "pftrace")


def written(folder: Path) -> dict[str, Path]:
    """The files, plain and as torch compresses them, by their names without `rank0.`."""
    recorded = training(STEPS, OPERATORS)
    paths = {}
    for form, data in zip(FORMS, (recorded.chrome(), recorded.pftrace()), strict=True):
        for name, content in ((form, data), (f"{form}.gz", gzip.compress(data, 1))):
            paths[name] = folder / f"rank0.{name}"
            paths[name].write_bytes(content)
    return paths


def measured(path: Path, threads: int | None) -> tuple[int, float, float]:
    """(events, CPU seconds, wall seconds) of reading a file."""
    cpu, wall = time.process_time(), time.perf_counter()
    events = read(path, threads=threads).meta.events
    return events, time.process_time() - cpu, time.perf_counter() - wall


def report_forms(pairs: int) -> None:
    """Print how fast each form is read, and the medians of the ratios pair by pair."""
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder))
        for suffix in ("", ".gz"):
            one, other = (paths[f"{form}{suffix}"] for form in FORMS)
            ratios = []
            for nth in range(pairs + 1):
                (events, cpu, wall), (same, own_cpu, own_wall) = (measured(path, None) for path in (one, other))
                if nth:  # the first pair warms up
                    ratios.append(
                        (same / events * cpu / own_cpu, same / events * wall / own_wall, cpu / events, own_cpu / same)
                    )
            by_cpu, by_wall, json_s, pftrace_s = (statistics.median(column) for column in zip(*ratios, strict=True))
            print(
                f"rank0.json{suffix} {one.stat().st_size / 1e6:.0f} MB, {events:,} events, {json_s * 1e6:.2f} µs CPU each; "
                f"rank0.pftrace{suffix} {other.stat().st_size / 1e6:.0f} MB, {same:,} events, {pftrace_s * 1e6:.2f} µs; "
                f".pftrace reads {by_cpu:.2f} × the events per CPU second, {by_wall:.2f} × per second ({pairs} pairs)"
            )
