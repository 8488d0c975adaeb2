"""An engine with a cache: what one has read, the next opens."""

import threading

import pytest

from kinetoscope_tb.discovery import Logdir, list_traces
from kinetoscope_tb.engine.answers import LoadingProgress, NotReady
from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.engine.trace_cache import held_bytes
from kinetoscope_tb.errors import NotFound, TraceError
from kinetoscope_tb.names.communication_patterns import FILE_NAME
from kinetoscope_tb.trace.results import bytes_of
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.reading import one_process
from support.waiting import LIMIT_S


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("kinetoscope_tb.engine.cache.folder.FEWEST_EVENTS", 0)
    return Cache(tmp_path / "cache")


@pytest.fixture
def file(tmp_path):
    return put(tmp_path, "aten::mm")


def put(folder, name):
    path = folder / "rank0.pt.trace.json"
    path.write_text(TraceBuilder().op(name, at=0, dur=10).text())
    return list_traces([Logdir(str(path))]).files[0]


class Reader:
    def __init__(self):
        self.calls = []

    def __call__(self, path, progress):
        self.calls.append(path)
        return next(read_traces(path, progress))


def make_engine(cache, reader, **options):
    return Engine([Logdir("/nowhere")], cache=cache, read=one_process(reader), **{"patience_s": LIMIT_S, **options})


def wait_until_kept(engine):
    for job in engine._traces._writes:
        assert job.exception(LIMIT_S) is None


def test_what_one_engine_has_read_the_next_opens(cache, file):
    reader = Reader()
    first, second = make_engine(cache, reader), make_engine(cache, reader)
    answer = first.frame(VIEWS["operators"], file, {})
    wait_until_kept(first)
    assert second.frame(VIEWS["operators"], file, {}).equals(answer)
    assert len(reader.calls) == 1


def test_a_file_that_changed_is_read_and_kept_anew(cache, file, tmp_path):
    reader = Reader()
    for name in ("aten::mm", "aten::add_of_another_length"):
        changed = put(tmp_path, name)
        for _ in range(2):
            engine = make_engine(cache, reader)
            assert engine.trace(changed).host_events["name"].to_list() == [name]
            wait_until_kept(engine)
    assert len(reader.calls) == 2


def test_an_entry_with_other_communication_patterns_is_not_used(cache, tmp_path):
    trace = TraceBuilder().op("aten::mm", at=0, dur=10).kernel("my_reduce", at=20, dur=10)
    (tmp_path / "rank0.pt.trace.json").write_text(trace.text())
    reader = Reader()
    for patterns, rule in (("", None), ("my_", "pattern my_"), ("red", "pattern red"), ("my_", "pattern my_")):
        (tmp_path / FILE_NAME).write_text(patterns)
        file = list_traces([Logdir(str(tmp_path))]).files[0]
        engine = make_engine(cache, reader)
        assert engine.frame(VIEWS["kernels"], file, {})["communication_rule"].to_list() == [rule]
        engine.timeline(file)
        wait_until_kept(engine)
    assert len(reader.calls) == 3  # the last answer comes from the cache


def test_an_open_trace_is_read_again_when_the_patterns_change(cache, tmp_path):
    (tmp_path / "rank0.pt.trace.json").write_text(TraceBuilder().kernel("my_reduce", at=20, dur=10).text())
    engine = make_engine(cache, Reader())
    rules = []
    for patterns in ("", "my_"):
        (tmp_path / FILE_NAME).write_text(patterns)
        file = list_traces([Logdir(str(tmp_path))]).files[0]
        rules += engine.frame(VIEWS["kernels"], file, {})["communication_rule"].to_list()
    assert rules == [None, "pattern my_"]


def test_a_file_that_changes_while_it_is_read_is_not_kept(cache, file, tmp_path):
    def growing(path, progress):
        trace = next(read_traces(path, progress))
        put(tmp_path, "aten::add_of_another_length")
        return trace

    engine = make_engine(cache, growing)
    engine.trace(file)
    wait_until_kept(engine)
    assert cache.entries() == []


def test_the_answer_does_not_wait_for_the_cache(cache, file, monkeypatch):
    free = threading.Event()
    monkeypatch.setattr(cache, "write", lambda *what: free.wait(LIMIT_S))
    engine = make_engine(cache, Reader())
    assert engine.frame(VIEWS["operators"], file, {})["name"].to_list() == ["aten::mm"]
    assert not engine._traces._writes[0].done()
    free.set()
    wait_until_kept(engine)


def test_a_cache_that_is_slow_does_not_hold_many_traces(cache, file, monkeypatch):
    free = threading.Event()
    monkeypatch.setattr(cache, "write", lambda *what: free.wait(LIMIT_S))
    engine = make_engine(cache, Reader(), capacity_bytes=1)
    for stamp in range(20):
        engine.trace(type(file)(**{**vars(file), "stamp": stamp}))
    assert len(engine._traces._writes) == 4
    free.set()
    wait_until_kept(engine)


def test_an_error_is_not_kept(cache, tmp_path):
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text("garbage")
    file = list_traces([Logdir(str(path))]).files[0]
    for _ in range(2):
        with pytest.raises(TraceError):
            make_engine(cache, Reader()).trace(file)
    assert cache.entries() == []


def test_an_entry_that_goes_meanwhile_is_read_from_the_file(cache, file):
    reader = Reader()
    first = make_engine(cache, reader)
    first.trace(file)
    wait_until_kept(first)
    cache.clear()
    assert make_engine(cache, reader).trace(file).host_events.height == 1
    assert len(reader.calls) == 2


def test_without_a_cache_nothing_is_written(file, tmp_path):
    before = sorted(tmp_path.iterdir())
    engine = make_engine(None, Reader())
    engine.trace(file)
    assert len(engine._traces._writes) == 0
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("is_cached", [False, True])
def test_an_event_is_found_whether_the_trace_was_read_or_opened(cache, file, is_cached):
    if is_cached:
        first = make_engine(cache, Reader())
        first.trace(file)
        wait_until_kept(first)
    engine = make_engine(cache, Reader())
    offset = engine.trace(file).host_events["offset"][0]
    assert engine.event(file, offset).value["name"] == "aten::mm"
    assert engine.event(file, offset) is engine.event(file, offset)
    with pytest.raises(NotFound):
        engine.event(file, offset + 1)


def test_an_event_of_a_file_that_changed_or_went_is_none(cache, file, tmp_path):
    engine = make_engine(cache, Reader())
    offset = engine.trace(file).host_events["offset"][0]
    put(tmp_path, "aten::add_of_another_length")
    with pytest.raises(TraceError, match="has changed since it was read"):
        engine.event(file, offset)
    (tmp_path / "rank0.pt.trace.json").unlink()
    with pytest.raises(TraceError, match="is gone since it was read"):
        engine.event(file, offset)


def test_details_that_are_remembered_are_bounded(cache, tmp_path):
    many = TraceBuilder()
    for nth in range(100):
        many.op(f"op{nth}", at=nth, dur=1)
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text(many.text())
    file = list_traces([Logdir(str(path))]).files[0]
    engine = make_engine(cache, Reader())
    for offset in engine.trace(file).host_events["offset"]:
        engine.event(file, offset)
    assert len(engine._events) == 64


def test_while_an_entry_is_opened_the_page_hears_so(cache, file, monkeypatch):
    free, begun = threading.Event(), threading.Event()

    def slow(path, stamp):
        begun.set()
        free.wait(LIMIT_S)

    monkeypatch.setattr(cache, "open", slow)
    engine = make_engine(cache, Reader(), patience_s=0)
    with pytest.raises(NotReady):
        engine.trace(file)
    assert begun.wait(LIMIT_S)
    with pytest.raises(NotReady) as raised:
        engine.trace(file)
    assert raised.value.progress == LoadingProgress("opening")
    free.set()


def test_a_timeline_is_answered_from_the_cache_once_it_is_there(cache, file):
    first, second = make_engine(cache, Reader()), make_engine(cache, Reader())
    made = first.timeline(file)
    wait_until_kept(first)
    for engine in (first, second):
        mapped = engine.timeline(file)
        assert not mapped.start_ns.flags.owndata
        assert mapped.start_ns.tolist() == made.start_ns.tolist()
        trace = engine.trace(file)
        assert engine._traces.entry(file).held_bytes == held_bytes(trace) + trace.results.held_bytes
        assert trace.results.held_bytes < bytes_of([made])  # masks of rows alone: the timeline is mapped


def test_a_timeline_without_a_cache_counts_as_memory(file):
    engine = make_engine(None, Reader())
    made = engine.timeline(file)
    assert engine.timeline(file) is made
    trace = engine.trace(file)
    assert engine._traces.entry(file).held_bytes == held_bytes(trace) + trace.results.held_bytes
    assert trace.results.held_bytes >= bytes_of([made])
