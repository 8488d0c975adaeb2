import polars as pl
import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.arrays.intervals import union
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.host.annotations import annotations, events_of_row
from kinetoscope_tb.views.host.annotations_by_name import annotations_by_name
from support.build import TraceBuilder, same
from support.real_traces import FOLDER, MISSING


def training(steps=2):
    """Steps with a forward and a backward pass; autograd launches the kernels of the latter on its own thread."""
    builder = TraceBuilder()
    for step in range(steps):
        at, number = step * 1_000, 3 * step
        builder.step(step, at, 1_000).annotation("forward", at + 100, 200).annotation("FSDP::pre", at + 110, 50)
        builder.launch(at + 120, 10, number + 1).kernel("k", at + 150, 100, number + 1)
        builder.launch(at + 200, 10, number + 2).kernel("k", at + 300, 50, number + 2)
        builder.annotation("backward", at + 400, 300)
        builder.op("autograd::engine::evaluate_function: Mul", at + 450, 100, thread=2)
        builder.annotation("FSDP::post", at + 460, 50, thread=2)
        builder.launch(at + 470, 10, number + 3, thread=2).kernel("k", at + 500, 400, number + 3)
        builder.event("gpu_user_annotation", "forward", at + 150, 200, pid=0, tid=7)
    return builder


def test_ranges_nest_by_time_and_autograds_threads_belong_to_the_range_that_waits_for_them():
    same(
        annotations(training().build()),
        """
        path                                source   calls  host_total_ns  mean_host_ns  gpu_ns  gpu_span_ns  gpu_idle_ns
        ProfilerStep                        PyTorch  2      2000           1000          1100    1500         400
        ProfilerStep / forward              -        2      400            200           300     400          100
        ProfilerStep / forward / FSDP::pre  FSDP     2      100            50            200     200          0
        ProfilerStep / backward             -        2      600            300           800     800          0
        ProfilerStep / backward / FSDP::post  FSDP   2      100            50            800     800          0
        """,
    )


def test_per_step_counts_ranges_in_the_steps_in_which_the_name_occurs():
    builder = training(3).annotation("eval", 2_900, 40).annotation("eval", 2_950, 40)
    (row,) = annotations(builder.build()).filter(pl.col("name") == "eval").rows(named=True)
    assert (row["steps"], row["calls_per_step"], row["host_per_step_ns"]) == (1, 2.0, 80)


def test_ranges_of_warm_up_which_end_before_the_recording_begins_are_left_out():
    """Nothing was recorded that they launched, so their host time has no GPU time to compare with."""
    builder = TraceBuilder().annotation("forward", 0, 300).window(900, 2_100)
    builder.annotation("forward", 1_000, 200).launch(1_020, 10, 1).kernel("k", 1_050, 100, 1)
    for view in (annotations, annotations_by_name):
        same(
            view(builder.build()),
            """
            name     calls  host_total_ns  gpu_ns
            forward  1      200            100
            """,
        )


def test_by_name_a_range_inside_another_of_its_name_counts_its_time_once():
    builder = TraceBuilder().annotation("block", 0, 100).annotation("inner", 5, 90).annotation("block", 10, 50)
    builder.launch(20, 5, 1).kernel("k", 200, 30, 1).annotation("block", 300, 50)
    same(
        annotations_by_name(builder.build()),
        """
        name   calls  host_total_ns  mean_host_ns  longest_host_ns  gpu_ns  gpu_sum_ns
        block  3      150            67            100              30      30
        inner  1      90             90            90               30      30
        """,
    )


def test_gpu_time_counts_overlapping_work_once_and_its_sum_twice():
    builder = TraceBuilder().annotation("a", 0, 100).launch(10, 5, 1).launch(20, 5, 2)
    builder.kernel("k", 100, 50, 1).kernel("k", 120, 60, 2, stream=8)
    (row,) = annotations(builder.build()).rows(named=True)
    assert (row["gpu_ns"], row["gpu_sum_ns"], row["gpu_span_ns"], row["gpu_idle_ns"]) == (80, 110, 80, 0)


def test_gpu_idle_is_exact_where_the_times_of_all_rows_together_pass_32_bits():
    second, builder = 1_000_000_000, TraceBuilder()
    for number, name in enumerate("abcdef", 1):
        at = number * second // 4
        builder.annotation(name, at, 100).launch(at + 10, 5, 2 * number).launch(at + 20, 5, 2 * number + 1)
        builder.kernel("k", at + 100, 50, 2 * number).kernel("k", at + 200, 60, 2 * number + 1)
    rows = annotations(builder.build())
    assert rows.select("gpu_span_ns", "gpu_idle_ns").unique().rows() == [(160, 50)]


def test_without_a_device_there_are_no_gpu_times_and_without_steps_none_per_step():
    (row,) = annotations(TraceBuilder().annotation("a", 0, 100).build()).rows(named=True)
    assert (row["host_total_ns"], row["gpu_ns"], row["gpu_idle_ns"], row["steps"]) == (100, None, None, None)


def test_a_row_leads_to_its_ranges():
    trace = training().build()
    rows = events_of_row(trace, {"path": "ProfilerStep / forward"})["host_events"]
    assert trace.host_events[rows]["start_ns"].to_list() == [100, 1_100]


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
@pytest.mark.parametrize("name", ["## forward ##", "## backward ##", "## optimizer ##"])
def test_on_a_real_recording_gpu_time_is_that_of_the_work_launched_meanwhile_on_any_thread(name):
    trace = read(str(FOLDER / "single/hta_nccl_data_rank0_of_2.json.gz"))
    ranges = trace.host_events.filter(pl.col("name").cast(pl.String) == name)
    launched = trace.launches["start_ns"].gather(trace.device_events["launch"].replace(NONE, None))
    inside = pl.any_horizontal(
        launched.is_between(start, start + dur, closed="left")
        for start, dur in ranges.select("start_ns", "dur_ns").rows()
    )
    work = trace.device_events.select("start_ns", "dur_ns").filter(trace.device_events.select(inside).to_series())
    (row,) = annotations_by_name(trace).filter(pl.col("name") == name).rows(named=True)
    start, end = union(work["start_ns"].to_numpy(), (work["start_ns"] + work["dur_ns"]).to_numpy())
    assert (row["gpu_ns"], row["gpu_sum_ns"]) == ((end - start).sum(), work["dur_ns"].sum())
    assert row["gpu_ns"] > 0


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_iterations_of_servers_are_recognized():
    table = annotations(read(str(FOLDER / "single/sglang_MI300_qwen3_30b_TP-0-DECODE.trace.json.gz")))
    assert table["source"].to_list() == ["SGLang", "SGLang"]  # which writes vLLM's form around its own
    assert table["name"].to_list() == ["decode iteration", "SGLang decode iteration"]
