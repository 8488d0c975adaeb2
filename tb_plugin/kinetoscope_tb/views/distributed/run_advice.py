"""Run advice: which rank the others wait for, or which link is slow, the evidence and what to do; or that none is.

Slow ranks are detected as in Stragglers: by a rank's own time, beyond a threshold that noise alone reaches in one of a
hundred runs. A rank that waits for another one, or comes late because it waited elsewhere, is never named. Slow links
are those of Links. Nothing is said of a run of which most ranks weren't recorded: one of those may be the slow one.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ...arrays.gather import fraction
from ...distributed.imbalance.last_rank import last_ranks
from ...distributed.imbalance.links import SLOW, links
from ...distributed.imbalance.step_times import step_rows
from ...distributed.imbalance.stragglers import CAUSES, FEWEST_STEPS, LEAST_ONCE_FRAC, verdicts
from ...distributed.process_groups import RankSet, spelled
from ...distributed.run import Ranks, same_rank
from ...names import text
from ...pictures import Sentence
from ...table import DURATION, FRACTION, PROSE, TEXT, Column, Table
from ...view import Part, View

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


_COLORS = {
    "no_straggler": "kernel",
    **dict.fromkeys(("straggler", "slow_link", "slow_at_times", "last_rank", "unknown"), "communication"),
}


class RunAdvice(Table):
    """Which ranks or links are slow, and why; `no_straggler` means that none is."""

    key, weight = ("rule", "filter"), "saving_ns"
    picture = Sentence(
        amounts=("saving_ns", "saving_frac"),
        texts=("rule", "title", "evidence", "action", "confidence", "view"),
        colors=_COLORS,
    )

    rule = Column(TEXT, "straggler, slow_link, slow_at_times, no_straggler, last_rank, or unknown.")
    title = Column(PROSE, "What the trace shows.")
    evidence = Column(PROSE, "The numbers that show it.")
    action = Column(PROSE, "What to do.")
    saving_ns = Column(
        DURATION,
        "How much longer it takes than the slowest rank that isn't a straggler, per step; missing if none is named.",
        adds_up=False,
    )
    saving_frac = Column(FRACTION, "The same / the typical step.")
    confidence = Column(
        TEXT,
        "high: in the typical step of all; medium: in single steps, of single links, or ranks are missing; low: too "
        "few steps to tell a slow rank from a one-off; "
        "cannot_tell: too little was recorded, or steps vary too much.",
    )
    view = Column(TEXT, "Id of the view with the evidence.")
    filter = Column(TEXT, "Filter for that view; missing if the whole view is evidence.")


def run_advice(ranks: Ranks) -> pl.DataFrame:
    """The most expensive rank first, then slow links."""
    rows = step_rows(ranks)
    step = float(rows.filter("is_complete")["total_ns"].median() or 0)  # type: ignore[arg-type]
    judgments = verdicts(rows).join(
        ranks.workers.select("member", "worker", "rank", "host", "device"), "member", "left"
    )
    slow = judgments.filter(pl.col("verdict") == "straggler").sort("cost_ns", "excess_ns", descending=True)
    at_times = judgments.filter(pl.col("verdict") == "slow at times").sort("slow_steps", descending=True)
    of_links = _slow_links(ranks)
    slow_links = [_of_link(row, ranks) for row in of_links.iter_rows(named=True)]
    is_of_link = (pl.col("cause") == CAUSES["transfer_ns"]) & pl.col("rank").is_in(_ranks_of(of_links, ranks))
    slow = slow.filter(~is_of_link)  # the link is slow, not the rank
    if judgments.is_empty() or (_mostly_absent(ranks) and slow.is_empty()):
        results = slow_links or last_ranks(ranks, step) or [_unknown(rows, ranks)]
    elif slow.height:
        waiting = judgments.filter(pl.col("verdict") == "waits")
        spans = _spans_of(rows)
        results = [_named(row, waiting, spans, ranks) for row in slow.head(MOST_NAMED).iter_rows(named=True)]
        results += slow_links
    else:
        results = (
            slow_links
            or [_at_times(row) for row in at_times.head(1).iter_rows(named=True)]
            or [_no_straggler(judgments, ranks, step)]
        )
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


def _in_words(row: dict[str, Any]) -> str:
    """The cause; of the host, with what doesn't run meanwhile."""
    if row["cause"] != CAUSES["idle_ns"]:
        return str(row["cause"])
    return f"{row['cause']}: " + ("nothing runs on the device" if row["device"] else "no operator runs")


def _named(
    row: dict[str, Any], waiting: pl.DataFrame, spans: dict[str, tuple[int, int]], ranks: Ranks
) -> dict[str, Any]:
    name, usual = _called(row), row["without_waiting_ns"] - row["excess_ns"]
    times = {key: text.time(max(0, row[key])) for key in ("without_waiting_ns", "threshold_ns", "part_ns")}
    evidence = (
        f"Without waiting it takes {times['without_waiting_ns']} for a step, the others typically {text.time(usual)}; "
        f"in {row['slow_steps']} of {row['steps']} steps it exceeds them by more than {times['threshold_ns']}, the "
        f"threshold. Of the typical difference {times['part_ns']} is {_in_words(row)}."
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
        "evidence": f"That is of {row['steps']} steps; the longer part is {_in_words(row)}, by "
        f"{text.time(max(0, row['part_ns']))}. In the typical step it exceeds the others by "
        f"{text.time(max(0, row['excess_ns']))}; the threshold is {text.time(row['threshold_ns'])}.",
        "action": "Check in Ranks and steps which steps these are, and whether they recur.",
        "saving_ns": None,
        "confidence": "medium",
        "view": "rank_steps",
        "filter": row["worker"],
    }


def _no_straggler(judgments: pl.DataFrame, ranks: Ranks, step_ns: float) -> dict[str, Any]:
    """That no rank is slow, or that the steps vary too much to know."""
    most = judgments.sort("excess_ns", "rank", descending=[True, False]).row(0, named=True)
    name, excess = _called(most), max(0, most["excess_ns"])
    is_hidden = excess >= LEAST_ONCE_FRAC * step_ns > 0
    kind = "recorded rank" if ranks.missing_ranks else "rank"
    return {
        "rule": "no_straggler",
        "title": f"Steps vary too much to tell whether {name} is slow."
        if is_hidden
        else f"No {kind} is slower than noise explains.",
        "evidence": f"Of {text.times(judgments.height, 'rank')} over {text.times(most['steps'], 'step')}, {name} "
        f"exceeds the others most: typically by {text.time(excess)} per step. The threshold is "
        f"{text.time(most['threshold_ns'])}." + _absent(ranks),
        "action": "Record more steps, on machines that do nothing else." if is_hidden else "There is nothing to do.",
        "saving_ns": None,
        "confidence": "cannot_tell" if is_hidden else "medium" if ranks.missing_ranks else "high",
        "view": "stragglers",
        "filter": None,
    }


def _slow_links(ranks: Ranks) -> pl.DataFrame:
    """The slowest message size of each slow link, the slowest link first."""
    slow = links(ranks).filter(pl.col("verdict") == SLOW).sort("slower_frac", descending=True)
    named = slow.join(ranks.group_labels.select("group", "label"), "group", "left", maintain_order="left")
    pair = pl.concat_str(pl.lit("rank "), "sender", pl.lit(" → rank "), "receiver")
    named = named.with_columns(link=pl.when(pl.col("group") >= 0).then("label").otherwise(pair))
    return named.unique("link", keep="first", maintain_order=True).head(MOST_NAMED)


def _ranks_of(links_of_ranks: pl.DataFrame, ranks: Ranks) -> list[int]:
    """The ranks at the ends of some links."""
    grouped = links_of_ranks.filter(pl.col("group") >= 0)["group"].to_list()
    paired = links_of_ranks.filter(pl.col("group") < 0).select("sender", "receiver").rows()
    in_groups = [rank for group in grouped for rank in RankSet.of(ranks.groups["ranks"][group])]
    return sorted({*in_groups, *(rank for pair in paired for rank in pair)})


def _of_link(row: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    return {
        "rule": "slow_link",
        "title": f"{row['link'][0].upper()}{row['link'][1:]} moves data slowly: it takes "
        f"{1 + row['slower_frac']:.1f} times as long as comparable links.",
        "evidence": f"A {row['kind']} of {text.digits(row['bytes'] / 1e6)} MB typically takes "
        f"{text.time(row['transfer_ns'])} once all have come, and {text.time(row['others_ns'])} elsewhere, over "
        f"{text.times(row['calls'], 'call')}. The threshold is {text.percent(row['threshold_frac'])} longer."
        + _absent(ranks),
        "action": "Check its cables, switch and network cards, and what else uses them; compare the ranks' places in "
        "Topology.",
        "saving_ns": None,
        "confidence": "medium",
        "view": "links",
        "filter": row["link"],
    }


def _mostly_absent(ranks: Ranks) -> bool:
    """Whether more ranks have no trace than have one: nothing is known of the slowest rank then."""
    return len(ranks.missing_ranks) > ranks.workers["rank"].n_unique()


def _unknown(rows: pl.DataFrame, ranks: Ranks) -> dict[str, Any]:
    steps = rows.filter("is_complete").group_by("member").len()["len"]
    recorded = text.times(ranks.workers["rank"].n_unique(), "rank")
    most = text.times(int(steps.max() or 0), "complete step")  # type: ignore[arg-type]
    has = f"{recorded} recorded at most {most} each. " if steps.len() else ""
    return {
        "rule": "unknown",
        "title": "Not enough data to detect slow ranks.",
        "evidence": f"{has}Two ranks must have {FEWEST_STEPS} complete steps in common, and collectives that can be "
        "matched; at least half of the ranks must be recorded." + _absent(ranks),
        "action": f"Record all ranks at the same time, for at least {FEWEST_STEPS} complete steps.",
        "saving_ns": None,
        "confidence": "cannot_tell",
        "view": "run_health",
        "filter": None,
    }


def _absent(ranks: Ranks) -> str:
    """A note on ranks without a trace, or with several, which may be slow."""
    missing = ranks.missing_ranks
    same = f" {same_rank(ranks)}, so none of these is compared." if ranks.duplicates.height else ""
    if len(missing) == 1:
        return f"{same} Rank {missing[0]} has no trace and may be slow too."
    return f"{same} Ranks {spelled(missing)} have no trace and may be slow too." if missing else same


VIEW = View(
    run_advice,
    table=RunAdvice,
    title="Run advice",
    entry="Ranks",
    place=Part("stragglers"),
    scope="run",
    within="recording",
    needs="several",
    hint="Not enough data to detect slow ranks. Record at least two ranks and three complete steps.",
)
