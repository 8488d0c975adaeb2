"""How soon the first content is there: after installation, at the next start, and from a TensorBoard.

After installation, nothing is in the cache and no module is compiled to bytecode. The times are CPU time, except those of
the clock, which are right only on a machine that does nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import training
from bounds import line
from generate import write

sys.path.insert(0, str(Path(__file__).parents[1]))

from contract.running import serving  # the tests' own
from support.waiting import wait_for

SMALL_MB, ANY_MB = 4, 65  # files below and above the limit of a small one
FRESH_S, FRESH_SMALL_S, AGAIN_S = 10, 4, 1.5
MOST_OF_LIBRARIES = {"summary": 1.3, "view overview": 1.3, "--help": 0.21}
"""0.5 and 0.08 s where importing NumPy and Polars takes 0.38 s."""
STARTS_PER_ROUND = 3
RUN = (sys.executable, "-c", "from kinetoscope_tb.cli import main; main()")


def cpu_and_clock_s(place: Path, *command: str) -> tuple[float, float]:
    """(CPU seconds, seconds of the clock) of a command with the cache and the bytecode in a folder."""
    environment = {"KINETOSCOPE_CACHE": str(place / "cache"), "PYTHONPYCACHEPREFIX": str(place / "bytecode")}
    environment["PYTHONDONTWRITEBYTECODE"] = ""  # which some containers set
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime, seconds


def view_s(path: Path, place: Path) -> tuple[float, float]:
    """(CPU seconds, seconds of the clock) of `kinetoscope view`."""
    return cpu_and_clock_s(place, *RUN, "view", "overview", str(path))


def report_starts(path: Path, place: Path, rounds: int) -> None:
    """Print the CPU time of commands about a small trace, as a multiple of importing NumPy and Polars just before."""
    print(
        f"\nstarts of commands: CPU time, as a multiple of importing NumPy and Polars; a trace of {path.stat().st_size:,} B"
    )
    for name, most in MOST_OF_LIBRARIES.items():
        command = (*RUN, *name.split(), *([] if name == "--help" else [str(path)]))
        ratios = []
        for _ in range(1 + rounds * STARTS_PER_ROUND):  # the first one writes bytecode
            libraries_s, _clock = cpu_and_clock_s(place, sys.executable, "-c", "import numpy, polars")
            ratios.append(cpu_and_clock_s(place, *command)[0] / libraries_s)
        print(line(f"kinetoscope {name}", ratios[1:], most, "×"))


def answered_s(logdir: Path, place: Path) -> float:
    """Seconds of the clock from the first question to a running TensorBoard, without a cache, to its content."""
    os.environ["KINETOSCOPE_CACHE"] = str(place)
    try:
        with serving(f"--logdir={logdir}") as server:
            began = time.perf_counter()
            (run,) = wait_for(lambda: server.plugin("runs").json["runs"])
            worker = run["workers"][0]
            where = {"run": run["name"], "worker": worker["name"], "span": worker["spans"][0]["name"]}
            server.settled("view", view="overview", **where)
            return time.perf_counter() - began
    finally:
        del os.environ["KINETOSCOPE_CACHE"]


def report_first(folder: Path, rounds: int) -> None:
    """Print all of it."""
    recording = folder / "first.json.gz"
    folder.mkdir(parents=True, exist_ok=True)
    training.write_recording(recording)
    report_starts(recording, folder / "starts", rounds)
    print("\nfirst content: `kinetoscope view overview` with imports, and a TensorBoard's first answer")
    for name, megabytes, bound in (("a small trace", SMALL_MB, FRESH_SMALL_S), ("a larger one", ANY_MB, FRESH_S)):
        logdir = folder / f"of{megabytes}"
        (logdir / "run").mkdir(parents=True)
        path = logdir / "run" / "rank0.1.pt.trace.json"
        write(path, megabytes, recording)
        fresh, again, server = [], [], []
        for number in range(rounds):
            place = folder / f"{megabytes}-{number}"
            (place / "cache").mkdir(parents=True, mode=0o700)
            fresh.append(view_s(path, place))
            again.append(view_s(path, place))
            server.append(answered_s(logdir, place / "server"))
        print(line(f"{name} after installation", [cpu for cpu, _ in fresh], bound, "s"))
        print(line("  by the clock", [clock for _, clock in fresh], bound, "s"))
        print(line(f"{name} at the next start", [cpu for cpu, _ in again], AGAIN_S, "s"))
        print(line("  by the clock", [clock for _, clock in again], AGAIN_S, "s"))
        print(line(f"{name} in TensorBoard, unread", server, bound, "s"))
