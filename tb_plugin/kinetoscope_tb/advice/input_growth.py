"""What is kept from step to step and never dropped: the inputs of `cat` grow by as much in every step of a training.

How long operators take varies with what else the machine does; the sizes of their inputs don't.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ..arrays.gather import gather, map_categories
from ..measures.calls.matrix_work import Unknown, parse_list
from ..measures.time.breakdown import intervals_of
from ..names import text
from .culprit import in_program
from .facts import Facts
from .model import Advice

_JOINING = ("aten::cat", "aten::stack")
_FEWEST_STEPS = 5
_UNEVEN = 0.05  # of the mean increase: batches may differ a little
_LEAST_GROWTH = 0.05  # of what they join at first


def growing_inputs(facts: Facts) -> Iterator[Advice]:
    """A training keeps what each step adds, such as outputs, and joins all of it anew in each step."""
    host = facts.trace.host_events
    if not facts.is_training or facts.count < _FEWEST_STEPS or host["input_shapes"].null_count() == host.height:
        return
    is_op = (host["kind"] == "operator").to_numpy()
    is_outermost = ~gather(is_op, host["parent"].to_numpy(), missing=False)  # else an operator joins its own inputs
    joins = map_categories(host["name"], lambda name: name in _JOINING) & is_op & is_outermost
    rows = host.filter(pl.Series(joins, dtype=pl.Boolean) & (pl.col("step") >= 0))
    if rows.is_empty():
        return
    shapes = rows["input_shapes"].cast(pl.String)
    elements_of = {shape: _elements(shape) for shape in shapes.drop_nulls().unique().to_list()}
    elements = shapes.replace_strict(elements_of, default=0, return_dtype=pl.Int64).to_numpy()
    per_step = np.bincount(rows["step"].to_numpy(), elements, facts.counted.size)[facts.counted]
    more = np.diff(per_step)
    is_steady = more.min() > 0 and np.ptp(more) <= _UNEVEN * more.mean()
    if not is_steady or per_step[-1] - per_step[0] < _LEAST_GROWTH * per_step[0]:
        return
    names = rows["name"].cast(pl.String).unique().sort().to_list()
    joined_by, more_text = text.listed([f"`{name}`" for name in names]), text.digits(float(more.mean()))
    where, culprit = in_program(facts, intervals_of(rows))
    yield Advice(
        "growing_inputs",
        f"What {joined_by} joins grows by {more_text} elements in every {facts.noun}{where}.",
        f"From {text.digits(float(per_step[0]))} elements to {text.digits(float(per_step[-1]))} in {facts.count} "
        f"{facts.noun}s: something is kept from {facts.noun} to {facts.noun} and never dropped, so memory grows, and "
        "what computes with all of it takes longer and longer.",
        "Keep what a fixed number of steps added (a ring buffer, `collections.deque(maxlen=…)`), or only sums of it; "
        "`detach()` what is kept for statistics, or it keeps its graph, too.",
        None,
        "high",
        "operators_by_shape",
        names[0],
        culprit=culprit,
    )


def _elements(shapes: str) -> int:
    """The elements of all tensors in the shapes of an operator's inputs."""
    try:
        return _sum_of(parse_list(shapes))
    except Unknown:
        return 0


def _sum_of(sizes: list[Any]) -> int:
    if sizes and all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    return sum(_sum_of(size) for size in sizes if isinstance(size, list))
