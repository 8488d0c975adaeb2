"""Run advice: which rank the others wait for, the evidence and what to do; or that no rank is slow beyond noise.

Slow ranks are detected as in Stragglers: by a rank's own time, beyond a threshold that noise alone reaches in one of a
hundred runs. A rank that waits for another one, or comes late because it waited elsewhere, is never named.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ...advice import text
from ...arrays.gather import fraction
from ...distributed import Ranks
from ...distributed.imbalance.step_times import step_rows
from ...distributed.imbalance.stragglers import CAUSES, FEWEST_STEPS, verdicts
from ...distributed.process_groups import spelled
from ...table import DURATION, FRACTION, PROSE, TEXT, Column, Table
from ...view import View

MOST_NAMED = 3
_ACTIONS = dict(
    zip(
        CAUSES.values(),
        (
            "Check whether its device is as fast as the others (clock, temperature, power, other jobs), and whether it "
            "has more work: longer sequences, larger batches, more experts or layers.",
            "Its transfers are slower than those of other ranks: check its link, network card and location.",
            "Check what it copies that others don't, and how its GPU is connected.",
            "Check what its data loader reads, from where, and with how many processes and cores.",
            "Check what runs on its host: other processes, fewer or slower cores, pauses of Python, logging.",
        ),
        strict=True,
    )
)


class RunAdvice(Table):
    """Which ranks are slow, and why; `no_straggler` means that none is."""

    key, weight = ("rule", "filter"), "saving_ns"

    rule = Column(TEXT, "straggler, slow_at_times, no_straggler, or unknown.")
    title = Column(PROSE, "What the trace shows.")
    evidence = Column(PROSE, "The numbers that show it.")
    action = Column(PROSE, "What to do.")
    saving_ns = Column(
        DURATION,
        "How much longer it takes than the slowest rank that isn't a straggler, per step; missing if none is named.",
    )
    saving_frac = Column(FRACTION, "The same / the typical step.")
    confidence = Column(TEXT, "high: in the typical step of all; medium: in single steps, or ranks are missing.")
    view = Column(TEXT, "Id of the view with the evidence.")
    filter = Column(TEXT, "Filter for that view; missing if the whole view is evidence.")


def run_advice(ranks: Ranks) -> pl.DataFrame:
    """The most expensive rank first."""
    rows = step_rows(ranks)
    judgments = verdicts(rows).join(ranks.workers.select("member", "worker", "rank", "host"), "member", "left")
    slow = judgments.filter(pl.col("verdict") == "straggler").sort("cost_ns", "excess_ns", descending=True)
    at_times = judgments.filter(pl.col("verdict") == "slow at times").sort("slow_steps", descending=True)
    if judgments.is_empty():
        results = [_unknown(ranks)]
    elif slow.height:
        waiting = judgments.filter(pl.col("verdict") == "waits")
        spans = _spans_of(rows)
        results = [_named(row, waiting, spans, ranks) for row in slow.head(MOST_NAMED).iter_rows(named=True)]
    else:
        results = [_at_times(row) for row in at_times.head(1).iter_rows(named=True)] or [
            _no_straggler(judgments, ranks)
        ]
    step = rows.filter("is_complete")["total_ns"].median()
    frame = pl.DataFrame(results, schema_overrides={"saving_ns": pl.Int64}, infer_schema_length=None)
    frame = frame.with_columns(saving_frac=fraction(pl.col("saving_ns"), pl.lit(step, pl.Float64)))
    return RunAdvice.of(frame.select(RunAdvice.schema().names()).cast(RunAdvice.schema()))


def _spans_of(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """For each worker, (number of its traces in which it is a straggler, number of its traces with a verdict)."""
    counts: dict[str, tuple[int, int]] = {}
    for (_,), part in rows.group_by("place"):
        workers = dict(part.select("member", "worker").unique().rows())
        for member, verdict in verdicts(part).select("member", "verdict").rows():
            slow, judged_count = counts.get(workers[member], (0, 0))
            counts[workers[member]] = slow + (verdict == "straggler"), judged_count + 1
    return counts


def _called(row: dict[str, Any]) -> str:
    """The rank, with its worker's name if that differs, and its host."""
    name = f"rank {row['rank']}"
    others = [row["worker"]] if row["worker"] not in (f"rank{row['rank']}", name) else []
    others += [f"on {row['host']}"] if row["host"] and str(row["host"]) not in row["worker"] else []
    return f"{name} ({', '.join(others)})" if others else name


def _named(
    row: dict[str, Any], waiting: pl.DataFrame, spans: dict[str, tuple[int, int]], ranks: Ranks
) -> dict[str, Any]:
    name, usual = _called(row), row["own_ns"] - row["excess_ns"]
    times = {key: text.time(max(0, row[key])) for key in ("own_ns", "threshold_ns", "part_ns")}
    evidence = (
        f"Without waiting it takes {times['own_ns']} for a step, the others typically {text.time(usual)}; in "
        f"{row['slow_steps']} of {row['steps']} steps it exceeds them by more than {times['threshold_ns']}, the "
        f"threshold. Of the typical difference {times['part_ns']} is {row['cause']}."
    )
    slow, judged_count = spans.get(row["worker"], (0, 0))
    if judged_count > 1:
        evidence += f" This holds in {slow} of {judged_count} traces."
    if waiting.height:
        wait = float(waiting["wait_ns"].median())  # type: ignore[arg-type]
        evidence += f" {text.times(waiting.height, 'rank')} typically wait {text.time(wait)} per step for it."
    return {
        "rule": "straggler",
        "title": f"{name[0].upper()}{name[1:]} is slow: each step waits {text.time(row['cost_ns'])} for it.",
        "evidence": evidence + _absent(ranks),
        "action": _ACTIONS[row["cause"]],
        "saving_ns": row["cost_ns"],
        "confidence": "medium" if ranks.missing_ranks else "high",
        "view": "stragglers",
        "filter": row["worker"],
    }


def _at_times(row: dict[str, Any]) -> dict[str, Any]:
    steps = text.times(row["slow_steps"], "step")
    return {
        "rule": "slow_at_times",
        "title": f"No rank is slow all the time; {_called(row)} is slow in {steps}.",
        "evidence": f"That is of {row['steps']} steps; the longer part is {row['cause']}, by "
        f"{text.time(max(0, row['part_ns']))}. In the typical step it exceeds the others by "
        f"{text.time(max(0, row['excess_ns']))}; the threshold is {text.time(row['threshold_ns'])}.",
        "action": "Check in Ranks and steps which steps these are, and whether they recur.",
        "saving_ns": None,
        "confidence": "medium",
        "view": "rank_steps",
        "filter": row["worker"],
    }


def _no_straggler(judgments: pl.DataFrame, ranks: Ranks) -> dict[str, Any]:
    most = judgments.sort("excess_ns", "rank", descending=[True, False]).row(0, named=True)
    return {
        "rule": "no_straggler",
        "title": "No rank is slower than noise explains.",
        "evidence": f"Of {text.times(judgments.height, 'rank')} over {text.times(most['steps'], 'step')}, "
        f"{_called(most)} exceeds the others most: typically by {text.time(max(0, most['excess_ns']))} per step. The "
        f"threshold is {text.time(most['threshold_ns'])}." + _absent(ranks),
        "action": "Nothing.",
        "saving_ns": None,
        "confidence": "medium" if ranks.missing_ranks else "high",
        "view": "stragglers",
        "filter": None,
    }


def _unknown(ranks: Ranks) -> dict[str, Any]:
    return {
        "rule": "unknown",
        "title": "Not enough data to detect slow ranks.",
        "evidence": f"Two ranks must have {FEWEST_STEPS} complete steps in common, and collectives that can be "
        "matched." + _absent(ranks),
        "action": f"Record all ranks at the same time, for at least {FEWEST_STEPS} complete steps.",
        "saving_ns": None,
        "confidence": "high",
        "view": "run_health",
        "filter": None,
    }


def _absent(ranks: Ranks) -> str:
    """A note on ranks without a trace, which may be slow."""
    missing = ranks.missing_ranks
    if len(missing) == 1:
        return f" Rank {missing[0]} has no trace and may be slow too."
    return f" Ranks {spelled(missing)} have no trace and may be slow too." if missing else ""


VIEW = View(
    run_advice,
    table=RunAdvice,
    title="Run advice",
    group="Run",
    scope="run",
    within="recording",
    needs="several",
    hint="Not enough data to detect slow ranks. Record at least two ranks and three complete steps.",
)
