"""The precision of matmuls is known by the kernel's name, whichever operator launched it."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.build import TraceBuilder
from support.machine import MS, Machine


def rules(op, kernel):
    machine = Machine()
    trace = machine.steps(lambda _: [machine.kernel(3 * MS, kernel, op=op) for _ in range(4)])
    return [row.rule for row in advice(Facts(trace))]


@pytest.mark.parametrize("op", ["aten::mm", "CompiledFunction", "mylib::projection"])
def test_float_matmuls_are_known_by_their_kernel(op):
    assert rules(op, "ampere_sgemm_128x64_tn")[0] == "mixed_precision"
    assert "mixed_precision" not in rules(op, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn")


@pytest.mark.parametrize(("kernel", "clause"), [("vectorized_elementwise_kernel", ", which no kernel uses"), ("k", "")])
def test_of_an_unknown_device_it_is_said_whether_any_kernel_uses_tensor_cores(kernel, clause):
    trace = TraceBuilder().step(1, 0, 20 * MS).op("aten::add", 0, 10_000).launch(0, 5_000, 1)
    rows = advice(Facts(trace.kernel(kernel, 10_000, 15 * MS, 1).build()))
    assert f"Unknown: whether the device has tensor cores{clause}, because" in rows[-1].evidence
