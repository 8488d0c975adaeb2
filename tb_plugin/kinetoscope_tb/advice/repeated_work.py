"""Work that the device does once more than it must: activations that the backward pass computes again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.intervals import length_within
from ..arrays.nesting import nearest
from ..measures.time.breakdown import intervals_of
from .facts import Facts, launched_within
from .model import Advice, Candidate

_RECOMPUTES = re.compile(r"^CheckpointFunctionBackward$")
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function: (?!CheckpointFunctionBackward)")
_FRAME = re.compile(r"torch/utils/checkpoint\.py\(\d+\): (?:unpack_hook|recompute_fn|recompute)$")


def recomputation(facts: Facts) -> Iterator[Advice]:
    """Activation checkpointing: forward operators run a second time, in the backward pass.

    With use_reentrant, CheckpointFunctionBackward runs them, and then the backward pass of what they computed, inside
    its own; without it, the hook that unpacks a saved tensor does (torch/utils/checkpoint.py), which only stacks show.
    """
    if not facts.has_device:
        return
    rows = np.flatnonzero(_in_recomputation(facts))
    device = facts.trace.device_events
    again = np.zeros(device.height, bool)
    again[rows] = True
    busy = intervals_of(device, again)
    lengths = length_within(busy, facts.windows.start, facts.windows.end)
    if not facts.is_worth(lengths):
        return
    yield Advice(
        "recomputation",
        f"Recomputing activations in the backward pass takes {facts.of_steps(lengths)}.",
        f"Activation checkpointing runs forward operators again for {facts.part_of(lengths)}{facts.recurs(lengths)}.",
        "If memory suffices, checkpoint fewer layers, or only what is cheap to compute again (selective activation "
        "checkpointing: `create_selective_checkpoint_contexts`); the view Memory says how much is free.",
        None,
        "high",
        "operators",
        "",
        facts.mean(lengths),
        Candidate("recomputed activations", rows=rows),
    )


def _in_recomputation(facts: Facts) -> NDArray[np.bool_]:
    """Which rows of device_events the recomputation launches."""
    trace = facts.trace
    host, op = trace.host_events, trace.device_events["op"].to_numpy()
    parent = host["parent"].to_numpy()
    recomputes = map_categories(host["name"], lambda name: bool(_RECOMPUTES.search(name)))
    backward = map_categories(host["name"], lambda name: bool(_BACKWARD.search(name)))
    inner = gather(nearest(recomputes | backward, parent), op)
    by_function: NDArray[np.bool_] = gather(recomputes, inner, missing=False)
    hooks = map_categories(trace.python_calls["name"], lambda name: bool(_FRAME.search(name)))
    return by_function | launched_within(trace, intervals_of(trace.python_calls, hooks))
