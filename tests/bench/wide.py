"""A made-up recording in which nothing repeats: as many operators, kernels, functions and tensors as it has calls.

Every table of it is as long as it can be, and so are the flame graphs, the treemap and the roofline chart.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.build import TraceBuilder  # the tests' own
from training import DEVICE, LAUNCH

CALL_NS = 20_000
CALLS_A_STEP = 1000
PRODUCTS = 10  # every tenth operator has a product of matrices inside, of a shape of its own
DEEP = 25  # functions below each other


def shapes(number: int) -> dict[str, object]:
    """Arguments of a product of matrices that no other has."""
    width = 64 * (1 + number)
    return {"Input Dims": [[512, width], [width, 256]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}


def write_wide(path: Path, calls: int) -> int:
    """Write a recording with so many calls; return how many events."""
    trace = TraceBuilder(deviceProperties=[DEVICE], with_stack=1, record_shapes=1, profile_memory=1)
    for step in range(-(-calls // CALLS_A_STEP)):
        trace.step(step, step * CALLS_A_STEP * CALL_NS, min(CALLS_A_STEP, calls - step * CALLS_A_STEP) * CALL_NS - 10)
    for number in range(calls):
        at, correlation = number * CALL_NS, number + 1
        level = number % DEEP
        lasts = (DEEP - level) * CALL_NS - 20 * (level + 1)
        above = {"Python parent id": number} if level else {}
        trace.python(f"model.py({number}): function_{number}", at + 5, lasts, **{"Python id": number + 1, **above})
        trace.op(f"custom::operator_{number}", at + 1_000, 15_000)
        if number % PRODUCTS == 0:
            trace.op("aten::mm", at + 1_200, 14_000, **shapes(number))
        trace.launch(at + 2_000, 4_000, correlation)
        trace.kernel(
            f"void kernel_{number}<float, {number}>(float*)", at + 8_000, 5_000 + number % 7_000, correlation, **LAUNCH
        )
        totals = {"Device Type": 1, "Device Id": 0, "Total Allocated": 4096 * correlation, "Total Reserved": 1 << 33}
        trace.memory(4096, at + 1_500, address=correlation, **totals)
    path.write_text(trace.text(), encoding="utf-8")
    return len(trace.events)
