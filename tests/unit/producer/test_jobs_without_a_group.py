"""Real jobs that torchrun starts with its default id on two machines, here two agents on loopback, without a group."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinetoscope.job.run_attempts import DOUBT
from kinetoscope_tb.cli.jobs import status
from kinetoscope_tb.discovery import Logdir, list_traces
from support.processes import free_port, traces_in

JOB = Path(__file__).parent / "jobs" / "without_group.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="torchrun")


def agents(forks, logdir, port, job, run="run", lonely="-"):
    """The agents of one job, as torchrun runs on each machine; some ranks know of no store."""
    launcher = ("-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1")
    place = ("--master-addr", "127.0.0.1", "--master-port", str(port))
    return [forks.start(*launcher, *place, "--node-rank", node, JOB, logdir, run, job, lonely) for node in range(2)]


def finished(processes):
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err


def jobs_in(run):
    """Which job each rank's trace of a run is of."""
    return {worker: trace["job"] for (worker, _), trace in traces_in(run).items()}


def manifest_of(run):
    return json.loads((run / "run.json").read_text())


def runs_in(logdir):
    return sorted(path.name for path in logdir.iterdir() if not path.name.startswith("."))


def test_two_jobs_that_meet_at_the_same_port_one_after_the_other_have_a_folder_each(tmp_path, forks):
    port = free_port()
    for job in ("first", "second"):
        finished(agents(forks, tmp_path, port, job))
    assert runs_in(tmp_path) == ["run", "run.1"]
    assert jobs_in(tmp_path / "run") == {"rank0": "first", "rank1": "first"}
    assert jobs_in(tmp_path / "run.1") == {"rank0": "second", "rank1": "second"}
    for name in ("run", "run.1"):
        assert [(rank["state"], rank.get("doubt")) for rank in manifest_of(tmp_path / name)["ranks"]] == [
            ("ended", None)
        ] * 2


def test_without_the_agent_s_store_ranks_meet_in_the_logdir_and_say_that_they_can_not_be_sure(tmp_path, forks):
    port = free_port()
    for job, lonely in (("first", "01"), ("second", "1")):
        finished(agents(forks, tmp_path, port, job, "-", lonely))
    runs = runs_in(tmp_path)
    assert [jobs_in(tmp_path / run) for run in runs] == [
        {f"rank{r}": job for r in (0, 1)} for job in ("first", "second")
    ]
    doubts = [[rank["doubt"] for rank in manifest_of(tmp_path / run)["ranks"]] for run in runs]
    assert doubts[0] == [DOUBT, DOUBT]
    assert doubts[1][1] == DOUBT
    notes = list_traces([Logdir(str(tmp_path))]).notes
    for run in runs:
        (note,) = [note for note in notes[run] if note.rule == "job_in_doubt"]
        assert note.level == "note"
        assert "can't be sure that these ranks belong to one job" in note.text
    shown = CliRunner().invoke(status, [str(tmp_path / runs[0])])
    assert "ranks 0, 1: can't be sure" in shown.output
