"""How long a warm view takes while a large file is read and a run of many ranks is summarized, against alone.

`priorities.py FOLDER MEGABYTES RANKS ROUNDS` writes the files into FOLDER, unless they are there, and prints the times
as JSON. All is asked of one engine, as TensorBoard does: the questions run in the process that does the rest, too, which
includes the timeline of the large file and the clocks of the run.

Beside the time of each question stands how long it was stalled: it neither ran nor waited for a core, but for the
interpreter or a lock. Other programs on the machine disturb that little.
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
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the tests' own

import training  # noqa: E402
from bounds import line  # noqa: E402
from generate import write  # noqa: E402

MOST_MS = 150  # of a warm view, at the 95th percentile
VIEW = "operators"
SIZES = 5000, 64, 3  # megabytes, ranks, rounds
QUICK = 200, 8, 2
QUESTIONS, PAUSE_S = 100, 0.02  # a second of a person's clicks, and a page that polls


def write_files(folder: Path, megabytes: int, ranks: int) -> None:
    """Write a small recording, a large one, and a run of many ranks."""
    for run, name, size in (("small", "rank0", 13), ("large", "rank0", megabytes)):
        (folder / run).mkdir(parents=True, exist_ok=True)
        path = folder / run / f"{name}.1.pt.trace.json"
        if not path.exists():
            write(path, size)
    (folder / "ranks").mkdir(exist_ok=True)
    source = folder / "training.json.gz"
    training.write_recording(source)
    first = folder / "ranks" / "rank0.1.pt.trace.json"
    if not first.exists():
        write(first, 13, source)
    for rank in range(1, ranks):
        path = first.with_name(f"rank{rank}.1.pt.trace.json")
        if not path.exists():
            os.link(first, path)


class Asked(NamedTuple):
    """Milliseconds until a warm view was an answer in JSON, and how many of them it was stalled."""

    ms: float
    stalled_ms: float


def scheduled_ms() -> float:
    """How long this thread ran or waited for a core: the first two fields of its schedstat."""
    ran, waited, *_ = Path("/proc/thread-self/schedstat").read_text().split()
    return (int(ran) + int(waited)) / 1e6


def ask(engine: Any, file: Any) -> Asked:
    """Ask for a warm view."""
    from kinetoscope_tb.views import VIEWS
    from kinetoscope_tb.web import encode
    from kinetoscope_tb.web.json_text import json_text

    scheduled, began = scheduled_ms(), time.perf_counter()
    json_text(encode.view_answer(VIEWS[VIEW], engine.frame(VIEWS[VIEW], file, {})))
    ms = (time.perf_counter() - began) * 1e3
    return Asked(ms, max(0.0, ms - (scheduled_ms() - scheduled)))


def finished(question: Any) -> Any:
    """The answer of a question that isn't ready at first."""
    from kinetoscope_tb.engine.answers import NotReady

    while True:
        try:
            return question()
        except NotReady:
            time.sleep(0.05)


def questions(engine: Any, file: Any) -> list[Asked]:
    """The times of many questions."""
    times = []
    for _ in range(QUESTIONS):
        times.append(ask(engine, file))
        time.sleep(PAUSE_S)
    return times


def during(engine: Any, file: Any, is_busy: Any) -> list[Asked]:
    """The times of questions while something else is going on."""
    times = []
    while is_busy():
        times.append(ask(engine, file))
        time.sleep(PAUSE_S)
    return times


def busy(engine: Any, large: Any, run: Any) -> Any:
    """Whether the file is still being read and arranged or the run summarized; asks for all, as an open page does."""
    from kinetoscope_tb.engine.answers import NotReady
    from kinetoscope_tb.views import RUN_VIEWS

    def is_ready(question: Any) -> bool:
        try:
            question()
        except NotReady:
            return False
        return True

    state = {"asked_at": 0.0, "is_busy": True}

    def is_busy() -> bool:
        if time.monotonic() - state["asked_at"] > 1:
            done = [
                is_ready(lambda: engine.timeline(large)),
                is_ready(lambda: engine.run_frame(RUN_VIEWS["rank_steps"], run, {})),
                is_ready(lambda: engine.run_frame(RUN_VIEWS["clocks"], run, {})),
            ]
            state.update(asked_at=time.monotonic(), is_busy=not all(done))
        return state["is_busy"]

    return is_busy


def one_round(folder: Path) -> tuple[list[Asked], list[Asked]]:
    """The times of questions alone, and during background work."""
    from kinetoscope_tb.discovery import Logdir
    from kinetoscope_tb.engine.engine import Engine

    engine = Engine([Logdir(str(folder))])
    small, large, run = (finished(partial(engine.find, name, "rank0", "1")) for name in ("small", "large", "ranks"))
    finished(partial(ask, engine, small))
    return questions(engine, small), during(engine, small, busy(engine, large, run))


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def report_priorities(folder: Path, measured: Callable[..., Any], sizes: tuple[int, int, int] = SIZES) -> None:
    """Print the 95th percentile of a warm view during background work, and its ratio to that of the view alone."""
    megabytes, ranks, _ = sizes
    command = [sys.executable, __file__, str(folder), *map(str, sizes)]
    rounds = measured(command, {"KINETOSCOPE_CACHE": "off"}).said["rounds"]
    alone, loaded = ([[Asked(*one) for one in both[side]] for both in rounds] for side in (0, 1))
    print(f"\na warm view while {megabytes} MB are read and {ranks} ranks summarized, 95th percentiles of rounds")
    print(line("a warm view meanwhile", [p95([one.ms for one in some]) for some in loaded], MOST_MS, "ms"))
    print(line("  of it stalled", [p95([one.stalled_ms for one in some]) for some in loaded], MOST_MS, "ms"))
    print(f"  alone {statistics.median(p95([one.ms for one in some]) for some in alone):.1f} ms;", end=" ")
    longest = max((one for some in loaded for one in some), key=lambda one: one.stalled_ms)
    print(f"the longest stall of {sum(map(len, loaded))} questions {longest.stalled_ms:.0f} ms")


def main() -> None:
    """Measure and print."""
    folder, (megabytes, ranks, rounds) = Path(sys.argv[1]), map(int, sys.argv[2:])
    write_files(folder, megabytes, ranks)
    print(json.dumps({"rounds": [one_round(folder) for _ in range(rounds)]}))


if __name__ == "__main__":
    main()
