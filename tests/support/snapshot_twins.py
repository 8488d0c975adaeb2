"""A memory snapshot and a trace of one planted training, on one clock."""

from __future__ import annotations

from kinetoscope_tb.measures.memory.snapshot_join import join_snapshot
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace
from support.build import TraceBuilder
from support.snapshots import MIB, START_US, Allocator, Block

BASE_NS = START_US * 1000


class Twins:
    """A snapshot and a trace of one process, on one clock.

    Args:
        records_memory: Whether the trace has records of memory.
        behind_ns: How far the trace's record is behind the allocation.
    """

    def __init__(self, *, records_memory: bool = False, behind_ns: int = 700) -> None:
        self.allocator, self.trace = Allocator(), TraceBuilder(BASE_NS)
        self.records_memory, self.behind_ns = records_memory, behind_ns
        self.trace.window(0, 10_000_000)

    def allocate(self, size: int, at: int, *, thread: int = 1, is_recorded: bool = True) -> Block:
        """A block, at a time in ns since the trace began."""
        self.allocator._now = START_US + at // 1000 - 10 - 10 * self._needs_segment(size)
        block = self.allocator.allocate(size)
        self._record(size, at, block.address, thread, is_recorded=is_recorded)
        return block

    def free(self, block: Block, at: int) -> None:
        """Free a block at a time."""
        self.allocator._now = START_US + at // 1000 - 20
        self.allocator.free(block)
        self._record(-block.requested, at, block.address)

    def _needs_segment(self, size: int) -> bool:
        return not any(
            block.state == "inactive" and block.size >= size and segment.is_small == (size <= MIB)
            for segment in self.allocator.segments
            for block in segment.blocks
        )

    def _record(self, size: int, at: int, address: int, thread: int = 1, *, is_recorded: bool = True) -> None:
        if self.records_memory and is_recorded:
            device = {"Device Type": 1, "Device Id": 0, "Total Allocated": -1}
            self.trace.memory(size, at + self.behind_ns, address=address, thread=thread, **device)

    def joined(self) -> Trace:
        """The snapshot with the calls of the trace."""
        snapshot = read_blocks([self.allocator.dumped()], path="rank0.1.memory.pickle")
        return join_snapshot(snapshot, self.trace.build(), "rank0.1.pt.trace.json")


def training(*, records_memory: bool = False) -> Twins:
    """Two steps: a linear layer forward and backward, and an optimizer whose state stays; a block outside of it all."""
    twins = Twins(records_memory=records_memory)
    trace = twins.trace
    for step, at in enumerate((1_000_000, 3_000_000)):
        trace.step(step, at, 1_800_000)
        trace.module("Linear_0", at + 100_000, 200_000).op("aten::linear", at + 110_000, 180_000)
        trace.op("aten::addmm", at + 130_000, 120_000, **{"Sequence number": step, "Fwd thread id": 0})
        trace.op("aten::empty", at + 150_000, 40_000)
        activation = twins.allocate(8 * MIB, at + 170_500)
        backward = "autograd::engine::evaluate_function: AddmmBackward0"
        trace.op(backward, at + 600_000, 300_000, thread=2, **{"Sequence number": step, "Fwd thread id": 1})
        trace.op("AddmmBackward0", at + 610_000, 270_000, thread=2, **{"Sequence number": step, "Fwd thread id": 1})
        trace.op("aten::mm", at + 650_000, 200_000, thread=2)
        gradient = twins.allocate(4 * MIB, at + 700_000, thread=2)
        twins.free(activation, at + 800_000)
        trace.annotation("Optimizer.step#AdamW.step", at + 1_000_000, 400_000)
        trace.op("aten::zeros_like", at + 1_100_000, 100_000)
        twins.allocate(2 * MIB, at + 1_150_000)
        trace.op("aten::zero_", at + 1_500_000, 100_000)
        twins.free(gradient, at + 1_550_000)
    twins.allocate(16 * MIB, 9_000_000)
    twins.allocate(32 * MIB, 20_000_000, is_recorded=False)
    return twins
