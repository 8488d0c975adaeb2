import polars as pl
import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.arrays.intervals import union
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.host.annotations import annotations, events_of_row
from kinetoscope_tb.views.host.annotations_by_name import annotations_by_name
from kinetoscope_tb.views.host.annotations_summary import annotations_summary
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


def sentence(builder):
    (row,) = annotations_summary(builder.build()).rows(named=True)
    return row["title"], row["evidence"], row["confidence"]


def test_the_sentence_has_the_longest_range_of_the_program_with_the_numbers_of_the_table():
    assert sentence(training()) == (
        "Of the program's ranges, `backward` takes the host longest: 30 % of the time, 600 ns in 2 calls.",
        "GPU busy with its work: 800 ns; never idle in between. A call takes 300 ns on average, the longest 300 ns. "
        "The next longest: `forward` 400 ns.",
        "high",
    )


def test_the_sentence_says_which_ranges_are_inside_the_longest():
    builder = TraceBuilder().annotation("train", 0, 100).annotation("forward", 0, 60).annotation("save", 60, 20)
    builder.annotation("save", 100, 20).launch(10, 5, 1).kernel("k", 20, 10, 1).launch(30, 5, 2).kernel("k", 50, 10, 2)
    title, evidence, _ = sentence(builder)
    assert title == "Of the program's ranges, `train` takes the host longest: 83.3 % of the time, 100 ns in 1 call."
    assert evidence == (
        "GPU busy with its work: 20 ns; idle in between: 20 ns. The next longest: `forward` (inside it) 60 ns and "
        "`save` 40 ns."
    )


def test_ranges_on_several_threads_have_no_share_of_the_time_which_their_sum_may_exceed():
    builder = TraceBuilder().annotation("load", 0, 100).annotation("load", 0, 100, thread=2)
    builder.launch(200, 5, 1).kernel("k", 210, 10, 1)
    assert sentence(builder)[:2] == (
        "`load`, the program's only range, takes the host 200 ns in 2 calls on 2 threads.",
        "It launches no work on the GPU. A call takes 100 ns on average, the longest 100 ns.",
    )


def test_a_range_that_ends_after_the_last_step_has_no_share_of_the_time():
    builder = TraceBuilder().step(0, 0, 100).annotation("save", 50, 100)
    assert sentence(builder)[0] == "`save`, the program's only range, takes the host 100 ns in 1 call."


def test_without_a_device_and_ranges_of_the_program_the_sentence_has_the_host_time_of_those_of_libraries():
    builder = TraceBuilder().step(0, 0, 100).annotation("Optimizer.step#SGD.step", 10, 40)
    expected = "`Optimizer.step#SGD.step` takes the host 40 % of the time, 40 ns in 1 call."
    assert sentence(builder) == (expected, "", "high")
    builder.annotation("FSDP::pre", 60, 10)
    assert sentence(builder)[0].startswith("Of the libraries' ranges, `Optimizer.step#SGD.step` takes the host longest")


def test_steps_alone_need_no_sentence():
    assert annotations_summary(TraceBuilder().step(0, 0, 100).build()).is_empty()


def test_where_launches_are_missing_the_sentence_says_nothing_of_the_device():
    builder = TraceBuilder().annotation("a", 0, 100).launch(10, 5, 1).kernel("k", 20, 10, 1).kernel("lone", 40, 10)
    assert sentence(builder)[1] == "How long the GPU works for it is unknown: some launching calls aren't recorded."


def calls(*durations, name="load"):
    builder = TraceBuilder().annotation("train", 0, 10_000)
    for number, dur in enumerate(durations):
        builder.annotation(name, 1_000 * number, dur)
    return builder


def test_a_call_that_is_far_longer_than_the_median_is_named_with_both():
    evidence = sentence(calls(100, 110, 100, 900))[1]
    assert "One of 4 calls of `load` takes 900 ns; the median is 105 ns." in evidence
    evidence = sentence(calls(100, 400, 100, 100, 100, 100, 100, 900, 100, 100))[1]
    assert "2 of 10 calls of `load` take more than 3 times the median of 100 ns, up to 900 ns." in evidence


@pytest.mark.parametrize(
    "durations",
    [(100, 900), (100, 110, 100, 300), (1, 1, 1, 9), (100, 400, 100, 400, 100)],
    ids=["two calls", "not far longer", "of little time", "not a few"],
)
def test_calls_that_differ_as_usual_or_cost_little_are_not_named(durations):
    assert "of `load`" not in sentence(calls(*durations))[1]


def test_a_range_inside_another_of_its_name_is_not_compared_with_it():
    builder = calls(900, name="block")
    for at in (100, 200, 300, 400):
        builder.annotation("block", at, 50)
    assert "of `block`" not in sentence(builder)[1]


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


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_on_a_real_recording_the_first_call_of_a_norm_is_far_longer():
    trace = read(str(FOLDER / "single/tracelens_mi300_normalization.json.gz"))
    (row,) = annotations_summary(trace).rows(named=True)
    assert "One of 3 calls of `BatchNorm affine=False` takes 332 ms; the median is 180 µs." in row["evidence"]
