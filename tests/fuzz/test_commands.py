"""Commands on folders that anybody may have filled: a message or a result, and no file of the user outside changes."""

import itertools
import json
import os
import random
import shutil
import threading
from contextlib import suppress

import pytest

from kinetoscope.errors import UsageError
from kinetoscope.job.run_attempts import claim_folder
from kinetoscope.journal.journal import JournalWriter
from kinetoscope.journal.recover import recover_journals
from kinetoscope.output.commit import commit_trace
from kinetoscope.output.manifest import write_status
from kinetoscope.output.scratch import VARIABLE
from kinetoscope.path_below import PathBelow
from kinetoscope.scheduling.consensus import FolderLog
from kinetoscope.scheduling.request import WORK as WORK_FOLDER
from kinetoscope.scheduling.request import Request, take_request, write_request
from support.build import TraceBuilder
from support.commands import command_says
from support.file_kinds import KINDS
from support.fuzzing import case_numbers, damaged, named, odd_json

GROUPS = 4
DAMAGED_FILES = 10  # of a folder, and some more
WHOLE = {name: kind.whole() for name, kind in KINDS.items() if kind.whole is not None}
NAMES = (
    *("run", "\x1b]0;title\a\x1b[2J", "<img src=x onerror=alert(1)>", "a\nb", "-rf", "--help", "~", "%2e%2e", "$(id)"),
    *("\u202etxt.exe", "=cmd()", "x" * 200, "rank" + "9" * 30, " ", "'\"`", os.fsdecode(b"\xff\xfe"), "C:", "a;b|c&d"),
)
FILES = (
    "rank0.1.pt.trace.json",
    "rank1.1.pt.trace.json.gz",
    "rank99999999999.1.pt.trace.json",
    "\x1b[2J.pt.trace.json",
)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder of the user with files that nothing may change."""
    for variable, folder in (("KINETOSCOPE_CACHE", "cache"), (VARIABLE, "scratch")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    (tmp_path / "home").mkdir()
    for name in ("thesis.txt", "rank0.1.pt.trace.json", "kinetoscope.summaries", "trace"):
        (tmp_path / "home" / name).write_text("the user's own")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def put(path, data, numbers, home):
    """A file, or now and then a link, a pipe or a folder in its place."""
    with suppress(OSError):  # a name that is too long, or a file in place of a folder
        path.parent.mkdir(parents=True, exist_ok=True)
        how = numbers.random()
        if os.path.lexists(path):
            return
        if how < 0.06:
            path.symlink_to(home / numbers.choice(("thesis.txt", "nothing")))
        elif how < 0.09 and hasattr(os, "mkfifo"):
            os.mkfifo(path)
        elif how < 0.12:
            path.mkdir()
        else:
            path.write_bytes(data)


def hostile_folder(folder, home, numbers):
    """Runs with odd names, in them damaged files of every kind, and links that lead out."""
    whole = TraceBuilder().step(1, 0, 900).op("aten::mm", 5, 90).text().encode()
    for name in numbers.sample(NAMES, 3):
        for file in numbers.sample(FILES, 2):
            put(folder / name / file, whole if numbers.random() < 0.6 else damaged(whole, numbers), numbers, home)
        for kind in numbers.sample(sorted(WHOLE), 2):
            for path, value in WHOLE[kind].items():
                data = damaged(value, numbers) if isinstance(value, bytes) else odd_json(value, numbers)
                put(folder / name / path.rpartition("/")[2], data, numbers, home)
    if numbers.random() < 0.5:
        (folder / "linked").symlink_to(home, target_is_directory=True)
    (folder / "run" / "kinetoscope.summaries").parent.mkdir(parents=True, exist_ok=True)
    if numbers.random() < 0.5:
        (folder / "run" / "kinetoscope.summaries").symlink_to(home / "kinetoscope.summaries")


def hostile_target(folder, home, numbers):
    """Where a command writes: in it, links that lead to the user's own files."""
    folder.mkdir()
    for name in numbers.sample(NAMES, 3):
        with suppress(OSError, ValueError):
            (folder / name).symlink_to(home, target_is_directory=True)
    for name in ("merged.json.gz", "report.html", "exported.json.gz"):
        if numbers.random() < 0.3:
            (folder / name).symlink_to(home / "thesis.txt")
    return folder


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_folder_breaks_a_command_or_leads_out_of_it(places, group, capsys):
    home = places / "home"
    before = contents(home)
    for case in case_numbers(group, GROUPS, share=0.01, files=DAMAGED_FILES):
        numbers = random.Random(case)
        logdir, target = places / "logdir", places / "target"
        with named(case):
            hostile_folder(logdir, home, numbers)
            hostile_target(target, home, numbers)
            for arguments in (
                ("publish", logdir, target, *(("--copy",) if numbers.random() < 0.5 else ())),
                ("merge", logdir, target / "merged.json.gz"),
                ("report", logdir, target / "report.html", "--rows", "5"),
                ("export", logdir, target / "exported.json.gz"),
                ("check", logdir),
                ("trigger", logdir / "run"),
                ("summary", logdir),
            ):
                command_says(capsys, *map(str, arguments))
            assert contents(home) == before
            shutil.rmtree(logdir)
            shutil.rmtree(target)


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_folder_breaks_the_index(places, group, capsys):
    home = places / "home"
    before = contents(home)
    for case in case_numbers(group, GROUPS, share=0.007, files=DAMAGED_FILES):
        numbers = random.Random(case)
        with named(case):
            hostile_folder(places / "logdir", home, numbers)
            processes = ("--processes", "1") if numbers.random() < 0.1 else ()  # otherwise threads, as files are few
            command_says(capsys, "index", str(places / "logdir"), "--beside", *processes)
            assert contents(home) == before
            shutil.rmtree(places / "logdir")


def test_a_request_that_becomes_a_link_and_back_leads_nowhere(places):
    run, home, is_over = places / "run", places / "home", threading.Event()
    file = run / WORK_FOLDER / "trace"
    file.parent.mkdir(parents=True)
    before = contents(home)

    def swap():
        while not is_over.is_set():
            with suppress(OSError):
                file.unlink()
            with suppress(OSError):
                file.symlink_to(home / "thesis.txt")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(200):
            with suppress(OSError):
                write_request(run, Request())
            with suppress(Exception):
                take_request(run)
    finally:
        is_over.set()
        thread.join()
    assert contents(home) == before


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links")
def test_a_folder_that_becomes_a_link_and_back_leads_nowhere(places):
    run, home, is_over = places / "run", places / "home", threading.Event()
    for folder in (f"{WORK_FOLDER}/plans", f"{WORK_FOLDER}/status", "traces"):
        (run / folder).mkdir(parents=True)
        (home / folder).mkdir(parents=True)
    (home / WORK_FOLDER / "trace").write_text(json.dumps({"reason": "the user's own"}))
    (places / "raw.json").write_text('{"traceEvents": []}')
    before, names = contents(home), itertools.count()

    def swap():
        while not is_over.is_set():
            for folder in (f"{WORK_FOLDER}/plans", f"{WORK_FOLDER}/status", WORK_FOLDER, "traces"):
                with suppress(OSError):
                    (run / folder).rename(places / f"aside{next(names)}")
                with suppress(OSError):
                    (run / folder).symlink_to(home / folder, target_is_directory=True)
                with suppress(OSError):
                    (run / folder).unlink()
                with suppress(OSError):
                    (run / folder).mkdir()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(100):
            for action in actions_below(run, places / "raw.json", number):
                with suppress(OSError, UsageError):
                    request = action()
                    assert not isinstance(request, Request) or request.reason == "file"
    finally:
        is_over.set()
        thread.join()
    assert contents(home) == before


def actions_below(run, raw, number):
    """What a recorder and the commands write, read and remove in folders below a run."""
    journal = JournalWriter({"version": "1"}, list)
    journal.open(run, 3, {"global_rank": 3, "world_size": 8, "host": "host", "pid": 1})
    journal.add("s", number, 1, 2)
    status = {"global_rank": 0, "attempt": "a", "started_ns": 1, "queue": "q", "windows": []}
    plans = FolderLog(PathBelow(run, WORK_FOLDER, "plans"), "key")
    return (
        lambda: write_request(run, Request()),
        lambda: take_request(run),
        journal.write,
        lambda: journal.close("end"),
        lambda: write_status(run, 0, status),
        lambda: plans.propose(number, "{}"),
        lambda: claim_folder(run.parent, run.name, "token", overwrite=True),
        lambda: commit_trace(raw, PathBelow(run, "traces", "rank0.1.pt.trace.json"), {}, owner="queue")[:0],
        lambda: recover_journals(run, force=True),
    )
