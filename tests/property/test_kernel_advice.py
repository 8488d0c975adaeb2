"""What holds of advice about kernels, whatever runs: no time is claimed twice, and roofs are below the time."""

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.arrays.intervals import length_within
from kinetoscope_tb.measures.calls.kernel_work import KernelWork
from kinetoscope_tb.measures.time.breakdown import intervals_of
from kinetoscope_tb.views.device.operator_efficiency import operator_efficiency
from support.examples import examples
from support.machine import A100, US, V100, Machine

OF_KERNELS = {
    "unfused_attention",
    "matmul_below_roof",
    "convolution_below_roof",
    "attention_below_roof",
    "elementwise_below_roof",
    "elementwise",
    "casts",
    "layout_changes",
    "mixed_precision",
    "channels_last",
}
BF16, FLOAT = "c10::BFloat16", "float"
TENSOR, PLAIN = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", "ampere_sgemm_128x64_nn"
POINTWISE, STRIDED = "at::native::vectorized_elementwise_kernel<4>", "at::native::elementwise_kernel<128, 4>"
SOFTMAX, LAYOUT = "at::native::cunn_SoftMaxForward<8>", "cudnn::ops::nchwToNhwcKernel<float>"


def operators():
    """Calls of an operator with one kernel: (operator, kernel, shapes, types)."""
    sizes = st.sampled_from([7, 64, 512, 1000, 2048])
    types = st.sampled_from([BF16, FLOAT])

    def matmul(m, n, k, kind, kernel):
        return "aten::mm", kernel, [[m, k], [k, n]], [kind, kind]

    def scores(n, kind):
        return "aten::bmm", TENSOR, [[8, n, 64], [8, 64, n]], [kind, kind]

    def values(n, kind):
        return "aten::bmm", TENSOR, [[8, n, n], [8, n, 64]], [kind, kind]

    def softmax(n, kind):
        return "aten::_softmax", SOFTMAX, [[8, n, n], [], []], [kind, "Scalar", "Scalar"]

    def pointwise(op, n, first, second, kernel):
        return op, kernel, [[n, 1024], [n, 1024]], [first, second]

    names = st.sampled_from(["aten::add", "aten::mul", "aten::copy_", "aten::convolution", "custom::op"])
    kernels = st.sampled_from([POINTWISE, STRIDED, LAYOUT])
    return st.one_of(
        st.builds(matmul, sizes, sizes, sizes, types, st.sampled_from([TENSOR, PLAIN])),
        st.builds(scores, sizes, types),
        st.builds(values, sizes, types),
        st.builds(softmax, sizes, types),
        st.builds(pointwise, names, sizes, types, types, kernels),
    )


@st.composite
def traces(draw):
    calls = draw(st.lists(st.tuples(operators(), st.integers(1, 500)), min_size=1, max_size=14))
    machine = Machine(draw(st.sampled_from([A100, V100, None])))

    def step(_):
        for (op, kernel, shapes, types), dur in calls:
            machine.kernel(dur * US, kernel, op, shapes=shapes, types=types)

    return machine.steps(step, draw(st.integers(1, 3)))


@examples(150)
@given(traces())
def test_what_holds_of_advice_about_any_kernels(trace):
    facts = Facts(trace)
    work = KernelWork.of(trace, facts.kernels)
    assert_savings_are_at_most_the_time_that_kernels_run(trace, facts)
    assert_every_kernel_is_in_one_group_whose_time_is_that_of_its_kernels(facts, work)
    if facts.count == trace.steps.height:  # the table is about the whole recording
        assert_groups_have_the_share_of_the_roof_that_the_table_has(trace, work)


def assert_savings_are_at_most_the_time_that_kernels_run(trace, facts):
    rows = [each for each in advice(facts) if each.rule in OF_KERNELS]
    running = length_within(intervals_of(trace.kernels), facts.windows.start, facts.windows.end)
    assert all(each.saving_ns is None or each.saving_ns > 0 for each in rows)
    of_kernels_alone = [row for row in rows if row.candidate is None or row.candidate.spans is None]
    assert sum(row.saving_ns or 0 for row in of_kernels_alone) <= facts.mean(running) + len(rows)
    sizes = [each.size_ns for each in rows if each.size_ns is not None]
    assert sum(sizes) <= facts.mean(running) + len(sizes)


def assert_every_kernel_is_in_one_group_whose_time_is_that_of_its_kernels(facts, work):
    times = np.zeros(len(work.groups), np.int64)
    np.add.at(times, work.group, facts.kernels["dur_ns"].to_numpy())
    assert times.tolist() == [group.time_ns for group in work.groups]
    assert all(group.roof_ns is None or group.roof_ns > 0 for group in work.groups)
    assert all((group.roof_ns is None) == bool(group.reason) for group in work.groups)


def assert_groups_have_the_share_of_the_roof_that_the_table_has(trace, work):
    table = operator_efficiency(trace).filter(pl.col("roof_frac").is_not_null())
    shares = {
        (row["name"], row["input_shapes"], row["input_types"]): row["roof_frac"] for row in table.rows(named=True)
    }
    kinds = Counter((group.name, group.shapes, group.types) for group in work.groups)
    for group in work.groups:
        key = (group.name, group.shapes, group.types)
        if kinds[key] > 1:
            continue  # the table judges kernels of several families together
        if key in shares and group.roof_frac is not None:
            assert abs(group.roof_frac - shares[key]) < 1e-9 * shares[key]
