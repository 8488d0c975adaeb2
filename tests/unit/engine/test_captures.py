"""Captures beside a trace: which are read, and that an answer changes with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.api import opened
from kinetoscope_tb.discovery import Logdir, captures_beside, list_path
from kinetoscope_tb.engine import Engine, NotReady
from kinetoscope_tb.engine.trace_cache import LOOKS_EVERY_S
from kinetoscope_tb.errors import LogdirError
from kinetoscope_tb.views import VIEWS
from support.graphs import GraphRecording, Operator

WORK = (Operator("aten::mm", (4, 4), 0, ("gemm",)), Operator("aten::add", (4,), 1, ("add", "norm")))
OTHER = (Operator("aten::linear", (4, 4), 0, ("gemm",)), Operator("aten::sub", (4,), 1, ("add", "norm")))


def _write(path: Path, recording: GraphRecording) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(recording.builder.text().encode(), mtime=0))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return _write(tmp_path / "rank0.1.pt.trace.json.gz", GraphRecording("rocm").replayed(WORK, 1).replayed(WORK, 1))


def _operators(path: Path) -> set[str]:
    profile = opened(str(path), None, None, None)
    return set(profile.graph_kernels["op"].drop_nulls())


@pytest.mark.parametrize("place", ["capture_traces/graph_rank0.json.gz", "capture_rank0.json.gz"])
def test_a_capture_beside_a_trace_is_read(trace: Path, place: str) -> None:
    assert _operators(trace) == set()
    _write(trace.parent / place, GraphRecording("rocm").captured(WORK))
    assert _operators(trace) == {"aten::mm", "aten::add"}


def test_another_span_of_the_same_worker_that_recorded_the_capture_explains_its_graphs(trace: Path) -> None:
    _write(trace.parent / "rank1.0.pt.trace.json.gz", GraphRecording("rocm").captured(OTHER))
    _write(trace.parent / "rank0.3.pt.trace.json.gz", GraphRecording("rocm").replayed(WORK, 1))
    assert _operators(trace) == set()
    span = _write(trace.parent / "rank0.0.pt.trace.json.gz", GraphRecording("rocm").captured(WORK))
    assert _operators(trace) == {"aten::mm", "aten::add"}
    assert set(opened(str(trace), None, None, None).graph_kernels["provenance"]) == {"capture"}
    _write(trace.parent / "capture_rank0.json.gz", GraphRecording("rocm").captured(OTHER))
    assert _operators(trace) == {"aten::linear", "aten::sub"}
    span.write_text("no trace")
    assert _operators(trace) == {"aten::linear", "aten::sub"}


def test_captures_of_other_ranks_and_other_files_are_left_out(trace: Path) -> None:
    folder = trace.parent / "capture_traces"
    for name in ("graph_capture_rank_0.json.gz", "graph_capture_rank_1.json.gz"):
        _write(folder / name, GraphRecording("rocm").captured(WORK))
    (folder / "execution_details.json").write_text("[]")
    assert [entry.name for entry in captures_beside(str(trace))] == ["graph_capture_rank_0.json.gz"]
    assert [entry.name for entry in captures_beside(str(trace.parent / "x.json"), 1)] == [
        "graph_capture_rank_1.json.gz"
    ]


def test_a_capture_that_cannot_be_read_is_left_out(trace: Path) -> None:
    path = trace.parent / "capture_traces/broken.json"
    path.parent.mkdir()
    path.write_text("no trace")
    assert _operators(trace) == set()


def test_notes_about_nodes_name_lines_and_marks(tmp_path: Path) -> None:
    recording = GraphRecording("cuda node ids").replayed(WORK, 9)
    trace = _write(tmp_path / "rank0.1.pt.trace.json.gz", recording)
    (tmp_path / "kernel_py_stacks.json").write_text('{"38654705664": "/a/train.py:41:forward\\n/a/train.py:88:main"}')
    (tmp_path / "kernel_annotations.json").write_text('{"38654705665": [{"name": "mlp"}], "x": 1}')
    rows = opened(str(trace), None, None, None).graph_kernels.sort("place")
    assert rows["line"].to_list() == ["/a/train.py:41:forward", None, None]
    assert rows["mark"].to_list() == [None, "mlp", None]
    assert rows["provenance"].to_list() == ["recorded", "recorded", None]


def test_an_answer_changes_with_the_capture(trace: Path) -> None:
    now = [0.0]
    engine = Engine((Logdir(str(trace.parent)),), clock=lambda: now[0], patience_s=30)

    def operators() -> set[str]:
        now[0] += 2 * LOOKS_EVERY_S
        file = next(file for file in list_path(str(trace)).files)
        while True:
            try:
                frame = engine.frame(VIEWS["graph_kernels"], file, {})
            except NotReady:
                continue
            assert isinstance(frame, pl.DataFrame)
            return set(frame["op"].drop_nulls())

    assert operators() == set()
    capture = _write(trace.parent / "capture_traces/a.json.gz", GraphRecording("rocm").captured(WORK))
    assert operators() == {"aten::mm", "aten::add"}
    _write(capture, GraphRecording("rocm").captured(OTHER))
    assert operators() == {"aten::linear", "aten::sub"}
    capture.unlink()
    assert operators() == set()


def test_a_chosen_capture_must_exist(trace: Path) -> None:
    from kinetoscope_tb.cli.traces import opened as opened_by_cli

    file = list_path(str(trace)).files[0]
    elsewhere = _write(trace.parent / "other/place.json.gz", GraphRecording("rocm").captured(WORK))
    with opened_by_cli(file, None, [str(elsewhere)]) as chosen:
        assert len(chosen.captures) == 1
    with pytest.raises(LogdirError, match="There is no file"), opened_by_cli(file, None, ["nowhere.json"]):
        pass
