"""Files of other programs: who wrote them, how long they last, and which of their rows a device ran."""

import json
import subprocess
import sys

import polars as pl
import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.engine.answers import Missing, compute
from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.reader.foreign_writers import UNKNOWN, WRITERS
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.foreign_files import (
    CUPTI_ROWS,
    FILES,
    JAX,
    JAX_ON_TPU,
    ROCPROF,
    TENSORFLOW,
    TLPARSE,
    of_events,
    process,
    span,
)

ADVICE_FOR_TORCH = ("ProfilerActivity", "with_stack", "record_shapes", "profile_memory", "record_function")


def opened(text: str) -> Trace:
    return read_blocks([text.encode()], path="t.json")


def work(trace: Trace) -> list[tuple]:
    return trace.device_events.select("name", "kind", "device", "stream", "dur_ns").rows()


@pytest.mark.parametrize("writer", FILES)
def test_the_writer_is_known_and_the_recording_lasts_as_long_as_its_events(writer: str) -> None:
    trace = opened(FILES[writer])
    assert trace.meta.foreign_writer == writer
    assert trace.window[1] > trace.window[0]
    assert [d.rule for d in diagnose(trace) if d.level == "loss"] == []
    found = {d.rule: d.consequence for d in diagnose(trace)}
    assert f"written by {writer}, not by torch.profiler" in found["foreign_writer"]


def test_each_writer_of_the_table_has_a_sample() -> None:
    assert {name for name, _ in WRITERS} == {*FILES} - {UNKNOWN}


@pytest.mark.parametrize("writer", FILES)
def test_nothing_is_advised_for_torch_profiler(writer: str) -> None:
    trace = opened(FILES[writer])
    words = [d.consequence for d in diagnose(trace)]
    words += [view.hint_for(trace) for view in VIEWS.values() if view.is_missing(trace)]
    words += compute(VIEWS["advice"], trace, {})["title"].to_list()
    assert not [text for text in words if any(option in text for option in ADVICE_FOR_TORCH)]
    assert len(compute(VIEWS["advice"], trace, {})) == 1


def test_lanes_of_xla_s_streams_are_device_work_once() -> None:
    assert work(opened(JAX)) == [
        ("MemcpyH2D", "memcpy", 0, 14, 5000),
        ("ampere_sgemm_128x64_nn", "kernel", 0, 13, 30000),
        ("loop_add_fusion", "kernel", 0, 13, 5000),
    ]
    assert work(opened(JAX_ON_TPU)) == [("fusion.4", "kernel", 0, 3, 20000)]


def test_an_empty_object_among_the_events_is_no_loss() -> None:
    assert opened(JAX).diagnostics == tuple(d for d in opened(JAX).diagnostics if d.rule == "unknown_category")


def test_processes_of_rocprof_and_tensorflow_are_devices() -> None:
    trace = opened(ROCPROF)
    assert {row[:3] for row in work(trace)} == {
        ("CopyHostToDevice", "memcpy", 1),
        ("rms_norm(float*, float const*) [clone .kd]", "kernel", 0),
    }
    assert trace.launches["name"].to_list() == ["hipMalloc", "hipLaunchKernel"]
    assert [row[:3] for row in work(opened(TENSORFLOW))] == [("volta_sgemm_128x64_nn", "kernel", 0)]


def test_rows_among_kernels_are_kernels_too() -> None:
    trace = opened(CUPTI_ROWS)
    assert trace.kernels.height == 9
    assert "_my_triton_kernel" in trace.kernels["name"].to_list()
    assert trace.device_events["correlation"].to_list()[0] == 1


def test_pairs_of_begin_and_end_are_ranges() -> None:
    trace = opened(TLPARSE)
    assert trace.others.select("name", "dur_ns").rows() == [
        ("dynamo", 8_001_500),
        ("entire_frame_compile", 8_000_000),
        ("backend_compile", 7_000_000),
    ]
    assert trace.window == (0, 8_001_500)


def test_lanes_are_busy_while_any_of_their_events_runs() -> None:
    table = compute(VIEWS["lanes"], opened(FILES[UNKNOWN]), {})
    assert table.select("process", "lane", "events", "busy_ns", "largest_name").rows() == [
        ("process 1", "thread 1", 2, 30_000, "work"),
        ("process 1", "thread 2", 1, 10_000, "aside"),
    ]
    assert table["recording_share_frac"].to_list() == [pytest.approx(30 / 110), pytest.approx(10 / 110)]


def test_a_recording_of_viztracer_is_its_own(tmp_path) -> None:
    program = "sorted(range(10), key=lambda number: -number)"
    command = [
        sys.executable,
        "-m",
        "viztracer",
        "--quiet",
        "-o",
        str(tmp_path / "result.json"),
        "--cmd_string",
        program,
    ]
    subprocess.run(command, check=True, capture_output=True)
    trace = read(tmp_path / "result.json")
    assert trace.meta.foreign_writer == "VizTracer"
    assert compute(VIEWS["lanes"], trace, {})["busy_ns"].to_list()[0] > 0


@pytest.mark.parametrize("case", ["operator", "kernel", "instants", "python", "metadata", "old", "merged"])
def test_files_of_torch_aren_t_foreign(case: str) -> None:
    texts = {
        "operator": of_events(span("aten::mm", 0, 5, cat="cpu_op")),
        "kernel": of_events(span("k", 0, 5, 0, 7, cat="kernel")),
        "instants": of_events({"ph": "i", "name": "x", "ts": 1, "pid": 1, "tid": 1}, schemaVersion=1),
        "python": of_events(span("f.py(3): f", 0, 5, cat="python_function")),
        "metadata": of_events(span("x", 0, 5), deviceProperties=[]),
        "old": of_events(span("aten::mm", 0, 5, "CPU functions", 0)),
        "merged": of_events(span("f (a.py:1)", 0, 5, cat="FEE"), span("aten::mm", 0, 5, cat="cpu_op")),
    }
    assert opened(texts[case]).meta.foreign_writer is None


def test_torch_s_own_recordings_have_lanes_too() -> None:
    trace = TraceBuilder().op("a", 0, 50).op("b", 10, 20).launch(60, 5, 1).kernel("k", 70, 10, 1).build()
    assert trace.meta.foreign_writer is None
    rows = compute(VIEWS["lanes"], trace, {}).select("lane", "events", "busy_ns").rows()
    assert [row[1:] for row in rows] == [(3, 55), (1, 10)]


def test_no_lane_is_busy_longer_than_the_recording() -> None:
    trace = TraceBuilder().op("a", 50, 10).python("main.py(1): main", 0, 100).build()
    assert trace.window == (50, 60)
    assert compute(VIEWS["lanes"], trace, {})["recording_share_frac"].to_list() == [1]


def test_counters_alone_have_a_length() -> None:
    counters = [{"ph": "C", "name": "load", "pid": 1, "ts": at, "args": {"value": at}} for at in (10, 500)]
    trace = opened(json.dumps(counters))
    assert trace.window == (0, 490_000)
    assert isinstance(compute(VIEWS["overview"], trace, {}), pl.DataFrame)


def test_names_of_processes_without_rows_don_t_matter() -> None:
    assert opened(of_events(process(9, "/device:GPU:1"), span("x", 0, 1))).device_events.is_empty()


@pytest.mark.parametrize("name", ["queue_length", "launches", "launch_durations", "launches_summary"])
def test_views_of_launches_are_missing_where_no_launch_is_known_and_give_no_advice_for_torch(name: str) -> None:
    assert compute(VIEWS[name], opened(JAX), {}) == Missing(
        "This file was written by JAX (XLA's profiler), which doesn't record it."
    )


def test_events_without_a_category_are_called_so() -> None:
    without, unknown = span("a", 0, 5), span("b", 5, 5, cat="my_phase")
    texts = {
        of_events(without): "Events without a category are shown",
        of_events(unknown): "Events of unknown categories (my_phase) are shown",
        of_events(without, unknown): "Events of unknown categories (my_phase) and without a category are shown",
    }
    for text, start in texts.items():
        (note,) = (d for d in opened(text).diagnostics if d.rule == "unknown_category")
        assert note.consequence == f"{start}, but don't count as work."
