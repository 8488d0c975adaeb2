"""Anomaly detection that was left on: autograd looks for NaN in each gradient, and stores stacks of forward operators.

The checks are recorded as operators. Stacks are stored inside the operators that need a gradient: only a recording with
Python stacks shows for how long, so without them what the checks take is a lower bound, and how long those operators
run by themselves is the rest of an upper one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories
from ..arrays.intervals import Intervals, Ints, length_within, merge
from ..arrays.nesting import nearest
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..trace.results import once_per_trace
from ..trace.row_filters import is_operator, name_mask
from .facts import Facts, launched_within
from .model import Advice, Fact

# torch/csrc/autograd/engine.cpp: `isnan(output)._is_any_true().item<bool>()` after each function; user code calls `any`
_OF_ENGINE = re.compile(r"^autograd::engine::evaluate_function: ")
_SEARCH = "aten::_is_any_true"
_SEARCHES = frozenset(("aten::isnan", _SEARCH, "aten::item"))
# anomaly_mode's metadata of a function
_STORES_STACK = re.compile(r"(?:^|[/\\])torch[/\\]fx[/\\]traceback\.py\(\d+\): format_stack$")
_STACK_NS = 1_000_000
"""Formatting a stack of a hundred frames takes less, so no more of an operator's own time is storing its stack."""


class NanSearch(NamedTuple):
    """What anomaly detection is recorded to do.

    Attributes:
        checks: When autograd looks for NaN.
        stores: When stacks of operators are stored, by Python's stacks.
        gradients: In how many it looks for NaN, in the average step.
        more_ns: For how much longer stacks may be stored in the average step, by what isn't recorded.
    """

    checks: Intervals
    stores: Intervals
    gradients: float
    more_ns: int

    @property
    def spans(self) -> Intervals:
        """When either is recorded."""
        return merge([self.checks, self.stores])


@once_per_trace
def nan_search(facts: Facts) -> NanSearch | None:
    """What autograd does to find NaN; None if anomaly detection isn't known to be on."""
    host, calls = facts.trace.host_events, facts.trace.python_calls
    parent = host["parent"].to_numpy()
    looks = name_mask(host["name"], lambda name: name == _SEARCH)
    is_checked = np.zeros(host.height, np.bool_)
    is_checked[parent[looks & (parent != NONE)]] = True
    is_checked &= name_mask(host["name"], lambda name: bool(_OF_ENGINE.search(name)))
    is_in_check = gather(is_checked, parent, missing=False)
    searches = name_mask(host["name"], _SEARCHES.__contains__) & is_in_check
    if not searches.any():
        return None
    stores = intervals_of(calls, map_categories(calls["name"], lambda name: bool(_STORES_STACK.search(name))))
    step = host["step"].to_numpy()[looks & is_in_check]
    gradients = np.bincount(step[step >= 0], minlength=facts.is_counted.size)[facts.is_counted].mean()
    more_ns = 0 if stores[0].size else facts.mean(_in_forward_operators(facts))
    if facts.has_device:
        more_ns = min(more_ns, facts.usual_idle_ns)
    return NanSearch(intervals_of(host, searches), stores, float(gradients), more_ns)


def _in_forward_operators(facts: Facts) -> Ints:
    """For how long operators that may need a gradient run by themselves in each step, as far as that may be a stack."""
    host = facts.trace.host_events
    is_of_engine = name_mask(host["name"], lambda name: bool(_OF_ENGINE.search(name)))
    start, step = host["start_ns"].to_numpy(), host["step"].to_numpy()
    counts: NDArray[np.bool_] = is_operator(facts.trace) & (nearest(is_of_engine, host["parent"].to_numpy()) == NONE)
    counts &= ~is_of_engine & (step >= 0) & (length_within(facts.optimizer_spans, start, start + 1) == 0)
    lengths = np.zeros(facts.length.size, np.int64)
    np.add.at(lengths, step[counts], np.minimum(host["self_ns"].to_numpy()[counts], _STACK_NS))
    return lengths


def while_on(facts: Facts) -> str:
    """What is said of operators that anomaly detection makes slower, as a sentence; empty without it."""
    search = nan_search(facts)
    if search is None or not search.more_ns:
        return ""
    return " Anomaly detection makes operators take longer, by how much isn't recorded: judge this without it."


def anomaly_detection(facts: Facts) -> Iterator[Advice]:
    """It makes the host wait for each check."""
    search = nan_search(facts)
    if search is None:
        return
    parts = (search.spans, search.stores)
    lengths, stacks_ns = (length_within(part, facts.windows.start, facts.windows.end) for part in parts)
    if not facts.is_worth(lengths):
        return
    waits = f", and waits for {facts.device} to say so" if facts.has_device else ""
    is_bound = not stacks_ns.any()
    takes = "" if is_bound else f", for {text.time(facts.mean(stacks_ns))} {facts.per}"
    limit = ", which only a recording with stacks shows" if facts.trace.python_calls.is_empty() else takes
    often = text.times(round(search.gradients), "gradient")
    does = (
        f"Autograd looks for NaN in {often} {facts.per}{waits}; it also stores the Python stack of every operator that "
        "needs a gradient"
    )
    candidate = replace(
        facts.host_candidate("anomaly detection", search.spans),
        rows=np.flatnonzero(launched_within(facts.trace, search.checks)),
        more_ns=search.more_ns,
    )
    yield Advice(
        "anomaly_detection",
        f"Anomaly detection is on, and takes {'at least ' if is_bound else ''}{facts.of_steps(lengths)}.",
        f"{facts.part_of(lengths)}{facts.recurs(lengths)}. {does}{limit}.",
        "Turn it on only to find where a NaN comes from: remove `torch.autograd.set_detect_anomaly(True)`, "
        "`detect_anomaly()` or the trainer's `detect_anomaly=True`.",
        None,
        "medium" if is_bound else "high",
        "operators",
        _SEARCH,
        facts.mean(lengths),
        candidate,
        doubt=("medium", "high") if is_bound else None,
        fact=Fact("Anomaly detection is on.", f"{does}."),
    )
