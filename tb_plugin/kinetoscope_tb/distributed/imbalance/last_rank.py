"""Who came last to collectives, where there are too few steps to call a rank slow: a sentence of low confidence.

A recording whose steps aren't marked is one step. What the last rank does longer than the others in it is named as the
cause if it explains most of the time for which they waited.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ...names import text
from ..run import Ranks
from .collective_waits import collective_waits
from .late_rank import PAIR, action, does, of_work
from .step_times import start_lags, step_rows
from .stragglers import differences

_LEAST_FRAC = 0.02  # of the step: shorter waits delay no rank
_MOSTLY = 0.5  # of the wait
_WHOLE = "all"  # the one step of a recording without marked steps
_BEFORE = "What made it late lies before the step: see what it does at its end and between steps."
_ACTION = "Record at least 3 complete steps on all ranks: that tells a slow rank from a one-off."


def last_ranks(ranks: Ranks, step_ns: float) -> list[dict[str, Any]]:
    """One sentence as a row of RunAdvice: the rank that made the others wait longest; none if that is unknown."""
    is_known = pl.col("transfer_ns").is_not_null() & (pl.col("operation") != "transfer")
    collectives = collective_waits(ranks).filter(is_known & (pl.col("ranks") > 1))
    if collectives.is_empty() or ranks.missing_ranks:
        return []
    waits = (
        collectives.filter(pl.col("last").is_not_null())
        .group_by("last")
        .agg(
            times=pl.len(),
            wait_ns=pl.col("total_wait_ns").sum(),
            each_ns=pl.col("max_wait_ns").sum(),
            longest_ns=pl.col("total_wait_ns").max(),
            operation=pl.col("operation").sort_by("total_wait_ns").last(),
        )
        .sort("wait_ns", "last", descending=[True, False])
    )
    whole = int(collectives["total_wait_ns"].sum())
    unclear = collectives.filter(pl.col("last").is_null())
    if waits.is_empty() or waits["each_ns"][0] < _LEAST_FRAC * step_ns:
        return [_together(collectives.height, whole, ranks)]
    return [_last(waits, collectives.height, whole, _unclear(unclear), ranks)]


def _unclear(collectives: pl.DataFrame) -> str:
    """That nothing says who was last at some collectives; empty if there are none."""
    if collectives.is_empty():
        return ""
    noise = text.time(float(collectives["noise_ns"].max()))  # type: ignore[arg-type]  # it isn't empty
    return (
        f" At {text.times(collectives.height, 'other collective')} it is unclear who was last: ranks came within "
        f"{noise}, by which the ends of a collective differ between ranks."
    )


def _last(waits: pl.DataFrame, count: int, whole: int, unclear: str, ranks: Ranks) -> dict[str, Any]:
    first, *others = waits.to_dicts()
    cause = _cause(first, ranks)
    numbers = dict(ranks.workers.select("worker", "rank").rows())
    subject = f"Rank {numbers[first['last']]}"
    evidence = (
        f"That is {text.percent(first['wait_ns'] / whole)} of all waiting, {text.time(first['longest_ns'])} of it at "
        f"one {first['operation']}."
    )
    if others:
        names = text.enumeration([f"rank {numbers[row['last']]} ({row['times']})" for row in others[:3]])
        others_wait_ns = sum(row["wait_ns"] for row in others)
        evidence += f" Last at other collectives: {names}, for {text.time(others_wait_ns)} of waiting."
    began = "" if cause else _late_begin(first, ranks)
    because = f". It {does(cause)}" if cause else began
    others_of_it = "the other rank" if len(numbers) == PAIR else "the others"
    title = (
        f"{subject} was last at {first['times']} of {text.times(count, 'collective')}; {others_of_it} waited "
        f"{text.time(first['wait_ns'])} in total{because}."
    )
    what_to_do = " ".join([*([action(cause)] if cause else []), *([_BEFORE] if began else []), _ACTION])
    return _row(title, evidence + unclear + (of_work(cause) if cause else ""), what_to_do, first["last"], ranks)


def _cause(last: dict[str, Any], ranks: Ranks) -> dict[str, Any] | None:
    """What the rank does longer than the others, as a row of VERDICTS; None unless that explains most of the wait."""
    device = dict(ranks.workers.select("worker", "device").rows())[last["last"]]
    member = ranks.workers.filter(pl.col("worker") == last["last"])["member"].min()
    row = differences(step_rows(ranks), member)  # type: ignore[arg-type]  # the worker has a trace
    if row is None or row["part_ns"] < _MOSTLY * last["each_ns"]:
        return None
    return {**row, "device": device}


def _late_begin(last: dict[str, Any], ranks: Ranks) -> str:
    """That the rank began the step long after the first one and than others do; empty unless it explains most waits."""
    member = ranks.workers.filter(pl.col("worker") == last["last"])["member"].min()
    lags = start_lags(ranks).filter(pl.col("step") != _WHOLE)
    own, others = lags.filter(pl.col("member") == member), lags.filter(pl.col("member") != member)
    if own.is_empty() or others.is_empty():
        return ""
    own_ns, others_ns = (float(part["start_lag_ns"].median()) for part in (own, others))  # type: ignore[arg-type]
    if own_ns * own.height < _MOSTLY * last["each_ns"] or others_ns > _MOSTLY * own_ns:
        return ""
    if others["member"].n_unique() == 1:
        return f". It began the step {text.time(own_ns - others_ns)} after the other rank"
    return f". It began the step {text.time(own_ns)} after the first rank, the others typically {text.time(others_ns)}"


def _together(count: int, whole: int, ranks: Ranks) -> dict[str, Any]:
    title = f"No rank held the others up for long: at {text.times(count, 'collective')} they waited {text.time(whole)}."
    return _row(title, "That is the sum over all ranks.", "There is nothing to do.", None, ranks)


def _row(title: str, evidence: str, what_to_do: str, worker: str | None, ranks: Ranks) -> dict[str, Any]:
    steps = ranks.steps.filter("is_complete").group_by("member").len()["len"].max() or 0
    most_steps = text.times(int(steps), "complete step")  # type: ignore[arg-type]
    return {
        "rule": "no_last_rank" if worker is None else "last_rank",
        "title": title,
        "evidence": f"{evidence} Each rank recorded at most {most_steps}.",
        "action": what_to_do,
        "saving_ns": None,
        "confidence": "low",
        "view": "rank_waits",
        "filter": worker,
    }
