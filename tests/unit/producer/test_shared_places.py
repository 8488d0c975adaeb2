"""Real jobs that share a logdir, and one whose disk is full: a small file system of its own, where one can be made."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ENVIRON, steps_of, traces_in

JOB = Path(__file__).parent / "jobs" / "places.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and file systems of one process alone")


def command(folder):
    """The job's command: in a namespace with a small disk, or by itself where the system allows none."""
    (folder / "small").mkdir()
    mount = f"mount -t tmpfs -o size=256k tmpfs {shlex.quote(str(folder / 'small'))}"
    inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
    try:
        has_small = subprocess.run([*inside, mount], capture_output=True, check=False).returncode == 0
    except OSError:
        has_small = False
    job = [sys.executable, str(JOB), str(folder)]
    return [*inside, f"{mount} && exec {shlex.join([*job, 'small'])}"] if has_small else job


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    environ = {**ENVIRON, "TMPDIR": str(tmp_path_factory.mktemp("scratch"))}
    done = subprocess.run(command(folder), capture_output=True, text=True, env=environ, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"same": [0, 0, 0], "full": [0]}, done.stderr
    return folder


def test_two_jobs_of_one_name_at_once_get_a_folder_each(folder):
    runs = sorted(path for path in (folder / "shared").iterdir())
    assert [run.name for run in runs] == ["other", "same", "same.1"]
    for run in runs:
        traces = traces_in(run)
        assert {span: steps_of(trace) for (_, span), trace in traces.items()} == {3: [1, 2], 6: [4, 5]}
        assert {trace["kinetoscope"]["run"] for trace in traces.values()} == {run.name}
        (rank,) = json.loads((run / "run.json").read_text())["ranks"]
        assert {trace["kinetoscope"]["pid"] for trace in traces.values()} == {rank["pid"]}


def test_what_a_full_disk_has_no_room_for_stays_elsewhere_and_is_finished_later(folder):
    said, there, states, later, outcomes = json.loads((folder / "full.json").read_text())
    problem = next(text for text in said if "wasn't written" in text)
    assert "No space left on device" in problem or "File too large" in problem
    assert "`kinetoscope recover` tries again" in problem
    assert there == ["rank0.3.pt.trace.json.gz"]
    assert states == ["saved", "saved"]
    assert later == ["rank0.3.pt.trace.json.gz", "rank0.6.pt.trace.json.gz"]
    assert outcomes == ["saved", "saved"]
