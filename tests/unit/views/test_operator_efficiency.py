import pytest

from kinetoscope_tb.measures.calls.kernel_work import COMMUNICATION, NO_OPERATOR
from kinetoscope_tb.measures.calls.roofline import IMPOSSIBLE, NO_DEVICE_NAME
from kinetoscope_tb.measures.recording.options import NO_SHAPES_OF_ITS_OWN
from kinetoscope_tb.views.device.operator_efficiency import VIEW, operator_efficiency
from support.build import TraceBuilder, same

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
TENSOR, PLAIN, SILENT = "nvjet_tst_192x192", "ampere_sgemm_128x64_nn", "some_kernel"


def recorded(name, shapes, types, values=None, *, kernel=TENSOR, dur=1000, device=H100, calls=1):
    """`calls` calls of an operator, each with one kernel."""
    builder = TraceBuilder(deviceProperties=[device] if device else [])
    args = {"Input Dims": shapes, "Input type": types} | ({"Concrete Inputs": values} if values else {})
    for nth in range(calls):
        builder.op(name, 100 * nth, 50, **args).launch(100 * nth + 10, 5, nth + 1)
        builder.kernel(kernel, 1000 + 2 * dur * nth, dur, nth + 1)
    return builder


def row(builder):
    return operator_efficiency(builder.build()).row(0, named=True)


def test_a_product_near_the_compute_roof():
    # 2 · 4096 · 4096 · 4096 operations take 138.91 µs at 989.4 TFLOP/s; 3 matrices of 2 · 4096² bytes 30.03 µs at 3352 GB/s
    builder = recorded("aten::mm", [[4096, 4096], [4096, 4096]], ["c10::BFloat16"] * 2, dur=200_000, calls=2)
    same(
        operator_efficiency(builder.build()),
        """
        name      dtype  device  calls  time_ns  work_flop     work_bytes  achieved_flop_per_s  peak_flop_per_s    peak_bytes_per_s  bound_by  why_unknown
        aten::mm  bf16   0       2      400000   137438953472  100663296   687194767360000.0    989400000000000.0  3352000000000.0   compute   -
        """,
    )
    assert row(builder)["roof_frac"] == pytest.approx(0.6946, abs=1e-4)
    assert row(builder)["intensity"] == pytest.approx(1365.33, abs=0.01)


def test_the_gap_is_the_time_above_the_roof_and_orders_the_rows():
    builder = recorded("aten::mm", [[4096, 4096], [4096, 4096]], ["c10::BFloat16"] * 2, dur=200_000)
    builder.op("aten::mm", 500, 50, **{"Input Dims": [[8, 8], [8, 8]], "Input type": ["c10::BFloat16"] * 2})
    builder.launch(510, 5, 2).kernel(TENSOR, 300_000, 100_000, 2)
    builder.op("aten::relu", 600, 50).launch(610, 5, 3).kernel("relu", 500_000, 900_000, 3)
    builder.op("aten::exp", 700, 50).launch(710, 5, 4).kernel("exp", 1_500_000, 100_000, 4)
    table = operator_efficiency(builder.build())
    assert table.select("name", "time_ns", "gap_ns", "why_unknown").rows() == [
        ("aten::mm", 100_000, 100_000, None),
        ("aten::mm", 200_000, 200_000 - 138_911, None),
        ("[other operators]", 1_000_000, None, f"90 % of their time: aten::relu. {NO_SHAPES_OF_ITS_OWN}"),
    ]
    others = VIEW.events_of_row(builder.build(), {"name": "[other operators]", "device": 0})
    assert others["device_events"].tolist() == [2, 3]


def test_kernels_without_an_operator_are_called_as_in_the_table_of_operators():
    builder = recorded("aten::mm", [[4096, 4096], [4096, 4096]], ["c10::BFloat16"] * 2, dur=200_000)
    builder.op("aten::relu", 600, 50).launch(610, 5, 3).kernel("relu", 500_000, 300_000, 3)
    builder.launch(700, 5, 4).kernel("lone", 900_000, 900_000, 4)
    rest = operator_efficiency(builder.build()).tail(2)
    assert rest.select("name", "time_ns", "why_unknown").rows() == [
        ("[unattributed]", 900_000, NO_OPERATOR),
        ("[other operators]", 300_000, f"100 % of their time: aten::relu. {NO_SHAPES_OF_ITS_OWN}"),
    ]
    for name, row in (("[unattributed]", 2), ("[other operators]", 1)):
        key = {"name": name, "device": 0}
        assert VIEW.events_of_row(builder.build(), key)["device_events"].tolist() == [row]
        leads_to = VIEW.row_of_event(builder.build(), "device_events", row)
        assert {name: leads_to[name] for name in key} == key


def test_other_operators_have_a_reason_of_their_own_not_that_of_rows_that_are_drawn():
    """Whether the trace names the device has nothing to do with communication."""
    builder = recorded("aten::mm", [[64, 64], [64, 64]], ["c10::BFloat16"] * 2, kernel=SILENT, device=None)
    builder.op("record_param_comms", 600, 50).launch(610, 5, 2).kernel("ncclDevKernel_AllReduce", 9_000, 9_000, 2)
    reasons = operator_efficiency(builder.build()).select("name", "why_unknown").rows()
    assert reasons == [
        ("[other operators]", f"100 % of their time: record_param_comms. {COMMUNICATION}"),
        ("aten::mm", NO_DEVICE_NAME),
    ]


SOFTMAX = ("aten::_softmax", [[8, 16, 1024, 1024], [], []], ["c10::BFloat16", "Scalar", "Scalar"])
ROWS = 8 * 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("name", "shapes", "types", "moved"),
    [
        (*SOFTMAX, 2 * 2 * ROWS),
        (
            "aten::native_layer_norm",
            [[4096, 1024], [], [1024], [1024]],
            ["float"] * 4,
            4 * (2 * 4096 * 1024 + 2 * 1024),
        ),
        ("aten::add", [[4096, 1024], [1024]], ["float"] * 2, 4 * (2 * 4096 * 1024 + 1024)),
        ("aten::gelu", [[1024, 1024]], ["c10::Half"], 2 * 2 * 1024 * 1024),
    ],
)
def test_work_without_flops_is_judged_by_its_bytes(name, shapes, types, moved):
    builder = recorded("aten::mm", [[64, 64], [64, 64]], ["c10::BFloat16"] * 2, dur=10_000)
    for nth in (2, 3):
        builder.op(name, 1000 * nth, 50, **{"Input Dims": shapes, "Input type": types})
        builder.launch(1000 * nth + 10, 5, nth).kernel("some_kernel", 1_000_000 * nth, 400_000, nth)
    table = operator_efficiency(builder.build())
    (known,) = table.filter(name=name).rows(named=True)
    assert (known["calls"], known["time_ns"], known["work_bytes"], known["bound_by"]) == (2, 800_000, moved, "memory")
    assert known["achieved_bytes_per_s"] == pytest.approx(2 * moved / 800e-6)
    assert known["roof_frac"] == pytest.approx(2 * moved / 3352e9 / 800e-6)
    assert known["gap_ns"] == max(0, 800_000 - round(2 * moved / 3352e9 * 1e9))
    assert (known["work_flop"], known["provenance"], known["why_unknown"]) == (None, "recorded", None)
    assert "[other operators]" not in table["name"]
    kernels = VIEW.events_of_row(builder.build(), {key: known[key] for key in VIEW.table.key})["device_events"].tolist()
    assert kernels == [1, 2]
    leads_to = VIEW.row_of_event(builder.build(), "device_events", 2)
    assert {key: leads_to[key] for key in VIEW.table.key} == {key: known[key] for key in VIEW.table.key}


def test_a_product_of_a_matrix_with_few_columns_is_bound_by_memory():
    efficiency = row(recorded("aten::mm", [[4096, 4096], [4096, 1]], ["c10::BFloat16"] * 2, dur=20_000))
    assert (efficiency["bound_by"], efficiency["roof_frac"]) == ("memory", pytest.approx(0.5008, abs=1e-4))


@pytest.mark.parametrize(
    ("kernel", "dtype", "peak", "reason"),
    [
        (TENSOR, "tf32", 494.7e12, None),
        (PLAIN, "fp32", 66.9e12, None),
        (SILENT, "fp32", None, "Whether its kernels use tensor cores"),
    ],
)
def test_the_peak_of_float_is_that_of_the_units_in_use(kernel, dtype, peak, reason):
    efficiency = row(recorded("aten::mm", [[64, 64], [64, 64]], ["float", "float"], kernel=kernel))
    assert (efficiency["dtype"], efficiency["peak_flop_per_s"]) == (dtype, peak)
    assert (efficiency["why_unknown"] or "").startswith(reason or "")
    assert (efficiency["roof_frac"] is None) == (peak is None)


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (None, "The trace doesn't name the device."),
        ({"id": 0, "name": "AMD Radeon Graphics"}, "No peaks of AMD Radeon Graphics are known."),
        ({"id": 0, "name": "Tesla V100-SXM2-32GB", "numSms": 80}, "No peak of this device in bf16 is known."),
    ],
)
def test_an_unknown_peak_leaves_what_was_achieved(device, reason):
    efficiency = row(recorded("aten::mm", [[8, 8], [8, 8]], ["c10::BFloat16"] * 2, device=device))
    assert (efficiency["why_unknown"], efficiency["roof_frac"]) == (reason, None)
    assert efficiency["achieved_flop_per_s"] == 1024 / 1000 * 1e9


def test_the_roof_of_an_architecture_in_kernel_names_is_doubtful():
    kernel = "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_GLS0_ISA942_IU1_K1"
    efficiency = row(recorded("aten::mm", [[64, 64], [64, 64]], ["c10::BFloat16"] * 2, kernel=kernel, device=None))
    assert efficiency["peak_bytes_per_s"] > 0
    doubt = "The trace doesn't name the device. Its roof is that of the slowest gfx942, as names of kernels show."
    assert efficiency["why_unknown"] == doubt


CONV = ("", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")
BACK = ("", "", "", "[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, True]")
X, W, OUT, Q = [2, 3, 32, 32], [8, 3, 3, 3], [2, 8, 16, 16], [2, 4, 16, 8]
SDPA, FP16 = "aten::_scaled_dot_product_", 2


@pytest.mark.parametrize(
    ("name", "shapes", "values", "flop", "numbers"),
    [
        ("aten::addmm", [[6], [4, 5], [5, 6]], (), 2 * 4 * 5 * 6, 6 + 20 + 30 + 24),
        ("aten::bmm", [[3, 4, 5], [3, 5, 6]], (), 2 * 3 * 4 * 5 * 6, 60 + 90 + 72),
        ("aten::baddbmm", [[3, 4, 6], [3, 4, 5], [3, 5, 6]], (), 720, 72 + 60 + 90 + 72),
        ("aten::mv", [[4, 5], [5]], (), 40, 20 + 5 + 4),
        ("aten::mkldnn_linear", [[2, 4, 5], [6, 5], [6]], (), 2 * 8 * 5 * 6, 40 + 30 + 48),
        ("aten::_grouped_mm", [[7, 5], [3, 5, 6], [3]], (), 2 * 7 * 5 * 6, 35 + 90 + 42),
        ("aten::convolution", [X, W, [8]], CONV, 2 * 2 * 256 * 27 * 8, 6144 + 216 + 4096),
        # transposed: each of 32 · 32 inputs meets 3 · 4 · 9 weights; (32 − 1) · 2 + 3 = 65 outputs a side
        ("aten::convolution", [X, [3, 4, 3, 3], [4]], ("", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"),
         2 * 2 * 1024 * 108, 6144 + 108 + 2 * 4 * 65 * 65),
        ("aten::convolution_backward", [OUT, X, W], BACK, 2 * (2 * 2 * 256 * 216), 4096 + 2 * (6144 + 216)),
        ("aten::convolution_backward", [OUT, X, W], (*BACK[:10], "[False, True, True]"), 2 * 2 * 256 * 216, 4096 + 6144 + 216),
        (f"{SDPA}flash_attention", [Q, Q, Q], ("", "", "", "0.", "False"), 4 * 8 * 256 * 8, 4 * 1024),
        # causal: the first of 16 queries meets 1 key, the last 16
        (f"{SDPA}flash_attention", [Q, Q, Q], ("", "", "", "0.", "True"), 4 * 8 * 136 * 8, 4 * 1024),
        (f"{SDPA}flash_attention_for_cpu_backward", [Q] * 5, ("",) * 6 + ("0.", "False"), 10 * 8 * 256 * 8, 8 * 1024),
        (f"{SDPA}cudnn_attention", [Q] * 3 + [[]] * 4, ("", "", "", "0.", "True", "False", ""), 4 * 8 * 136 * 8, 4 * 1024),
        (f"{SDPA}cudnn_attention", [Q] * 3 + [[]] * 6, ("", "", "", "", "True", "0.", "False", "False", ""),
         4 * 8 * 256 * 8, 4 * 1024),
    ],
)  # fmt: skip
def test_work_by_shapes(name, shapes, values, flop, numbers):
    types = ["c10::Half" if shape else "Scalar" for shape in shapes]
    efficiency = row(recorded(name, shapes, types, list(values)))
    assert (efficiency["work_flop"], efficiency["work_bytes"]) == (flop, FP16 * numbers)


def test_a_product_of_narrow_numbers_may_have_a_wider_result():
    values = ["", "", "", "", "", "", "15"]
    efficiency = row(recorded("aten::_scaled_mm", [[16, 32], [32, 8]], ["c10::Float8_e4m3fn"] * 2, values))
    assert (efficiency["dtype"], efficiency["work_bytes"]) == ("fp8", 16 * 32 + 32 * 8 + 2 * 16 * 8)
    efficiency = row(recorded("aten::_scaled_mm", [[16, 32], [32, 8]], ["c10::Float8_e4m3fn"] * 2))
    assert efficiency["work_bytes"] is None
    assert efficiency["why_unknown"] == "The number format of its output isn't recorded."
    assert efficiency["achieved_flop_per_s"] == 2 * 16 * 32 * 8 * 1e6


@pytest.mark.parametrize(
    ("name", "shapes", "values", "reason"),
    [
        ("aten::mm", None, None, "Shapes weren't recorded"),
        ("aten::mm", [[2, 3], [4, 5]], None, "The recorded shapes don't fit"),
        ("aten::mm", [[2, 3]], None, "The recorded shapes don't fit"),
        ("aten::mm", [[], [4, 5]], None, "The recorded shapes don't fit"),
        ("aten::mm", [[2**40, 2**40], [2**40, 2**40]], None, "The recorded shapes don't fit"),
        ("aten::convolution", [X, W, [8]], None, "Stride and padding weren't recorded"),
        ("aten::convolution_backward", [OUT, X, W], None, "The required gradients weren't recorded"),
        (f"{SDPA}flash_attention", [Q, Q, Q], None, "Whether attention was causal wasn't recorded."),
    ],
)
def test_what_is_not_recorded_is_said(name, shapes, values, reason):
    efficiency = row(recorded(name, shapes, ["float"] * 3, values) if shapes else TraceBuilder().op(name, 0, 5))
    assert reason in efficiency["why_unknown"]
    assert (efficiency["work_flop"], efficiency["achieved_flop_per_s"], efficiency["roof_frac"]) == (None, None, None)


def test_an_operator_inside_another_that_is_counted_counts_for_it():
    builder = recorded("aten::convolution", [X, W, [8]], ["c10::Half"] * 3, list(CONV))
    builder.op("aten::mm", 20, 10, **{"Input Dims": [[2, 2], [2, 2]]}).launch(25, 1, 9).kernel(TENSOR, 9000, 500, 9)
    table = operator_efficiency(builder.build())
    assert table.select("name", "time_ns").rows() == [("aten::convolution", 1500)]


def test_a_recording_of_the_host_has_its_time_and_no_peak():
    args = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]}
    same(
        operator_efficiency(TraceBuilder().op("aten::mm", 0, 512, **args).build()),
        """
        name      device  calls  time_ns  achieved_flop_per_s  roof_frac  why_unknown
        aten::mm  -       1      512      2000000000.0         -          The host's peak is unknown.
        """,
    )


def test_calls_whose_kernels_were_lost_stand_apart():
    builder = recorded("aten::mm", [[8, 8], [8, 8]], ["c10::Half"] * 2)
    builder.op("aten::mm", 60, 10, **{"Input Dims": [[8, 8], [8, 8]], "Input type": ["c10::Half"] * 2})
    same(
        operator_efficiency(builder.build()),
        """
        device  calls  time_ns  achieved_flop_per_s  why_unknown
        0       1      1000     1024000000.0         -
        -       1      -        -                    Its calls launched no recorded device work.
        """,
    )


def test_under_autocast_the_call_inside_has_the_types_of_the_work():
    half, mixed = ["c10::Half", "c10::Half"], ["float", "c10::Half"]
    builder = TraceBuilder(deviceProperties=[H100])
    builder.op("aten::mm", 0, 90, **{"Input Dims": [[8, 8], [8, 8]], "Input type": mixed})
    builder.op("aten::copy_", 5, 20).launch(10, 5, 1).kernel("cast", 1000, 300, 1)
    builder.op("aten::mm", 40, 40, **{"Input Dims": [[8, 8], [8, 8]], "Input type": half})
    builder.launch(50, 5, 2).kernel(TENSOR, 2000, 1000, 2)
    table = operator_efficiency(builder.build())
    assert table.select("dtype", "calls", "time_ns").rows() == [("fp16", 1, 1000), (None, None, 300)]


def test_more_flops_than_the_device_can_do_are_not_rated():
    made = row(recorded("aten::mm", [[4096, 4096], [4096, 4096]], ["c10::BFloat16"] * 2, dur=10_000))
    assert (made["roof_frac"], made["achieved_flop_per_s"], made["why_unknown"]) == (None, None, IMPOSSIBLE)


@pytest.mark.parametrize(
    ("shapes", "is_missing"), [({"Input Dims": [[64, 64]], "Input type": ["float"]}, False), ({}, True)]
)
def test_operators_whose_bytes_alone_are_known_are_rated_too(shapes, is_missing):
    builder = TraceBuilder(deviceProperties=[H100])
    trace = builder.op("aten::relu", 0, 50, **shapes).launch(10, 5, 1).kernel("relu", 100, 1000, 1).build()
    assert VIEW.is_missing(trace) == is_missing
    assert (operator_efficiency(trace)["name"][0] == "aten::relu") != is_missing
