"""Jobs in one logdir: at once, and one after the other."""

import re
import shutil
import signal

import pytest

from torture.truth import Rank, Truth, Window, assert_truth, run_command

FIRST, SECOND = {(0, 5): Window((2, 3, 4))}, {(0, 10): Window((7, 8, 9))}
WHOLE = Truth({**FIRST, **SECOND}, {0: Rank("ended", "end", 12)})


@pytest.fixture
def start(server, tmp_path):
    """Starts a training in a folder of its own that records into a logdir of all."""

    def start(own, **arguments):
        (tmp_path / own).mkdir()
        return server.start(tmp_path / own, logdir=str(tmp_path / "logdir"), environ={"RUN_NAME": "job"}, **arguments)

    return start


def assert_job(job, truth, logdir, run):
    """Hold the truth of the run of one of these jobs."""
    assert_truth(logdir / run, job.scratch, truth)


def test_two_jobs_of_one_name_at_once_have_a_folder_each(start, tmp_path):
    jobs = [start(f"job {number}", name=None, at="window", event="pause") for number in range(2)]
    for job in jobs:
        job.wait_for_file("paused")
    for job in jobs:
        (job.folder / "go on").touch()
    for job in jobs:
        assert job.ended() == 0, job.words
    assert sorted(path.name for path in (tmp_path / "logdir").iterdir()) == ["job", "job.1"]
    for run in ("job", "job.1"):
        assert_job(jobs[0], WHOLE, tmp_path / "logdir", run)


@pytest.mark.parametrize("event", ["SIGTERM", "SIGKILL"])
def test_the_job_that_comes_after_one_that_died_has_a_folder_of_its_own(start, tmp_path, event):
    first = start("first", name=None, at="second window", event=event)
    assert first.ended() == -getattr(signal, event), first.words
    second = start("second", name=None)
    assert second.ended() == 0, second.words
    assert_job(second, WHOLE, tmp_path / "logdir", "job.1")
    if event == "SIGTERM":
        partial = {(0, 8): Window((7, 8), "sigterm", is_complete=False)}
        assert_job(first, Truth({**FIRST, **partial}, {0: Rank("ended", "sigterm", 8)}), tmp_path / "logdir", "job")
    else:
        ranks = {0: Rank("dead", None, 8, recovered=3)}
        assert_job(first, Truth(FIRST, ranks, lost=1, names=("rank 0", "since step 7")), tmp_path / "logdir", "job")


def test_a_job_that_goes_on_in_the_folder_of_one_that_was_killed_leaves_its_journal(start, tmp_path):
    options = {"overwrite": True}
    first = start("first", at="second window", event="SIGKILL", options=options)
    assert first.ended() == -signal.SIGKILL, first.words
    second = start("second", options=options)
    assert second.ended() == 0, second.words
    ranks = {0: Rank("ended", "end", 12, recovered=8)}
    assert_job(second, Truth({**FIRST, **SECOND}, ranks), tmp_path / "logdir", "job")


def test_a_moved_run_is_still_reported_correctly(server, tmp_path):
    job = server.start(tmp_path, at="second window", event="SIGKILL")
    assert job.ended() == -signal.SIGKILL, job.words
    moved = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(job.run, moved)
    shutil.rmtree(job.run)
    ranks = {0: Rank("dead", None, 8, recovered=3)}
    assert_truth(moved, job.scratch, Truth(FIRST, ranks, lost=1, names=("rank 0", "since step 7")))


def test_a_run_whose_only_window_was_lost_is_named_among_others_that_are_whole(start, tmp_path):
    for name, how, status in (("lost", {"at": "window", "event": "SIGKILL"}, -signal.SIGKILL), ("whole", {}, 0)):
        job = start(name, name=name, **how)
        assert job.ended() == status, job.words
    answer = run_command("check", tmp_path / "logdir")
    assert answer.status == 1, answer.text
    assert re.search(r"lost/run.json: .*rank 0.*since step 2", answer.text), answer.text
