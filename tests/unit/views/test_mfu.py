"""Model FLOPs utilization: matrix work of the recorded shapes against the device's peak, or why it is unknown."""

import pytest

from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.measures.calls.roofline import IMPOSSIBLE
from kinetoscope_tb.names.text import percent
from kinetoscope_tb.views import EVERY_VIEW
from kinetoscope_tb.views.device.mfu import NO_MATRICES, Mfu, mfu
from support.build import TraceBuilder
from support.machine import MS, US

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
MI300X = {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304, "totalGlobalMem": 206141652992}
MM = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 2}
WORK = 2 * 4096**3
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)"


def trace(device=H100, mystery_ns=0, steps=2, mms=3, shapes=MM["Input Dims"], allocations=0, kernel="nvjet_tst", **top):
    """Steps of 1 ms: products of 0.2 ms, an elementwise kernel, and one that nothing is known of."""
    builder = TraceBuilder(**({"deviceProperties": [device]} if device else {}), **top)
    number = 0
    for step in range(steps):
        begin = step * MS
        builder.step(step, begin, MS).allocations(allocations, begin, MS)
        names = [f"{kernel}_192x192"] * mms + [ELEMENTWISE] + ["mystery"] * bool(mystery_ns)
        for place, name in enumerate(names):
            number, at = number + 1, begin + 1_000 + place * 210_000
            dur = mystery_ns if name == "mystery" else 200_000
            if name.startswith("nvjet"):
                builder.op("aten::mm", at, 20_000, **{**MM, "Input Dims": shapes})
            builder.launch(at + 1_000, 5_000, number).kernel(name, at + 8_000, dur, number)
    return builder.build()


def test_the_share_of_the_peak_that_the_work_of_a_step_reaches():
    (row,) = mfu(trace()).rows(named=True)
    assert (row["work_flop"], row["peak_flop_per_s"], row["dtype"]) == (3 * WORK, 989.4e12, "bf16")
    assert row["mfu_frac"] == pytest.approx(3 * WORK / (row["step_ns"] / 1e9 * 989.4e12))
    assert (row["time_of_known_work_frac"], row["usual_mfu_frac"], row["why_mfu_unknown"]) == (1.0, None, None)


def test_kernels_without_known_work_are_counted_and_make_it_a_lower_bound():
    made = trace(mystery_ns=100_000)
    (row,) = mfu(made).rows(named=True)
    assert row["time_of_known_work_frac"] == pytest.approx(8 / 9)
    assert (
        recording_answer(made, EVERY_VIEW, cached_frames)
        .sentences["mfu"]
        .startswith(f"MFU: at least {percent(row['mfu_frac'])} of 989 Tflop/s (bf16) over the average step of ")
    )


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (trace(device=None), "The trace doesn't name the device."),
        (trace(device={**H100, "name": "NVIDIA X1"}), "No peaks of NVIDIA X1 are known."),
        (trace(mystery_ns=100_000_000), "The operators that launched the kernels weren't recorded."),
        (trace(mms=0), NO_MATRICES),
        (trace(shapes=[[4096, 1 << 24], [1 << 24, 4096]]), IMPOSSIBLE),
    ],
)
def test_without_a_peak_or_the_work_nothing_is_said(made, reason):
    (row,) = mfu(made).rows(named=True)
    assert (row["mfu_frac"], row["why_mfu_unknown"]) == (None, reason)
    assert (row["time_of_known_work_frac"] is None) == (row["work_flop"] is None)
    answer = recording_answer(made, EVERY_VIEW, cached_frames)
    assert "mfu" not in answer.sentences
    assert [said.reason for said in answer.not_said if said.topic == "MFU"] == [reason]


def test_the_operator_whose_work_has_no_model_is_named():
    builder = TraceBuilder(deviceProperties=[H100]).op(
        "my::product", 0, 50, **{"Input Dims": [[8, 8]], "Input type": ["float"]}
    )
    (row,) = mfu(builder.launch(10, 5, 1).kernel("nvjet_tst_192x192", 100, 1000, 1).build()).rows(named=True)
    assert row["why_mfu_unknown"] == "No model of the work of my::product exists."


def test_a_roof_of_an_architecture_is_no_peak_of_the_device():
    (row,) = mfu(trace(device=None, kernel="nvjet_sm100_tst")).rows(named=True)
    assert (row["mfu_frac"], row["peak_flop_per_s"] is None) == (None, False)
    assert row["why_mfu_unknown"] == (
        "The trace doesn't name the device. The peak is that of the slowest sm100, as names of kernels show."
    )


def test_headers_say_mfu_and_what_is_known_of_which_work():
    titles = {column.name: column.title for column in Mfu.columns}
    assert titles["mfu_frac"] == "MFU"
    assert titles["usual_mfu_frac"] == "MFU without profiler"
    assert titles["time_of_known_work_frac"] == "Time with known or no FLOPs"
    assert titles["why_mfu_unknown"] == "Why MFU is unknown"


def test_flops_are_known_by_the_shapes_even_where_the_peak_is_not():
    (row,) = mfu(trace(device={**H100, "name": "NVIDIA X1"}, mystery_ns=100_000)).rows(named=True)
    assert (row["work_flop"], row["peak_flop_per_s"], row["mfu_frac"]) == (3 * WORK, None, None)
    assert row["time_of_known_work_frac"] == pytest.approx(8 / 9)


def test_the_denominator_is_the_peak_and_not_what_the_vendors_library_reaches():
    assert mfu(trace(MI300X))["peak_flop_per_s"].to_list() == [1307.4e12]


def test_a_step_without_the_profiler_has_its_own_share():
    made = trace(steps=4, allocations=100, kinetoscope={"usual_step": {"median_ns": 850 * US, "steps": 40}})
    (row,) = mfu(made).rows(named=True)
    assert row["usual_mfu_frac"] == pytest.approx(row["mfu_frac"] * row["step_ns"] / (850 * US))


def test_a_step_without_the_profiler_is_no_shorter_than_the_work_of_the_device():
    ahead = trace(
        steps=4, allocations=100, kinetoscope={"usual_step": {"median_ns": 100 * US, "steps": 40}}
    )  # the host's alone
    (row,) = mfu(ahead).rows(named=True)
    assert row["usual_mfu_frac"] == pytest.approx(row["mfu_frac"] * row["step_ns"] / (800 * US))


def test_a_server_that_waits_for_requests_has_a_share_of_the_time_in_which_it_has_some():
    builder = TraceBuilder(deviceProperties=[H100])
    for number in range(6):
        at = number * MS
        builder.annotation("step[DECODE bs=4]", at, 260_000).op("aten::mm", at + 1_000, 20_000, **MM)
        builder.launch(at + 2_000, 5_000, number + 1).kernel("nvjet_tst_192x192", at + 9_000, 250_000, number + 1)
        builder.python("queue.py(171): get", at + 300_000, 600_000)
    made = builder.build()
    (row,) = mfu(made).rows(named=True)
    share = row["mfu_frac"] * row["step_ns"] / (row["step_ns"] - 600_000)
    sentence = recording_answer(made, EVERY_VIEW, cached_frames).sentences["mfu"]
    assert f"({percent(share)} without the waits for requests)" in sentence
