"""What a server takes after it has shown thirty traces: `thirty.py FOLDER MEGABYTES`; prints what it measured as JSON.

FOLDER gets one file under thirty names; the engine's budget is what a fifth of them takes. The process began with one
trace shown, which everything is imported for.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import training
from bounds import line
from generate import write

TRACES, SHARE = 30, 5
SETTLES_S = 10.0  # for threads that free what they hold when they have nothing more to do
PROGRAM_MB = 150  # the share of the program in the bound of reading
VIEWS_SHOWN = ("overview", "operators", "kernels", "steps")
NAME = "rank0.1.pt.trace.json"


def resident_mb() -> float:
    """Of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def report_thirty(folder: Path, megabytes: int, rounds: int, measured: Callable[..., Any]) -> None:
    """Print the memory after thirty traces, after the first one, and the budget."""
    first = folder / "run0" / NAME
    first.parent.mkdir(parents=True)
    recording = folder.with_name("thirty.json.gz")
    training.write_recording(recording)
    write(first, megabytes, recording)
    for number in range(1, TRACES):
        (folder / f"run{number}").mkdir()
        os.link(first, folder / f"run{number}" / NAME)
    command = [sys.executable, __file__, str(folder)]
    said = [measured(command, {"KINETOSCOPE_CACHE": "off"}).said for _ in range(rounds)]
    most_mb = PROGRAM_MB + said[0]["budget_mb"]
    print(
        f"\n{TRACES} traces of {megabytes} MB shown, of which the budget, {said[0]['budget_mb']:.0f} MB, holds {TRACES // SHARE}"
    )
    print(line("memory after they were shown", [one["after_mb"] for one in said], most_mb, "MB"))
    after_one = statistics.median(one["program_mb"] for one in said)
    print(f"  after one {after_one:.0f} MB without it; at most {max(one['most_mb'] for one in said):.0f} MB in between")


def main() -> None:
    """Show them one after another."""
    from kinetoscope_tb.discovery import Logdir
    from kinetoscope_tb.engine.answers import NotReady
    from kinetoscope_tb.engine.engine import Engine
    from kinetoscope_tb.engine.trace_cache import held_bytes
    from kinetoscope_tb.views import VIEWS

    def settled(question: Callable[[], Any]) -> Any:
        while True:
            try:
                return question()
            except NotReady:
                time.sleep(0.01)

    def show(engine: Engine, run: int) -> None:
        file = settled(partial(engine.find, f"run{run}", "rank0", "1"))
        for view in VIEWS_SHOWN:
            settled(partial(engine.frame, VIEWS[view], file, {}))

    logdirs = [Logdir(sys.argv[1])]
    trial = Engine(logdirs)
    file = settled(partial(trial.find, "run0", "rank0", "1"))
    one_bytes = held_bytes(settled(partial(trial.trace, file)))
    show(trial, 0)
    program_mb = resident_mb() - one_bytes / 1e6
    del trial
    budget = one_bytes * TRACES // SHARE
    engine, most_mb = Engine(logdirs, capacity_bytes=budget), 0.0
    for run in range(TRACES):
        show(engine, run)
        most_mb = max(most_mb, resident_mb())
    after, until = resident_mb(), time.monotonic() + SETTLES_S
    while time.monotonic() < until and after > PROGRAM_MB + budget / 1e6:
        time.sleep(0.1)
        after = resident_mb()
    print(json.dumps({"program_mb": program_mb, "budget_mb": budget / 1e6, "after_mb": after, "most_mb": most_mb}))


if __name__ == "__main__":
    main()
