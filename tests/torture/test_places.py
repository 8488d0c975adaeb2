"""Folders that vanish, can't be written to, or are no folders, and disks without room."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import ENVIRON
from torture.permissions import heed_permissions
from torture.truth import Rank, Truth, Window, run_command, windows_in

DISKS = Path(__file__).with_name("disks.py")
FIRST, SECOND = {(0, 5): Window((2, 3, 4))}, {(0, 10): Window((7, 8, 9))}
ENDED = {0: Rank("ended", "end", 12)}
WHOLE = Truth({**FIRST, **SECOND}, ENDED)


@pytest.mark.parametrize("phase", ["warmup", "window", "merging", "between", "second window"])
def test_a_deleted_logdir_is_created_again(server, tmp_path, phase):
    job = server.start(tmp_path, at=phase, event="remove_logdir")
    assert job.ended() == 0, job.words
    if phase in ("between", "second window"):
        deleted = Truth(SECOND, ENDED, lost=1, names=(r"\b5\b",), deleted=frozenset(FIRST))
        return job.holds(deleted)
    return job.holds(WHOLE)


@pytest.mark.parametrize("event", ["remove_scratch", "remove_scratch_itself"])
@pytest.mark.parametrize("phase", ["warmup", "window", "between", "second window"])
def test_a_deleted_scratch_folder_is_created_again(server, tmp_path, phase, event):
    job = server.start(tmp_path, at=phase, event=event)
    assert job.ended() == 0, job.words
    job.scratch.mkdir(exist_ok=True)
    job.holds(WHOLE)


@pytest.mark.parametrize("event", ["remove_scratch", "remove_scratch_itself"])
def test_a_window_whose_file_goes_while_the_profiler_writes_it_is_named(server, tmp_path, event):
    job = server.start(tmp_path, at="export", event=event)
    assert job.ended() == 0, job.words
    job.scratch.mkdir(exist_ok=True)
    job.holds(Truth(SECOND, ENDED, lost=1, names=("rank 0", r"\b5\b", "profiler wrote")))


@pytest.mark.parametrize("event", ["remove_scratch", "remove_scratch_itself"])
def test_a_trace_that_is_being_written_survives_its_scratch_folder(server, tmp_path, event):
    job = server.start(tmp_path, at="merging", event=event)
    assert job.ended() == 0, job.words
    job.scratch.mkdir(exist_ok=True)
    job.holds(WHOLE)


def test_a_window_that_has_no_room_in_scratch_is_named(server, tmp_path):
    job = server.start(tmp_path, at="between", event="limit_own_files")
    assert job.ended() == 0, job.words
    assert "the profiler wrote" in job.words
    job.holds(Truth(FIRST, ENDED, lost=1, names=("rank 0", r"\b10\b", "is that disk full")))


def test_a_window_without_disk_space_is_finished_later(server, tmp_path):
    job = server.start(tmp_path, at="between", event="limit_writer_s_files")
    assert job.ended() == 0, job.words
    assert "`kinetoscope recover` tries again" in job.words
    job.holds(Truth(FIRST, ENDED, lost=1, names=("rank 0", r"\b10\b"), finished=SECOND, lost_after=0))


def test_a_disk_that_is_full_costs_nothing_once_it_has_room(tmp_path):
    (tmp_path / "small").mkdir()
    mount = f"mount -t tmpfs -o size=128k tmpfs {shlex.quote(str(tmp_path / 'small'))}"
    inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system doesn't allow a process to mount its own disk")
    job = shlex.join([sys.executable, str(DISKS), str(tmp_path)])
    done = subprocess.run(
        [*inside, f"{mount} && exec {job}"], capture_output=True, text=True, env=ENVIRON, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("goes_elsewhere", [True, False])
def test_a_logdir_that_becomes_read_only_costs_nothing(server, tmp_path, goes_elsewhere):
    job = server.start(tmp_path, is_weak=True, at="between", event="deny_logdir")
    assert job.ended() == 0, job.words
    assert "Permission denied" in job.words
    assert "kinetoscope recover" in job.words
    command = [sys.executable, "-c", "from kinetoscope_tb.cli import main; main()", "recover", str(job.run)]
    environ = {**ENVIRON, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(job.scratch)}

    def recover(*more):
        return subprocess.run(
            [*command, *more], capture_output=True, text=True, env=environ, preexec_fn=heed_permissions, timeout=120
        )

    denied = recover()
    assert denied.returncode == 1, denied.stdout
    assert "Permission denied" in denied.stderr
    assert "Traceback" not in denied.stderr
    if goes_elsewhere:
        done = recover("--output", str(tmp_path / "elsewhere"))
        assert done.returncode == 0, done.stderr
        assert windows_in(tmp_path / "elsewhere").items() >= SECOND.items()
        return
    for folder in (job.run, job.run / ".work", job.run / ".work" / "status"):
        folder.chmod(0o777)
    done = recover()
    assert done.returncode == 0, done.stderr
    assert {**FIRST, **SECOND}.items() <= windows_in(job.run).items()
    assert run_command("check", job.run, scratch=job.scratch).status == 0


def test_a_logdir_that_is_a_file_costs_the_windows_and_not_the_training(server, tmp_path):
    (tmp_path / "logdir").write_text("mine")
    job = server.start(tmp_path, at="after", event="leave")
    assert job.ended() == 3, job.words
    assert re.search(r"wasn't written: .*logdir", job.words)
    assert (tmp_path / "logdir").read_text() == "mine"


def test_a_deleted_file_is_named(server, tmp_path):
    job = server.start(tmp_path)
    assert job.ended() == 0, job.words
    (job.run / "rank0.5.pt.trace.json.gz").unlink()
    job.holds(Truth(SECOND, ENDED, lost=1, names=("rank 0", r"\b5\b"), deleted=frozenset(FIRST)))


@pytest.mark.parametrize("event", ["SIGTERM", "SIGKILL"])
def test_a_training_that_dies_after_its_folders_were_deleted_reports_what_it_can(server, tmp_path, event):
    job = server.start(tmp_path, at="second window", event=event, first="remove_scratch")
    assert job.ended() == -getattr(signal, event), job.words
    if event == "SIGTERM":
        partial = {(0, 8): Window((7, 8), "sigterm", is_complete=False)}
        job.holds(Truth({**FIRST, **partial}, {0: Rank("ended", "sigterm", 8)}))
    else:
        rank = Rank("dead", None, 8, recovered=3)
        job.holds(Truth(FIRST, {0: rank}, lost=1, names=("rank 0", "since step 7")))
