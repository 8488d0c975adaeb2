"""Files of several processes in the engine: read once, listed as workers from then on, also by the next server."""

import json
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.answers import NotReady
from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.file_processes import FileProcesses
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.names.processes import Process
from kinetoscope_tb.views import EVERY_VIEW
from support.merged import by_combining, by_sglang, part
from support.waiting import LIMIT_S, wait_for


class Reader:
    """Reads files, and counts how often."""

    def __init__(self):
        self.calls = []

    def __call__(self, path, progress, process=None):
        self.calls.append((Path(path).name, process))
        return read_traces(path, progress, process)


PARTS = [part(10, "k", 90_000), part(20, "l", 400_000)]


@pytest.fixture
def logdir(tmp_path):
    folder = tmp_path / "logdir"
    (folder / "job").mkdir(parents=True)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("kinetoscope_tb.engine.cache.folder.FEWEST_EVENTS", 0)
    return Cache(tmp_path / "cache")


def engine_of(logdir, **options):
    reader = Reader()
    return Engine([Logdir(str(logdir))], read=reader, **{"patience_s": LIMIT_S, **options}), reader


def run_of(engine):
    return {run: list(workers) for run, workers in engine.listing().runs.items()}


def kernels(engine, file):
    return engine.trace(file).device_events["name"].unique().to_list()


def test_a_file_is_read_once_and_its_processes_are_listed_from_then_on(logdir):
    (logdir / "job/both.trace.json").write_text(json.dumps(by_combining(PARTS)))
    engine, reader = engine_of(logdir)
    assert run_of(engine) == {"job": ["both"]}
    assert kernels(engine, engine.find("job", "both", "default")) == ["k"]
    assert run_of(engine) == {"job/both": ["process 20", "rank0"]}
    first, second = (engine.find("job/both", worker, "default") for worker in ("rank0", "process 20"))
    assert (kernels(engine, first), kernels(engine, second)) == (["k"], ["l"])
    assert engine.find("job", "both", "default") == first
    assert reader.calls == [("both.trace.json", None)]


def test_the_views_of_a_run_compare_the_processes_of_a_file(logdir):
    (logdir / "job/merged.trace.json").write_text(json.dumps(by_sglang(PARTS)))
    engine, _ = engine_of(logdir)
    file = engine.find("job/merged", "merged", "default")
    engine.trace(file)
    file = engine.find(file.run, file.worker, file.span)
    steps = engine.run_frame(EVERY_VIEW["rank_steps"], file, {})
    assert sorted(steps["worker"].unique()) == ["TP-0", "TP-1"]


def test_a_merge_that_a_view_of_the_run_finds_beside_its_parts_leaves_the_run(logdir):
    for nth, document in enumerate(PARTS):
        (logdir / f"job/rank{nth}.5.pt.trace.json").write_text(json.dumps(document))
    (logdir / "job/x.json").write_text(json.dumps(by_combining(PARTS)))
    engine, _ = engine_of(logdir)
    assert run_of(engine) == {"job": ["rank0", "rank1", "x"]}
    file = engine.find("job", "rank0", "5")
    problems = engine.run_frame(EVERY_VIEW["run_health"], file, {})["consequence"].to_list()
    assert any("it holds 2 processes (rank0, process 20), which are a run of their own" in text for text in problems)
    assert run_of(engine) == {"job": ["rank0", "rank1"], "job/x": ["process 20", "rank0"]}
    problems = engine.run_frame(EVERY_VIEW["run_health"], file, {})
    assert not problems["consequence"].str.contains("processes").any()


def test_the_next_server_lists_and_opens_the_processes_from_the_cache(logdir, cache):
    (logdir / "job/both.trace.json").write_text(json.dumps(by_combining(PARTS)))
    engine, _ = engine_of(logdir, cache=cache)
    engine.trace(engine.find("job", "both", "default"))
    for worker in ("rank0", "process 20"):
        engine.timeline(engine.find("job/both", worker, "default"))
    wait_for(lambda: len(cache.entries()), is_right=lambda count: count == 5)  # two traces, timelines; one list
    other, reader = engine_of(logdir, cache=cache)
    assert run_of(other) == {"job/both": ["process 20", "rank0"]}
    for worker, kernel in (("rank0", "k"), ("process 20", "l")):
        file = other.find("job/both", worker, "default")
        assert kernels(other, file) == [kernel]
        assert other.timeline(file).size
        assert other.trace(file).meta.process.worker == worker
    assert reader.calls == []


def test_a_file_that_changes_is_looked_at_again(logdir, cache):
    path = logdir / "job/both.trace.json"
    path.write_text(json.dumps(by_combining(PARTS)))
    engine, _ = engine_of(logdir, cache=cache)
    engine.trace(engine.find("job", "both", "default"))
    path.write_text(json.dumps(PARTS[0]))
    wait_for(lambda: run_of(engine), is_right=lambda runs: runs == {"job": ["both"]})
    assert kernels(engine, engine.find("job", "both", "default")) == ["k"]


def test_without_room_the_others_are_read_when_they_are_wanted(logdir):
    (logdir / "job/both.trace.json").write_text(json.dumps(by_combining([*PARTS, part(30, "m", 10_000)])))
    engine, reader = engine_of(logdir, capacity_bytes=1)
    engine.trace(engine.find("job", "both", "default"))
    for worker, kernel in (("process 20", "l"), ("process 30", "m")):
        file = engine.find("job/both", worker, "default")
        assert wait_for(lambda file=file: asked(engine, file), is_right=bool) == [kernel]
    assert ("both.trace.json", "30") in reader.calls


def asked(engine, file):
    try:
        return kernels(engine, file)
    except NotReady:
        return None


def test_a_forged_list_of_processes_is_none(logdir, cache):
    (logdir / "job/both.trace.json").write_text(json.dumps(by_combining(PARTS)))
    engine, _ = engine_of(logdir)
    listing = engine.listing()
    (file,) = listing.files
    for forged in ((Process("1", "a"), Process("1", "b")), (Process("1", 5), Process("2", "b"))):  # type: ignore[arg-type]
        cache.write_processes(forged, file.path, file.stamp)
        assert FileProcesses(cache).expand(listing) is listing


def test_a_frontend_is_no_rank_of_the_run(logdir):
    server = part(5, "k", 10)
    server["traceEvents"] = [event for event in server["traceEvents"] if event["cat"] == "cpu_op"]
    (logdir / "job/both.trace.json").write_text(json.dumps(by_combining([server, *PARTS])))
    engine, _ = engine_of(logdir)
    engine.trace(engine.find("job", "both", "default"))
    assert run_of(engine) == {"job/both": ["process 20", "rank0", "frontend"]}
    frame = engine.run_frame(EVERY_VIEW["rank_steps"], engine.find("job/both", "rank0", "default"), {})
    assert isinstance(frame, pl.DataFrame)
    assert sorted(frame["worker"].unique()) == ["process 20", "rank0"]
