"""Processes are killed while a memory snapshot is written: what has its name is whole, and nothing else is listed."""

import json
import pickle
import signal

import pytest

from torture.truth import Rank, Truth, Window, run_command

OPTIONS = {"memory_history": "always"}
NAMES = ["rank0.10.memory.pickle", "rank0.5.memory.pickle"]


def whole_snapshots(job):
    """The snapshots in the run's folder, all of which can be read, and as run.json lists them."""
    paths = sorted(job.run.glob("*.pickle"))
    assert all(pickle.loads(path.read_bytes())["device_traces"][0] for path in paths)
    listed = json.loads((job.run / "run.json").read_text())["snapshots"]
    assert not [path for path in job.run.iterdir() if ".tmp-" in path.name]
    return [path.name for path in paths], sorted(s["file"] for s in listed if s["state"] == "saved")


def test_a_training_that_is_killed_while_it_writes_a_snapshot_leaves_none(server, tmp_path):
    job = server.start(tmp_path, at="snapshot", event="SIGKILL", options=OPTIONS, has_device=True)
    assert job.ended() == -signal.SIGKILL, job.words
    assert whole_snapshots(job) == ([], [])
    job.holds(Truth({(0, 5): Window((2, 3, 4))}, {0: Rank("dead", None, 5)}))


@pytest.mark.parametrize("event", ["writer SIGKILL", "writer SIGTERM"])
def test_without_its_writer_a_training_loses_no_snapshot(server, tmp_path, event):
    job = server.start(tmp_path, at="copying", event=event, options=OPTIONS, has_device=True)
    assert job.ended() == 0, job.words
    assert whole_snapshots(job) == (NAMES, NAMES)
    assert len(list(job.run.glob("*.pt.trace.json.gz"))) == 2


def test_what_all_processes_leave_of_a_snapshot_is_finished_later(server, tmp_path):
    job = server.start(tmp_path, at="copying", event="both_killed", options=OPTIONS, has_device=True)
    assert job.ended() == -signal.SIGKILL, job.words
    assert list(job.run.glob("*.pickle")) == []
    checked = run_command("check", job.run, scratch=job.scratch)
    assert "rank 0: rank0.5.memory.pickle isn't written yet; wait, or kinetoscope recover" in checked.text
    assert checked.status == 1
    recovered = run_command("recover", job.run, scratch=job.scratch)
    assert recovered.status == 0, recovered.text
    assert whole_snapshots(job) == (NAMES[1:], NAMES[1:])
    assert list(job.scratch.iterdir()) == []
