"""Iterations and phases of servers in hand-made recordings."""

import pytest

from kinetoscope_tb.errors import BadParameter, KinetoscopeError
from kinetoscope_tb.measures.serving.iterations import server_engine
from kinetoscope_tb.names.iterations import USER_PATTERN
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.overview.steps import steps
from kinetoscope_tb.views.server.iterations import events_of_row, iterations
from kinetoscope_tb.views.server.phases import events_of_row as events_of_phase
from kinetoscope_tb.views.server.phases import phases
from support.build import TraceBuilder, same

US = 1_000


def decode(builder, at, *, dur=100, batch=4, kernel=300, number=None):
    """A decode in microseconds: annotation, launch after 10, kernel after 50."""
    number = number or at + 1
    builder.annotation(f"step[DECODE bs={batch}]", at * US, dur * US).launch((at + 10) * US, 5 * US, number)
    return builder.kernel("kernel_unified_attention_3d", (at + 50) * US, kernel * US, number)


def decodes(*lengths, batches=None):
    """Decodes one after the other, each as long as given, in microseconds; the last one to the end of its kernel."""
    builder, at = TraceBuilder(), 0
    for number, length in enumerate(lengths):
        batch = batches[number] if batches else 4
        kernel = length // 2 if number + 1 < len(lengths) else length - 50
        decode(builder, at, dur=length // 4, batch=batch, kernel=kernel, number=number + 1)
        at += length
    return builder


def test_an_iteration_lasts_until_its_device_work_ends_and_a_gap_until_the_next():
    builder = decode(decode(TraceBuilder(), 0), 400, kernel=100)
    same(
        iterations(builder.build()),
        """
        iteration  phase   part    batch  tokens  start_ns  total_ns  token_ns  host_ns  gap_ns  busy_ns  device_events
        0          decode  steady  4      4       0         400000    100000    100000   50000   300000   1
        1          decode  steady  4      4       400000    150000    37500     100000   0       100000   1
        """,
    )


def test_an_iteration_begins_no_earlier_than_the_work_of_the_one_before_it_ended():
    trace = decode(decode(TraceBuilder(), 0, kernel=500), 200, kernel=100, number=2)
    trace.events[-1]["ts"] = type(trace.events[-1]["ts"])(550 * US)
    same(
        iterations(trace.build()),
        """
        iteration  start_ns  total_ns  gap_ns
        0          0         550000    0
        1          550000    100000    0
        """,
    )


def test_iterations_are_the_steps_unless_steps_are_marked():
    builder = decode(decode(TraceBuilder(), 0), 400)
    trace = builder.build()
    same(
        steps(trace).select("step", "phase", "part", "start_ns", "total_ns", "is_complete"),
        """
        step  phase   part    start_ns  total_ns  is_complete
        0     decode  steady  0         400000    True
        1     decode  steady  400000    350000    True
        """,
    )
    assert trace.device_events["step"].to_list() == [0, 1]
    assert steps(builder.step(5, 0, 900 * US).build())["step"].to_list() == ["5"]


def test_what_a_server_launches_between_two_annotations_belongs_to_the_first():
    builder = decode(decode(TraceBuilder(), 0), 400).launch(300 * US, 5 * US, 9).kernel("argmax", 310 * US, 200 * US, 9)
    table = iterations(builder.build())
    assert table.select("device_events", "total_ns").rows() == [(2, 510 * US), (1, 240 * US)]


def test_a_capture_is_no_step():
    trace = TraceBuilder().annotation("capture_32_FULL", 0, 100).op("aten::mm", 10, 10).build()
    assert steps(trace)["step"].to_list() == ["all"]


def test_the_outermost_annotation_is_the_iteration_and_the_inner_one_names_the_server():
    builder = decode(TraceBuilder(), 10)
    trace = builder.annotation("execute_context_0(0)_generation_4(4)", 0, 200 * US).build()
    assert iterations(trace).select("name", "engine", "tokens").rows() == [
        ("execute_context_0(0)_generation_4(4)", "SGLang", 4)
    ]


def test_only_the_thread_that_runs_most_iterations_counts():
    builder = decode(decode(TraceBuilder(), 0), 400).annotation("step[DECODE bs=9]", 0, US, thread=2)
    assert iterations(builder.build())["batch"].to_list() == [4, 4]


def test_work_launched_by_another_thread_inside_an_iteration_is_its():
    builder = decode(TraceBuilder(), 0).launch(20 * US, 5 * US, 99, thread=3).kernel("k", 360 * US, 40 * US, 99)
    assert iterations(builder.build()).select("device_events", "total_ns").rows() == [(2, 400 * US)]


def test_python_calls_of_a_server_are_iterations_if_nothing_else_marks_them():
    name = "vllm/v1/worker/gpu_model_runner.py(3380): execute_model"
    builder = (
        TraceBuilder().python(name, 0, 90 * US).launch(US, US, 1).kernel("kernel_unified_attention_3d", 5 * US, 9, 1)
    )
    trace = builder.build()
    assert iterations(trace).select("phase", "engine", "confidence", "name").rows() == [
        ("decode", "vLLM", "high", name)
    ]
    assert set(events_of_row(trace, {"iteration": 0})) == {"python_calls", "device_events"}
    assert server_engine(trace)


def test_a_users_own_form_marks_iterations_of_no_server(monkeypatch):
    recorded = TraceBuilder().annotation("pass of 7", 0, 90)
    assert VIEWS["iterations"].is_missing(recorded.build())
    monkeypatch.setenv(USER_PATTERN, r"pass of (?P<batch>\d+)")
    trace = recorded.build()
    assert iterations(trace).select("phase", "batch", "engine").rows() == [("other", 7, "user")]
    assert not server_engine(trace)
    monkeypatch.setenv(USER_PATTERN, "(")
    with pytest.raises(KinetoscopeError, match="no regular expression"):
        VIEWS["iterations"].is_missing(recorded.build())


def test_warm_up_and_stragglers_are_named():
    trace = decodes(4000, 3000, 400, 404, 396, 400, 400, 2000, 400, 400).build()
    assert iterations(trace)["part"].to_list() == [*["warm-up"] * 2, *["steady"] * 5, "straggler", *["steady"] * 2]


def test_what_varies_by_less_than_a_fifth_is_no_straggler():
    assert set(iterations(decodes(*[400] * 9, 470).build())["part"]) == {"steady"}


def test_the_last_one_is_cut_off_if_what_the_host_does_after_it_is_missing():
    assert iterations(decodes(*[400] * 6, 150).build())["part"].to_list() == [*["steady"] * 6, "cut off"]
    assert set(iterations(decodes(*[400] * 6, 350).build())["part"]) == {"steady"}  # as short as others may be
    assert set(iterations(decodes(400, 400, 150).build())["part"]) == {"steady"}  # too few peers


def test_an_iteration_is_compared_with_those_of_its_phase_and_size():
    builder = decodes(*[400] * 6)
    builder.annotation("step[EXTEND bs=4 toks=4000]", 2_400 * US, 9_000 * US)
    assert set(iterations(builder.build())["part"]) == {"steady"} | {"drain"}


def test_ramps_are_before_the_first_and_after_the_last_full_batch():
    batches = [2, 6, 15, 16, 12, 16, 17, 16, 9, 3]
    trace = decodes(*[400] * 10, batches=batches).build()
    assert iterations(trace)["part"].to_list() == [*["ramp-up"] * 2, *["steady"] * 6, *["drain"] * 2]


def test_phases_sum_the_steady_part_and_all():
    trace = decodes(4000, *[400] * 6, 2000, 400).build()
    same(
        phases(trace),
        """
        phase       iterations  total_ns  mean_ns  median_ns  p95_ns   tokens  tokens_per_s       token_ns  attention_ns
        decode      8           4800000   600000   400000     2000000  32      6666.666666666667  150000    2550000
        not steady  1           4000000   -        -          -        -       -                  -         -
        outside     0           0         -        -          -        -       -                  -         -
        """,
    )
    assert phases(trace, of="all")["iterations"].to_list() == [9, 0]


def test_what_is_not_steady_is_apart_from_what_belongs_to_no_iteration():
    trace = decodes(4000, *[400] * 6).op("aten::add", 7_000 * US, 500 * US).build()
    rows = {row["phase"]: (row["iterations"], row["total_ns"]) for row in phases(trace).iter_rows(named=True)}
    whole = trace.window[1] - trace.window[0]
    in_iterations = iterations(trace)["total_ns"].sum()
    assert rows["not steady"] == (1, 4_000 * US)
    assert rows["outside"] == (0, whole - in_iterations) != (0, 0)
    marks = events_of_phase(trace, {"phase": "not steady"})["host_events"]
    assert trace.host_events["start_ns"][marks].to_list() == [iterations(trace)["start_ns"][0]]


def test_what_the_host_does_between_iterations_is_split():
    builder = decode(decode(TraceBuilder(), 0), 600, number=2)
    builder.launch(360 * US, 40 * US, 0, name="cudaStreamSynchronize").op("aten::argmax", 420 * US, 30 * US)
    same(
        phases(builder.build()),
        """
        phase    gap_ns  gap_synchronizing_ns  gap_sampling_ns  gap_unrecorded_ns  busy_ns
        decode   250000  40000                 30000            180000             600000
        outside  -       -                     -                -                  -
        """,
    )


def test_a_recording_of_a_capture_is_a_servers():
    trace = TraceBuilder().annotation("capture_32_FULL", 0, 90).build()
    assert iterations(trace).select("phase", "part", "batch", "tokens").rows() == [("capture", "steady", 32, None)]
    assert server_engine(trace)


def test_a_training_is_no_server():
    trace = TraceBuilder().step(1, 0, 90).op("aten::mm", 3, 9).build()
    assert not server_engine(trace)
    assert VIEWS["iterations"].is_missing(trace)
    assert iterations(trace).is_empty()


def phased():
    """Two decodes and a prefill, each with a kernel of its own name."""
    builder = decode(decode(TraceBuilder(), 0), 400)
    builder.annotation("step[EXTEND bs=1 toks=9]", 800 * US, 100 * US).launch(810 * US, 5 * US, 9)
    return builder.kernel("prefill_kernel", 850 * US, 70 * US, 9).build()


def test_views_can_be_restricted_to_a_phase_or_an_iteration():
    trace, kernels = phased(), VIEWS["kernels"]

    def calls(**query):
        return dict(kernels.frame(trace, kernels.arguments(query)).select("name", "calls").rows())

    assert calls() == {"kernel_unified_attention_3d": 2, "prefill_kernel": 1}
    assert calls(phase="decode") == {"kernel_unified_attention_3d": 2}
    assert calls(phase="prefill") == {"prefill_kernel": 1}
    assert calls(step="1") == {"kernel_unified_attention_3d": 1}
    with pytest.raises(BadParameter, match="phase='mixed' isn't in this trace; choose one of decode, prefill"):
        calls(phase="mixed")
    with pytest.raises(BadParameter, match="has no parameter 'phase'"):
        VIEWS["phases"].arguments({"phase": "decode"})


def test_on_a_cpu_no_device_is_said_to_limit_tokens():
    trace = TraceBuilder().annotation("step[DECODE bs=4]", 0, 100 * US).op("aten::mm", 10 * US, 50 * US).build()
    assert VIEWS["limits"].is_missing(trace)
    assert not VIEWS["phases"].is_missing(trace)
    assert not VIEWS["limits"].is_missing(decode(TraceBuilder(), 0).build())


def test_iterations_are_the_steps_where_the_server_calls_step_once_for_each():
    """vLLM with `warmup_iterations`: it calls profiler.step() before each iteration."""
    builder = decode(decode(TraceBuilder(), 10), 410)
    server = builder.step(7, 0, 400 * US).step(8, 400 * US, 500 * US).build()
    assert server.steps.select("name", "phase", "batch").rows() == [("0", "decode", 4), ("1", "decode", 4)]
    program = decode(decode(TraceBuilder(), 10), 410).step(7, 0, 900 * US).build()
    assert program.steps["name"].to_list() == ["7"]
