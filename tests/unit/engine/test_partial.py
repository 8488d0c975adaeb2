"""A file that takes long to read: what is told meanwhile, when, and that it goes with the reading."""

import threading

import pytest
from werkzeug.test import Client

from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.answers import Partial
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.trace_cache import TraceEntry
from kinetoscope_tb.reader import Preview, Progress
from kinetoscope_tb.reader.preview import NamedTime
from kinetoscope_tb.trace.meta import Meta
from kinetoscope_tb.web.app import Applications
from support.build import TraceBuilder
from support.reading import one_process
from support.waiting import LIMIT_S, wait_for

SIZE = 1000
META = Meta({"deviceProperties": [{"id": 0, "name": "GPU"}], "distributedInfo": {"rank": 3, "backend": "nccl"}})
BEGINNING = Preview(4, {"operators": 3, "kernels": 0}, 250, 2, 50, (NamedTime("aten::mm", 3, 30),), (), META)


def fractions_told(*readings: tuple[float, int], size: int = SIZE, cost_s: float = 0.0) -> list[float]:
    """What was told at these (seconds, bytes read), by the fraction of the file; telling takes some seconds."""
    now = [0.0]

    def beginning() -> Preview:
        now[0] += cost_s
        return BEGINNING

    entry, told = TraceEntry("stamp", size, 0.0), []
    for at, read_bytes in readings:
        now[0] = at
        before = entry.partial
        entry.note(Progress("reading", read_bytes, size or None, beginning), lambda: now[0])
        if entry.partial is not before:
            told.append(entry.partial.fraction)
    return told


@pytest.mark.parametrize(
    ("readings", "told"),
    [
        pytest.param([(0, 10), (1, 50)], [], id="not at once"),
        pytest.param([(0, 10), (3, 800)], [], id="not if it is nearly done"),
        pytest.param([(0, 0), (2, 100)], [0.1], id="if it takes long"),
        pytest.param([(30, 10), (31, 500), (31.5, 990)], [], id="not if the reader was compiled first"),
        pytest.param([(0, 0), (2, 100), (2.5, 200), (3.1, 300)], [0.1, 0.3], id="again after a second"),
        pytest.param([(0, 0), (2, 100), (9, 990)], [0.1, 0.99], id="to the end, once it was begun"),
        pytest.param([(0, 0), (9, 0)], [], id="not without anything read"),
    ],
)
def test_a_reading_tells_what_it_has_seen_if_it_takes_long(readings, told):
    assert fractions_told(*readings) == told


def test_it_is_told_seldom_if_telling_takes_long():
    every_second = [(float(at), at) for at in range(100)]
    told = fractions_told(*every_second, cost_s=0.9)
    assert len(told) == 4  # at 2 s, and each time 30 s after the last was told
    assert 0.9 * len(told) / 100 < 0.04


def test_of_a_file_whose_size_is_not_known_nothing_is_told():
    assert fractions_told((0, 0), (5, 100), (50, 900), size=0) == []


class Held:
    """An engine whose one file is read for long: some of it is read, the rest when it is let go."""

    def __init__(self, folder):
        (folder / "rank0.pt.trace.json").write_text("x" * SIZE)
        self.now, self.free, self.half_way = 0.0, threading.Event(), threading.Event()
        self.engine = Engine(
            [Logdir(str(folder), "run")], read=one_process(self.read), clock=lambda: self.now, patience_s=0.01
        )
        self.client = {route: Client(app) for route, app in Applications(self.engine).items()}

    def read(self, _path, progress):
        for self.now, read_bytes in ((0.0, 10), (4.0, 100)):
            progress(Progress("reading", read_bytes, SIZE, lambda: BEGINNING))
        self.half_way.set()
        assert self.free.wait(LIMIT_S)
        return TraceBuilder().op("aten::mm", 0, 5).build()

    def ask(self, route, **query):
        where = {"run": "run", "worker": "rank0", "span": "default"}
        return self.client[f"/{route}"].get(f"/{route}", query_string={**where, **query}).json


@pytest.fixture
def held(tmp_path):
    held = Held(tmp_path)
    wait_for(lambda: held.ask("state")["state"] == "loading" and held.half_way.is_set())
    yield held
    held.free.set()


def test_the_state_says_what_is_known_of_which_part(held):
    answer = held.ask("state")
    assert answer["state"] == "loading"
    assert answer["partial"] == {
        "fraction": 0.1,
        "events": 4,
        "kinds": [{"kind": "operators", "events": 3}, {"kind": "kernels", "events": 0}],
        "span_ns": 250,
        "steps": 2,
        "step_ns": 50,
        "operators": [{"name": "aten::mm", "count": 3, "total_ns": 30}],
        "kernels": [],
        "facts": [
            {"fact": "Devices of the machine", "value": "GPU"},
            {"fact": "Rank", "value": "3"},
            {"fact": "Backend", "value": "nccl"},
        ],
    }


def test_no_view_comparison_event_or_timeline_is_made_of_a_part(held):
    base = {"base_run": "run", "base_worker": "rank0", "base_span": "default"}
    questions = [
        ("view", {"view": "overview"}),
        ("view", {"view": "advice"}),
        ("compare", {"view": "operators", **base}),
        ("event", {"offset": "0"}),
        ("timeline", {}),
    ]
    for route, query in questions:
        answer = held.ask(route, **query)
        assert (answer["state"], "partial" in answer) == ("loading", False)


def test_once_the_file_is_read_nothing_is_left_of_the_part(held):
    file = held.engine.find("run", "rank0", "default")
    assert held.engine.partial(file) == Partial(0.1, BEGINNING)
    held.free.set()
    held.engine._patience_s = LIMIT_S
    assert held.engine.trace(file).host_events["name"].to_list() == ["aten::mm"]
    assert held.engine.partial(file) is None
    answer = held.ask("state")
    assert (answer["state"], answer["events"], "partial" in answer) == ("ready", 1, False)
