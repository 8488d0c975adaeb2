"""What memory is used for: parameters, gradients, optimizer state, activations or workspace.

A trace doesn't say what a tensor is. It has the operator that allocated it, and when it was released;
`category_numbers` decides by these. What they don't decide is unknown, and so is memory from before the recording,
except for the parameters: each gradient that the optimizer gets has a parameter of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.nesting import nearest
from ...names.memory_categories import (
    ACTIVATIONS,
    CATEGORIES,
    CATEGORY_OF_TORCH,
    GRADIENTS,
    OPTIMIZER_STATE,
    PARAMETERS,
    UNKNOWN,
    WORKSPACE,
)
from ...names.regex import regex
from ...trace.model import Trace
from ...trace.row_filters import is_operator
from ..calls.module_calls import ModuleCalls
from .allocations import ALIVE, EARLIER, RELEASED, REUSED, allocations
from .levels import DeviceMemory

_BACKWARD = "autograd::engine::evaluate_function"
_OPTIMIZER = "Optimizer.step#"
_SOURCE = regex(r"aten::(?:rand|zeros|ones|full|arange|empty|_to_copy|to$)")
"""Operators that make data or move it: outside modules what they allocate may be an input."""
_FAR = np.iinfo(np.int64).max

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Phases:
    """The part of a training step that each host event belongs to.

    Args:
        call: The outermost operator around each host event, or NONE.
        is_backward: Whether the backward pass runs it.
        accumulates: Whether it adds up a parameter's gradient.
        is_in_module: Whether a module's forward pass runs it.
        makes_inputs: Whether its outermost operator may make an input of the model.
        start: Of each Optimizer.step, in order.
        end: Of each Optimizer.step.
        steps: The starts of the recording's steps.
    """

    call: NDArray[np.int32]
    is_backward: Bools
    accumulates: Bools
    is_in_module: Bools
    makes_inputs: Bools
    start: Ints
    end: Ints
    steps: Ints

    @classmethod
    def of(cls, trace: Trace) -> Phases:
        """Find the phases of a trace."""
        host = trace.host_events
        parent, is_op = host["parent"].to_numpy(), is_operator(trace)
        above = gather(nearest(is_op, parent), parent)
        runs_node = map_categories(host["name"], lambda name: name.startswith(_BACKWARD)).astype(bool)
        adds = map_categories(host["name"], lambda name: name.endswith("AccumulateGrad")).astype(bool)
        module, is_of_backward = ModuleCalls.of(trace).of_host_rows(trace)
        is_in_module = ((module >= 0) & ~is_of_backward)[: host.height]
        optimizes = map_categories(host["name"], lambda name: name.startswith(_OPTIMIZER)).astype(bool)
        steps = host.filter(pl.Series(optimizes)).sort("start_ns")
        call = nearest(is_op & (above < 0), parent)
        is_source = map_categories(host["name"], lambda name: bool(_SOURCE.match(name)))
        return cls(
            call=call,
            is_backward=nearest(runs_node, parent) >= 0,
            accumulates=nearest(adds, parent) >= 0,
            is_in_module=is_in_module,
            makes_inputs=gather(is_source.astype(bool), call, missing=False),
            start=steps["start_ns"].to_numpy(),
            end=(steps["start_ns"] + steps["dur_ns"]).to_numpy(),
            steps=trace.steps["start_ns"].to_numpy(),
        )


def category_numbers(trace: Trace, memory: DeviceMemory, pieces: pl.DataFrame, phases: Phases) -> NDArray[np.int8]:
    """The category of each allocation of a device, as an index of CATEGORIES; the first rule that applies decides.

    1. Backward pass, alive when the next Optimizer.step begins, or an AccumulateGrad allocated it: gradients.
       Released before: workspace.
    2. Optimizer.step, released before it ends: workspace. Alive afterwards: optimizer state.
    3. Released by the operator call that allocated it: workspace.
    4. Released by a backward operator, unless it may be an input; or allocated in a module and released before the next
       Optimizer.step ends (in a recording without one, in the same step): activations.
    """
    fate = pieces["fate"].to_numpy()
    begin = pieces["allocated_ns"].to_numpy()
    has_begin = (pieces["allocated"].to_numpy() >= 0) & np.isin(fate, (RELEASED, ALIVE, REUSED))
    is_released = fate == RELEASED
    end = np.where(is_released, pieces["released_ns"].to_numpy(), _FAR)
    op = trace.memory["op"].to_numpy()
    allocator = gather(op, pieces["row"].to_numpy())
    releaser = np.where(is_released, gather(op, gather(memory.row, pieces["released"].to_numpy())), NONE)
    backward = gather(phases.is_backward, allocator, missing=False)
    in_module = gather(phases.is_in_module, allocator, missing=False)
    accumulates = gather(phases.accumulates, allocator, missing=False)
    next_optimizer_step = np.searchsorted(phases.start, begin)
    next_start = np.append(phases.start, _FAR)[next_optimizer_step]
    current_end = np.append(phases.end, 0)[next_optimizer_step - 1]  # of the Optimizer.step that began before, if any
    is_in_optimizer = ~backward & (begin < current_end)
    call = gather(phases.call, allocator)
    is_own_release = (call >= 0) & (gather(phases.call, releaser) == call)
    in_same_step = np.searchsorted(phases.steps, begin, "right") == np.searchsorted(phases.steps, end, "right")
    is_short = end <= np.append(phases.end, _FAR)[next_optimizer_step] if phases.start.size else in_same_step
    is_input = gather(phases.makes_inputs, allocator, missing=False) & ~in_module
    is_saved = gather(phases.is_backward, releaser, missing=False) & ~is_input
    is_activation = is_saved | (in_module & is_released & is_short)
    numbers: NDArray[np.int8] = np.select(
        [
            ~has_begin,
            backward & (end > next_start) & (next_start < _FAR),
            backward & accumulates & (next_start == _FAR),
            backward & is_released,
            backward,
            is_in_optimizer & (end <= current_end),
            is_in_optimizer,
            is_own_release,
            is_activation,
        ],
        [UNKNOWN, GRADIENTS, GRADIENTS, WORKSPACE, UNKNOWN, WORKSPACE, OPTIMIZER_STATE, WORKSPACE, ACTIVATIONS],
        default=UNKNOWN,
    ).astype(np.int8)
    return numbers


@dataclass(frozen=True)
class CategoryLevels:
    """How much memory of each category a device had after each record.

    Args:
        levels: One row per record, one column per category; a record's sum is the allocated memory, unless releases
            weren't recorded.
        before: The levels before the first record.
        pieces: The allocations of the device.
        numbers: The category of each.
    """

    levels: Ints
    before: Ints
    pieces: pl.DataFrame
    numbers: NDArray[np.int8]

    @classmethod
    def of(cls, trace: Trace, memory: DeviceMemory) -> CategoryLevels:
        """Sum up the allocations of a device by category; a memory timeline says them itself."""
        pieces = allocations([memory])
        if trace.meta.top.get("memoryTimeline") is True:
            category_of_record = map_categories(trace.memory["name"], lambda name: CATEGORY_OF_TORCH.get(name, UNKNOWN))
            category_of_record = category_of_record[memory.row].astype(np.int64)
            return cls(
                _levels_of(category_of_record, memory),
                np.zeros(len(CATEGORIES), np.int64),
                pieces,
                category_of_record[pieces["allocated"].to_numpy()].astype(np.int8),
            )
        phases = Phases.of(trace)
        numbers = category_numbers(trace, memory, pieces, phases)
        levels = _known_levels(memory, pieces, numbers)
        levels = np.vstack([np.zeros(len(CATEGORIES), np.int64), levels])
        rest = np.append(memory.before_bytes, memory.allocated_bytes) - levels.sum(axis=1)
        earlier = np.append(memory.before_bytes, _earlier_levels(memory, pieces))
        at_steps = np.searchsorted(memory.time_ns, phases.start) - 1
        gradients = int(levels[at_steps[at_steps >= 0] + 1, GRADIENTS].max(initial=0))
        levels[:, PARAMETERS] = np.where(earlier >= gradients, np.minimum(gradients, np.maximum(rest, 0)), 0)
        levels[:, UNKNOWN] = np.maximum(0, rest - levels[:, PARAMETERS])
        return cls(levels[1:], levels[0], pieces, numbers)


def _levels_of(numbers: Ints, memory: DeviceMemory) -> Ints:
    levels = np.zeros((memory.time_ns.size, len(CATEGORIES)), np.int64)
    levels[np.arange(numbers.size), numbers] = memory.change_bytes
    return np.cumsum(levels, axis=0)


def _known_levels(memory: DeviceMemory, pieces: pl.DataFrame, numbers: NDArray[np.int8]) -> Ints:
    levels = np.zeros((memory.time_ns.size, len(CATEGORIES)), np.int64)
    is_known = numbers != UNKNOWN
    for name, sign in (("allocated", 1), ("released", -1)):
        record = pieces[name].to_numpy()
        is_counted = is_known & (record >= 0)
        np.add.at(levels, (record[is_counted], numbers[is_counted]), sign * pieces["size_bytes"].to_numpy()[is_counted])
    return np.cumsum(levels, axis=0)


def _earlier_levels(memory: DeviceMemory, pieces: pl.DataFrame) -> Ints:
    """The memory from before the recording that is still allocated after each record."""
    releases = pieces.filter(pl.col("fate") == EARLIER)
    change = np.zeros(memory.time_ns.size, np.int64)
    np.subtract.at(change, releases["released"].to_numpy(), releases["size_bytes"].to_numpy())
    return memory.before_bytes + np.cumsum(change)
