"""The engine is given a reader that the test holds back and lets go; nothing waits for a clock."""

import gc
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.discovery import Logdir, TraceFile
from kinetoscope_tb.engine.answers import LoadingProgress, Missing, NotReady
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.engine.trace_cache import MOST_RESULTS, TraceCache
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import Progress
from kinetoscope_tb.table import COUNT, Column, Table
from kinetoscope_tb.trace.meta import Meta
from kinetoscope_tb.trace.results import Results, once_per_trace
from kinetoscope_tb.view import View
from support.reading import one_process
from support.waiting import LIMIT_S


class Reader:
    """Stands for the reader: counts its calls, and waits until it is let go."""

    def __init__(self, *, is_held=False, size=1):
        self.calls, self.size = [], size
        self.free = threading.Event()
        self.reports = threading.Event()
        if not is_held:
            self.free.set()

    def __call__(self, path, progress):
        self.calls.append(path)
        progress(Progress("reading", 25, 100))
        self.reports.set()
        assert self.free.wait(LIMIT_S)
        if "bad" in path:
            raise TraceError(path, "no good")
        return Columns(pl.DataFrame({"x": pl.Series(range(self.size), dtype=pl.Int64)}))


class Columns:
    def __init__(self, rows):
        self.rows, self.meta, self.results = rows, Meta(events=rows.height), Results(self)

    @property
    def recording(self):
        return self

    @property
    def device_events(self):
        return pl.DataFrame({"graph_id": pl.Series([], dtype=pl.Int64)})

    @property
    def launches(self):
        return pl.DataFrame({"name": pl.Series([], dtype=pl.String)})

    @property
    def snapshot_events(self):
        return pl.DataFrame()

    @property
    def snapshot_segments(self):
        return pl.DataFrame()


class Counted(Table):
    """One row is everything."""

    rows = Column(COUNT, "How many rows there are.")


def counted(trace):
    return pl.DataFrame({"rows": [trace.rows.height]})


VIEW = View(
    counted,
    table=Counted,
    title="Counted",
    entry="Operators",
    needs=lambda trace: trace.rows.height > 0,
    hint="Record rows.",
)


def file(path="a", stamp=1, size=100):
    return TraceFile("run", "worker", "span", path, path, size, stamp)


def make_engine(reader, **options):
    return Engine([Logdir("/nowhere")], read=one_process(reader), **{"patience_s": LIMIT_S, **options})


def progress_of(question, *arguments):
    """How far an answer is that isn't ready."""
    with pytest.raises(NotReady) as raised:
        question(*arguments)
    return raised.value.progress


def test_a_file_is_read_once_whoever_asks_and_however_often():
    reader = Reader(is_held=True)
    engine = make_engine(reader)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(engine.trace, file()) for _ in range(8)]
        assert reader.reports.wait(LIMIT_S)
        reader.free.set()
        assert len({id(answer.result()) for answer in answers}) == 1
    assert reader.calls == ["a"]


def test_while_a_file_is_read_the_answer_is_how_far_it_is():
    reader, now = Reader(is_held=True), [100.0]
    engine = make_engine(reader, patience_s=0, clock=lambda: now[0])
    progress_of(engine.trace, file())
    assert reader.reports.wait(LIMIT_S)
    now[0] = 105.0
    progress = progress_of(engine.trace, file())
    assert progress == LoadingProgress("reading", fraction=0.25, bytes_per_second=5.0, seconds_left=15.0)
    reader.free.set()


def test_what_is_loaded_is_looked_at_while_large_files_are_read():
    reader = Reader()
    engine = make_engine(reader)
    engine.trace(file("loaded"))
    reader.free.clear()
    engine._patience_s = 0
    for name in "abcdef":
        progress_of(engine.trace, file(name))
    engine._patience_s = LIMIT_S
    assert engine.frame(VIEW, file("loaded"), {})["rows"].to_list() == [1]
    reader.free.set()


def test_a_view_is_computed_once_for_the_same_parameters():
    calls = []

    def counted(trace):
        calls.append(trace)
        return pl.DataFrame({"rows": [trace.rows.height]})

    view = View(counted, table=Counted, title="Counted", entry="Operators")
    engine = make_engine(Reader())
    with ThreadPoolExecutor(8) as pool:
        frames = [pool.submit(engine.frame, view, file(), {}) for _ in range(8)]
    assert [frame.result()["rows"].to_list() for frame in frames] == [[1]] * 8
    assert len(calls) == 1


def test_what_several_views_begin_with_is_made_once_before_them_and_counts_as_held():
    made = []

    def make(trace):
        made.append(id(trace))
        return np.zeros(7_000, np.int8)

    def begun(trace, n):
        assert made == [id(trace)]
        return counted(trace)

    views = [View(begun, table=Counted, title="Begun", entry="Operators", shares=make) for _ in range(6)]
    engine = make_engine(Reader())
    with ThreadPoolExecutor(6) as pool:
        frames = [pool.submit(engine.frame, view, file(), {"n": n}) for n, view in enumerate(views)]
    assert [frame.exception() for frame in frames] == [None] * 6
    assert engine._traces.entry(file()).held_bytes >= 7_000


@pytest.fixture
def every_trace_is_large(monkeypatch):
    monkeypatch.setattr("kinetoscope_tb.engine.trace_cache.PREPARED_EVENTS", 0)


class Shares:
    """What views of a trace share: counts how often it is made, and may be held up."""

    def __init__(self, size=7_000):
        self.made, self.size, self.begun, self.may_end = [], size, threading.Event(), threading.Event()
        self.may_end.set()

    def __call__(self, trace):
        self.made.append(threading.current_thread())
        self.begun.set()
        assert self.may_end.wait(LIMIT_S)
        return np.zeros(self.size, np.int8)

    def view(self):
        def begun(trace, n):
            return counted(trace)

        return View(begun, table=Counted, title="Begun", entry="Operators", shares=self)


@pytest.mark.usefixtures("every_trace_is_large")
def test_behind_the_first_answer_what_the_next_ones_share_is_made_once_and_counts_as_held():
    first, second = Shares(), Shares()
    engine = make_engine(Reader())
    engine.frame(VIEW, file(), {})
    for _ in range(2):
        engine.prepare(file(), lambda: [first, second])
    assert first.begun.wait(LIMIT_S)
    assert second.begun.wait(LIMIT_S)
    assert len(engine.frame(second.view(), file(), {"n": 1})) == 1
    assert (len(first.made), len(second.made)) == (1, 1)
    assert engine._traces.entry(file()).held_bytes >= 14_000


@pytest.mark.usefixtures("every_trace_is_large")
def test_a_question_joins_what_is_being_prepared_and_does_not_wait_for_what_is_before_it():
    slow, asked = Shares(), Shares()
    slow.may_end.clear()
    engine = make_engine(Reader())
    engine.frame(VIEW, file(), {})
    engine.prepare(file(), lambda: [slow, asked])
    assert slow.begun.wait(LIMIT_S)
    assert len(engine.frame(asked.view(), file(), {"n": 1})) == 1
    with ThreadPoolExecutor(1) as pool:
        joined = pool.submit(engine.frame, slow.view(), file(), {"n": 2})
        slow.may_end.set()
        assert len(joined.result(LIMIT_S)) == 1
    assert (len(slow.made), len(asked.made)) == (1, 1)


@pytest.mark.usefixtures("every_trace_is_large")
def test_nothing_is_prepared_that_would_evict_other_traces():
    large, other = Shares(size=10_000_000), Shares()
    engine = make_engine(Reader(), capacity_bytes=10_000_000)
    engine.frame(VIEW, file(), {})
    engine.prepare(file(), lambda: [large, other])
    assert large.begun.wait(LIMIT_S)
    engine._traces._preparers.submit(lambda: None).result(LIMIT_S)  # after it
    assert not other.made


def test_nothing_is_prepared_for_a_small_trace():
    share, engine = Shares(), make_engine(Reader())
    engine.frame(VIEW, file(), {})
    engine.prepare(file(), lambda: [share])
    engine._traces._preparers.submit(lambda: None).result(LIMIT_S)
    assert not share.made


def test_of_the_many_results_of_one_trace_those_used_longest_ago_are_forgotten():
    computed = []
    traces = TraceCache(None, None, one_process(Reader()), lambda: 0.0)
    listed = file()

    def compute(_trace, key):
        computed.append(key)
        return key

    trace = traces.entry(listed).future.result(LIMIT_S)
    assert trace.rows.height == 1

    def result(key):
        return traces.result(listed, trace, compute, key).result(LIMIT_S)

    for key in [*range(MOST_RESULTS), 0, MOST_RESULTS]:  # 0 is used again, so the room is made by 1
        assert result(key) == key
    computed.clear()
    assert (result(0), result(1)) == (0, 1)
    assert computed == [1]


def test_a_trace_without_what_a_view_needs_is_missing_it():
    assert make_engine(Reader(size=0)).frame(VIEW, file(), {}) == Missing("Record rows.")


def test_a_file_that_changed_is_read_again_and_its_results_are_forgotten():
    reader = Reader()
    engine = make_engine(reader)
    assert engine.frame(VIEW, file(stamp=1), {})["rows"].to_list() == [1]
    reader.size = 3
    assert engine.frame(VIEW, file(stamp=1), {})["rows"].to_list() == [1]
    assert engine.frame(VIEW, file(stamp=2), {})["rows"].to_list() == [3]
    assert len(reader.calls) == 2


def test_an_error_is_the_answer_until_the_file_changes():
    reader = Reader()
    engine = make_engine(reader)
    for stamp in (1, 1, 2):
        with pytest.raises(TraceError, match="no good"):
            engine.trace(file("bad", stamp))
    assert len(reader.calls) == 2


def test_one_bad_file_does_not_concern_the_others():
    engine = make_engine(Reader())
    with pytest.raises(TraceError):
        engine.trace(file("bad"))
    assert engine.trace(file("good")).rows.height == 1


def test_beyond_the_capacity_the_trace_used_longest_ago_goes():
    reader = Reader(size=100)  # 800 bytes each
    engine = make_engine(reader, capacity_bytes=2000)
    for path in ("a", "b", "a", "c", "a", "b"):
        engine.trace(file(path))
    assert reader.calls == ["a", "b", "c", "b"]


def test_results_and_what_they_share_count_as_memory_of_a_trace_so_thirty_traces_fit_the_capacity():
    traces = []

    @once_per_trace
    def numbers(trace):
        return np.arange(10_000)  # 80 kB, and as much again in the frame

    def repeated(trace):
        traces.append(ref(trace))
        return pl.DataFrame({"rows": numbers(trace)})

    view = View(repeated, table=Counted, title="Repeated", entry="Operators")
    engine = make_engine(Reader(), capacity_bytes=500_000)
    for number in range(30):
        engine.frame(view, file(str(number)), {})
    held = [engine._traces._entries.find((str(number), None)) for number in range(30)]
    assert [entry.held_bytes for entry in held if entry] == [160_008] * 3
    gc.collect()
    assert sum(trace() is not None for trace in traces) <= 4  # a thread may still have the last one at hand


def test_a_result_that_is_forgotten_counts_no_more():
    def wide(trace, n):
        return pl.DataFrame({"rows": np.arange(1_000)})

    view = View(wide, table=Counted, title="Wide", entry="Operators")
    engine = make_engine(Reader())
    for n in range(MOST_RESULTS + 10):
        engine.frame(view, file(), {"n": n})
    assert engine._traces.entry(file()).held_bytes <= 8 + (MOST_RESULTS + 1) * 8_000


def test_a_trace_larger_than_the_capacity_is_still_shown():
    engine = make_engine(Reader(size=100), capacity_bytes=1)
    assert engine.frame(VIEW, file(), {})["rows"].to_list() == [100]


def test_making_an_engine_starts_no_thread_and_touches_no_disk(monkeypatch):
    import os

    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail("listed"))
    before = threading.active_count()
    Engine([Logdir("/nowhere")])
    assert threading.active_count() == before


def test_a_listing_that_takes_long_is_unknown_and_the_tab_is_there(monkeypatch):
    free = threading.Event()
    monkeypatch.setattr(
        "kinetoscope_tb.engine.engine.list_traces", lambda logdirs, heads, manifests: free.wait(LIMIT_S)
    )
    slow = make_engine(Reader(), patience_s=0)
    assert slow.listing() is None
    assert slow.has_something_to_show()
    assert progress_of(slow.find, "r", "w", "s") == LoadingProgress("listing")
    free.set()


def test_what_appears_between_two_questions_is_seen(tmp_path):
    engine = Engine([Logdir(str(tmp_path))], patience_s=LIMIT_S, clock=iter(range(10**6)).__next__)
    for known in range(20):
        assert len(engine.listing().files) == known
        (tmp_path / f"rank{known}.pt.trace.json").write_text("{}")
        seen = (len(engine.listing().files) for _ in range(100))  # the clock ticks with every look at it
        assert known + 1 in seen


def test_the_tab_is_there_when_there_is_a_trace_and_not_else(tmp_path):
    empty = Engine([Logdir(str(tmp_path))], patience_s=LIMIT_S)
    assert not empty.has_something_to_show()
    (tmp_path / "rank0.pt.trace.json").write_text("{}")
    assert Engine([Logdir(str(tmp_path))], patience_s=LIMIT_S).has_something_to_show()


def test_a_fault_while_reading_names_the_file_and_is_logged(monkeypatch, caplog):
    monkeypatch.setattr("kinetoscope_tb.reader.read_each", lambda path, *_, **__: 1 / 0)
    with pytest.raises(TraceError, match=r"x\.json: reading it failed .*ZeroDivisionError"):
        next(read_traces("x.json"))
    assert "Traceback" in caplog.text


def seen_until(engine, is_right):
    """What lies there, once it is right; the clock ticks with every look at it."""
    return next(names for _ in range(100) if is_right(names := engine.listing().runs))


@pytest.fixture
def watched(tmp_path):
    return Engine([Logdir(str(tmp_path))], patience_s=LIMIT_S, clock=iter(range(10**6)).__next__)


def test_a_folder_that_appears_and_vanishes_is_seen(tmp_path, watched):
    assert watched.listing().runs == {}
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/rank0.pt.trace.json").write_text("{}")
    assert list(seen_until(watched, bool)) == ["deep/er"]
    shutil.rmtree(tmp_path / "deep")
    seen_until(watched, lambda runs: not runs)


def test_a_file_that_grows_is_first_a_problem_then_a_trace_and_then_gets_its_rank(tmp_path, watched):
    file = tmp_path / "host_4711.5.pt.trace.json"
    file.touch()
    assert watched.listing().runs == {}
    assert "is empty" in watched.listing().problems[0].reason
    file.write_text('{"schemaVersion": 1, ')
    assert list(seen_until(watched, bool)[tmp_path.name]) == ["host_4711"]
    file.write_text('{"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [')
    assert seen_until(watched, lambda runs: "rank3" in runs[tmp_path.name])
    before = watched.listing().files[0].stamp
    file.write_text('{"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [{"ph": "X"}')
    assert seen_until(watched, lambda runs: runs[tmp_path.name]["rank3"]["5"].stamp != before)


def test_a_file_of_any_name_is_seen_once_it_begins_like_a_trace(tmp_path, watched):
    file = tmp_path / "anything.json"
    file.write_text("{")
    assert watched.listing().runs == {}
    file.write_text('{"traceEvents": [')
    assert seen_until(watched, bool)
    file.write_text("{}")
    seen_until(watched, lambda runs: not runs)


def test_an_event_that_takes_long_is_being_searched(monkeypatch):
    free = threading.Event()
    monkeypatch.setattr("kinetoscope_tb.engine.engine.event_in", lambda *_: free.wait(LIMIT_S) and "found")
    engine = make_engine(Reader())
    engine.trace(file())
    engine._patience_s = 0
    assert progress_of(engine.event, file(), 49) == LoadingProgress("searching")
    free.set()
    engine._patience_s = LIMIT_S
    assert engine.event(file(), 49) == "found"
