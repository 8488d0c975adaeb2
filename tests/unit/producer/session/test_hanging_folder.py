"""A run's folder that doesn't answer, as on a network disk: the training's steps neither touch it nor wait for it."""

import gzip
import io
import json
import os
import threading
import time
from contextlib import contextmanager

import pytest
import torch
from torch.profiler import profile

from kinetoscope import Tracer, cyclic
from kinetoscope.output import trace_writer
from support.waiting import wait_for

CALLS = [(os, name) for name in ("stat", "lstat", "mkdir", "open", "scandir", "listdir", "utime", "replace", "link")]
CALLS += [(io, "open")]


class Disk:
    """A folder in which all calls hang until it is mounted again; those of the steps' thread are listed."""

    def __init__(self, folder, monkeypatch):
        self._folder, self._answers = str(folder), threading.Event()
        self._steps_thread, self.calls = None, []
        for module, name in CALLS:
            monkeypatch.setattr(module, name, self._guard(getattr(module, name)))

    def _guard(self, function):
        def guarded(path, *args, **kwargs):
            if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self._folder):
                if threading.get_ident() == self._steps_thread:
                    self.calls.append(function.__name__)
                elif not self._answers.is_set():
                    self._answers.wait()
            return function(path, *args, **kwargs)

        return guarded

    @contextmanager
    def steps(self):
        """In the block, this thread's calls are listed."""
        self._steps_thread = threading.get_ident()
        yield
        self._steps_thread = None

    def mount(self):
        self._answers.set()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_writer, "_MOMENT_S", 0.0)
    monkeypatch.setattr(trace_writer, "_SAVE_S", 0.0)
    monkeypatch.setattr(trace_writer, "_END_S", 0.2)
    disk = Disk(tmp_path / "runs", monkeypatch)
    yield disk
    disk.mount()


def train(tracer, steps):
    """Some steps, after each of which everything periodic is due."""
    for _ in range(steps):
        torch.ones(4, 4).relu()
        tracer._loop._chores_due_ns = 0
        tracer.step()


def test_steps_go_on_while_the_folder_hangs_and_windows_are_saved_when_it_answers(tmp_path, disk):
    with Tracer(tmp_path / "runs", run="run", schedule=cyclic(wait=1, active=1, repeat=2)) as tracer:
        with disk.steps():
            train(tracer, 8)
        assert tracer.completed_steps == 8
        assert not tracer.saved_traces
        disk.mount()
        assert wait_for(lambda: len(tracer.saved_traces) == 2)
    assert disk.calls == []
    assert [path.name for path in tracer.saved_traces] == ["rank0.3.pt.trace.json.gz", "rank0.6.pt.trace.json.gz"]
    metadata = json.loads(gzip.decompress(tracer.saved_traces[1].read_bytes()))["kinetoscope"]
    assert (metadata["run"], metadata["step_first"], metadata["steps_completed"]) == ("run", 5, 6)


def test_a_step_s_chores_never_touch_a_folder_that_answers_either(tmp_path, disk):
    disk.mount()
    with Tracer(tmp_path / "runs", run="run", schedule=cyclic(wait=1, active=1)) as tracer, disk.steps():
        train(tracer, 6)
    assert disk.calls == []
    assert len(tracer.saved_traces) == 1


def test_the_journal_is_written_while_a_window_is_saved_before_which_the_folder_did_not_answer(
    tmp_path, disk, monkeypatch
):
    journal, journals = tmp_path / "runs" / "run" / ".work" / "rank0.jsonl", []
    export = profile.export_chrome_trace

    def export_slowly(profiler, path):
        wait_for(lambda: journal.exists() and '["s",2,' in journal.read_text())
        journals.append(journal.read_text())
        export(profiler, path)

    monkeypatch.setattr(profile, "export_chrome_trace", export_slowly)
    monkeypatch.setattr(trace_writer, "_SAVE_S", 60.0)
    with Tracer(tmp_path / "runs", run="run", schedule=cyclic(wait=1, active=1, repeat=1)) as tracer:
        train(tracer, 2)
        disk.mount()
        tracer._loop._chores_due_ns = time.monotonic_ns() + 10**12
        tracer.step()
    header = json.loads(journals[0].splitlines()[0])
    assert (header["pid"], header["tid"]) == (os.getpid(), threading.get_native_id())


def test_a_training_that_ends_while_the_folder_hangs_ends_too(tmp_path, disk, log):
    with Tracer(tmp_path / "runs", run="run", schedule=cyclic(wait=1, active=1)) as tracer:
        train(tracer, 4)
    # The writer process is another one, whose disk answers.
    assert [path.parent.name for path in tracer.saved_traces] == ["run"]
    assert [text for text in log() if "doesn't answer" in text]
