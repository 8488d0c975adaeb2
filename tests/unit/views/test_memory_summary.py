"""Memory in a sentence: who holds the peak, and where it was allocated."""

from __future__ import annotations

from kinetoscope_tb.views.memory.memory_summary import memory_summary
from support.build import TraceBuilder

MIB = 1 << 20
GPU = {"Device Type": 1, "Device Id": 0}


def of_gpu(total, address):
    return {**GPU, "address": address, "Total Allocated": total}


def test_the_holder_of_the_peak_is_named_with_its_line():
    builder = TraceBuilder().step(7, 0, 1000).python("model.py(20): forward", at=10, dur=500)
    builder.python("torch/nn/functional.py(9): linear", at=20, dur=300)
    builder.op("aten::bmm", 30, 50).memory(48 * MIB, 40, **of_gpu(48 * MIB, 1))
    builder.op("aten::mul", 100, 50).memory(16 * MIB, 110, **of_gpu(64 * MIB, 2))
    builder.memory(-48 * MIB, 600, **of_gpu(16 * MIB, 1))
    (row,) = memory_summary(builder.build()).rows(named=True)
    assert row["title"] == (
        "Memory of cuda:0 peaks at 64 MiB; 48 MiB of it was allocated by `aten::bmm` at `forward (model.py:20)`."
    )
    assert row["evidence"] == "The next holders: `aten::mul` 16 MiB. The peak is at 110 ns, in step 7."


def test_the_module_that_holds_most_is_named():
    builder = (
        TraceBuilder().module("Linear_0", 10, 500).op("aten::bmm", 30, 50).memory(48 * MIB, 40, **of_gpu(48 * MIB, 1))
    )
    (row,) = memory_summary(builder.build()).rows(named=True)
    assert "`Linear_0` holds the most of any module: 48 MiB, 100 %." in row["evidence"]


def test_memory_from_before_the_recording_is_said_to_be_so():
    builder = TraceBuilder().op("aten::mm", 0, 50).memory(MIB, 40, **of_gpu(64 * MIB, 1))
    (row,) = memory_summary(builder.build()).rows(named=True)
    assert row["title"] == "Memory of cuda:0 peaks at 64 MiB; 63 MiB of it was allocated before the recording."


def test_the_host_is_named_only_where_no_device_has_memory():
    builder = TraceBuilder().op("aten::mm", 0, 50).memory(64 * MIB, 10, **{"Total Allocated": 64 * MIB})
    assert "CPU memory peaks at 64 MiB" in memory_summary(builder.build())["title"][0]
    builder.memory(MIB, 40, **of_gpu(MIB, 2))
    (row,) = memory_summary(builder.build()).rows(named=True)
    assert row["title"] == "Memory of cuda:0 peaks at 1 MiB; all of it was allocated by `aten::mm`."


def test_records_without_addresses_hold_what_nobody_can_be_named_for():
    builder = TraceBuilder().op("aten::empty", 0, 50).memory(3 * MIB, 10, **GPU, Addr=0).memory(-MIB, 60, **GPU, Addr=0)
    (row,) = memory_summary(builder.build()).rows(named=True)
    assert row["title"] == (
        "Memory of cuda:0 peaks 3 MiB above its start; all of it has no address in the trace, so who holds it isn't "
        "known."
    )
    assert row["evidence"].startswith("*By operator* lists who allocated how much in all.")
    assert row["view"] == "memory_by_operator"


def test_an_allocation_of_the_backward_pass_has_the_line_of_its_forward_operator():
    builder = TraceBuilder().python("model.py(20): forward", at=10, dur=100)
    builder.op("aten::mm", 20, 50).arrow(3, (1, 20), (2, 200))
    builder.op("autograd::engine::evaluate_function: MmBackward0", 200, 80, thread=2)
    builder.op("aten::bmm", 210, 50, thread=2).memory(48 * MIB, 220, thread=2, **of_gpu(48 * MIB, 1))
    (row,) = memory_summary(builder.build()).rows(named=True)
    assert row["title"].endswith("was allocated by `aten::bmm`, whose forward ran at `forward (model.py:20)`.")
