"""How long a warm view takes while a large file is read and a run of many ranks is summarized, against alone.

`priorities.py FOLDER MEGABYTES RANKS` writes the files into FOLDER, unless they are there, and prints the times as JSON.
Both are asked of one engine, as TensorBoard does: the questions run on threads of the process that does the rest, too.
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

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the tests' own

import training  # noqa: E402
from generate import write  # noqa: E402

MOST_MS = 150  # of a warm view, at the 95th percentile
VIEW = "operators"
MEGABYTES, RANKS = 5000, 64
QUESTIONS, PAUSE_S = 100, 0.02  # a second of a person's clicks, and a page that polls
ROUNDS = 3


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


def ask(engine: Any, file: Any) -> float:
    """The milliseconds until a warm view is an answer in JSON."""
    from kinetoscope_tb.views import VIEWS
    from kinetoscope_tb.web import encode

    began = time.perf_counter()
    encode.text(encode.view_answer(VIEWS[VIEW], engine.frame(VIEWS[VIEW], file, {})))
    return (time.perf_counter() - began) * 1e3


def finished(question: Any) -> Any:
    """The answer of a question that isn't ready at first."""
    from kinetoscope_tb.engine import NotReady

    while True:
        try:
            return question()
        except NotReady:
            time.sleep(0.05)


def questions(engine: Any, file: Any) -> list[float]:
    """The times of many questions."""
    times = []
    for _ in range(QUESTIONS):
        times.append(ask(engine, file))
        time.sleep(PAUSE_S)
    return times


def during(engine: Any, file: Any, is_busy: Any) -> list[float]:
    """The times of questions while something else is going on."""
    times = []
    while is_busy():
        times.append(ask(engine, file))
        time.sleep(PAUSE_S)
    return times


def busy(engine: Any, large: Any, run: Any) -> Any:
    """Whether the file is still being read or the run summarized; asks for both, as an open page does."""
    from kinetoscope_tb.engine import NotReady
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
                is_ready(lambda: engine.trace(large)),
                is_ready(lambda: engine.run_frame(RUN_VIEWS["rank_steps"], run, {})),
            ]
            state.update(asked_at=time.monotonic(), is_busy=not all(done))
        return state["is_busy"]

    return is_busy


def one_round(folder: Path) -> tuple[list[float], list[float]]:
    """The times of questions alone, and during background work."""
    from kinetoscope_tb.discovery import Logdir
    from kinetoscope_tb.engine import Engine

    engine = Engine([Logdir(str(folder))])
    small, large, run = (finished(partial(engine.find, name, "rank0", "1")) for name in ("small", "large", "ranks"))
    finished(partial(ask, engine, small))
    return questions(engine, small), during(engine, small, busy(engine, large, run))


def report_priorities(folder: Path, verdict: Callable[..., str], measured: Callable[..., Any]) -> None:
    """Print the 95th percentile of a warm view during background work, and its ratio to that of the view alone."""
    output = measured(
        [sys.executable, __file__, str(folder), str(MEGABYTES), str(RANKS)], {"KINETOSCOPE_CACHE": "off"}
    ).said
    loaded = statistics.median(output["loaded_ms"])
    ratio = statistics.median(b / a for a, b in zip(output["alone_ms"], output["loaded_ms"], strict=True))
    print(f"\na warm view while {MEGABYTES} MB are read and {RANKS} ranks summarized, 95th percentile:")
    print(f"  {verdict(loaded, MOST_MS, ' ms', at_most=True)}, {ratio:.1f}× that of the view alone")


def main() -> None:
    """Measure and print."""
    folder, megabytes, ranks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    write_files(folder, megabytes, ranks)
    alone, loaded = [], []
    for _ in range(ROUNDS):
        pair = one_round(folder)
        alone.append(pair[0])
        loaded.append(pair[1])
    p95 = [[statistics.quantiles(times, n=20)[-1] for times in side] for side in (alone, loaded)]
    print(json.dumps({"alone_ms": p95[0], "loaded_ms": p95[1]}))


if __name__ == "__main__":
    main()
