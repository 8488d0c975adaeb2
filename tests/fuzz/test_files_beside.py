"""Damaged files of every kind in a logdir: each costs itself alone; the recording next to it answers as without it."""

import functools
import gzip
import json
import os
import random
import shutil
from contextlib import suppress

import pytest
from werkzeug.test import Client

from kinetoscope_tb.api import open_profile
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.errors import KinetoscopeError
from kinetoscope_tb.web.app import Applications
from support.file_kinds import GOOD, KINDS, WORK
from support.fuzzing import case_numbers, damaged, named, odd_json
from support.graphs import GraphRecording
from support.waiting import LIMIT_S

GROUPS = 4
WHOLE = {name: kind.whole() for name, kind in KINDS.items() if kind.whole is not None}
UNTOUCHED = ("overview", "operators", "steps")  # views of the good recording that no other file changes
VIEWS = (*UNTOUCHED, "health", "graph_captures", "graph_kernels", "kernels", "memory_curve")
CHANGES_ALL = "communication patterns"


def good_recording():
    return GraphRecording("cuda node ids").replayed(WORK, 1).replayed(WORK, 1).builder.text().encode()


def put(path, data, numbers):
    """A file, or now and then something else in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    how = numbers.random()
    if how < 0.02:
        path.symlink_to(path.parent / "nowhere")
    elif how < 0.04 and hasattr(os, "mkfifo"):
        os.mkfifo(path)
    elif how < 0.06:
        path.mkdir()
    else:
        path.write_bytes(gzip.compress(data, 1) if numbers.random() < 0.1 else data)


class Server:
    """What a new server says of a logdir."""

    def __init__(self, logdir):
        engine = Engine([Logdir(str(logdir))], patience_s=LIMIT_S)
        self._clients = {route: Client(app) for route, app in Applications(engine).items()}

    def answer(self, route, **query):
        """The answer to a question, which no file may break."""
        with self._clients[route].get(route, query_string=query) as response:
            assert response.status_code == 200, (query, response.text)
            answer = json.loads(response.data.decode(), parse_constant=pytest.fail)
        assert answer.get("code") != "internal_error"
        return answer

    def files(self):
        """Run, worker and span of each recording that is listed."""
        for run in self.answer("/runs")["runs"]:
            for worker in run["workers"]:
                for span in worker["spans"]:
                    yield {"run": run["name"], "worker": worker["name"], "span": span["name"]}

    def views(self, place):
        """Some views of a recording by their id."""
        self.answer("/state", **place)
        return {view: self.answer("/view", **place, view=view) for view in VIEWS}


def open_alone(path):
    """Open a file by its path, as memory timelines are, and look at it."""
    with suppress(KinetoscopeError):
        recording = open_profile(str(path), None, None, None)
        for view in VIEWS:
            with suppress(KinetoscopeError):
                getattr(recording, view)


@functools.cache
def alone(folder):
    """What the good recording says without any other file."""
    (folder / GOOD).parent.mkdir(parents=True)
    (folder / GOOD).write_bytes(good_recording())
    server = Server(folder)
    (place,) = server.files()
    return place, server.views(place)


@pytest.fixture
def expected(tmp_path_factory):
    return alone(tmp_path_factory.getbasetemp() / "alone")


@pytest.fixture(autouse=True)
def no_fault(caplog):
    yield
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_damaged_file_costs_itself_alone(group, tmp_path, expected):
    place, untouched = expected
    for case in case_numbers(group, GROUPS, share=0.04):
        numbers = random.Random(case)
        kind = sorted(WHOLE)[case % len(WHOLE)]
        logdir = tmp_path / str(case)
        with named(case):
            put_whole(logdir / GOOD, good_recording())
            for path, value in WHOLE[kind].items():
                is_json = not isinstance(value, bytes)
                put(logdir / path, odd_json(value, numbers) if is_json else damaged(value, numbers), numbers)
                open_alone(logdir / path)
            server = Server(logdir)
            for file in server.files():
                views = server.views(file)
                if file == place and kind != CHANGES_ALL:
                    assert {view: views[view] for view in UNTOUCHED} == {view: untouched[view] for view in UNTOUCHED}
            assert place in list(server.files())
        shutil.rmtree(logdir)


def put_whole(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
