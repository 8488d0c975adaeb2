"""The rates of `kinetoscope history`, measured: false points where nothing changed, and shifts that are seen."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bounds import line

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope_tb.discovery import Logdir, list_traces
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.engine.cache.folder import Cache
from kinetoscope_tb.engine.cache.summary_entry import PackedSummary, pack_summary
from kinetoscope_tb.engine.histories import recorded_runs, recordings_by_run
from kinetoscope_tb.history.change_points import changes, deviate
from support.build import TraceBuilder
from support.real_traces import CASES, FOLDER
from support.resampled import false_points, is_shift_seen, real_steps, runs

ROOT = Path(__file__).parents[2]
HISTORIES, QUICK_HISTORIES = 1000, 50
SHIFTED = 4  # times as many with a shift: their share is then exact to 0.35 points, by one standard error
LENGTH, SPREAD, GROWTH, WITHIN = 200, 0.01, 0.03, 4
MOST_BYTES, RANKS, QUICK_RANKS, RUNS = 3000, 1000, 100, 10
STEPS = 10


def report_history(*, is_quick: bool = False) -> None:
    """Print the rates over resampled histories."""
    count = QUICK_HISTORIES if is_quick else HISTORIES
    recordings = real_steps([ROOT / "samples", CASES, *([] if is_quick else [FOLDER])])
    shifted = SHIFTED * count
    print(
        f"history: {count:,} histories a line, {shifted:,} with a shift, resampled from {len(recordings)} real recordings"
    )
    generator = np.random.default_rng(13)

    def histories(size: int, spread: float, length: int, *, has_tails: bool) -> list[np.ndarray]:
        choices = generator.integers(len(recordings), size=size)
        return [runs(recordings[at], spread, length, generator, has_tails=has_tails) for at in choices]

    most = 1 + 3 * float(np.sqrt(1000 / (count * LENGTH)))  # by three standard errors
    for spread, has_tails in ((SPREAD, False), (SPREAD, True), (0.05, False), (0.0, False)):
        points, alarms = false_points(histories(count, spread, LENGTH, has_tails=has_tails))
        name = f"spread {100 * spread:g} %{', heavy tails' if has_tails else ''}"
        runs_of_all = count * LENGTH
        print(line(f"false points in 1,000 runs, {name}", [1000 * points / runs_of_all], most, ""))
        print(line("  judged after each run", [1000 * alarms / runs_of_all], most, ""))
    for at in (20, 40, 60, 100):
        for has_tails in (False, True):
            rows = histories(shifted, SPREAD, at + WITHIN, has_tails=has_tails)
            seen = 100 * sum(is_shift_seen(values, GROWTH, at) for values in rows) / shifted
            name = f"3 % after {at} runs{', heavy tails' if has_tails else ''}"
            print(line(name, [seen], 95, "%", at_least=True))
    _report_bound(generator, count)
    _report_sizes(QUICK_RANKS if is_quick else RANKS)


def _report_bound(generator: np.random.Generator, count: int, at: int = 20) -> None:
    """Print how often a test sees the shift that knows at which run it is, and judges that run alone.

    Of normal values with unknown mean and spread, Student's t is then the best there is at its rate of false alarms,
    which is that of what `changes` finds after so many runs.
    """
    rows = generator.standard_normal((20 * count, at + WITHIN))
    rate = sum(bool(changes(SPREAD * row)) and not changes(SPREAD * row[:-1]) for row in rows) / len(rows)
    found = np.array([deviate(row[:at], row[at:]) for row in rows])
    shift = np.log(1 + GROWTH) / SPREAD * (np.arange(at + WITHIN) >= at)
    moved = np.array([deviate(row[:at], row[at:]) for row in rows + shift])
    print(
        line(
            f"  the best test that knows the run, {at}",
            [100 * float(np.mean(moved > np.quantile(found, 1 - rate)))],
            None,
            "%",
        )
    )


def _recording(collectives: int) -> TraceBuilder:
    """Ten steps of a rank with so many collectives each, which vary."""
    trace = TraceBuilder(distributedInfo={"rank": 0, "world_size": 8, "backend": "nccl"}, base_ns=1_790_000_000 * 10**9)
    generator, at = np.random.default_rng(0), 0
    group = {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "dtype": "Float"}
    for step in range(STEPS):
        begin = at
        for nth in range(collectives):
            compute, message = (generator.uniform(0.9, 1.1, 2) * (100_000, 20_000)).astype(int).tolist()
            sizes = {"Collective name": "all_gather", "In msg nelems": 1000 + nth, "Out msg nelems": 8 * (1000 + nth)}
            trace.kernel("gemm", at, compute, 2 * nth)
            trace.kernel("ncclDevKernel_AllGather_RING_LL", at + compute, message, 2 * nth + 1, **group, **sizes)
            at += compute + message
        trace.step(step, begin, at + 50_000 - begin)
        at += 50_000
    return trace


def _report_sizes(ranks: int) -> None:
    """Print what a rank's step takes in summaries, and how long the history of many of them takes."""
    for collectives in (0, 24, 100, 200, 400):
        entry = pack_summary(summary(_recording(collectives).build()))
        name = f"rank-step of {collectives} collectives"
        print(line(name, [len(entry.data) / STEPS], MOST_BYTES if collectives <= 200 else None, "B"))
    with TemporaryDirectory() as folder:
        _report_logdir(Path(folder), pack_summary(summary(_recording(24).build())), ranks)


def _report_logdir(folder: Path, entry: PackedSummary, ranks: int) -> None:
    """Print the time and the memory of a logdir in which each recording has this summary."""
    recording = folder / "recording.json"
    recording.write_text(TraceBuilder().op("aten::mm", 0, 9).text(), encoding="utf-8")
    for run in range(RUNS):
        (folder / "runs" / f"nightly-{run}").mkdir(parents=True)
        for rank in range(ranks):
            os.link(recording, folder / "runs" / f"nightly-{run}" / f"rank{rank}.10.pt.trace.json")
    cache, listing = Cache(folder / "cache"), list_traces([Logdir(str(folder / "runs"))])
    for file in listing.files:
        cache.write_summary(entry, file.path, file.version)
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    runs = recorded_runs(recordings_by_run(listing), cache)
    seconds, memory = time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    count = sum(run.summaries for run in runs)
    print(
        f"  history of {RUNS} runs of {ranks:,} ranks: {count:,} summaries, {seconds:.1f} CPU s, {memory / 1024:.0f} MiB more"
    )
    print(line("CPU time a summary", [1000 * seconds / count], None, "ms"))
