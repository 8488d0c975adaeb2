"""The trace next to a memory snapshot: which one is read, and that the snapshot is shown whatever it holds."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.api import open_profile
from kinetoscope_tb.discovery import Logdir, list_path, traces_beside
from kinetoscope_tb.engine import capture_search
from kinetoscope_tb.engine.answers import NotReady
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.trace_cache import CAPTURES_LISTED_WITHIN_S
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.snapshots import MIB, START_US, Allocator

NO_TRACE = "[no trace next to the snapshot]"


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    allocator = Allocator()
    allocator._now = START_US + 480
    allocator.allocate(2 * MIB)
    path = tmp_path / "rank0.104.memory.pickle"
    path.write_bytes(allocator.dumped())
    return path


def _write_trace(path: Path, name: str) -> Path:
    trace = TraceBuilder(START_US * 1000).op(name, 400_000, 200_000)
    path.write_bytes(gzip.compress(trace.text().encode(), mtime=0))
    return path


def _operators(path: Path, *chosen: Path) -> list[str]:
    profile = open_profile(str(path), None, None, None, captures=[str(capture) for capture in chosen])
    return list(profile.view("snapshot_alive", by="operator")["place"])


def _rules(path: Path) -> set[str]:
    return set(open_profile(str(path), None, None, None).health["rule"])


@pytest.mark.parametrize("mark", ["", ".oom", ".oom2"])
def test_the_trace_of_the_same_worker_and_span_says_which_operator_allocated(snapshot: Path, mark: str) -> None:
    path = snapshot.rename(snapshot.with_name(f"rank0.104{mark}.memory.pickle"))
    assert _operators(path) == [NO_TRACE]
    for name in ("rank1.104", "rank0.10", "rank0.1040", "xrank0.104"):
        _write_trace(path.with_name(f"{name}.pt.trace.json.gz"), "aten::of_another")
    assert traces_beside(str(path)) == ()
    _write_trace(path.with_name("rank0.104.pt.trace.json.gz"), "aten::mm")
    assert [entry.name for entry in traces_beside(str(path))] == ["rank0.104.pt.trace.json.gz"]
    assert _operators(path) == ["aten::mm"]
    assert "snapshot_joined" in _rules(path)


def test_a_compressed_snapshot_finds_its_trace(snapshot: Path) -> None:
    path = snapshot.with_name("rank0.104.memory.pickle.gz")
    path.write_bytes(gzip.compress(snapshot.read_bytes()))
    snapshot.unlink()
    _write_trace(path.with_name("rank0.104.pt.trace.json.gz"), "aten::mm")
    assert _operators(path) == ["aten::mm"]


def test_a_trace_anywhere_can_be_chosen(snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    chosen = _write_trace(tmp_path / "elsewhere/profile.json.gz", "aten::mm")
    assert _operators(snapshot, chosen) == ["aten::mm"]


def test_a_trace_that_cannot_be_read_is_a_finding(snapshot: Path) -> None:
    snapshot.with_name("rank0.104.pt.trace.json.gz").write_bytes(b"no trace")
    assert _operators(snapshot) == [NO_TRACE]
    assert "snapshot_trace_damaged" in _rules(snapshot)


def test_a_bug_in_the_comparison_is_a_finding(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_trace(snapshot.with_name("rank0.104.pt.trace.json.gz"), "aten::mm")

    def fail(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr("kinetoscope_tb.engine.capture_search.join_snapshot", fail)
    assert _operators(snapshot) == [NO_TRACE]
    assert "snapshot_trace_damaged" in _rules(snapshot)


def test_a_large_trace_is_read_only_if_it_was_chosen(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = _write_trace(snapshot.with_name("rank0.104.pt.trace.json.gz"), "aten::mm")
    monkeypatch.setattr(capture_search, "_LARGEST_TRACE", 1)
    assert _operators(snapshot) == [NO_TRACE]
    assert "snapshot_trace_damaged" in _rules(snapshot)
    assert _operators(snapshot, trace) == ["aten::mm"]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_trace_knows_the_snapshot_of_its_worker_and_span(snapshot: Path, ending: str) -> None:
    if ending:
        snapshot.with_name(f"{snapshot.name}{ending}").write_bytes(gzip.compress(snapshot.read_bytes()))
        snapshot.unlink()
    for name in ("rank0.104", "rank1.104", "rank0.10"):
        _write_trace(snapshot.with_name(f"{name}.pt.trace.json.gz"), "aten::mm")
    listing = list_path(str(snapshot.parent))
    assert {file.shown: listing.snapshot_of(file) for file in listing.files if listing.snapshot_of(file)} == {
        "rank0.104.pt.trace.json.gz": next(file for file in listing.files if file.is_snapshot)
    }


def test_a_server_answers_before_the_trace_is_read_and_notices_another_one(snapshot: Path) -> None:
    now = [0.0]
    engine = Engine((Logdir(str(snapshot.parent)),), clock=lambda: now[0], patience_s=30)

    def operators() -> list[str]:
        now[0] += 2 * CAPTURES_LISTED_WITHIN_S
        (file,) = list_path(str(snapshot)).files
        while True:
            try:
                frame = engine.frame(VIEWS["snapshot_alive"], file, {"by": "operator"})
            except NotReady:
                continue
            assert isinstance(frame, pl.DataFrame)
            return list(frame["place"])

    assert operators() == [NO_TRACE]
    trace = _write_trace(snapshot.with_name("rank0.104.pt.trace.json.gz"), "aten::mm")
    assert operators() == ["aten::mm"]
    _write_trace(trace, "aten::another")
    assert operators() == ["aten::another"]
    trace.unlink()
    assert operators() == [NO_TRACE]
