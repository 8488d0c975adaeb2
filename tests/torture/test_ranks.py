"""Two ranks under torchrun: one is killed, exits, raises, or hangs while the other waits for it in a collective."""

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from support.processes import ENVIRON
from support.waiting import wait_for
from torture.truth import LIMIT_S, OneOf, Rank, Truth, Window, assert_truth, kill, run_command, wait_until_gone

PROGRAM = Path(__file__).with_name("ranks.py")
PEER_DIED = OneOf("sigterm", "exception: RuntimeError", "exception: DistBackendError")
FIRST = {(rank, 5): Window((2, 3, 4)) for rank in range(2)}
SECOND = {(rank, 10): Window((7, 8, 9)) for rank in range(2)}


class Launched:
    """A job that torchrun runs."""

    def __init__(self, folder, restarts, case):
        self.folder, self.mark = folder, uuid.uuid4().hex
        (folder / "case.json").write_text(json.dumps(case))
        (folder / "scratch").mkdir()
        environ = {**ENVIRON, "KINETOSCOPE_TORTURE": self.mark, "KINETOSCOPE_SCALARS": "off"}
        environ["TMPDIR"] = str(folder / "scratch")
        launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", f"--max-restarts={restarts}"]
        command = [sys.executable, "-m", *launcher, str(PROGRAM), str(folder)]
        with (folder / "stderr").open("w") as words:
            self.process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=words)

    @property
    def words(self):
        """Their standard error."""
        return (self.folder / "stderr").read_text()

    def wait_for(self, ask):
        """Wait for something that the job does; return it."""
        return wait_for(ask, LIMIT_S, unless=lambda: self.process.poll() is not None, context=lambda: self.words)

    def ended(self):
        """Wait for its end, and that of all its processes; return its exit status."""
        status = self.process.wait(LIMIT_S * 2)
        wait_until_gone(self.mark)
        return status

    def holds(self, truth, run="job"):
        """Hold the truth of one of its runs."""
        assert_truth(self.folder / "logdir" / run, self.folder / "scratch", replace(truth, leaves_queue=True))


@pytest.fixture
def launch(tmp_path):
    jobs = []

    def launch(restarts=0, **case):
        jobs.append(Launched(tmp_path, restarts, case))
        return jobs[-1]

    yield launch
    for job in jobs:
        kill(job.mark)
        job.process.wait(LIMIT_S)


def test_when_one_rank_dies_in_a_window_the_other_saves_its_part(launch):
    job = launch(rank=1, at="window", event="SIGKILL")
    assert job.ended() != 0
    windows = {(0, 3): Window((2, 3), PEER_DIED, is_complete=False)}
    ranks = {0: Rank("ended", PEER_DIED, 3), 1: Rank("dead", None, 3, recovered=3)}
    job.holds(Truth(windows, ranks, lost=1, names=("rank 1",)))


def test_when_one_rank_fails_in_a_window_both_save_their_part(launch):
    job = launch(rank=1, at="window", event="fail")
    assert job.ended() != 0
    reasons = {0: PEER_DIED, 1: "exception: KeyError"}
    windows = {(rank, 3): Window((2, 3), reasons[rank], is_complete=False) for rank in reasons}
    job.holds(Truth(windows, {rank: Rank("ended", reasons[rank], 3) for rank in reasons}))


def test_when_one_rank_dies_between_two_windows_nothing_is_lost(launch):
    job = launch(rank=0, at="between", event="SIGKILL")
    assert job.ended() != 0
    job.holds(Truth(FIRST, {0: Rank("dead", None, 5), 1: Rank("ended", PEER_DIED, 5)}))


def test_a_hang_is_reported_and_the_recording_saved_when_the_job_ends(launch):
    job = launch(rank=1, at="second window", event="hang", options={"hang_after_s": 0.5})
    run = job.folder / "logdir" / "job"
    job.wait_for(run.exists)
    words = job.wait_for(
        lambda: text if (text := run_command("status", run).out).count("step 8 has lasted for") == 2 else ""
    )
    assert "rank 0: running, 8 steps, recording" in words
    assert "rank 1: running, 8 steps, recording" in words
    assert "all_reduce" in words
    assert run_command("check", run).status == 0  # what is open isn't lost
    assert "wait" in run_command("recover", run, scratch=job.folder / "scratch").text
    job.process.send_signal(signal.SIGTERM)
    assert job.ended() != 0
    windows = {
        (rank, 8): Window((7, 8), reason, is_complete=False) for rank, reason in ((0, PEER_DIED), (1, "sigterm"))
    }
    ranks = {0: Rank("ended", PEER_DIED, 8), 1: Rank("ended", "sigterm", 8)}
    job.holds(Truth({**FIRST, **windows}, ranks))


def test_an_attempt_that_died_and_the_one_that_torchrun_starts_after_it_each_have_their_truth(launch):
    job = launch(restarts=1, rank=1, at="second window", event="SIGKILL")
    assert job.ended() == 0, job.words
    windows = {**FIRST, (0, 8): Window((7, 8), PEER_DIED, is_complete=False)}
    ranks = {0: Rank("ended", PEER_DIED, 8), 1: Rank("dead", None, 8, recovered=3)}
    job.holds(Truth(windows, ranks, lost=1, names=("rank 1",)))
    job.holds(Truth({**FIRST, **SECOND}, {rank: Rank("ended", "end", 12) for rank in range(2)}), run="job.1")


def test_a_job_whose_launcher_gets_sigterm_saves_what_it_has(launch):
    job = launch(rank=0, at="window", event="pause")
    job.wait_for((job.folder / "paused").exists)
    job.process.send_signal(signal.SIGTERM)
    assert job.ended() != 0
    windows = {(rank, 3): Window((2, 3), PEER_DIED, is_complete=False) for rank in range(2)}
    job.holds(Truth(windows, {rank: Rank("ended", PEER_DIED, 3) for rank in range(2)}))


def test_a_job_whose_launcher_is_killed_ends_by_itself(launch):
    job = launch(rank=0, at="between", event="pause")
    job.wait_for((job.folder / "paused").exists)
    os.kill(job.process.pid, signal.SIGKILL)
    job.process.wait(LIMIT_S)
    (job.folder / "go on").touch()
    wait_until_gone(job.mark)
    job.holds(Truth({**FIRST, **SECOND}, {rank: Rank("ended", "end", 12) for rank in range(2)}))
