"""How long the host takes for each operator: a slower host takes longer for equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..measures.time.host_activity import working_threads
from ..measures.time.step_subset import counted_steps
from ..trace import Trace

_SLOWER, _ALL_SLOWER = 1.2, 1.1  # times as long: in the middle, and nearly everywhere
_EQUAL = 1.02  # times as many calls
_MOST, _NEARLY_ALL = 0.5, 0.75  # of the time of all operators
_FEWEST = 3  # operators


@dataclass(frozen=True)
class OperatorPace:
    """The host's part of an operator.

    Args:
        calls: Per step.
        ns: How long the host takes for a call itself, without calls of the runtime and of other operators.
    """

    calls: float
    ns: float


def operator_paces(trace: Trace) -> dict[str, OperatorPace]:
    """The operators of the counted steps that don't communicate."""
    steps, host = counted_steps(trace), trace.host_events
    is_own = pl.Series(working_threads(trace)[host["thread"].to_numpy()], dtype=pl.Boolean)
    is_own &= (host["kind"] == "operator") & host["step"].is_in(steps) & ~host["is_communication"] & ~host["is_repeat"]
    sums = (
        host.select("name", "self_ns")
        .filter(is_own)
        .group_by("name")
        .agg(calls=pl.len(), ns=pl.col("self_ns").median())
    )
    return {str(name): OperatorPace(calls / len(steps), ns) for name, calls, ns in sums.drop_nulls().rows()}


def slowness(own: Mapping[str, OperatorPace], other: Mapping[str, OperatorPace]) -> float:
    """How many times as long a host takes for equal operators as another one; 1 unless nearly all take longer.

    Operators are equal that both call as often; they must be most of the time.
    """
    equal = [name for name, pace in own.items() if name in other and _is_equal(pace.calls, other[name].calls)]
    equal = [name for name in equal if own[name].ns > 0 and other[name].ns > 0]
    whole = sum(pace.calls * pace.ns for pace in own.values())
    if len(equal) < _FEWEST or sum(own[name].calls * own[name].ns for name in equal) < _MOST * whole:
        return 1.0
    weights = np.array([own[name].calls * min(own[name].ns, other[name].ns) for name in equal])
    ratios = np.array([own[name].ns / other[name].ns for name in equal])
    order = np.argsort(ratios)
    middle = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    ratio = float(ratios[order][middle])
    are_slower = weights[ratios >= _ALL_SLOWER].sum() >= _NEARLY_ALL * weights.sum()
    return ratio if ratio >= _SLOWER and are_slower else 1.0


def calls_more(own: Mapping[str, OperatorPace], other: Mapping[str, OperatorPace]) -> bool:
    """Whether a rank calls more operators per step than another one, or that is unknown."""
    calls, others = (sum(pace.calls for pace in paces.values()) for paces in (own, other))
    return not calls or not others or calls > _EQUAL * others


def _is_equal(calls: float, others: float) -> bool:
    return max(calls, others) <= _EQUAL * min(calls, others)
