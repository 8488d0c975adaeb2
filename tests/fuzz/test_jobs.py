"""Damaged journals, manifests and requests: the other jobs and runs are listed all the same, and nothing hangs."""

import copy
import json
import os
import random
import socket

import pytest
from werkzeug.test import Client

from kinetoscope.scheduling.request import WORK, take_request
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.discovery.jobs import has_job
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.web.access import TOKEN_HEADER
from kinetoscope_tb.web.app import Applications
from support.build import TraceBuilder
from support.fuzzing import ODD_VALUES, case_numbers, damaged, named
from support.waiting import LIMIT_S

GROUPS = 4
PLAN = {"first": 50, "request": {"id": "one", "steps": 3, "ranks": None, "reason": "page"}}
HEAD = {
    "version": "1",
    "global_rank": 0,
    "world_size": 1,
    "host": "here",
    "pid": 4711,
    "listens": True,
    "records": True,
}
LINES = [
    ["s", 41, 1_000_000, 5_000_000],
    ["m", "forward", 7, 1_000_000, 20],
    ["o", ["forward", "backward"], 5],
    ["i", "checkpoint", 7, 1_500_000],
    ["c", "loss", 1_600_000, {"loss": 0.5}],
    ["n", "plan", PLAN, 6_000_000],
    ["n", "recording", {"step": 50, "request": "one"}, 7_000_000],
    ["n", "hanging", {"step": 42, "seconds": 120, "stack": ["train.py:7 step"]}, 8_000_000],
    ["n", "left out", {"step": 60, "problem": "another profiler"}, 9_000_000],
    ["n", "refused", "no", 9_500_000],
    ["e", "end", 10_000_000],
]
WINDOW = {
    "span": 5,
    "ranks": {"0": {"state": "lost", "problem": "disk full", "upload": {"state": "failed", "problem": "no route"}}},
}
MANIFEST = {
    "schema": 1,
    "ranks": [{"rank": 0, "state": "killed", "problem": "signal 9", "left_out": [{"step": 7, "problem": "busy"}]}],
    "windows": [WINDOW],
}
REQUEST = {"run": "good", "steps": 3, "warmup": 1, "options": {"with_stack": True}}


def journal(head, lines):
    return "".join(json.dumps(value) + "\n" for value in (head, *lines)).encode()


def put(file, data):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def places(value, path=()):
    """The path to each value inside a value."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def odd_fields(value, group):
    """Cases in which one field holds an odd value: the case, the path to the field, and the odd value."""
    every = tuple(places(value))
    for case in case_numbers(group, GROUPS, share=0.5):
        numbers = random.Random(case)
        yield case, numbers.choice(every), numbers.choice(ODD_VALUES)


def changed(value, path, odd):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return value


class Folder:
    """A logdir with a job and a run that are in order, another that is attacked, and a client that asks for them."""

    def __init__(self, root):
        self.logdir = root
        self.journal, self.manifest = root / "bad" / WORK / "rank0.jsonl", root / "bad" / "run.json"
        put(
            root / "good" / WORK / "rank0.jsonl",
            journal({**HEAD, "host": socket.gethostname(), "pid": os.getpid()}, LINES[:1]),
        )
        put(root / "good" / "rank0.5.pt.trace.json", TraceBuilder().step(5, 0, 900).text().encode())
        put(self.journal, journal(HEAD, LINES))
        put(root / "bad" / "rank0.5.pt.trace.json", TraceBuilder().step(5, 0, 900).text().encode())
        self.logdirs = [Logdir(str(root))]
        self.capture = Client(Applications(self.engine())["/capture"])

    def engine(self):
        return Engine(self.logdirs, patience_s=LIMIT_S)

    def touch_good_job(self):
        """Touch its journal, as a job does that is alive."""
        os.utime(self.logdir / "good" / WORK / "rank0.jsonl")

    def check_jobs(self):
        """Everything that is asked about jobs has an answer, and of the good one a true one."""
        self.touch_good_job()
        jobs = answer_of(self.capture.get("/capture"))["jobs"]
        assert "good" in [job["run"] for job in jobs if not job["unavailable_reason"]]
        assert {job["run"] for job in jobs} == {"good", "bad"}
        for job in jobs:
            check_job(job)
        (bad,) = answer_of(self.capture.get("/capture?run=bad"))["jobs"]
        assert [rank["rank"] for rank in bad["ranks"]] == [
            r["rank"] for job in jobs if job["run"] == "bad" for r in job["ranks"]
        ]
        assert has_job(self.logdirs)
        return bad

    def check_runs(self):
        """Both runs are listed."""
        runs = answer_of(Client(Applications(self.engine())["/runs"]).get("/runs"))["runs"]
        assert [run["name"] for run in runs] == ["bad", "good"]


def answer_of(response):
    assert response.status_code == 200, response.text
    return json.loads(response.text, parse_constant=pytest.fail)


def check_job(job):
    """What the page relies on."""
    for rank in job["ranks"]:
        assert all(isinstance(rank[name], int) for name in ("rank", "world_size", "pid"))
        assert rank["state"] in ("running", "silent", "dead", "ended")
        for kind, value, ns in rank["news"]:
            assert isinstance(kind, str)
            assert isinstance(ns, int)
            if kind == "plan":
                assert isinstance(value["request"]["id"], str)
                assert isinstance(value["first"] + value["request"]["steps"], int)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(autouse=True)
def no_fault(caplog):
    yield
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_damaged_journal_costs_its_own_job_alone(group, folder):
    for case in case_numbers(group, GROUPS, share=0.2):
        numbers = random.Random(case)
        put(folder.journal, damaged(journal(HEAD, LINES), numbers))
        with named(case):
            folder.check_jobs()


@pytest.mark.parametrize("group", range(GROUPS))
def test_any_value_in_any_field_of_a_journal_costs_its_own_job_alone(group, folder):
    for case, path, odd in odd_fields([HEAD, *LINES], group):
        head, *lines = changed([HEAD, *LINES], path, odd)
        put(folder.journal, journal(head, lines))
        with named(case):
            folder.check_jobs()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, '["n","x",' + "[" * 200 + "]" * 200 + ",1]"]
)
@pytest.mark.parametrize("at", [0, 1])
def test_deeply_nested_lines_are_left_out(folder, text, at):
    lines = [json.dumps(HEAD), json.dumps(LINES[0])]
    put(folder.journal, "\n".join([*lines[:at], text, *lines[at:]]).encode())
    folder.check_jobs()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "nothing", "device", "endless", "loop"])
@pytest.mark.parametrize("which", ["journal", "manifest", "trace"])
def test_what_is_no_file_is_named_and_never_waited_for(folder, kind, which, monkeypatch, tmp_path_factory):
    paths = {
        "journal": folder.journal,
        "manifest": folder.manifest,
        "trace": folder.logdir / "bad" / "rank1.5.pt.trace.json",
    }
    path = paths[which]
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        monkeypatch.chdir(path.parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    else:
        path.symlink_to({"nothing": "/nowhere", "device": "/dev/null", "endless": "/dev/zero", "loop": path.name}[kind])
    folder.check_runs()
    bad = folder.check_jobs()
    if which == "journal" and kind != "nothing":
        assert bad["unreadable"] == ["rank0.jsonl"]
        assert "damaged: .work/rank0.jsonl" in bad["unavailable_reason"]


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_damaged_manifest_costs_its_notes_alone(group, folder):
    for case in case_numbers(group, GROUPS, share=0.2):
        numbers = random.Random(case)
        put(folder.manifest, damaged(json.dumps(MANIFEST).encode(), numbers))
        with named(case):
            folder.check_runs()


@pytest.mark.parametrize("group", range(GROUPS))
def test_any_value_in_any_field_of_a_manifest_costs_its_notes_alone(group, folder):
    for case, path, odd in odd_fields(MANIFEST, group):
        put(folder.manifest, json.dumps(changed(MANIFEST, path, odd)).encode())
        with named(case):
            folder.check_runs()


def test_any_value_in_any_field_of_a_request_is_followed_or_refused(folder):
    client = folder.capture
    headers = {"Sec-Fetch-Site": "same-origin", TOKEN_HEADER: client.get("/capture").json["token"]}
    for path in places(REQUEST):
        for odd in ODD_VALUES:
            body = json.dumps(changed(REQUEST, path, odd))
            folder.touch_good_job()
            answer = client.post("/capture", data=body, headers=headers, content_type="application/json")
            assert answer.status_code in (200, 400, 404, 413), (body, answer.text)
            assert answer.json["state"] == ("ready" if answer.status_code == 200 else "failed")
            assert (take_request(folder.logdir / "good") is None) == (answer.status_code != 200)


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_damaged_request_is_followed_or_refused(group, folder):
    client = folder.capture
    headers = {"Sec-Fetch-Site": "same-origin", TOKEN_HEADER: client.get("/capture").json["token"]}
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        body = damaged(json.dumps(REQUEST).encode(), numbers)
        with named(case):
            folder.touch_good_job()
            answer = client.post("/capture", data=body, headers=headers, content_type="application/json")
            assert answer.status_code in (200, 400, 404, 413), answer.text
            assert (take_request(folder.logdir / "good") is None) == (answer.status_code != 200)
