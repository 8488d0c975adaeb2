"""Captures of graphs: which recordings explain the graphs, for how much of their time, and which were left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl

from kinetoscope_tb.api import open_profile
from kinetoscope_tb.measures.graphs.pairing import UNLIKE
from support.graphs import GraphRecording, Operator

WORK = (Operator("aten::mm", (4, 4), 0, ("gemm",)), Operator("aten::add", (4,), 1, ("add", "norm")))
OTHER = (Operator("aten::conv", (4, 4), 0, ("conv",)), Operator("aten::mul", (4,), 1, ("mul", "softmax")))


def _write(path: Path, recording: GraphRecording) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(recording.builder.text().encode(), mtime=0))
    return path


def test_each_source_has_its_part_of_the_replayed_time_and_the_rest_has_none(tmp_path: Path) -> None:
    replays = GraphRecording("rocm").replayed(WORK, 1).replayed(OTHER, 2, dur=2000).replayed(WORK, 1)
    trace = _write(tmp_path / "rank0.1.pt.trace.json.gz", replays)
    _write(tmp_path / "capture_traces/rank0.json.gz", GraphRecording("rocm").captured(WORK))
    _write(tmp_path / "capture_of_nothing.json.gz", GraphRecording("rocm").captured((WORK[0],)))
    frame = open_profile(str(trace), None, None, None).graph_captures
    assert frame.select("source", "use", "graphs", "total_ns", "high_frac", "reason").rows() == [
        ("capture_traces/rank0.json.gz", "capture", 1, 6000, 1.0, None),
        ("no capture found", None, 1, 6000, None, None),
        ("capture_of_nothing.json.gz", "left out", 0, 0, None, UNLIKE),
    ]
    assert frame["time_frac"].to_list() == [0.5, 0.5, 0.0]


def test_the_recording_itself_is_a_source(tmp_path: Path) -> None:
    both = GraphRecording("rocm").captured(WORK).eager(OTHER * 2).replayed(WORK, 1).replayed(OTHER * 2, 2)
    frame = open_profile(str(_write(tmp_path / "rank0.1.pt.trace.json.gz", both)), None, None, None).graph_captures
    assert frame.sort("use").select("source", "use", "total_ns").rows() == [
        ("this recording", "eager", 6000),
        ("this recording", "recorded", 3000),
    ]
    assert frame["time_frac"].sum() == 1
    assert frame.filter(pl.col("graphs") != 1).is_empty()
