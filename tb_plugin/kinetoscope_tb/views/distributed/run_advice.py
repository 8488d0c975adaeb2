"""Run advice: which rank all others wait for, what shows it and what to do; or that no rank is slow beyond noise.

Who is slow is told as in Stragglers: by a rank's own time, beyond a threshold that noise alone reaches in one run of a
hundred. A rank that waits for another one, or comes late because it waited elsewhere, is never named.
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
            "See whether its device is as fast as the others (clock, temperature, power, other jobs), and whether it "
            "gets as much work: longer sequences, larger batches, more experts or layers.",
            "Its data moves slower than that of others though all have come: look at its link, network card and place.",
            "See what it copies that others don't, and how its GPU is connected.",
            "See what its data loader reads, from where, and how many processes of how many cores it has.",
            "See what runs on its host: other processes, fewer or slower cores, pauses of Python, logging.",
        ),
        strict=True,
    )
)


class RunAdvice(Table):
    """One row is one thing that is known of slow ranks; `no_straggler` says that none is."""

    key, weight = ("rule", "filter"), "saving_ns"

    rule = Column(TEXT, "straggler, slow_at_times, no_straggler, or unknown.")
    title = Column(PROSE, "What was found.")
    evidence = Column(PROSE, "The numbers that show it.")
    action = Column(PROSE, "What to do.")
    saving_ns = Column(
        DURATION,
        "How much longer it takes than the slowest rank that is no straggler, per step; missing if none is named.",
    )
    saving_frac = Column(FRACTION, "The same / the typical step.")
    confidence = Column(TEXT, "high: in the typical step of all; medium: in single steps, or ranks are missing.")
    view = Column(TEXT, "Id of the view that holds the rows which show it.")
    filter = Column(TEXT, "What to filter that view by; missing if all of it shows it.")


def run_advice(ranks: Ranks) -> pl.DataFrame:
    """The rank that costs most first."""
    rows = step_rows(ranks)
    judged = verdicts(rows).join(ranks.workers.select("member", "worker", "rank", "host"), "member", "left")
    slow = judged.filter(pl.col("verdict") == "straggler").sort("cost_ns", "excess_ns", descending=True)
    at_times = judged.filter(pl.col("verdict") == "slow at times").sort("slow_steps", descending=True)
    if judged.is_empty():
        found = [_unknown(ranks)]
    elif slow.height:
        waiting = judged.filter(pl.col("verdict") == "waits")
        spans = _spans_of(rows)
        found = [_named(row, waiting, spans, ranks) for row in slow.head(MOST_NAMED).iter_rows(named=True)]
    else:
        found = [_at_times(row) for row in at_times.head(1).iter_rows(named=True)] or [_nobody(judged, ranks)]
    step = rows.filter("is_complete")["total_ns"].median()
    told = pl.DataFrame(found, schema_overrides={"saving_ns": pl.Int64}, infer_schema_length=None)
    told = told.with_columns(saving_frac=fraction(pl.col("saving_ns"), pl.lit(step, pl.Float64)))
    return RunAdvice.of(told.select(RunAdvice.schema().names()).cast(RunAdvice.schema()))


def _spans_of(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Of each worker in how many of its recordings it is a straggler by itself, and of how many that can be told."""
    found: dict[str, tuple[int, int]] = {}
    for (_,), part in rows.group_by("place"):
        workers = dict(part.select("member", "worker").unique().rows())
        for member, verdict in verdicts(part).select("member", "verdict").rows():
            slow, known = found.get(workers[member], (0, 0))
            found[workers[member]] = slow + (verdict == "straggler"), known + 1
    return found


def _called(row: dict[str, Any]) -> str:
    """The rank, with its worker's name where that tells more, and its machine."""
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
    slow, known = spans.get(row["worker"], (0, 0))
    if known > 1:
        evidence += f" It is so in {slow} of {known} recordings."
    if waiting.height:
        wait = float(waiting["wait_ns"].median())  # type: ignore[arg-type]
        evidence += f" For it {text.times(waiting.height, 'rank')} typically wait {text.time(wait)} per step."
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
        "title": f"No rank is slow all the time; {_called(row)} stands out in {steps}.",
        "evidence": f"That is of {row['steps']} steps; what is longer then is {row['cause']}, by "
        f"{text.time(max(0, row['part_ns']))}. In the typical step it exceeds the others by "
        f"{text.time(max(0, row['excess_ns']))}; from {text.time(row['threshold_ns'])} on it would be called slow.",
        "action": "See in Ranks and steps which steps these are, and whether they come back.",
        "saving_ns": None,
        "confidence": "medium",
        "view": "rank_steps",
        "filter": row["worker"],
    }


def _nobody(judged: pl.DataFrame, ranks: Ranks) -> dict[str, Any]:
    most = judged.sort("excess_ns", "rank", descending=[True, False]).row(0, named=True)
    return {
        "rule": "no_straggler",
        "title": "No rank is slow beyond noise.",
        "evidence": f"Of {text.times(judged.height, 'rank')} over {text.times(most['steps'], 'step')}, "
        f"{_called(most)} exceeds the others most: typically by {text.time(max(0, most['excess_ns']))} per step. From "
        f"{text.time(most['threshold_ns'])} on it would be called slow." + _absent(ranks),
        "action": "Nothing.",
        "saving_ns": None,
        "confidence": "medium" if ranks.missing_ranks else "high",
        "view": "stragglers",
        "filter": None,
    }


def _unknown(ranks: Ranks) -> dict[str, Any]:
    return {
        "rule": "unknown",
        "title": "Whether a rank is slow can't be told.",
        "evidence": f"It takes two ranks with {FEWEST_STEPS} complete steps that both recorded, and collectives that "
        "can be matched." + _absent(ranks),
        "action": f"Record all ranks at the same time, for at least {FEWEST_STEPS} complete steps.",
        "saving_ns": None,
        "confidence": "high",
        "view": "run_health",
        "filter": None,
    }


def _absent(ranks: Ranks) -> str:
    """That others may be slow of whom nothing is known."""
    missing = ranks.missing_ranks
    if len(missing) == 1:
        return f" Of rank {missing[0]} there is no recording: whether it is slow isn't known."
    return f" Of ranks {spelled(missing)} there is no recording: whether they are slow isn't known." if missing else ""


VIEW = View(
    run_advice,
    table=RunAdvice,
    title="Run advice",
    group="Run",
    scope="run",
    within="recording",
    needs="several",
    hint="Ranks can be compared from two ranks and three steps on. Record all ranks, for three complete steps.",
)
