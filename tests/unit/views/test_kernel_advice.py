"""Kernels with one known cause get the advice for it; the healthy ones next to them get none."""

import re

import polars as pl
import pytest

from kinetoscope_tb.names.text import percent
from kinetoscope_tb.views.overview.advice import advice
from kinetoscope_tb.views.overview.what_if import what_if
from support.machine import A100, US, Machine

BF16, FLOAT = "c10::BFloat16", "float"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>"
STRIDED = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<direct_copy_kernel_cuda>>"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>"
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
PEAK, BANDWIDTH = 312e12, 2.039e12  # of the A100


def rules(trace):
    return advice(trace)["rule"].to_list()[:-1]


def row(trace, rule):
    return advice(trace).row(by_predicate=pl.col("rule") == rule, named=True)


def steps(*kernels, device=A100, times=20, others=(), **args):
    """Steps of matmuls or other operators back to back: (operator, kernel, shapes, types, duration in ns)."""
    machine = Machine(device)

    def step(_):
        for _ in range(times):
            for op, name, shapes, types, dur in kernels:
                machine.kernel(int(dur), name, op, shapes=shapes, types=types, **args)
        for op, name, shapes, types, dur in others:
            machine.kernel(int(dur), name, op, shapes=shapes, types=types)

    return machine.steps(step)


def matmul(m, n, k, fraction, kernel=GEMM):
    """A matmul that runs at this fraction of the A100's roof."""
    roof = max(2 * m * n * k / PEAK, 2 * (m * k + k * n + m * n) / BANDWIDTH) * 1e9
    return "aten::mm", kernel, [[m, k], [k, n]], [BF16, BF16], roof / fraction


def pointwise(op, size, fraction, kernel=POINTWISE, types=(BF16, BF16)):
    """An operator on two tensors that reaches this fraction of the A100's bandwidth."""
    return op, kernel, [[size, 1024]] * 2, list(types), 3 * 2 * size * 1024 / BANDWIDTH * 1e9 / fraction


def test_matmuls_at_two_thirds_of_their_roof_are_fine():
    assert rules(steps(matmul(4096, 4096, 4096, 0.66))) == []


@pytest.mark.parametrize(
    ("sizes", "kernel", "cause", "remedy"),
    [
        ((4096, 4096, 4096), GEMM, "Neither the shapes nor the names", "max-autotune"),
        ((256, 256, 65536), GEMM, "the output of 256 × 256 has only 4 tiles of 128 × 128 for 108", "split-K"),
        ((640, 640, 4096), GEMM, "only 25 tiles", "batched or grouped"),
        ((4097, 4096, 4096), "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x4_nn_align1",
         "4097 is no multiple of 8: the kernel loads 1 element at a time (`align1`)", "Pad 4097 to 4104"),
        ((8, 16384, 16384), "cutlass_80_tensorop_bf16_s16816gemm_bf16_16x64_64x4_nn_align8", "one side has only 8 rows",
         "Batch more rows"),
        ((1664, 1152, 4096), GEMM, "117 tiles of 128 × 128 are 1.08 waves", "just below a multiple"),
    ],
)  # fmt: skip
def test_a_matmul_far_below_its_roof_is_named_with_the_cause_that_its_shapes_show(sizes, kernel, cause, remedy):
    fraction = 0.3
    trace = steps(matmul(*sizes, fraction, kernel), **{"blocks per SM": 0.9})
    finding = row(trace, "matmul_below_roof")
    assert rules(trace) == ["matmul_below_roof"]
    assert (finding["confidence"], finding["view"]) == ("high", "operator_efficiency")
    assert finding["title"].startswith("Matmuls run at 30 % of their roof, and take 9")
    assert cause in finding["evidence"]
    assert remedy in finding["action"]
    assert finding["saving_frac"] == pytest.approx(1 - fraction, abs=0.03)


def test_an_old_architecture_s_kernel_on_a_new_device():
    op, _, shapes, types, _ = matmul(4096, 4096, 4096, 1)
    old = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_tn_align8>"
    finding = row(steps((op, old, shapes, types, 500 * US), device=H100), "matmul_below_roof")
    assert "the kernel was written for compute capability 8.0, and the device has 9.0" in finding["evidence"]


def test_sizes_that_pad_badly_are_named_before_half_of_the_roof():
    assert rules(steps(matmul(4097, 4097, 4097, 0.6))) == ["matmul_below_roof"]
    assert rules(steps(matmul(4096, 4096, 4096, 0.6))) == []


@pytest.mark.parametrize(
    ("sizes", "is_likely"),
    [
        ((4096, 4096, 4097), False),  # of a backward pass: 4097 tokens, of which no matrix has rows
        ((4097, 4096, 4096), False),
        ((4096, 4097, 4096), True),  # the rows of the output
        ((4097, 4096, 4097), True),  # the first input has no other rows
    ],
)
def test_sizes_that_may_not_be_those_of_rows_are_a_possible_cause(sizes, is_likely):
    finding = row(steps(matmul(*sizes, 0.6)), "matmul_below_roof")
    words, confidence = ("Likely cause: 4097", "high") if is_likely else ("Possible cause: 4097", "medium")
    assert words in finding["evidence"]
    assert finding["confidence"] == confidence
    assert ("if it is contiguous in an input, rows can't be loaded" in finding["evidence"]) is not is_likely


def test_short_calls_are_bound_by_their_launch_and_not_by_the_roof():
    trace = steps(("aten::mm", GEMM, [[64, 64], [64, 64]], [BF16, BF16], 4 * US), times=200)
    assert "matmul_below_roof" not in rules(trace)


def test_matmuls_below_a_tenth_of_the_step_are_no_matter():
    slow = matmul(256, 256, 65536, 0.3)
    healthy = matmul(4096, 4096, 4096, 0.7)
    assert rules(steps(healthy, times=40, others=[slow])) == []


def test_without_shapes_or_a_device_nothing_is_claimed_and_the_reason_is_given():
    op, kernel, shapes, types, dur = matmul(4096, 4096, 4096, 0.3)
    for trace, evidence in (
        (
            steps((op, kernel, shapes, types, dur), device=None),
            "the trace doesn't name the device; the option --device",
        ),
        (steps((op, kernel, shapes, types, dur), device={"id": 0, "name": "Some GPU"}), "no peaks of Some GPU"),
    ):
        assert rules(trace) == []
        assert evidence in advice(trace)["evidence"][-1]
    machine = Machine()
    trace = machine.steps(lambda _: machine.kernel(900 * US, GEMM, "aten::mm"))
    assert "shapes weren't recorded" in advice(trace)["evidence"][-1]


def test_what_runs_at_the_same_time_may_explain_it():
    op, kernel, shapes, types, dur = matmul(4096, 4096, 4096, 0.4)
    machine = Machine()

    def step(_):
        for _ in range(20):
            machine.kernel(int(dur), kernel, op, shapes=shapes, types=types)
            machine.builder.kernel(
                "ncclDevKernel_AllReduce_Sum", machine.free - int(dur) // 2, int(dur) // 2, stream=20
            )

    finding = row(machine.steps(step), "matmul_below_roof")
    assert "For 50 % of it other kernels run at the same time, and take a part of the device." in finding["evidence"]
    assert finding["confidence"] == "medium"
    assert "at the same time" not in row(steps((op, kernel, shapes, types, dur)), "matmul_below_roof")["evidence"]


def test_float_matmuls_near_their_own_roof_are_a_matter_of_precision():
    def in_float(fraction):
        dur = 2 * 4096**3 / 19.5e12 * 1e9 / fraction
        return steps(("aten::mm", "ampere_sgemm_128x64_nn", [[4096, 4096]] * 2, [FLOAT, FLOAT], dur), times=2)

    assert rules(in_float(0.45)) == ["mixed_precision"]
    assert rules(in_float(0.2)) == ["matmul_below_roof"]  # the way to the roof saves more than TF32 does


SCORES, HEADS = 2048, 16


def attention(*, softmax="aten::_softmax", reads_scores=True):
    """Eager attention of 16 heads over 2048 tokens, and what comes before and after it."""
    q, k = [HEADS, SCORES, 64], [HEADS, 64, SCORES]
    after = [HEADS, SCORES, SCORES] if reads_scores else [HEADS, SCORES, 64]
    return [
        ("aten::bmm", GEMM, [q, k], [BF16, BF16], 100 * US),
        ("aten::mul", POINTWISE, [[HEADS, SCORES, SCORES], []], [BF16, "double"], 140 * US),
        (softmax, SOFTMAX, [[HEADS, SCORES, SCORES], [], []], [BF16, "Scalar", "Scalar"], 140 * US),
        ("aten::bmm", GEMM, [after, [HEADS, after[2], 64]], [BF16, BF16], 100 * US),
        matmul(8192, 4096, 1024, 0.7),
    ]


def test_a_softmax_between_two_matmuls_is_unfused_attention():
    trace = steps(*attention())
    finding = row(trace, "unfused_attention")
    assert rules(trace)[0] == "unfused_attention"
    assert "scores of 16 × 2048 × 2048 are written to memory" in finding["evidence"]
    assert "elementwise" not in rules(trace)  # the scaling belongs to the attention
    whole = sum(kernel[-1] for kernel in attention())
    assert 0.85 * 480 * US / whole < finding["saving_frac"] < 480 * US / whole


@pytest.mark.parametrize(
    "kernels",
    [
        attention(reads_scores=False),
        attention(softmax="aten::_log_softmax"),
        [matmul(4096, 4096, 1024, 0.7),
         ("aten::_softmax", SOFTMAX, [[4096, 4096], [], []], [BF16, "", ""], 40 * US),
         ("aten::topk", "void at::native::sbtopk::gatherTopK<float>", [[4096, 4096]], [BF16], 30 * US),
         matmul(4096, 4096, 2048, 0.7)],
        [("aten::_scaled_dot_product_flash_attention", "pytorch_flash::flash_fwd_kernel", [[4, 16, 2048, 64]] * 3,
          [BF16] * 3, 200 * US)],
    ],
    ids=["its matmul reads no scores", "a loss", "a router", "flash attention"],
)  # fmt: skip
def test_a_softmax_without_both_matmuls_is_not(kernels):
    assert "unfused_attention" not in rules(steps(*kernels))


def test_the_backward_pass_of_attention_is_unfused_with_all_its_matmuls():
    scores, head, transposed = [HEADS, SCORES, SCORES], [HEADS, SCORES, 64], [HEADS, 64, SCORES]
    products = [(head, transposed), (scores, head), (scores, head), (transposed, scores)]  # dP, dV, dQ, dK
    calls = [("aten::bmm", GEMM, list(each), [BF16, BF16], 100 * US) for each in products]
    softmax = ("aten::_softmax_backward_data", SOFTMAX, [scores, scores], [BF16, BF16], 200 * US)
    trace = steps(*calls[:2], softmax, *calls[2:], matmul(8192, 4096, 4096, 0.7))
    finding = row(trace, "unfused_attention")
    share = 600 * US / (600 * US + matmul(8192, 4096, 4096, 0.7)[-1])
    assert f"{100 * share:.0f} % of the kernel time" in finding["evidence"]
    assert rules(trace) == ["unfused_attention"]


@pytest.mark.parametrize("sizes", [[2**40, 2**40], [0, 5], [-1, 4], [2**70]])
def test_damaged_shapes_claim_nothing(sizes):
    kernels = [
        (op, GEMM, [sizes, sizes], [BF16, BF16], 100 * US) for op in ("aten::bmm", "aten::_softmax", "aten::add")
    ]
    assert rules(steps(*kernels)) == []


def test_the_fallback_of_fused_attention_says_why():
    machine = Machine()

    def attend():
        for op, kernel, shapes, types, dur in attention()[:4]:
            machine.kernel(dur, kernel, op, shapes=shapes, types=types)

    name = "aten::_scaled_dot_product_attention_math"
    trace = machine.steps(lambda _: [machine.op(name, attend) for _ in range(5)])
    assert "`scaled_dot_product_attention` ran its fallback" in row(trace, "unfused_attention")["action"]


def test_elementwise_kernels_of_several_operators_are_to_be_fused():
    chain = [pointwise(f"aten::{op}", 16384, 0.8) for op in ("add", "mul", "sub", "div")]
    trace = steps(matmul(4096, 4096, 4096, 0.7), *chain)
    finding = row(trace, "elementwise")
    assert rules(trace) == ["elementwise"]
    assert "80 kernels per step, in 20 runs without another kernel in between" in finding["evidence"]
    assert what_if(trace).filter(rule="elementwise")["target"].to_list() == ["the extra time of unfused kernels"]
    alone = chain[0][-1] * 4 / (chain[0][-1] * 4 + matmul(4096, 4096, 4096, 0.7)[-1])
    assert finding["saving_frac"] == pytest.approx(alone * (1 - 0.8 / 4), abs=0.02)


def test_one_elementwise_kernel_between_matmuls_has_nothing_to_fuse_with():
    chain = [part for op in ("add", "mul", "sub", "div") for part in (matmul(2048, 2048, 2048, 0.7), pointwise(f"aten::{op}", 8192, 0.9))]  # fmt: skip
    assert "elementwise" not in rules(steps(*chain))


def test_one_operator_far_below_the_bandwidth_is_not_a_matter_of_fusing():
    trace = steps(pointwise("aten::add", 65536, 0.3))
    finding = row(trace, "elementwise_below_roof")
    assert rules(trace) == ["elementwise_below_roof"]
    assert finding["title"].startswith("Memory-bound kernels run at 30 % of the memory's bandwidth")
    assert rules(steps(pointwise("aten::add", 65536, 0.8))) == []


@pytest.mark.parametrize(
    ("types", "kernel", "rule", "evidence"),
    [
        ((FLOAT, BF16), POINTWISE, "casts", "from BFloat16 to float"),
        ((BF16, BF16), STRIDED, "layout_changes", "(16384, 1024)"),
        ((BF16, BF16), POINTWISE, None, ""),
    ],
)
def test_copies_that_convert_or_reorder(types, kernel, rule, evidence):
    copy = ("aten::copy_", kernel, [[16384, 1024]] * 2, list(types), 60 * US)
    trace = steps(matmul(4096, 4096, 4096, 0.7), copy)
    assert rules(trace) == ([rule] if rule else [])
    if rule:
        found = row(trace, rule)
        assert evidence in found["evidence"]
        pauses = " saved are pauses before these kernels, which go with their launches."
        (share,) = re.findall(r"takes? ([\d.]+) % of", found["title"])
        assert (pauses in found["evidence"]) == (percent(found["saving_frac"]) != f"{share} %")
        (target,) = what_if(trace).filter(rule=rule)["target"]
        assert target in ("conversions of number formats", "changes of the memory layout")


@pytest.mark.parametrize(("around", "kernel", "is_cast"), [
    ("aten::_to_copy", POINTWISE, True),
    ("aten::_to_copy", STRIDED, False),
    ("aten::clone", POINTWISE, False),
])  # fmt: skip
def test_without_shapes_a_conversion_is_what_to_copy_copies_in_the_same_order(around, kernel, is_cast):
    machine = Machine(A100)

    def copy():
        machine.work(2 * US)
        machine.kernel(200 * US, kernel, "aten::copy_")

    def step(_):
        for _ in range(20):
            machine.kernel(800 * US, GEMM, "aten::mm")
            machine.op(around, copy)

    assert ("casts" in advice(machine.steps(step))["rule"]) == is_cast


def test_a_bias_that_takes_more_than_its_convolution():
    machine = Machine()
    args = {
        "Input Dims": [[64, 64, 64, 64], [64, 64, 1, 1], [64]],
        "Input type": [BF16] * 3,
        "Concrete Inputs": ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"],
    }

    def convolution():
        machine.kernel(60 * US, GEMM, "aten::cudnn_convolution")
        machine.kernel(140 * US, STRIDED, "aten::add_")

    trace = machine.steps(lambda _: [machine.op("aten::convolution", convolution, **args) for _ in range(20)])
    finding = row(trace, "convolution_below_roof")
    assert rules(trace) == ["convolution_below_roof"]
    assert "70 % of the time is in elementwise kernels of the operator" in finding["evidence"]
    assert "bias=False" in finding["action"]


def test_an_operator_without_a_model_that_takes_most_of_the_step_comes_before_a_small_cause():
    machine = Machine()

    def step(_):
        machine.load(1000 * US)
        machine.kernel(
            7000 * US, "indexFuncLargeIndex", "aten::index_add_", shapes=[[1000, 64], [], [5000], [5000, 64]]
        )
        machine.wait()

    trace = machine.steps(step)
    assert rules(trace)[:2] == ["unknown_part", "data_loading"]
    unknown = row(trace, "unknown_part")
    assert "most of it in `aten::index_add_`" in unknown["title"]
    assert "Additions that meet in few rows wait" in unknown["action"]


def test_kernels_between_which_the_host_reads_a_result_cannot_be_fused():
    machine = Machine()

    def step(_):
        for number in range(40):
            op, name, shapes, types, dur = pointwise(f"aten::{'add' if number % 2 else 'mul'}", 16384, 0.8)
            machine.kernel(int(dur), name, op, shapes=shapes, types=types)
            machine.wait()

    assert "elementwise" not in rules(machine.steps(step))


def test_float64_among_other_formats_is_named():
    doubles = pointwise("aten::mul", 16384, 0.8, types=("double", "double"))
    trace = steps(matmul(4096, 4096, 4096, 0.7), doubles)
    finding = row(trace, "double_precision")
    assert "most of it in `aten::mul`" in finding["title"]
    assert "float32" in finding["action"]
    assert "double_precision" not in rules(steps(doubles))  # the program means to compute in float64


def test_without_marked_steps_it_is_hardly_sure_that_nothing_stands_out():
    machine = Machine(A100)
    op, name, shapes, types, dur = matmul(4096, 4096, 4096, 0.7)
    with_steps = machine.steps(
        lambda _: [machine.kernel(int(dur), name, op, shapes=shapes, types=types) for _ in range(20)]
    )
    machine.builder.events = [e for e in machine.builder.events if not e["name"].startswith("ProfilerStep")]
    (sure,), (unsure,) = (advice(trace).rows(named=True) for trace in (with_steps, machine.builder.build()))
    assert all(found["title"].startswith("Nothing stands out: the GPU computes for 9") for found in (sure, unsure))
    assert (sure["confidence"], unsure["confidence"]) == ("high", "low")
    assert "No steps are marked" in unsure["evidence"]
    assert "Call profiler.step() after each batch." in unsure["action"]
