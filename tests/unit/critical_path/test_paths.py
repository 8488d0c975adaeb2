"""Which way the path goes: one small recording for each thing that something may have to wait for."""

from unittest.mock import patch

import polars as pl
import pytest

from kinetoscope_tb.critical_path import sync_edges
from kinetoscope_tb.critical_path.classes import CLASSES, range_classes
from kinetoscope_tb.critical_path.edges import REASONS, Kind
from kinetoscope_tb.critical_path.row_events import path_events
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.overview.critical_path import critical_path
from kinetoscope_tb.views.overview.critical_path_names import critical_path_names
from kinetoscope_tb.views.overview.critical_path_segments import critical_path_segments
from support.build import TraceBuilder, same
from support.real_traces import FOLDER, MISSING

US = 1_000


def path(builder):
    """(part, name, start, duration) of each segment, in order of time."""
    segments = critical_path_segments(builder.build()).sort("step", "start_ns")
    return segments.select("part", "name", pl.col("start_ns") // US, pl.col("dur_ns") // US).rows()


def us(builder, method, *arguments, **keywords):
    """A row whose times are given in microseconds."""
    name = [a for a in arguments if isinstance(a, str)]
    at, dur, *rest = [a for a in arguments if not isinstance(a, str)]
    return getattr(builder, method)(*name, at * US, dur * US, *rest, **keywords)


WORK_BEFORE = (("launch", 0, 1, 9), ("kernel", "before", 2, 2, 9))
"""With it, the queue is known to be empty."""


def built(*rows, step=100):
    builder = TraceBuilder().step(1, 0, step * US)
    for method, *arguments in rows:
        keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
        us(builder, method, *arguments, **keywords)
    return builder


def test_a_step_without_a_device_is_what_its_thread_does():
    builder = built(("op", "outer", 10, 50), ("op", "inner", 20, 10), ("annotation", "mine", 70, 20))
    assert path(builder) == [
        ("host_unrecorded", None, 0, 10),
        ("host_operator", "outer", 10, 10),
        ("host_operator", "inner", 20, 10),
        ("host_operator", "outer", 30, 30),
        ("host_unrecorded", None, 60, 10),
        ("host_annotation", "mine", 70, 20),
        ("host_unrecorded", None, 90, 10),
    ]


def test_a_segment_of_many_names_says_how_much_of_it_the_largest_is():
    rows = [("python", f"work.py({line}): f{line}", 20 * line, 20 - line % 2) for line in range(1, 5)]
    builder = built(*rows, ("python", "main.py(1): main", 0, 100))
    (segment,) = critical_path_segments(builder.build()).to_dicts()
    by_name = critical_path_names(builder.build()).filter(pl.col("name") == "main").to_dicts()
    assert (segment["name"], segment["dur_ns"]) == ("main, 22 %, and 4 more", 100 * US)
    assert [(row["path_ns"], row["segments"]) for row in by_name] == [(22 * US, 1)]


def test_a_segment_names_the_python_call_that_lasts_all_of_it():
    builder = built(
        ("op", "aten::mm", 30, 10), ("python", "train.py(1): loop", 0, 100), ("python", "a.py(2): f", 5, 20)
    )
    us(builder, "python", "b.py(3): g", 45, 55)
    segments = critical_path_segments(builder.build()).sort("start_ns")
    calls = ["train.py(1): loop", "train.py(1): loop", "train.py(1): loop"]
    assert segments["python"].to_list() == calls
    assert segments["name"].to_list() == ["f", "aten::mm", "g"]  # what runs for most of it
    with_outer = built(
        ("python", "train.py(1): loop", 0, 100), ("python", "b.py(3): g", 10, 80), ("op", "aten::mm", 30, 10)
    )
    with_outer.annotation("part", 10 * US, 60 * US)
    assert critical_path_segments(with_outer.build()).sort("start_ns")["python"].to_list()[1:4] == ["b.py(3): g"] * 3


def test_a_device_that_is_behind_is_followed_back_to_the_launch_that_it_waited_for():
    builder = built(
        ("launch", 10, 5, 1), ("launch", 20, 5, 2), ("kernel", "a", 18, 60, 1), ("kernel", "b", 79, 60, 2), step=40
    )
    assert path(builder) == [
        ("host_unrecorded", None, 0, 10),
        ("launch", "cudaLaunchKernel", 10, 5),
        ("launch", "a", 15, 3),
        ("kernel", "a", 18, 60),
        ("between_kernels", "b", 78, 1),
        ("kernel", "b", 79, 60),
    ]


def test_a_row_that_begins_while_its_launch_goes_on_waited_for_that_call():
    builder = built(("launch", 10, 50, 1), ("kernel", "a", 55, 100, 1))
    assert path(builder)[1:] == [("launch", "cudaLaunchKernel", 10, 45), ("kernel", "a", 55, 100)]


def test_rows_of_a_graph_follow_each_other_though_its_launch_still_goes_on():
    builder = built(("launch", 10, 60, 1, {"name": "cudaGraphLaunch"}), ("op", "aten::mm", 75, 5))
    for number, at in enumerate((20, 40, 60, 80)):
        us(builder, "kernel", f"k{number}", at, 17, 1)
    us(builder, "kernel", "last", 98, 90, 1)
    names = [name for part, name, *_ in path(builder) if part != "between_kernels"]
    assert names == [None, "cudaGraphLaunch", "k0", "k1", "k2", "k3", "last"]


def test_a_row_that_begins_while_the_previous_one_runs_waited_for_its_work():
    rows = [("launch", 5, 5, 1), ("kernel", "first", 10, 20, 1)]
    rows += [
        ("launch", 12, 2, 2),
        ("kernel", "second", 28, 40, 2),
        ("launch", 16, 2, 3),
        ("kernel", "third", 60, 15, 3),
    ]
    assert path(built(*rows, step=40)) == [
        ("host_unrecorded", None, 0, 5),
        ("launch", "cudaLaunchKernel", 5, 5),
        ("kernel", "first", 10, 20),
        ("kernel", "second", 30, 38),
        ("kernel", "third", 68, 7),
    ]


def test_a_row_that_overlaps_a_longer_one_waited_for_it_only_to_begin():
    rows = [("launch", 5, 5, 1), ("kernel", "long", 10, 80, 1), ("launch", 12, 2, 2), ("kernel", "short", 50, 5, 2)]
    rows += [("launch", 16, 2, 3), ("kernel", "next", 57, 40, 3)]
    assert [part for part in path(built(*rows, step=40)) if part[2] >= 10] == [
        ("kernel", "long", 10, 40),
        ("kernel", "short", 50, 5),
        ("between_kernels", "next", 55, 2),
        ("kernel", "next", 57, 40),
    ]


@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
def test_dependent_launches_of_a_real_trace_leave_no_unexplained_wait():
    trace = read(FOLDER / "single" / "sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz")
    parts = dict(critical_path(trace).select("part", "path_ns").rows())
    assert "unexplained" not in parts
    assert parts["kernel"] > 3_500_000  # of 3.9 ms of kernels in the step
    assert sum(parts.values()) == (trace.steps["end_ns"] - trace.steps["start_ns"]).item()


@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
def test_kernels_that_begin_before_a_call_returns_or_a_kernel_ends_count_no_time_twice():
    trace = read(FOLDER / "single" / "sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz")
    names = critical_path_names(trace).filter(pl.col("part").is_in(["kernel", "launch"]))
    recorded = [rows.select(pl.col("name").cast(pl.String), "dur_ns") for rows in (trace.kernels, trace.launches)]
    totals = dict(pl.concat(recorded).group_by("name").agg(pl.col("dur_ns").sum()).rows())
    assert names.height > 20
    assert all(whole <= totals[name] for name, whole in names.select("name", "whole_ns").rows())
    assert dict(names.select("name", "whole_ns").rows())["cudaLaunchKernel"] == totals["cudaLaunchKernel"]


def test_the_host_waits_in_a_call_until_the_device_has_finished():
    sync = {"name": "cudaStreamSynchronize"}
    builder = built(("launch", 10, 5, 1), ("kernel", "a", 20, 60, 1), ("launch", 20, 65, 9, sync))
    assert path(builder)[2:] == [
        ("launch", "a", 15, 5),
        ("kernel", "a", 20, 60),
        ("host_sync", "cudaStreamSynchronize", 80, 5),
        ("host_unrecorded", None, 85, 15),
    ]


def test_a_copy_to_pageable_memory_waits_in_its_call_for_what_runs_before():
    copy = {"name": "cudaMemcpyAsync"}
    builder = built(("launch", 10, 5, 1), ("kernel", "a", 20, 60, 1), ("launch", 20, 65, 2, copy), ("memcpy", 81, 2, 2))
    parts = [part for part, *_ in path(builder)[3:]]
    assert parts == ["kernel", "between_kernels", "copy", "launch", "host_unrecorded"]


def test_a_stream_that_was_told_to_wait_follows_the_other_one():
    wait = {"name": "cudaStreamWaitEvent"}
    builder = built(
        ("launch", 10, 5, 1),
        ("kernel", "a", 16, 90, 1),
        ("launch", 20, 2, 8, wait),
        ("launch", 24, 4, 2),
        ("kernel", "ncclDevKernel_AllReduce", 109, 60, 2, {"stream": 20}),
    )
    segments = critical_path_segments(builder.build()).sort("start_ns")
    assert path(builder)[3:] == [
        ("kernel", "a", 16, 90),
        ("between_kernels", "ncclDevKernel_AllReduce", 106, 3),
        ("communication", "ncclDevKernel_AllReduce", 109, 60),
    ]
    assert segments["is_inferred"].to_list() == [False] * 4 + [True, False]


def test_a_row_that_began_just_when_another_stream_s_ended_waited_for_it():
    builder = built(
        ("launch", 0, 2, 1), ("kernel", "a", 3, 97, 1), ("launch", 10, 2, 2), ("kernel", "b", 101, 50, 2, {"stream": 8})
    )
    assert [name for _, name, *_ in path(builder)][-3:] == ["a", "b", "b"]


def test_a_row_that_began_long_after_all_it_is_known_to_wait_for_is_not_explained():
    builder = built(*WORK_BEFORE, ("launch", 10, 5, 1), ("kernel", "a", 50, 100, 1))
    assert path(builder)[-2:] == [("unexplained", "a", 15, 35), ("kernel", "a", 50, 100)]


def test_before_a_row_that_was_behind_what_is_not_recorded_the_path_is_not_in_the_recording():
    builder = built(("launch", 10, 5, 1), ("kernel", "a", 50, 100, 1))
    assert path(builder) == [
        ("not_shown", None, 0, 10),
        ("not_shown", None, 10, 5),
        ("not_shown", None, 15, 35),
        ("kernel", "a", 50, 100),
    ]


def test_between_kernels_without_recorded_launches_the_path_is_not_in_the_recording():
    parts = critical_path(built(("kernel", "a", 10, 20), ("kernel", "b", 60, 40)).build())
    assert dict(parts.select("part", "path_ns").rows())["not_shown"] == (10 + 30) * US


def test_the_backward_pass_on_its_own_thread_is_followed():
    builder = built(("op", "aten::mm", 10, 20), ("op", "aten::add", 80, 10))
    us(builder, "op", "autograd::engine::evaluate_function: MmBackward0", 40, 30, thread=2)
    assert path(builder)[1:] == [
        ("host_operator", "aten::mm", 10, 20),
        ("host_unrecorded", None, 30, 10),
        ("host_operator", "autograd::engine::evaluate_function: MmBackward0", 40, 30),
        ("host_unrecorded", None, 70, 10),
        ("host_operator", "aten::add", 80, 10),
        ("host_unrecorded", None, 90, 10),
    ]


def test_a_thread_that_only_watches_is_not_on_the_path():
    builder = built(("op", "aten::mm", 10, 20), ("op", "aten::add", 80, 10))
    for at in range(32, 80, 4):
        us(builder, "launch", at, 2, at, name="cudaEventQuery", thread=5)
    assert path(builder)[2] == ("host_unrecorded", None, 30, 50)


def test_a_collective_on_a_thread_of_its_own_is_followed():
    builder = built(("op", "c10d::allreduce_", 10, 20), ("op", "aten::add", 80, 10))
    us(builder, "annotation", "gloo:all_reduce", 25, 50, thread=3)
    assert path(builder)[1:4] == [
        ("communication", "c10d::allreduce_", 10, 15),
        ("communication", "gloo:all_reduce", 25, 50),
        ("host_unrecorded", None, 75, 5),
    ]


def waits_for_its_collective(*rows, step):
    """Whether the main thread, after its collective, waited for gloo's thread."""
    segments = critical_path_segments(built(*rows, step=step).build())
    return REASONS[Kind.COLLECTIVE] in segments["reason"].to_list()


def test_a_thread_that_does_nothing_after_its_call_waits_for_the_collective():
    gloo = "annotation", "gloo:all_reduce", 40, 3_000, {"thread": 3}
    call, later = ("op", "c10d::allreduce_", 10, 20), ("op", "aten::add", 3_300, 10)
    assert path(built(call, gloo, later, step=4_000))[1:4] == [
        ("communication", "c10d::allreduce_", 10, 20),
        ("host_unrecorded", None, 30, 10),
        ("communication", "gloo:all_reduce", 40, 3_000),
    ]
    assert waits_for_its_collective(call, gloo, later, step=4_000)


@pytest.mark.parametrize(
    "rows",
    [
        [("op", "c10d::allreduce_", 10, 20), ("op", "aten::add", 3_600, 10)],  # continues 560 µs after its end
        [("op", "c10d::allreduce_", 2_900, 20), ("op", "aten::add", 3_200, 10)],  # the collective began before the call
        [
            ("op", "c10d::allreduce_", 10, 20),
            ("op", "aten::mm", 50, 10),
            ("op", "aten::add", 3_300, 10),
        ],  # works meanwhile
        [("op", "c10d::broadcast_", 10, 20), ("op", "aten::add", 3_300, 10)],  # began another collective
        [("op", "aten::mm", 10, 20), ("op", "aten::add", 3_300, 10)],  # began none
    ],
)
def test_a_thread_that_did_not_begin_a_collective_or_does_other_work_does_not_wait_for_it(rows):
    gloo = "annotation", "gloo:all_reduce", 40, 3_000, {"thread": 3}
    assert not waits_for_its_collective(*rows, gloo, step=4_000)


def test_a_short_collective_does_not_explain_a_longer_pause_after_it():
    call, later = ("op", "c10d::allreduce_", 10, 20), ("op", "aten::add", 400, 10)
    assert not waits_for_its_collective(call, ("annotation", "gloo:all_reduce", 40, 50, {"thread": 3}), later, step=500)


def test_collectives_that_no_other_thread_runs_are_not_waited_for_elsewhere():
    rows = ("op", "c10d::allreduce_", 10, 20), ("op", "aten::add", 3_300, 10)
    nccl = [("op", "c10d::allreduce_", 35, 3_010), ("annotation", "nccl:all_reduce", 40, 3_000)]
    assert not waits_for_its_collective(*rows, *((*one, {"thread": 3}) for one in nccl), step=4_000)


COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


def test_a_collective_had_ended_when_ddp_copied_its_result_however_late_that_is_recorded():
    rows = ("op", "c10d::allreduce_", 10, 20), ("op", "aten::as_strided", 300, 2), ("op", COPY, 303, 5)
    gloo = "annotation", "gloo:all_reduce", 25, 600, {"thread": 3}
    assert path(built(*rows, gloo, step=1_000))[1:5] == [
        ("communication", "c10d::allreduce_", 10, 15),
        ("communication", "gloo:all_reduce", 25, 274),  # a nanosecond less than the wait
        ("host_unrecorded", None, 299, 0),
        ("host_operator", "aten::as_strided", 300, 2),
    ]


def test_the_copy_of_an_earlier_bucket_doesn_t_show_that_a_later_one_s_collective_had_ended():
    calls = ("op", "c10d::allreduce_", 10, 20), ("op", "c10d::allreduce_", 100, 20)
    copies = ("op", COPY, 303, 5), ("op", COPY, 750, 5)
    runs = [("annotation", "gloo:all_reduce", at, dur, {"thread": n}) for n, at, dur in ((3, 25, 270), (4, 115, 600))]
    assert ("communication", "gloo:all_reduce", 115, 600) in path(built(*calls, *copies, *runs, step=1_000))


def test_a_collective_that_a_thread_does_not_wait_for_has_its_recorded_end():
    rows = ("op", "c10d::allreduce_", 10, 20), ("op", "aten::mm", 31, 268), ("op", COPY, 303, 5)
    gloo = "annotation", "gloo:all_reduce", 25, 600, {"thread": 3}
    assert ("host_operator", "aten::mm", 31, 268) in path(built(*rows, gloo, step=1_000))


def test_most_of_the_path_of_recorded_gloo_ranks_is_communication(torch_2_15):
    for rank in (0, 1):
        parts = critical_path(read(torch_2_15 / f"cpu/ddp_rank{rank}.json.gz"))
        assert parts.row(0, named=True)["part"] == "communication"
        assert parts["path_frac"][0] > 0.7


def test_less_time_in_a_collective_on_another_thread_shortens_the_step(torch_2_15):
    parts = critical_path(read(torch_2_15 / "cpu/ddp_rank0.json.gz"), percent="50")
    assert parts["saved_frac"][0] == pytest.approx(parts["path_frac"][0] / 2, abs=0.001)


def test_a_launch_that_finds_its_stream_s_queue_full_waits_for_the_device():
    builder = built(
        ("launch", 0, 2, 1), ("launch", 2, 2, 2), ("launch", 4, 47, 3), ("op", "aten::long", 51, 90), step=150
    )
    for number, at in ((1, 3), (2, 50), (3, 97)):
        us(builder, "kernel", f"k{number}", at, 46 if number < 3 else 1, number)
    with patch.object(sync_edges, "FULL_QUEUE", 1):
        waited = critical_path_segments(builder.build()).filter(pl.col("reason") == "the stream's queue was full")
    assert waited.select("name", pl.col("start_ns") // US).rows() == [("cudaLaunchKernel", 50)]


def test_parts_of_steps_and_what_they_would_save():
    builder = built(("launch", 10, 5, 1), ("kernel", "a", 15, 105, 1), ("op", "aten::a", 20, 70))
    same(
        critical_path(builder.build(), percent="50"),
        """
        step  part             path_ns  mean_ns  segments  saved_ns
        all   kernel           105000   105000   1         20000
        all   host_unrecorded  10000    10000    1         5000
        all   launch           5000     5000     1         2500
        """,
    )
    same(
        critical_path_names(builder.build(), percent="100", by="operator"),
        """
        name              part  path_ns  whole_ns  saved_ns
        a                 all   105000   105000    20000
        nothing recorded  all   10000    25000     10000
        cudaLaunchKernel  all   5000     5000      5000
        """,
    )


def test_a_part_saves_what_its_only_name_saves_where_another_thread_takes_over():
    """Until autograd's thread begins, in an annotation, the main thread is what counts; then that waits, which doesn't."""
    builder = built(("op", "aten::mm", 10, 20), ("annotation", "collate", 30, 10), ("op", "aten::add", 80, 10))
    us(builder, "annotation", "## backward ##", 50, 45, thread=2)
    us(builder, "op", "autograd::engine::evaluate_function: MmBackward0", 50, 20, thread=2)
    trace = builder.build()
    names, parts = critical_path_names(trace), critical_path(trace)
    of_name = ["path_ns", "segments", "whole_ns", "saved_ns"]
    assert names.filter(part="host_unrecorded").select("name", *of_name).rows() == [
        ("nothing recorded", 40_000, 4, 40_000, 20_000)
    ]
    assert parts.filter(part="host_unrecorded").select("path_ns", "segments", "saved_ns").rows() == [
        (40_000, 4, 20_000)
    ]


def test_only_work_within_the_steps_counts_as_all_of_a_name():
    """Markers of warm-up steps, which torch didn't record, lie before them."""
    builder = TraceBuilder().annotation("forward", 0, 900 * US, thread=1 << 30).step(1, 1000 * US, 100 * US)
    builder.annotation("forward", 1000 * US, 60 * US).annotation("after", 1200 * US, 10 * US)
    names = critical_path_names(builder.build())
    assert names.filter(name="forward").select("path_ns", "whole_ns").rows() == [(60 * US, 60 * US)]


def test_the_shorter_segments_of_a_long_path_are_combined_as_the_table_says(monkeypatch):
    monkeypatch.setattr("kinetoscope_tb.views.overview.critical_path_segments.MOST_ROWS", 3)
    trace = built(("launch", 10, 5, 1), ("kernel", "a", 15, 60, 1), ("op", "aten::a", 20, 70)).build()
    cut, whole = critical_path_segments(trace), critical_path_segments(trace, rows="all")
    assert (cut.height, cut["dur_ns"].sum()) == (3, whole["dur_ns"].sum())
    assert cut[:2].equals(whole[:2])
    assert cut.row(-1, named=True)["name"] == f"[{whole.height - 2} shorter ones]"
    assert cut["step"].to_list()[-1] is None


def test_a_copy_to_pageable_memory_is_a_wait_of_the_host():
    copy, to_host = {"name": "cudaMemcpyAsync"}, {"name": "Memcpy DtoH (Device -> Pageable)"}
    rows = ("launch", 10, 5, 1), ("kernel", "a", 20, 60, 1), ("launch", 20, 65, 2, copy)
    assert path(built(*rows, ("memcpy", 81, 2, 2, to_host)))[-2][:2] == ("host_sync", "cudaMemcpyAsync")


@pytest.mark.parametrize(
    ("wait", "rows"),
    [
        ("unexplained", [*WORK_BEFORE, ("kernel", "a", 50, 50, 1)]),
        ("not_shown", [("kernel", "a", 50, 50, 1)]),
        ("host_sync", [("kernel", "a", 20, 60, 1), ("launch", 20, 65, 9, {"name": "cudaStreamSynchronize"})]),
    ],
)
def test_nothing_is_saved_of_a_wait(wait, rows):
    builder = built(("launch", 10, 5, 1), *rows)
    parts, names = critical_path(builder.build()), critical_path_names(builder.build())
    for table in (parts, names):
        is_missing = dict(zip(table["part"], table["saved_ns"].is_null() & table["saved_frac"].is_null(), strict=True))
        assert is_missing == {part: part == wait for part in table["part"]}
        assert is_missing[wait]


def test_code_between_operators_is_the_function_or_the_annotation_that_runs_over_all_steps():
    builder = TraceBuilder()
    for number in (3, 4):
        builder.step(number, 100 * number * US, 100 * US)
        us(builder, "op", "aten::mm", 100 * number + 10, 20)
        us(builder, "python", "train.py(1): normalize", 100 * number + 30, 40)
        us(builder, "annotation", "collate", 100 * number + 70, 20)
    trace = builder.build()
    same(
        critical_path_names(trace, percent="100"),
        """
        name              part             path_ns  mean_ns  segments  saved_ns
        normalize         host_python      80000    40000    2         40000
        aten::mm          host_operator    40000    20000    2         20000
        collate           host_annotation  40000    20000    2         20000
        nothing recorded  host_unrecorded  40000    20000    4         20000
        """,
    )
    names = critical_path_names(trace)
    assert "ProfilerStep" not in names["name"].to_list()
    events = path_events(trace, {"name": "nothing recorded", "part": "host_unrecorded"})
    of_events = trace.host_events["name"].cast(pl.String).gather(events["host_events"])
    assert set(of_events) >= {"ProfilerStep#3", "ProfilerStep#4"}
    assert len(path_events(trace, {"name": "normalize", "part": "host_python"})["python_calls"]) == 2


def test_without_any_recorded_launch_no_part_has_a_saving():
    trace = built(("kernel", "a", 10, 20), ("kernel", "b", 60, 40)).build()
    for table in (critical_path(trace), critical_path_names(trace)):
        assert table["saved_ns"].null_count() == table.height > 0
    assert "launches not recorded" in critical_path_names(trace)["name"].to_list()


def test_an_annotation_inside_communication_is_no_part_of_it():
    outer = TraceBuilder().annotation("hccl:all_to_all", 0, 1000).op("aten::empty", 1, 5)
    trace = outer.annotation("## forward ##", 10, 900).op("aten::mm", 20, 800).build()
    assert [CLASSES[number] for number in range_classes(trace)] == [
        "host communication",
        "host communication",
        "between operators",
        "operator",
    ]
