"""How fast commands, scanning and large traces are, each with its own bound, with quartiles of several rounds.

Everything but the scanner's speed by the clock is CPU time, so that other programs on the machine disturb it little.
The lines of a large trace are scaled to LARGE_EVENTS: all that is measured grows with the number of events.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import training
from bounds import line
from generate import write

HERE = Path(__file__).parent
RUN = (sys.executable, "-c", "from kinetoscope_tb.cli import main; main()")

HELP_S, VIEW_S = 0.15, 0.6
GB_PER_S, GB_PER_S_ON_TWO = 0.8, 1.2
PEAK_MB, PEAK_BYTES_PER_EVENT = 150, 120
LARGE_EVENTS, MANY_EVENTS = 27_000_000, 1_000_000
"""The memory of few events is mostly that of the program, so it isn't scaled."""

LARGE_READ_S, LARGE_MB, LARGE_VIEW_S = 40, 2000, 1.0
"""20 s on two cores are 40 s of CPU time."""

SHOWN_VIEWS = 12


def cpu_s(*arguments: str, cache: Path) -> float:
    """CPU seconds of one command, its imports included."""
    environment = {**os.environ, "KINETOSCOPE_CACHE": str(cache)}
    process = subprocess.Popen([*RUN, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"kinetoscope {' '.join(arguments)} failed")
    return usage.ru_utime + usage.ru_stime


def report_commands(path: Path, rounds: int) -> None:
    """Print what commands take; the trace is in the cache."""
    cache = path.with_name("cache")
    cache.mkdir(mode=0o700)
    commands = {
        "kinetoscope --help": (["--help"], HELP_S),
        "kinetoscope view operators": (["view", "operators", str(path)], VIEW_S),
        "kinetoscope view advice": (["view", "advice", str(path)], VIEW_S),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for arguments, _ in commands.values():
        cpu_s(*arguments, cache=cache)
    for _ in range(rounds):
        for name, (arguments, _) in commands.items():
            taken[name].append(cpu_s(*arguments, cache=cache))
    print("\ncommands, CPU time with imports; the trace is in the cache")
    for name, (_, bound) in commands.items():
        print(line(name, taken[name], bound, "s"))


def report_scanning(path: Path, rounds: int, measured: Callable[..., Any]) -> None:
    """Print how fast plain JSON is scanned, with all columns."""
    said = [measured([sys.executable, str(HERE / "scanning.py"), str(path)]).said for _ in range(rounds)]
    print(f"\nscanning {path.stat().st_size / 1e6:.0f} MB of plain JSON into all columns")
    print(line("one core, by CPU time", [one["one"]["cpu"] for one in said], GB_PER_S, "GB/s", at_least=True))
    print(line("two cores, by CPU time", [one["two"]["cpu"] for one in said], GB_PER_S_ON_TWO, "GB/s", at_least=True))
    print(
        line(
            "two threads here, by the clock",
            [one["two"]["wall"] for one in said],
            GB_PER_S_ON_TWO,
            "GB/s",
            at_least=True,
        )
    )


def report_large(path: Path, rounds: int, measured: Callable[..., Any]) -> None:
    """Print what a large trace takes: reading, memory, and every view."""
    said = [measured([sys.executable, str(HERE / "large.py"), str(path)]).said for _ in range(rounds)]
    events = said[0]["events"]
    scale = LARGE_EVENTS / events
    print(f"\n{events:,} events, gzip; scaled to {LARGE_EVENTS:,}")
    most_mb = PEAK_MB + PEAK_BYTES_PER_EVENT * events / 1e6
    print(line("peak memory of reading, not scaled", [one["read_mb"] for one in said], most_mb, "MB"))
    if events >= MANY_EVENTS:
        scaled_mb = [PEAK_MB + (one["read_mb"] - PEAK_MB) * scale for one in said]
        print(line("peak memory of reading", scaled_mb, LARGE_MB, "MB"))
    print(line("reading, by CPU time of two cores", [one["read_s"] * scale for one in said], LARGE_READ_S, "s"))
    views = {name: [one["views"][name] * scale for one in said] for name in said[0]["views"]}
    slowest = sorted(views, key=lambda name: -statistics.median(views[name]))
    for name in slowest[:SHOWN_VIEWS]:
        print(line(f"view {name}", views[name], LARGE_VIEW_S, "s"))
    within = sum(statistics.median(views[name]) <= LARGE_VIEW_S for name in views)
    print(f"  {within} of {len(views)} views within {LARGE_VIEW_S:g} s; all of them one after another: peak", end=" ")
    print(f"{statistics.median(one['views_mb'] for one in said):.0f} MB, not scaled")


def report_speed(
    folder: Path, megabytes: int, rounds: int, measured: Callable[..., Any], pack: Callable[..., Path]
) -> None:
    """Print all of it.

    Args:
        folder: Where traces may be written.
        megabytes: How large a text to scan and to read.
        rounds: How often to measure each line.
        measured: Runs a process and says what it printed.
        pack: Compresses a file.
    """
    recording, path = folder / "training.json.gz", folder / "rank0.1.pt.trace.json"
    training.write_recording(recording)
    write(path, megabytes, recording)
    report_scanning(path, rounds, measured)
    packed = pack(path)
    path.unlink()
    report_large(packed, rounds, measured)
    packed.unlink()
    small = folder / "rank0.2.pt.trace.json"
    write(small, 20, recording)
    report_commands(small, rounds * 3)
