"""Run folders that anybody may have written, and queues that were damaged: a message or a result, never a traceback.

Whatever stands in a status, `run.json`, a journal, a request, a plan, a job or a state: nothing is written outside the
run and this user's own folder for recordings.
"""

import gzip
import json
import os
import random
import shutil
import socket
from contextlib import suppress
from dataclasses import asdict, replace

import pytest

from kinetoscope.errors import UsageError
from kinetoscope.job.run_attempts import Attempt, LauncherFacts, claim_folder, join_attempt
from kinetoscope.journal.journal import JournalWriter
from kinetoscope.journal.recover import finish_spools, recover_journals
from kinetoscope.journal.status import rank_statuses
from kinetoscope.journal.unfinished_windows import unfinished_windows
from kinetoscope.output.manifest import write_status
from kinetoscope.output.scratch import VARIABLE, make_spool_folder
from kinetoscope.output.spool import PROCESS, STATE, Spool
from kinetoscope.path_below import PathBelow
from kinetoscope.scheduling.consensus import FolderLog, Plan
from kinetoscope.scheduling.request import Request, take_request
from kinetoscope_tb.discovery import Logdir, list_traces
from support.commands import command_says
from support.fuzzing import case_numbers, named, odd_json

GROUPS = 4
GONE = 2**22 + 1  # no process of Linux has such a number
BASE = 1_790_857_026_000_000_000
TRACE = '{"baseTimeNanoseconds": 0, "traceEvents": [{"ph": "X"}]}'
FILES = ("status", "run.json", "journal", "older journal", "request", "plan", PROCESS, STATE, "job", "own", "raw")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder of the user with files that nothing may change, and this user's folder for recordings."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "scratch"))
    home = tmp_path / "home"
    home.mkdir()
    for name in ("thesis.txt", "id_ed25519", "rank0.3.pt.trace.json.gz", "run.json"):
        (home / name).write_text("the user's own")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def discard(places, run):
    """Remove a case's run and queues, so that the next case is the same as alone, and takes as long."""
    shutil.rmtree(run)
    shutil.rmtree(places / "scratch")


def whole_files(run, home, spool):
    """By its name what each file holds that is read, as a recorder would write it."""
    facts = {"global_rank": 0, "world_size": 2, "host": socket.gethostname(), "pid": GONE, "run": "run"}
    process = {**facts, "attempt": "a", "started_ns": BASE, "state": "recording", "ranks": [0, 1], "schedule": {}}
    window = {
        "span": 3,
        "state": "saved",
        "file": "rank0.3.pt.trace.json.gz",
        "bytes": 9,
        "step_first": 0,
        "ranks": [0],
    }
    window |= {"step_last": 2, "upload": {"url": (home / "copy").as_uri(), "state": "waiting"}}
    left_out = [{"step": 1, "problem": "busy"}]
    rank = {"rank": 0, "state": "killed", "problem": "killed", "recording_since_step": 4, "left_out": left_out}
    raw = spool.folder / "0000.raw.json"
    job = {"number": 0, "raw": str(raw), "folder": str(run), "file": "a/b.gz", "metadata": {"steps_completed": 3}}
    job |= {"is_partial": False, "lost": None, "overwrite": True, "remote": (home / "copy").as_uri(), "keep": 1}
    own = {"pid": 1, "since_ns": 0, "until_ns": 10**9, "threads": {"1": "main"}, "metadata": {"key": "value"}}
    return {
        "status": {
            **process,
            "queue": "q",
            "windows": [window],
            "earlier": [window],
            "left_out": left_out,
            "pruned_to": 0,
        },
        "run.json": {
            "schema": 1,
            "world_size": 2,
            "ranks": [rank],
            "windows": [{"span": 3, "ranks": {"0": window}}],
        },
        "request": Request().to_json(),
        "plan": Plan(7, Request()).to_json(),
        PROCESS: {
            **process,
            "folder": str(run),
            "remote": (home / "run.json").as_uri(),
            "recording_since_step": 4,
            "keep": 1,
            "heard_to": 0,
        },
        STATE: {"windows": [{**window, "window": 0, "path": str(run / "rank0.3.pt.trace.json.gz")}], "pruned_to": 0},
        "job": {**job, "attempts": 0, "path": None},
        "raw": json.loads(TRACE),
        "own": {**own, "events": [["counter", "loss", [], 5, 1000, None, {"v": 1}]]},
    }


def journal_lines():
    head = {"global_rank": 0, "world_size": 2, "host": socket.gethostname(), "pid": GONE, "tid": 7, "listens": True}
    request = {"first": 7, "request": Request().to_json()}
    return [
        head,
        ["s", 3, BASE, BASE + 5],
        ["m", "forward", 7, BASE, 5],
        ["o", ["epoch", "save"], BASE],
        ["i", "checkpoint", 7, BASE],
        ["c", "loss", BASE, {"loss": 0.5}],
        ["n", "recording", {"step": 4, "request": None}, BASE],
        ["n", "plan", request, BASE + 1],
        ["n", "left out", {"step": 2, "problem": "busy"}, BASE + 2],
        ["n", "hanging", {"step": 4, "seconds": 130, "stack": ["a.py:1 f"]}, BASE + 3],
        ["l", [3, BASE, BASE + 5], [["recording", {"step": 4}, BASE]]],
    ]


def put(file, data, numbers, home):
    """A file, or now and then something else in its place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.parent.chmod(0o700)
    how = numbers.random()
    if how < 0.03:
        file.symlink_to(home / "thesis.txt")
    elif how < 0.06 and hasattr(os, "mkfifo"):
        os.mkfifo(file)
    elif how < 0.08:
        file.mkdir()
    else:
        file.write_bytes(data)


def odd_folder(places, numbers):
    """A run, and a queue of it, with odd values everywhere or in one file."""
    run, home = places / f"run{numbers.getrandbits(40)}", places / "home"
    work, spool = run / ".work", Spool(make_spool_folder())
    spool.folder.rmdir()
    spool.folder.mkdir(mode=0o700)
    files, others = whole_files(run, home, spool), (str(home / "thesis.txt"), "../../home/thesis.txt")
    odd = set(FILES) if numbers.random() < 0.3 else {numbers.choice(FILES)}

    def data(name):
        return odd_json(files[name], numbers, others) if name in odd else json.dumps(files[name]).encode()

    def journal(name):
        lines = [
            odd_json(line, numbers, others) if name in odd else json.dumps(line).encode() for line in journal_lines()
        ]
        return b"\n".join([*lines, b""])

    paths = {
        "status": work / "status" / "rank0.json",
        "run.json": run / "run.json",
        "request": work / "trace",
        "plan": work / "plans" / "key.0.json",
        PROCESS: spool.folder / PROCESS,
        STATE: spool.folder / STATE,
        "job": spool.folder / "0000.json",
        "own": spool.folder / "0000.own",
        "raw": spool.folder / "0000.raw.json",
    }
    for name, path in paths.items():
        put(path, data(name), numbers, home)
    put(work / "rank0.jsonl", journal("journal"), numbers, home)
    put(work / "rank0.1.jsonl", journal("older journal"), numbers, home)
    (run / "rank1.3.pt.trace.json.gz").write_bytes(gzip.compress(TRACE.encode(), 1))
    if numbers.random() < 0.1:
        (run / "a").symlink_to(home)
    return run


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_run_folder_breaks_who_reads_it_or_leads_out_of_it(places, group):
    before = contents(places)
    for case in case_numbers(group, GROUPS, share=0.2):
        numbers = random.Random(case)
        with named(case):
            run = odd_folder(places, numbers)
            rank_statuses(run)
            unfinished_windows(run)
            listing = list_traces([Logdir(str(run))])
            assert [file.span for file in listing.files if file.worker == "rank1"] == ["3"]
            with suppress(UsageError, OSError):
                take_request(run)
            with suppress(OSError):
                FolderLog(PathBelow(run, ".work", "plans"), "key").read(0)
            finish_spools(run)
            recover_journals(run)
            with suppress(OSError):
                write_status(run, 1, {"global_rank": 1, "world_size": 2, "windows": []})
            with suppress(OSError):
                sidecar = JournalWriter({"version": "1"}, list)
                sidecar.open(run, 0, {"global_rank": 0, "world_size": 2, "host": "h", "pid": 1})
                sidecar.write()
            rank_statuses(run)
            discard(places, run)
        assert contents(places) == before, case


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_run_folder_breaks_a_command(places, group, capsys):
    before = contents(places)
    for case in case_numbers(group, GROUPS, share=0.04):
        numbers = random.Random(case)
        with named(case):
            run = odd_folder(places, numbers)
            command_says(capsys, "status", str(run))
            command_says(capsys, "status", str(run), "--format", "json")
            command_says(capsys, "check", str(run))
            command_says(capsys, "trigger", str(run))
            command_says(capsys, "recover", str(run), *(("--force",) if numbers.random() < 0.5 else ()))
            command_says(capsys, "check", str(run))
            discard(places, run)
        assert contents(places) == before, case


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_record_of_an_attempt_breaks_a_job(group, tmp_path):
    own, facts = Attempt("run", "own", BASE, "group"), LauncherFacts("none/0/host/29500", is_unique=False)
    for case in case_numbers(group, GROUPS, share=0.2):
        logdir = tmp_path / str(case)
        with named(case):
            join_attempt(logdir, facts, replace(own, token="first"), 0)
            (record,) = logdir.glob(".kinetoscope/*/attempt")
            record.unlink()
            put(record, odd_json(asdict(own), random.Random(case)), random.Random(case), tmp_path)
            with suppress(OSError):
                attempt, _ = join_attempt(logdir, facts, own, 1)
                assert claim_folder(logdir, "run", attempt.token) in ("run", "run.1")
            shutil.rmtree(logdir)
