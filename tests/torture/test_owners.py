"""Recordings that the thread or process that started them doesn't end: no crash, no hang, and all that can be is saved."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import ENVIRON, steps_of, traces_in
from torture.truth import run_command

OWNERS = Path(__file__).with_name("owners.py")
LOST = "rank 0: no window from step 0 on: The window is lost"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Where all the processes recorded; each has ended as it should."""
    folder = tmp_path_factory.mktemp("owners")
    environ = {**ENVIRON, "PYTHONPATH": str(OWNERS.parents[1])}
    command = [sys.executable, str(OWNERS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=900)
    assert done.returncode == 0, done.stderr
    statuses = json.loads(done.stdout.splitlines()[-1])
    assert statuses == dict.fromkeys(statuses, 0), done.stderr
    return folder


def windows_of(logdir, run="job"):
    """The first and last step of each window, why it ended, and whether it is complete, by span."""
    return {
        span: (steps_of(trace), trace["kinetoscope"]["reason"], trace["kinetoscope"]["is_complete"])
        for (_, span), trace in traces_in(logdir / run).items()
    }


def log_of(logdir):
    return logdir.with_name(f"{logdir.name}.log").read_text()


def assert_saved(logdir):
    """`check` says that nothing is lost."""
    checked = run_command("check", logdir)
    assert (checked.status, "no loss and no warning" in checked.text) == (0, True), checked.text


def test_an_interrupted_cell_is_run_again(jobs):
    logdir = jobs / "interrupted-cells"
    for number in (1, 2):
        assert windows_of(logdir, f"cell {number}") == {3: ([1, 2, 3], "another Tracer", False)}
    assert set(windows_of(logdir, "cell 3")) == {4, 8, 12, 16, 20}
    assert windows_of(logdir, "block") == {0: ([0], "end", True)}
    assert log_of(logdir).count("The Tracer that was started at <cell>:3 wasn't stopped. It ends now") == 2
    assert log_of(logdir).endswith("stop() does nothing: this Tracer has ended already.\n")
    assert_saved(logdir)


def test_only_who_opened_a_block_and_current_end_it(jobs):
    assert (
        windows_of(jobs / "open-block", "outer") == windows_of(jobs / "open-block", "inner") == {0: ([0], "end", True)}
    )
    assert_saved(jobs / "open-block")


@pytest.mark.parametrize("name", ["thread-that-ended", "nobody-stops"])
def test_a_recording_ends_with_its_thread(jobs, name):
    logdir = jobs / name
    assert windows_of(logdir) == {0: ([0], "thread end", False)}
    assert "has ended without stop()" in log_of(logdir)
    assert ("stop() does nothing: this Tracer has ended already." in log_of(logdir)) == (name == "thread-that-ended")
    assert_saved(logdir)


def test_a_recording_that_another_thread_can_t_stop_ends_with_its_own(jobs):
    assert windows_of(jobs / "handlers-in-a-pool") == {0: ([0], "end", True)}
    assert_saved(jobs / "handlers-in-a-pool")


@pytest.mark.parametrize(("name", "reason"), [("stopped-elsewhere", "end"), ("daemon-that-trains", "exit")])
def test_a_thread_that_trains_ends_its_recording_for_another_one(jobs, name, reason):
    ((span, (steps, why, _)),) = windows_of(jobs / name).items()
    assert (steps, why) == (list(range(span)), reason)
    assert_saved(jobs / name)


@pytest.mark.parametrize("name", ["idle-daemon", "foreign-thread"])
def test_a_window_that_can_t_be_stopped_is_named_as_lost(jobs, name):
    assert windows_of(jobs / name) == {}
    checked = run_command("check", jobs / name)
    assert (checked.status, LOST in checked.text) == (1, True), checked.text
    assert "rank 0: ended (exit)" in run_command("status", jobs / name / "job").out
    assert "owners.py:" in log_of(jobs / name)


@pytest.mark.parametrize("name", ["forks", "forks-with-stacks"])
def test_a_process_forked_from_a_recording_ends_with_its_own_status(jobs, name):
    assert windows_of(jobs / name) == {5: ([2, 3, 4], "schedule", True), 10: ([7, 8, 9], "schedule", True)}
    assert_saved(jobs / name)
