"""The ring of a process's last minutes."""

import os
import signal
import subprocess
import sys

import pytest

from kinetoscope import Tracer, on_request
from kinetoscope.events import EventLog
from kinetoscope.journal.status import rank_statuses
from kinetoscope.output.ring import (
    BYTES,
    MEMORY,
    PROCESSOR,
    SLOTS,
    STEP,
    LastMinutes,
    Ring,
    content_of,
    last_minutes,
    records,
    ring_file,
)
from kinetoscope.session.minutes_sampler import MinutesSampler
from kinetoscope_tb.reader.flight_recorder.files import read_folder
from support.waiting import wait_for


@pytest.fixture
def ring():
    ring = Ring()
    yield ring
    ring.close()


def saved(run, content):
    file = ring_file(run, 3).path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return last_minutes(run, 3)


def test_steps_and_samples_are_read_in_their_order(ring, tmp_path):
    for number in range(3):
        ring.add_step(("s", number, 10 * number, 10 * number + 9, 9, None, None))
    MinutesSampler(ring, EventLog(), lambda: False).sample()
    content = ring.content()
    assert content == content_of(ring.descriptor)
    assert len(content) == 7 * 40
    minutes = saved(tmp_path, content)
    assert minutes.steps == ((0, 0, 9), (1, 10, 19), (2, 20, 29))
    ((_, resident, available),), ((_, used_ns, millionths),) = minutes.memory, minutes.processor
    assert resident > 1 << 20
    assert available > 0
    assert used_ns > 0
    assert 0 <= millionths <= 1_000_000


def test_the_newest_records_replace_the_oldest(ring, tmp_path):
    for number in range(SLOTS + 5):
        ring.add(STEP, number, 0, 0)
    assert len(ring.content()) == BYTES <= 1 << 20
    numbers = [step[0] for step in saved(tmp_path, ring.content()).steps]
    assert numbers == list(range(5, SLOTS + 5))


def test_a_record_that_is_torn_or_was_never_written_is_skipped(ring, tmp_path):
    for number in range(4):
        ring.add(STEP, number, 0, 0)
    content = bytearray(ring.content() + bytes(80))
    content[40 + 30] ^= 1
    assert [step[0] for step in saved(tmp_path, content[:-7]).steps] == [0, 2, 3]
    moved = content[80:120] + content[:40]  # in the slots of others
    assert list(records(bytes(moved))) == []


def test_names_of_markers_take_as_many_records_as_they_need(ring, tmp_path):
    ring.add(MEMORY, 9, 2, 3)
    for name in ("load", "save_checkpoint_é", "x" * 60, ""):
        ring.add_marker(5, name)
    names = [name for _, _, name in saved(tmp_path, ring.content()).markers]
    assert names == ["load", "save_checkpoint_é", "x" * 48, ""]
    assert {marker[:2] for marker in saved(tmp_path, ring.content()).markers} == {(5, 9)}
    alone = ring.content()[-40:]
    assert saved(tmp_path, bytes(40 * 7) + alone).markers[-1:] == ((5, 0, ""),)


def test_values_that_no_recorder_writes_are_left_out(ring, tmp_path):
    ring.add(STEP, -1, 0, 0)
    ring.add(MEMORY, 1, 2, 3)
    ring.add(PROCESSOR, 1, -2, 3)
    assert saved(tmp_path, ring.content()) == LastMinutes(memory=((1, 2, 3),))
    assert saved(tmp_path, bytes(BYTES + 1)) is None
    assert last_minutes(tmp_path, 4) is None


def test_a_recording_that_ends_well_leaves_none_and_holds_none(tmp_path):
    with Tracer(tmp_path, run="job", schedule=on_request, system=()) as tracer:
        tracer.step()
        descriptor = tracer._supervisor._ring.descriptor
    assert last_minutes(tmp_path / "job", 0) is None
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)


def test_a_step_that_hangs_leaves_them(tmp_path):
    with Tracer(tmp_path, run="job", schedule=on_request, system=(), hang_after_s=1.0) as tracer:
        for _ in range(3):
            tracer.step()
        wait_for(lambda: last_minutes(tmp_path / "job", 0))
    assert [step[0] for step in last_minutes(tmp_path / "job", 0).steps] == [0, 1, 2]


STOPS = """
import os, signal, sys
from pathlib import Path
from kinetoscope import Tracer, on_request
with Tracer(sys.argv[1], run="job", schedule=on_request, system=()) as tracer:
    while not Path(sys.argv[1], "job", ".work", "rank0.jsonl").exists():
        tracer.step()
    while True:
        for _ in range(50):
            tracer.step()
        print(tracer.completed_steps, flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
"""


def steps_when_stopped(training, run):
    """Let a training go on until it is stopped with more steps than its journal's summary has; how many they are."""
    while True:
        completed_steps = int(training.stdout.readline())
        os.waitpid(training.pid, os.WUNTRACED)
        if (rank_statuses(run)[0].completed or 0) < completed_steps:
            return completed_steps
        training.send_signal(signal.SIGCONT)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="Windows stops no processes")
def test_the_writer_process_saves_those_of_a_training_that_is_stopped(tmp_path):
    command = [sys.executable, "-c", STOPS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as training:
        try:
            completed_steps = steps_when_stopped(training, tmp_path / "job")
            minutes = wait_for(lambda: last_minutes(tmp_path / "job", 0))
            assert minutes.steps[-1][0] == completed_steps - 1
            (status,) = read_folder(str(tmp_path / "job")).statuses
            assert status.completed == completed_steps
        finally:
            training.kill()
            training.wait()
