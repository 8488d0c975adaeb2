"""Signals that reach a process which can't answer them."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from kinetoscope.recover import recovered
from kinetoscope.status import rank_statuses
from kinetoscope.unanswered import PATIENCE_S, UnansweredSignals
from processes import started, steps_of, traces_in

JOB = Path(__file__).parent / "jobs" / "blocked.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def until(condition, limit_s=120):
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it didn't come in time"
        time.sleep(0.05)
    return found


@pytest.fixture
def listening():
    """What was told, and the time that passes, of signals that are handled by doing nothing."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    told, now = [], [0.0]
    signals = UnansweredSignals(told.append, lambda: now[0])
    signals.begin()
    yield signals, told, now
    signals.end()
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_told_of_once_when_nothing_came_of_it(listening):
    signals, told, now = listening
    signals.look()
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
    signals.look()
    now[0] = PATIENCE_S / 2
    signals.look()
    assert told == []
    for now[0] in (PATIENCE_S, 3 * PATIENCE_S):
        signals.look()
    assert told == ["sigterm"]


def test_a_forked_process_has_signals_of_its_own(listening):
    signals, told, now = listening
    pid = os.fork()
    if not pid:
        signal.raise_signal(signal.SIGTERM)  # its handler does nothing
        os._exit(0 if signal.set_wakeup_fd(-1) == -1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    signals.look()
    now[0] = PATIENCE_S
    signals.look()
    assert told == []


def test_who_listened_before_goes_on_to(listening):
    signals, _, _ = listening
    signals.end()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        signal.set_wakeup_fd(writing)
        second = UnansweredSignals(pytest.fail)
        second.begin()
        second.look()
        second.end()
        assert signal.set_wakeup_fd(-1) == writing
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)


def test_a_rank_that_hangs_in_a_collective_says_that_it_was_told_to_end(tmp_path):
    processes = [started(str(JOB), str(tmp_path), str(rank)) for rank in range(2)]
    run = tmp_path / "logdir" / "job"

    def rank(number):
        ranks = json.loads((run / "run.json").read_text())["ranks"] if (run / "run.json").exists() else []
        return next((rank for rank in ranks if rank["rank"] == number and rank["state"] != "silent"), {})

    try:
        until((tmp_path / "blocked").exists)
        until(lambda: rank(0) and rank(1))
        processes[0].terminate()
        hanging = until(lambda: next((s.hanging for s in rank_statuses(run) if s.rank == 0), None))
        until(lambda: rank(0).get("reason") == "sigterm")
        assert (processes[0].poll(), rank(0)["state"]) == (None, "recording")  # it is still there
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=120)
    assert hanging["step"] == 5
    assert any("all_reduce" in frame for frame in hanging["stack"])
    until(lambda: rank(0)["state"] == rank(1)["state"] == "killed")
    assert (rank(0)["reason"], rank(1)["reason"]) == ("sigterm", None)
    assert rank(0)["problem"].startswith("the process ended without a good-bye while it recorded, since step 2")
    results = recovered(run)
    assert [(result.steps, result.problem) for result in results] == [(5, ""), (5, "")]
    trace = traces_in(run)["rank0", 5]
    assert steps_of(trace) == [0, 1, 2, 3, 4]
    assert sum(event["name"] == "exchange" for event in trace["traceEvents"]) == 5
    assert trace["kinetoscope"]["open_markers"] == ["exchange"]
    assert trace["kinetoscope"]["hanging"]["stack"] == hanging["stack"]
