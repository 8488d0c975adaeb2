"""The command line for jobs that record, and for what is left of those that were killed."""

import json
import os
import re
import socket
import threading
import time

import pytest

from kinetoscope.journal.journal import JournalWriter
from kinetoscope.scheduling.consensus import Plan
from kinetoscope.scheduling.request import take_request
from support.waiting import wait_for

GONE = 2**22 + 1  # no process of Linux has such a number


def recording(folder, rank=0, pid=None, since_s=0):
    sidecar = JournalWriter({"version": "1", "listens": True}, list)
    host = socket.gethostname()
    sidecar.open(folder, rank, {"global_rank": rank, "world_size": 2, "host": host, "pid": pid or os.getpid()})
    end_ns = time.time_ns() - since_s * 1_000_000_000
    sidecar.add("s", 6, end_ns - 50_000_000, end_ns)
    sidecar.write()
    return sidecar


def test_a_job_s_status_is_told_in_words_and_as_json(kinetoscope, tmp_path):
    recording(tmp_path)
    status, out, _ = kinetoscope("status", str(tmp_path))
    assert status == 0
    assert re.match(r"rank 0: running, 7 steps, last seen \d+ s ago", out)
    assert "1 of 2 ranks haven't reported." in out
    assert out.endswith("It accepts requests.\n")
    status, out, _ = kinetoscope("status", str(tmp_path), "--format", "json")
    assert (json.loads(out)["ranks"][0]["completed"], json.loads(out)["unavailable_reason"]) == (7, "")


def test_a_slow_step_is_shown_with_its_age_and_the_usual_time(kinetoscope, tmp_path):
    recording(tmp_path, since_s=3600)
    out = kinetoscope("status", str(tmp_path))[1]
    assert re.match(r"rank 0: running, 7 steps, step 7 since 36\d\d s, usually 0\.05 s, last seen \d+ s ago", out)
    recording(tmp_path, rank=1, pid=GONE, since_s=3600)
    assert "rank 1: dead, 7 steps, last seen" in kinetoscope("status", str(tmp_path))[1]


def test_a_window_that_was_left_out_is_named_with_the_reason(kinetoscope, tmp_path):
    sidecar = recording(tmp_path)
    sidecar.note("left out", {"step": 4, "problem": "Another profiler is recording."})
    sidecar.write()
    assert "  no window from step 4 on: Another profiler is recording.\n" in kinetoscope("status", str(tmp_path))[1]


def test_a_step_that_lasts_long_is_shown_with_where_it_is(kinetoscope, tmp_path):
    sidecar = recording(tmp_path)
    sidecar.note("hanging", {"step": 7, "seconds": 130, "stack": ["all_reduce (dist.py:9)", "main (train.py:3)"]})
    sidecar.write()
    _, out, _ = kinetoscope("status", str(tmp_path))
    assert "  step 7 has lasted for 130 s or more, in\n    all_reduce (dist.py:9)\n    main (train.py:3)\n" in out
    sidecar.add("s", 7, 5_000_000, 9_000_000)
    sidecar.write()
    _, out, _ = kinetoscope("status", str(tmp_path))
    assert "has lasted" not in out


def test_a_trigger_asks_the_job_that_listens(kinetoscope, tmp_path):
    recording(tmp_path)
    options = (
        "--steps",
        "2",
        "--ranks",
        "0,4-6",
        "--on",
        "with_stack",
        "--off",
        "record_shapes",
        "--at",
        "90",
        "--memory",
    )
    status, out, _ = kinetoscope("trigger", str(tmp_path), *options)
    assert (status, out) == (0, "Requested 2 steps from 1 rank, after 7 steps.\n")
    request = take_request(tmp_path)
    assert (request.steps, request.at, request.ranks, request.reason) == (2, 90, (0, 4, 5, 6), "command")
    assert dict(request.options) == {"with_stack": True, "record_shapes": False}
    assert request.memory


def test_a_trigger_may_wait_for_the_traces(kinetoscope, tmp_path):
    sidecar = recording(tmp_path)

    def job():
        request = wait_for(lambda: take_request(tmp_path))
        sidecar.note("plan", Plan(9, request).to_json())
        sidecar.write()
        (tmp_path / "rank0.12.pt.trace.json.gz").write_bytes(b"")

    thread = threading.Thread(target=job)
    thread.start()
    status, out, _ = kinetoscope("trigger", str(tmp_path), "--wait", "60")
    thread.join()
    assert (status, out.splitlines()[1:]) == (0, [str(tmp_path / "rank0.12.pt.trace.json.gz")])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "0"], "steps=0"),
        (["--on", "everything"], "everything=True"),
        (["--ranks", "0-"], "names no ranks"),
        (["--wait", "0"], "didn't arrive in time"),
    ],
)
def test_what_can_not_be_asked_is_said(kinetoscope, tmp_path, arguments, words):
    recording(tmp_path)
    status, _, err = kinetoscope("trigger", str(tmp_path), *arguments)
    assert status == 1
    assert words in err


def test_not_listening_where_nobody_records_or_all_are_gone(kinetoscope, tmp_path):
    status, _, err = kinetoscope("trigger", str(tmp_path))
    assert status == 1
    assert "No Tracer has recorded into" in err
    recording(tmp_path, pid=GONE)
    status, _, err = kinetoscope("trigger", str(tmp_path))
    assert status == 1
    assert "accepts no requests" in err


def test_recovering_is_advised_if_it_would_do_something(kinetoscope, tmp_path):
    recording(tmp_path / "left", rank=1, pid=GONE)
    assert "To recover traces: " in kinetoscope("status", str(tmp_path / "left"))[1]
    sidecar = JournalWriter({"version": "1"}, list)
    facts = {"global_rank": 0, "world_size": 1, "host": socket.gethostname(), "pid": GONE}
    sidecar.open(tmp_path / "nothing", 0, facts)
    sidecar.add("c", "memory", time.time_ns(), {"allocated": 1})
    sidecar.write()
    out = kinetoscope("status", str(tmp_path / "nothing"))[1]
    assert out.startswith("rank 0: dead, no step yet")
    assert "recover" not in out
    assert kinetoscope("recover", str(tmp_path / "nothing"))[1].startswith("Nothing to recover")


def test_what_a_killed_process_left_is_recovered_once(kinetoscope, tmp_path):
    recording(tmp_path, rank=1, pid=GONE)
    status, out, _ = kinetoscope("recover", str(tmp_path))
    assert (status, out) == (0, f"{tmp_path / 'rank1.7.pt.trace.json.gz'}: 1 steps of rank1.jsonl\n")
    status, out, _ = kinetoscope("recover", str(tmp_path))
    assert (status, out) == (0, "Nothing to recover: no process left anything that isn't saved.\n")
    recording(tmp_path)
    status, _, err = kinetoscope("recover", str(tmp_path))
    assert status == 1
    assert "wait until it has ended" in err
