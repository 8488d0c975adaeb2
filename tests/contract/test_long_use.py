"""A TensorBoard that answers about many traces for long holds no more of the machine than at the beginning."""

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.running import put, serving
from support.waiting import wait_for

RUNS, RANKS, SPANS = 5, 5, 4
VIEWS = ("steps", "operators")
CLIENTS = 8
MOST_MORE_BYTES = 4 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what a process holds")


def status_of(pid: int, name: str) -> int:
    """A number of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def descriptors_of(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def ask_about_all(server, names) -> None:
    """Each view of each trace, by many clients at once, in another order each time."""
    questions = [(view, *name) for name in names for view in VIEWS]
    random.Random(len(names)).shuffle(questions)

    def ask(question):
        view, run, worker, span = question
        return server.settled("view", view=view, run=run, worker=worker, span=span).json["state"]

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert set(clients.map(ask, questions)) == {"ready"}


def test_a_hundred_traces_asked_about_again_and_again(tmp_path):
    names = [
        (f"run{run}", f"rank{rank}", str(span)) for run in range(RUNS) for rank in range(RANKS) for span in range(SPANS)
    ]
    put(tmp_path, *(f"{run}/{worker}.{span}.pt.trace.json" for run, worker, span in names))
    with serving(f"--logdir={tmp_path}") as server:
        pid = server.process.pid
        wait_for(lambda: len(server.plugin("runs").json["runs"]) == RUNS)
        for _ in range(2):
            ask_about_all(server, names)
        threads, descriptors, held_kb = status_of(pid, "Threads"), descriptors_of(pid), status_of(pid, "VmRSS")
        for _ in range(3):
            ask_about_all(server, names)
        assert status_of(pid, "Threads") <= threads + CLIENTS  # of TensorBoard's, one per open connection
        assert descriptors_of(pid) <= descriptors + CLIENTS
        assert (status_of(pid, "VmRSS") - held_kb) << 10 <= MOST_MORE_BYTES
