"""A training whose folder for recordings is removed, as cleaners of /tmp do, or whose writer is stopped."""

import json
import os
import re
import shutil
import signal
import sys
from contextlib import suppress

import pytest
import torch

from kinetoscope import Tracer, cyclic
from kinetoscope.output import writer_client
from kinetoscope.output.scratch import scratch_root, spool_folders
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals that stop a process, and its state")


def is_kept(logdir):
    with suppress(FileNotFoundError, KeyError):
        return outcomes(logdir)[1]["state"] == "kept"


def outcomes(logdir):
    windows = json.loads((logdir / "run" / "run.json").read_text())["windows"]
    return {window["span"]: window["ranks"]["0"] for window in windows}


def writer_of(tracer):
    return tracer._trace_writer._client._process.pid


def recorder(logdir, windows):
    return Tracer(logdir, run="run", schedule=cyclic(warmup=0, active=1, repeat=windows), system=(), overwrite=True)


def step(tracer):
    torch.ones(2).relu()
    tracer.step()


def remove(folder):
    """Remove a folder that others write into."""
    gone = folder.rename(folder.parent.parent / "gone")

    def is_gone():
        shutil.rmtree(gone, ignore_errors=True)  # the writer process removes what it has written, too
        return not gone.exists()

    wait_for(is_gone)


@pytest.mark.parametrize("removed", ["root", "queue"])
def test_a_folder_removed_between_windows_is_created_again_and_nothing_is_lost(tmp_path, removed, log):
    with recorder(tmp_path, windows=3) as tracer:
        step(tracer)
        wait_for(lambda: len(tracer.saved_traces) == 1)
        (spool,) = spool_folders()
        remove(scratch_root() if removed == "root" else spool)
        step(tracer)
        wait_for(lambda: len(tracer.saved_traces) == 2)
        assert spool_folders() == [spool]
        step(tracer)
    assert {span: window["state"] for span, window in outcomes(tmp_path).items()} == dict.fromkeys((1, 2, 3), "saved")
    assert [path.name for path in tracer.saved_traces] == [f"rank0.{n}.pt.trace.json.gz" for n in (1, 2, 3)]
    assert ["created again" in text for text in log()] == [True]
    assert not scratch_root().exists()


def test_a_recording_that_is_removed_with_the_folder_is_the_only_one_that_is_lost(tmp_path, log):
    with recorder(tmp_path, windows=3) as tracer:
        step(tracer)
        wait_for(lambda: len(tracer.saved_traces) == 1)
        writer = writer_of(tracer)
        os.kill(writer, signal.SIGSTOP)
        step(tracer)
        remove(scratch_root())
        step(tracer)
        os.kill(writer, signal.SIGCONT)
    windows = outcomes(tmp_path)
    assert {span: window["state"] for span, window in windows.items()} == {1: "saved", 2: "lost", 3: "saved"}
    assert "gone" in windows[2]["problem"]
    assert sum("A recording was lost" in text for text in log()) == 1


def test_a_raw_file_retained_for_later_is_lost_if_removed(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0.1.pt.trace.json.gz").mkdir()  # nothing can be put in its place
    with recorder(tmp_path, windows=2) as tracer:
        step(tracer)
        wait_for(lambda: not (tracer.saved_traces or tracer._trace_writer._client.is_pending))
        wait_for(lambda: is_kept(tmp_path))
        remove(scratch_root())
        step(tracer)
    windows = outcomes(tmp_path)
    assert {span: window["state"] for span, window in windows.items()} == {1: "lost", 2: "saved"}
    assert "removed" in windows[1]["problem"]


def test_a_writer_that_is_stopped_is_named_at_once_with_what_can_be_done(tmp_path, log, monkeypatch):
    monkeypatch.setattr(writer_client, "_QUIET_S", 1.0)
    with recorder(tmp_path, windows=2) as tracer:
        step(tracer)
        wait_for(lambda: len(tracer.saved_traces) == 1)
        writer = writer_of(tracer)
        os.kill(writer, signal.SIGSTOP)
        step(tracer)
        tracer.close(timeout_s=3)
    os.kill(writer, signal.SIGCONT)
    message, left = log()
    assert re.fullmatch(
        rf"Process {writer}, which writes 1 trace, is stopped: `kill -CONT {writer}` continues it\. "
        r"This process waits \d s more at most; Ctrl-C ends the wait\.",
        message,
    )
    assert left.startswith("1 trace is still being written")
    wait_for(lambda: outcomes(tmp_path).get(2, {}).get("state") == "saved")


def test_only_recordings_are_counted_as_lost(tmp_path, log, monkeypatch):
    monkeypatch.setattr("kinetoscope.output.trace_writer.check_raw", lambda raw: raw.unlink())
    with recorder(tmp_path, windows=3) as tracer:
        for _ in range(3):
            step(tracer)
        tracer._error_log.note("Something else went wrong.")
        tracer._error_log.note("And once more.")
    assert log()[-1] == "3 recordings were lost, 0 saved."
