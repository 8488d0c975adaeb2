"""What `check` says of runs that lost something, before and after `recover`."""

import gzip
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kinetoscope.atomic_write import write_json
from kinetoscope.journal.journal import JournalWriter
from kinetoscope.output.manifest import write_status
from kinetoscope.output.scratch import make_spool_folder
from support.processes import ENVIRON, steps_of
from support.waiting import LIMIT_S, wait_for

GONE = 2**22 + 1  # no process of Linux has such a number
BASE = 1_790_857_026_000_000_000
DEATHS = Path(__file__).parents[1] / "unit" / "producer" / "jobs" / "deaths.py"


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """This user's folder for recordings: one of the test's own."""
    monkeypatch.setenv("KINETOSCOPE_SCRATCH", str(tmp_path_factory.mktemp("scratch") / "root"))


def trace(folder, rank, span, world_size=4):
    name = f"rank{rank}.{span}.pt.trace.json.gz"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    step = {**event, "cat": "user_annotation", "name": f"ProfilerStep#{span - 1}"}
    whole = {
        "schemaVersion": 1,
        "distributedInfo": {"rank": rank, "world_size": world_size},
        "baseTimeNanoseconds": BASE,
        "traceEvents": [step, event],
    }
    folder.mkdir(parents=True, exist_ok=True)
    data = gzip.compress(json.dumps(whole).encode())
    (folder / name).write_bytes(data)
    window = {"span": span, "state": "saved", "file": name, "bytes": len(data), "step_first": span - 3}
    return {**window, "step_last": span - 1}


def status(folder, rank, *windows, state="ended", world_size=4, **more):
    facts = {"global_rank": rank, "world_size": world_size, "attempt": "a", "started_ns": 1, "run": folder.name}
    host = {"host": socket.gethostname(), "pid": GONE}
    write_status(folder, rank, {**facts, **host, "state": state, "windows": list(windows), **more})


def journal(folder, rank, steps, window=None, world_size=4, pid=GONE):
    sidecar = JournalWriter({"version": "1", "listens": True}, list)
    facts = {"global_rank": rank, "world_size": world_size, "host": socket.gethostname(), "pid": pid}
    sidecar.open(folder, rank, facts)
    for step in range(steps):
        if step == window:
            sidecar.note("recording", {"step": step, "request": None})
        sidecar.add("s", step, BASE + step * 1_000_000, BASE + (step + 1) * 1_000_000)
    if window == steps:
        sidecar.note("recording", {"step": steps, "request": None})
    sidecar.write()


def test_a_run_of_which_nothing_is_lost_passes(kinetoscope, tmp_path):
    run = tmp_path / "run"
    for rank in range(4):
        status(run, rank, trace(run, rank, 40))
    assert kinetoscope("check", str(tmp_path))[0] == 0


def test_a_trace_that_was_deleted_is_a_loss_with_its_name(kinetoscope, tmp_path):
    run = tmp_path / "run"
    for rank in range(4):
        status(run, rank, trace(run, rank, 37), trace(run, rank, 40))
    for name in ("rank1.37", "rank2.37", "rank3.40"):
        (run / f"{name}.pt.trace.json.gz").unlink()
    code, out, _ = kinetoscope("check", str(tmp_path))
    assert code == 1
    assert "run run: Span 37: ranks 1–2: run.json lists the trace as saved, but the file is missing." in out
    assert "run run: Span 40: rank 3: run.json lists the trace as saved, but the file is missing." in out


def test_a_trace_that_was_pruned_is_no_loss(kinetoscope, tmp_path):
    run = tmp_path / "run"
    pruned = {**trace(run, 0, 37, 1), "pruned": True}
    (run / pruned["file"]).unlink()
    status(run, 0, pruned, trace(run, 0, 40, 1), world_size=1)
    assert kinetoscope("check", str(tmp_path))[0] == 0


@pytest.mark.parametrize("file", ["../../home/thesis.txt", "/etc/passwd", "a/../../b", "\ud800", "a\0b", "", 3, None])
def test_what_a_manifest_says_of_files_elsewhere_is_not_looked_at(kinetoscope, tmp_path, file):
    run = tmp_path / "run"
    status(run, 0, {**trace(run, 0, 40, 1), "file": file}, world_size=1)
    assert kinetoscope("check", str(tmp_path))[0] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_process_that_dies_inside_a_window_is_a_loss_before_and_after_it_is_recovered(kinetoscope, tmp_path):
    environ = {**ENVIRON, "KINETOSCOPE_SCRATCH": str(tmp_path / "scratch")}
    done = subprocess.run(
        [sys.executable, str(DEATHS), str(tmp_path / "logdir")],
        capture_output=True,
        text=True,
        env=environ,
        timeout=LIMIT_S,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {"killed": -9, "left": 3, "crashed": -11}
    wait_for(lambda: not any((tmp_path / "scratch").iterdir()))  # their writers have said all
    ends = {"killed": "killed by SIGKILL", "left": "it exited with code 3", "crashed": "ended by SIGSEGV"}
    for name, end in ends.items():
        expected = rf"since step 2: ({end}|killed, out of memory, or crashed)\."  # before Linux 6.15, not always known
        run = tmp_path / "logdir" / name
        code, out, _ = kinetoscope("check", str(run))
        assert code == 1, name
        assert re.search(expected, out)
        assert kinetoscope("recover", str(run))[0] == 0
        assert sorted(path.name for path in run.glob("*.gz")) == [f"rank0.{n}.pt.trace.json.gz" for n in (2, 3)]
        code, out, _ = kinetoscope("check", str(run))
        assert code == 1
        assert re.search(expected, out)
        assert "more than one" not in out


def test_where_the_writer_died_too_the_journal_tells_of_the_loss(kinetoscope, tmp_path):
    run = tmp_path / "run"
    status(run, 0, trace(run, 0, 37, 1), state="recording", world_size=1)
    journal(run, 0, steps=39, window=38, world_size=1)
    code, out, _ = kinetoscope("check", str(tmp_path))
    assert code == 1
    assert "rank 0: its process is gone, and was recording since step 38; kinetoscope recover" in out
    assert kinetoscope("recover", str(run))[0] == 0
    code, out, _ = kinetoscope("check", str(tmp_path))
    assert code == 1
    assert "rank 0: it was killed while it recorded, since step 38: that recording is lost" in out


def test_what_is_not_written_yet_is_named(kinetoscope, tmp_path):
    run = tmp_path / "run"
    status(run, 0, trace(run, 0, 37, 1), {"span": 40, "state": "saving", "file": "rank0.40"}, world_size=1)
    code, out, _ = kinetoscope("check", str(tmp_path))
    assert code == 1
    assert "rank 0: span 40 isn't written yet; wait, or kinetoscope recover" in out


def test_where_the_writer_is_stopped_the_journal_tells_what_is_not_written_yet(kinetoscope, tmp_path):
    run = tmp_path / "run"
    status(run, 0, trace(run, 0, 37, 1), state="recording", world_size=1)
    sidecar = JournalWriter({"version": "1", "listens": True}, list)
    sidecar.open(run, 0, {"global_rank": 0, "world_size": 1, "host": socket.gethostname(), "pid": os.getpid()})
    for span in (37, 40):
        sidecar.note("recording", {"step": span - 3, "request": None})
        sidecar.note("saved", span)
    sidecar.write()
    assert kinetoscope("check", str(tmp_path))[0] == 0
    sidecar.close("end")
    code, out, _ = kinetoscope("check", str(tmp_path))
    assert code == 1
    assert "rank 0: span 40 isn't written yet; wait, or kinetoscope recover" in out


@pytest.mark.parametrize("peers", ["saved", "killed too"])
def test_what_is_recovered_of_a_dead_rank_lies_in_the_span_of_its_peers(kinetoscope, tmp_path, peers):
    run = tmp_path / "run"
    for rank in range(3):
        if peers == "saved":
            status(run, rank, trace(run, rank, 40))
        else:
            journal(run, rank, steps=40, window=37)
    journal(run, 3, steps=37, window=37)  # it died in the window's first step
    problem = {"problem": "killed while it recorded", "recording_since_step": 37}
    status(run, 3, state="killed", **problem)
    code, _, err = kinetoscope("recover", str(run))
    assert (code, err) == (0, "")
    assert sorted(path.name for path in run.glob("*.gz")) == [f"rank{r}.40.pt.trace.json.gz" for r in range(4)]
    code, out, _ = kinetoscope("check", str(run))
    assert code == 1
    assert "more than one" not in out
    assert "left no trace" not in out
    assert "recovered" in out


def ranks_in_status(kinetoscope, run):
    ranks = json.loads(kinetoscope("status", str(run), "--format", "json")[1])["ranks"]
    return [(r["rank"], r["state"], r["completed"], r["is_recording"], r["is_recovered"]) for r in ranks]


def test_a_window_that_is_saved_is_not_recovered_although_its_journal_has_only_its_start(kinetoscope, tmp_path):
    run = tmp_path / "run"
    for rank in range(4):
        status(run, rank, trace(run, rank, 40), state="ended" if rank else "killed")
    journal(run, 0, steps=38, window=37)  # killed a moment after its window was saved
    assert ranks_in_status(kinetoscope, run) == [(0, "dead", 40, False, False)]
    files = sorted(run.glob("*.gz"))
    for text in ("Nothing to recover", "Nothing to recover"):
        code, out, _ = kinetoscope("recover", str(run))
        assert (code, text in out, sorted(run.glob("*.gz"))) == (0, True, files)
    assert ranks_in_status(kinetoscope, run) == [(0, "dead", 40, False, True)]
    assert kinetoscope("check", str(run))[0] == 0


def test_what_is_recovered_between_windows_says_that_no_recording_is_lost(kinetoscope, tmp_path):
    run = tmp_path / "run"
    for rank in range(4):
        status(run, rank, trace(run, rank, 40), state="ended" if rank else "killed")
    journal(run, 0, steps=55)
    assert kinetoscope("recover", str(run))[0] == 0
    recovered = run / "rank0.55.pt.trace.json.gz"
    code, out, _ = kinetoscope("check", str(run))
    assert (code, "No recording is lost." in out, "are lost" in out) == (0, True, False)
    assert steps_of(json.loads(gzip.decompress(recovered.read_bytes()))) == list(range(40, 55))
    assert ranks_in_status(kinetoscope, run) == [(0, "dead", 55, False, True)]


def test_a_process_that_ended_well_is_not_dead_although_its_journal_could_not_be_written(kinetoscope, tmp_path):
    run = tmp_path / "run"
    status(run, 0, trace(run, 0, 40, 1), state="ended", reason="end", steps_completed=43, world_size=1)
    journal(run, 0, steps=38, window=37, world_size=1)
    assert "rank 0: ended (end), 43 steps, " in kinetoscope("status", str(run))[1]
    assert "Nothing to recover" in kinetoscope("recover", str(run))[1]
    assert kinetoscope("check", str(run))[0] == 0


def test_where_the_run_can_not_be_written_the_advice_names_another_folder_and_works(kinetoscope, tmp_path, monkeypatch):
    run, output = tmp_path / "run", tmp_path / "output"
    status(run, 0, trace(run, 0, 37, 1), state="recording", world_size=1)
    journal(run, 0, steps=39, window=38, world_size=1)
    monkeypatch.setattr("kinetoscope.journal.status.is_writable", lambda _run: False)
    advice = f"kinetoscope recover {run} --output DIR"
    assert advice in kinetoscope("check", str(run))[1]
    assert advice in kinetoscope("status", str(run))[1]
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for _ in range(2):  # what is there already isn't made again
        code, out, _ = kinetoscope("recover", str(run), "--output", str(output))
        assert (code, out) == (0, f"{output / 'rank0.39.pt.trace.json.gz'}: 2 steps of rank0.jsonl\n")
        assert [path.name for path in output.iterdir()] == ["rank0.39.pt.trace.json.gz"]
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_copy_needs_the_user_s_word(kinetoscope, tmp_path):
    run, goal = tmp_path / "run", tmp_path / "bucket" / "run" / "a.gz"
    (run / ".work").mkdir(parents=True)
    spool = make_spool_folder()
    facts = {"folder": str(run), "global_rank": 0, "world_size": 1, "pid": GONE, "host": socket.gethostname()}
    write_json(spool / "process.json", facts)
    (spool / "0000.raw.json").write_text('{"traceEvents": [{"ph": "X"}]}')
    job = {"number": 0, "raw": str(spool / "0000.raw.json"), "folder": str(run), "file": "a.gz", "metadata": {}}
    write_json(spool / "0000.json", {**job, "remote": goal.as_uri()})
    code, out, _ = kinetoscope("recover", str(run))
    place = goal.parent.as_uri()
    assert (code, out.splitlines()[0]) == (0, "a.gz: saved")
    assert f"A copy to {goal.as_uri()} is pending; if that place is yours, --remote {place} uploads it." in out
    assert not goal.exists()
    assert kinetoscope("recover", str(run), "--remote", place)[0] == 0
    assert goal.read_bytes() == (run / "a.gz").read_bytes()
