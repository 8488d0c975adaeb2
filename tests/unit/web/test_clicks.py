"""What a click costs: it lists no folder, and counts the memory of its own answer alone."""

import os
import sys
import threading
from collections import Counter

import pytest
from werkzeug.test import Client

from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.web.app import Applications
from support.build import TraceBuilder
from support.waiting import LIMIT_S, wait_for

HERE = {"run": "run", "worker": "rank0", "span": "1"}
SEEN = ("operators", "kernels", "idle", "steps", "critical_path")
CLICKS = 20
MOST_CALLS_TO_COUNT = 60  # Python calls for the memory of an answer; counting all results took thousands


class Site:
    """The routes of an engine whose clock ticks with each look at it."""

    def __init__(self, logdir):
        self.now = 0.0
        engine = Engine([Logdir(str(logdir), "run")], clock=self.tick, patience_s=LIMIT_S)
        self.clients = {route: Client(app) for route, app in Applications(engine).items()}

    def tick(self):
        self.now += 0.01
        return self.now

    def ask(self, route, **query):
        answer = wait_for(
            lambda: self.clients[route].get(route, query_string={**HERE, **query}),
            LIMIT_S,
            is_right=lambda response: response.json["state"] != "loading",
        )
        assert answer.status_code == 200
        return answer.json


@pytest.fixture
def site(tmp_path):
    builder = TraceBuilder()
    for number in range(1, 50):
        begin = number * 1000
        builder.op("aten::mm", begin, 100).launch(begin + 5, 5, number).kernel("gemm", begin + 10, 900, number)
    (tmp_path / "rank0.1.pt.trace.json").write_text(builder.text())
    site = Site(tmp_path)
    site.ask("/state")
    for view in SEEN:
        site.ask("/view", view=view)
    return site


def test_a_click_lists_no_folder_and_looks_at_no_file(site, monkeypatch):
    looks = []
    for name in ("scandir", "listdir", "stat", "lstat"):
        monkeypatch.setattr(os, name, lambda *_, _name=name, **__: looks.append(_name) or pytest.fail(_name))
    for _ in range(CLICKS):
        site.ask("/view", view="operators")
    assert looks == []


def test_a_click_counts_the_memory_of_its_own_answer_alone(site):
    stamp = site.ask("/timeline")["stamp"]
    site.ask("/timeline/slice", slice=0, stamp=stamp)
    calls = Counter()

    def count(frame, event, _argument):
        if event == "call":
            calls[os.path.basename(frame.f_code.co_filename)] += 1  # noqa: PTH119

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        site.ask("/timeline/slice", slice=1, stamp=stamp)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert 0 < calls["results.py"] < MOST_CALLS_TO_COUNT


def test_a_new_recording_and_a_changed_one_are_found_at_once(site, tmp_path):
    (tmp_path / "rank1.1.pt.trace.json").write_text(TraceBuilder().op("aten::add", 0, 5).text())
    assert "aten::add" in str(site.ask("/view", worker="rank1", view="operators"))
    path = tmp_path / "rank0.1.pt.trace.json"
    path.write_text(TraceBuilder().op("aten::add", 0, 5).text())
    site.ask("/state")
    answer = site.ask("/view", view="operators")
    assert "aten::add" in str(answer)
    assert "aten::mm" not in str(answer)
