"""A profiler that the program starts on another thread: torch alone would crash the process over each of these."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kinetoscope_tb.discovery import Logdir, list_traces
from support.processes import ENVIRON, steps_of, traces_in

JOB = Path(__file__).parent / "jobs" / "threads.py"
BUSY = "Another profiler is recording in this process; this window is left out."

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Where all the jobs recorded; none of them crashed, and each recorded what it should."""
    folder = tmp_path_factory.mktemp("threads")
    done = subprocess.run(
        [sys.executable, str(JOB), str(folder)], capture_output=True, text=True, env=ENVIRON, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"waits": 0, "refused": 0, "before": 0}, done.stderr
    return folder


def windows_of(run):
    return {
        span: (steps_of(trace), trace["kinetoscope"]["reason"], trace["kinetoscope"]["is_complete"])
        for (_, span), trace in traces_in(run).items()
    }


def left_out(run):
    (rank,) = json.loads((run / "run.json").read_text())["ranks"]
    return [(left["step"], left["problem"]) for left in rank["left_out"]]


def test_it_waits_for_the_end_of_the_step_in_which_the_window_ends_too(jobs):
    windows = windows_of(jobs / "waits")
    span, *rest = sorted(windows)
    assert span in (4, 5)  # where the other thread was slow to start, the window was complete
    assert windows[span] in (([2, 3], "another profiler", False), ([2, 3, 4], "schedule", True))
    assert rest in ([10], [])  # none where it was slow to end
    assert not rest or windows[10] == ([7, 8, 9], "schedule", True)
    assert bool(rest) != bool(left_out(jobs / "waits"))


def test_it_is_refused_where_the_training_waits_for_it(jobs):
    complete = {5: ([2, 3, 4], "schedule", True), 10: ([7, 8, 9], "schedule", True)}
    assert windows_of(jobs / "refused") == complete
    assert left_out(jobs / "refused") == []


def test_a_window_that_it_keeps_from_being_recorded_is_named_with_the_reason(jobs):
    assert windows_of(jobs / "before") == {10: ([7, 8, 9], "schedule", True)}
    assert left_out(jobs / "before") == [(1, BUSY)]
    notes = [note.text for note in list_traces([Logdir(str(jobs))]).notes["before"]]
    assert notes == [f"rank 0: no window from step 1 on: {BUSY}"]
