"""`python -m kinetoscope selftest`: what it says on a disk that works, and on those that don't."""

import os
import subprocess
import sys

import pytest

from kinetoscope.selftest import abilities, command, deaths
from kinetoscope.selftest.deaths import Deadline, Deaths
from kinetoscope.selftest.results import Result, result_of, table

FOUND = ("ok", "limited")


def outcomes(results):
    return {result.what: result.outcome for result in results}


SRUN = {
    "SLURM_JOB_ID": "812",
    "SLURM_JOB_NAME": "selftest",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
}
"""What srun says to the second task of a job on two nodes."""


def test_everything_survives_on_this_machine_also_in_a_task_of_srun(tmp_path):
    scratch, folder = tmp_path / "scratch", tmp_path / "runs"
    scratch.mkdir(mode=0o700)
    folder.mkdir()
    environ = {**os.environ, **SRUN, "TMPDIR": str(scratch), "COLUMNS": "120"}
    environ.pop("KINETOSCOPE_SCRATCH", None)
    words = [sys.executable, "-m", "kinetoscope", "selftest", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"Recordings into {folder} survive all of this.\n")
    assert "job: a rank hangs, and is killed" in done.stdout
    assert [*folder.iterdir()] == []
    assert [*scratch.glob("kinetoscope*")] == []


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([str(tmp_path / "none")])
    assert ended.value.code == 2
    assert "can't be tested: No such file or directory" in capsys.readouterr().err


def test_what_is_lost_is_a_failure_with_its_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(deaths, "whole_traces", lambda _run: [])
    assert command.main([str(tmp_path), "--quick"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "0 whole traces, exit status 0" in out
    assert "Use another disk for the logdir." in out
    assert "1 failed: recordings into" in out
    assert [*tmp_path.iterdir()] == []


def test_a_training_that_does_not_go_on_is_killed(tmp_path):
    (result, *_) = Deaths(tmp_path, Deadline(0.5)).results(is_quick=True)
    assert (result.outcome, result.advice) == ("FAILED", "Use another disk for the logdir.")


def test_without_time_nothing_is_tried(tmp_path):
    results = [*Deaths(tmp_path, Deadline(0)).results(is_quick=False)]
    assert set(outcomes(results).values()) == {"not tried"}
    assert len(results) == 7


def test_a_disk_on_which_two_processes_create_one_file_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(abilities, "create_file", lambda file, data: bool(file.path.write_bytes(data)))
    found = outcomes(abilities.abilities(tmp_path))
    assert found.pop("disk: create a file exclusively") == "FAILED"
    assert set(found.values()) <= set(FOUND)


def refuse(*_arguments, **_options):
    raise PermissionError(1, "Operation not permitted")


def test_what_the_recorder_can_do_without_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    found = outcomes(abilities.abilities(tmp_path))
    assert [what for what, outcome in found.items() if outcome == "limited"] == [
        "disk: hard links",
        "disk: unnamed files (O_TMPFILE)",
        "machine: memory without a file (memfd)",
        "machine: exit status by pidfd",
    ]


def test_a_clock_that_differs_fails(tmp_path, monkeypatch):
    ahead = iter((1000.0, 1001.0))
    monkeypatch.setattr(abilities.time, "time", lambda: next(ahead))
    assert abilities._clock(tmp_path)[0] == "FAILED"


def test_an_error_of_the_system_is_a_failure():
    result = result_of("disk", refuse)
    assert (result.outcome, result.detail) == ("FAILED", "PermissionError: [Errno 1] Operation not permitted")


def test_the_table_is_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    rows = [Result("a", "ok", "fine", seconds=1.25), Result("bcd", "FAILED", "word " * 20, "Do this.")]
    lines = table(rows).splitlines()
    assert lines[0] == "a    ok           1.2 s  fine"
    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith("Do this.")
