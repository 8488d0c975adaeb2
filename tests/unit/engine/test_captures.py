"""Captures beside a trace: which are read, and that an answer changes with them."""

from __future__ import annotations

import gzip
import os
import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import kinetoscope_tb
from kinetoscope_tb.api import open_profile
from kinetoscope_tb.compare.comparison import Comparison
from kinetoscope_tb.discovery import Logdir, captures_beside, list_path
from kinetoscope_tb.engine import capture_search, trace_cache
from kinetoscope_tb.engine.answers import Missing, NotReady
from kinetoscope_tb.engine.captures import with_chosen_captures
from kinetoscope_tb.engine.engine import SEARCHING, Engine
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.engine.trace_cache import CAPTURES_LISTED_WITHIN_S
from kinetoscope_tb.errors import LogdirError
from kinetoscope_tb.measures.graphs.pairing import UNLIKE
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.graphs import GraphRecording, Operator
from support.reading import one_process
from support.waiting import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from kinetoscope_tb.discovery import TraceFile
    from kinetoscope_tb.reader import Progress
    from kinetoscope_tb.trace import Trace

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
    profile = open_profile(str(path), None, None, None)
    return set(profile.graph_kernels["op"].drop_nulls())


@pytest.mark.parametrize(
    "place",
    [
        "capture_traces/graph_rank0.json.gz",
        "capture_rank0.json.gz",
        "graph_capture_profile/cuda_graph_capture-DecodeCudaGraphRunner-TP-0.json.gz",
    ],
)
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
    assert set(open_profile(str(trace), None, None, None).graph_kernels["provenance"]) == {"capture"}
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
    rows = open_profile(str(trace), None, None, None).graph_kernels.sort("position")
    assert rows["line"].to_list() == ["/a/train.py:41:forward", None, None]
    assert rows["mark"].to_list() == [None, "mlp", None]
    assert rows["provenance"].to_list() == ["recorded", "recorded", None]


def test_an_answer_changes_with_the_capture(trace: Path) -> None:
    now = [0.0]
    engine = Engine((Logdir(str(trace.parent)),), clock=lambda: now[0], patience_s=30)

    def operators() -> set[str]:
        now[0] += 2 * CAPTURES_LISTED_WITHIN_S
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
    from kinetoscope_tb.cli.traces import open_trace as opened_by_cli

    file = list_path(str(trace)).files[0]
    elsewhere = _write(trace.parent / "other/place.json.gz", GraphRecording("rocm").captured(WORK))
    with opened_by_cli(file, None, [str(elsewhere)]) as chosen:
        assert len(chosen.captures.traces) == 1
    with pytest.raises(LogdirError, match="There is no file"), opened_by_cli(file, None, ["nowhere.json"]):
        pass


def test_each_side_of_a_comparison_has_the_capture_that_was_chosen_for_it(trace: Path) -> None:
    elsewhere = [
        _write(trace.parent / f"other/{name}.json.gz", GraphRecording("rocm").captured(work))
        for name, work in (("work", WORK), ("others", OTHER))
    ]
    file = list_path(str(trace)).files[0]
    engine = Engine((Logdir(str(trace.parent)),), patience_s=30)

    def compared(base: Path | None, new: Path | None) -> set[str]:
        old_file, new_file = (with_chosen_captures(file, [str(path)] if path else []) for path in (base, new))
        while True:
            try:
                result = engine.comparison(VIEWS["operators"], old_file, new_file, {})
            except NotReady:
                continue
            assert isinstance(result, Comparison)
            return {
                row["name"] for row in result.frame.to_dicts() if row["base_device_self_ns"] and "::" in row["name"]
            }

    work, others = elsewhere
    assert compared(None, work) == set()
    assert compared(work, None) == {"aten::mm", "aten::add"}
    assert compared(others, None) == {"aten::linear", "aten::sub"}
    assert compared(None, work) == set()


def test_a_profile_takes_captures_as_the_command_line_does(trace: Path) -> None:
    elsewhere = _write(trace.parent / "other/place.json.gz", GraphRecording("rocm").captured(WORK))
    joined, plain = kinetoscope_tb.open(trace, captures=[elsewhere]), kinetoscope_tb.open(trace)
    difference = plain.compare(joined, "operators", columns=["device_self_ns"])
    only_in_base = difference.filter(pl.col("only_in") == "base")["name"]
    assert set(only_in_base) == {"aten::mm", "aten::add"}
    with pytest.raises(LogdirError, match="There is no file"):
        kinetoscope_tb.open(trace, captures=["nowhere.json"])


def test_kernels_of_an_unexplained_graph_count_for_the_operator_that_launched_it(tmp_path: Path) -> None:
    path = tmp_path / "compiled.pt.trace.json"
    builder = TraceBuilder().op("CompiledFunction", 0, 50).launch(10, 5, 1, name="cudaGraphLaunch")
    path.write_text(builder.kernel("a", 20, 5, 1).kernel("b", 30, 5, 1).text())
    health = open_profile(str(path), None, None, None).health
    (words,) = health.filter(health["rule"] == "graphs_unexplained")["consequence"]
    assert "they count for the operator that launched the graph, without shapes or modules" in words


def test_health_says_what_is_known_of_graphs_once_the_captures_are_searched(trace: Path) -> None:
    def rules() -> dict[str, str]:
        frame = open_profile(str(trace), None, None, None).health
        return {row["rule"]: row["consequence"] for row in frame.to_dicts() if row["rule"].startswith("graphs_")}

    (unexplained,) = rules().items()
    assert unexplained[0] == "graphs_unexplained"
    assert unexplained[1].startswith("2 graph launches replay 6 kernels, copies and fills, and no recording says")
    assert "they have no operator, shape or module" in unexplained[1]
    capture = _write(trace.parent / "capture_traces/a.json.gz", GraphRecording("rocm").captured(WORK))
    ((rule, words),) = rules().items()
    assert (rule, "a.json.gz says which operators these are, for 100 % of their time" in words) == (
        "graphs_explained",
        True,
    )

    may_read = threading.Event()

    def read(path: str, progress: Callable[[Progress], None] | None = None) -> Trace:
        if path == str(capture):
            assert may_read.wait(LIMIT_S)
        return next(read_traces(path, progress))

    engine = Engine((Logdir(str(trace.parent)),), patience_s=5, read=one_process(read))
    file = list_path(str(trace)).files[0]
    early = engine.frame(VIEWS["health"], file, {}, waits_for_captures=False)
    assert isinstance(early, pl.DataFrame)
    assert not early["rule"].str.starts_with("graphs_").any()
    may_read.set()
    late = engine.frame(VIEWS["health"], file, {})
    assert isinstance(late, pl.DataFrame)
    assert "graphs_explained" in late["rule"].to_list()


def _renamed(work: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """Other work with as many kernels."""
    return tuple(replace(one, kernels=tuple(f"other_{kernel}" for kernel in one.kernels)) for one in work)


def test_a_recording_with_capture_in_its_name_is_left_out_if_it_launched_something_else(trace: Path) -> None:
    _write(trace.parent / "capture_of_another_model.json.gz", GraphRecording("rocm").captured(_renamed(WORK)))
    _write(trace.parent / "capture_eager.json.gz", GraphRecording("rocm").eager(_renamed(WORK)))
    assert _operators(trace) == set()
    unused = open_profile(str(trace), None, None, None)._trace.captures.unused
    assert unused == tuple(
        (str(trace.parent / name), UNLIKE) for name in ("capture_eager.json.gz", "capture_of_another_model.json.gz")
    )
    _write(trace.parent / "capture_rank0.json.gz", GraphRecording("rocm").captured(WORK))
    assert _operators(trace) == {"aten::mm", "aten::add"}


def test_a_capture_without_names_needs_many_launches_of_the_same_kinds(tmp_path: Path) -> None:
    trace = _write(tmp_path / "rank0.1.pt.trace.json.gz", GraphRecording("cuda").replayed(WORK, 1))
    capture = _write(tmp_path / "capture.json.gz", GraphRecording("cuda").captured(WORK))
    assert _operators(trace) == set()
    _write(trace, GraphRecording("cuda").replayed(WORK * 8, 1))
    _write(capture, GraphRecording("cuda").captured(WORK * 8))
    assert _operators(trace) == {"aten::mm", "aten::add"}


def test_what_needs_no_capture_is_shown_while_captures_are_searched(trace: Path) -> None:
    capture = _write(trace.parent / "capture_rank0.json.gz", GraphRecording("rocm").captured(WORK))
    may_read, asked = threading.Event(), threading.Event()

    def read(path: str, progress: Callable[[Progress], None] | None) -> Trace:
        if path == str(capture):
            asked.set()
            assert may_read.wait(LIMIT_S)
        return next(read_traces(path, progress))

    engine = Engine((Logdir(str(trace.parent)),), read=one_process(read), patience_s=0.5)
    file = next(file for file in list_path(str(trace)).files)

    def answer(view: str) -> pl.DataFrame:
        while True:
            try:
                frame = engine.frame(VIEWS[view], file, {})
            except NotReady:
                continue
            return pl.DataFrame() if isinstance(frame, Missing) else frame

    assert answer("overview").height
    assert asked.wait(LIMIT_S)
    assert answer("graphs").height
    for view in VIEWS.values():
        if not view.reads_captures:
            assert answer(view.id) is not None
    for view in (VIEWS["graph_kernels"], VIEWS["operators"], VIEWS["top"]):
        with pytest.raises(NotReady, match=SEARCHING):
            engine.frame(view, file, {})
    may_read.set()
    assert set(answer("graph_kernels")["op"].drop_nulls()) == {"aten::mm", "aten::add"}


def test_a_slow_listing_of_one_trace_s_folder_delays_no_other_trace(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _write(trace.parent / "rank1.1.pt.trace.json.gz", GraphRecording("rocm").replayed(WORK, 1))
    now, may_list, is_listing = [0.0], threading.Event(), threading.Event()
    engine = Engine((Logdir(str(trace.parent)),), clock=lambda: now[0], patience_s=30)
    files = {file.path: file for file in list_path(str(trace.parent)).files}
    slow, quick = files[str(trace)], files[str(other)]
    for file in (slow, quick):
        assert engine.frame(VIEWS["overview"], file, {}) is not None
    now[0] += 2 * CAPTURES_LISTED_WITHIN_S
    list_places = trace_cache.capture_places

    def capture_places(file: TraceFile, profile: Trace) -> object:
        if file.path == slow.path:
            is_listing.set()
            assert may_list.wait(LIMIT_S)
        return list_places(file, profile)

    monkeypatch.setattr(trace_cache, "capture_places", capture_places)
    waiting = threading.Thread(target=engine.frame, args=(VIEWS["overview"], slow, {}))
    waiting.start()
    assert is_listing.wait(LIMIT_S)
    assert engine.frame(VIEWS["overview"], quick, {}) is not None
    assert waiting.is_alive()
    may_list.set()
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


DAMAGED = {
    "half a surrogate pair": (b'{"1": "a", "2": "\\ud800"}', ""),
    "a mark of half a pair": (b'{"1": [{"name": "\\udfff"}]}', ""),
    "deep lists": (b"[" * 200_000, "aren't an object"),
    "deep objects": (b'{"1":' * 100_000, "aren't valid JSON"),
    "a pickle": (pickle.dumps({"1": "a"}), "aren't valid JSON"),
    "no object": (b"[1]", "aren't an object"),
    "numbers": (b'{"1": 1e999, "2": %s, "-1": "x", "%s": "y"}' % (b"9" * 5000, b"9" * 5000), ""),
    "bytes": (b"\xff\xfe\xfa", "aren't valid JSON"),
    "a blank": (b" ", "aren't valid JSON"),
}


@pytest.mark.parametrize(("content", "problem"), DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("name", ["kernel_py_stacks.json", "kernel_annotations.json"])
def test_a_damaged_side_car_costs_itself_and_is_a_finding(trace: Path, name: str, content: bytes, problem: str) -> None:
    alone = open_profile(str(trace), None, None, None)
    (trace.parent / name).write_bytes(content)
    profile = open_profile(str(trace), None, None, None)
    assert profile.overview.equals(alone.overview)
    found = profile.health.filter(rule="captures_damaged")["consequence"].to_list()
    assert [f"{name} (these notes about graphs {problem}" in one for one in found] == [True] * bool(problem)


def test_a_capture_whose_name_is_no_utf8_is_shown_with_its_bytes(trace: Path) -> None:
    odd = os.fsencode(trace.parent) + b"/capture_\xff.json"
    Path(os.fsdecode(odd)).write_bytes(b"no trace")
    profile = open_profile(str(trace), None, None, None)
    assert "capture_\\udcff.json" in profile.health.filter(rule="captures_damaged")["consequence"][0]
    assert "capture_\\udcff.json" in profile.graph_captures["source"].to_list()


def test_a_comparison_that_fails_leaves_the_recording_whole(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    _write(trace.parent / "capture_rank0.json.gz", GraphRecording("rocm").captured(WORK))
    monkeypatch.setattr(capture_search, "search_captures", fail)
    engine = Engine((Logdir(str(trace.parent)),), patience_s=30)
    file = list_path(str(trace)).files[0]
    engine.frame(VIEWS["graph_captures"], file, {})
    health = engine.frame(VIEWS["health"], file, {}, waits_for_captures=False)
    assert "because of a bug in Kinetoscope (ValueError)" in health.filter(rule="captures_damaged")["consequence"][0]
