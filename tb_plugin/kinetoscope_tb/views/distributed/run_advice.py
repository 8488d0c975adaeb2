"""Run advice: which rank the others wait for, or which link is slow, the evidence and what to do; or that none is.

Slow ranks are detected as in Stragglers: by a rank's own time, in all or some steps, beyond a threshold that noise
alone reaches in one of a hundred runs. A rank that waits for another one, or comes late because it waited elsewhere, is
never named. Slow links are those of Links. Nothing is said of a run of which most ranks weren't recorded: one of those
may be the slow one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from ...advice.model import CONFIDENCE_WORDS
from ...arrays.gather import fraction
from ...discovery import span_labels
from ...distributed.contents import has_several_times
from ...distributed.imbalance.last_rank import last_ranks
from ...distributed.imbalance.late_rank import (
    CommunicationOfOthers,
    action,
    can_be_spread,
    evidence,
    name_of,
    of_saving,
    others_late,
    others_of,
    title,
)
from ...distributed.imbalance.late_stages import late_stages
from ...distributed.imbalance.links import SLOW, links
from ...distributed.imbalance.pipeline_bubble import pipeline_bubble
from ...distributed.imbalance.step_times import step_rows
from ...distributed.imbalance.stragglers import (
    CAUSES,
    FEWEST_STEPS,
    LEAST_FRAC,
    LEAST_ONCE_FRAC,
    late_ranks,
    verdicts,
)
from ...distributed.imbalance.uneven_inputs import operator_with_more
from ...distributed.path.pace_of_others import savings_at_pace_of_others
from ...distributed.path.pace_of_stages import savings_at_pace_of_stages, savings_of_links
from ...distributed.process_groups import RankSet, format_ranks
from ...distributed.run import Ranks, same_rank
from ...names import text
from ...pictures import Sentence
from ...table import DURATION, FRACTION, PROSE, TEXT, Column, Table
from ...view import Part, View

MOST_NAMED = 3
_ORDER = ("low", "medium", "high")
_COLORS = {
    **dict.fromkeys(("no_straggler", "no_last_rank"), "kernel"),
    **dict.fromkeys(("straggler", "slow_link", "slow_at_times", "last_rank", "pipeline", "unknown"), "communication"),
}


class RunAdvice(Table):
    """Which ranks or links are slow, and why; `no_straggler` means that none is."""

    key, weight = ("rule", "filter"), "saving_ns"
    picture = Sentence(
        amounts=("saving_ns", "saving_frac"),
        colors=_COLORS,
    )

    rule = Column(
        TEXT,
        "straggler, slow_link, slow_at_times, pipeline, no_straggler, last_rank, no_last_rank, or unknown.",
        shown_as="id",
    )
    title = Column(PROSE, "What the trace shows.")
    evidence = Column(PROSE, "The numbers that show it.")
    action = Column(PROSE, "What to do.")
    saving_ns = Column(
        DURATION,
        "How much shorter a step would be if the rank were as fast as the others, simulated over all ranks; of several "
        "late ranks, the first one's row has what they save together. Of a rank that has more work in as many kernels, "
        "if that were spread over all. Without a device, how much longer it takes than the slowest rank that isn't "
        "slow then. Of a link between two ranks, if it were as fast as comparable ones. Of a pipeline's bubble, what "
        "is left of it without late stages and slow links. Missing if none is named.",
        adds_up=False,
    )
    saving_frac = Column(FRACTION, "The same / the average step of the rank with the longest.")
    confidence = Column(
        TEXT,
        "high: in several steps of all ranks; medium: of single links, or ranks are missing; low: in one step, or too "
        "few steps to tell a slow rank from a one-off; "
        "cannot_tell: too little was recorded, or steps vary too much.",
        words=CONFIDENCE_WORDS,
    )
    view = Column(TEXT, "Id of the view with the evidence.", shown_as="id")
    filter = Column(TEXT, "Filter for that view; missing if the whole view is evidence.", shown_as="id")


def run_advice(ranks: Ranks) -> pl.DataFrame:
    """The most expensive rank first, then slow stages and links, which make the bubble of a pipeline longer."""
    rows = step_rows(ranks)
    complete = rows.filter("is_complete")
    step = float(complete.group_by("worker").agg(pl.col("total_ns").mean())["total_ns"].max() or 0)  # type: ignore[arg-type]
    workers = ranks.workers.select("member", "worker", "rank", "host", "device")
    judgments = verdicts(rows).join(workers, "member", "left")
    late = late_ranks(judgments, step)
    late_in_pipeline = late_stages(ranks, rows, step).join(workers, "member", "left", maintain_order="left")
    late_in_pipeline = late_in_pipeline.join(late, "member", "anti", maintain_order="left")
    stages = _late_stages(late_in_pipeline.rows(named=True), rows, ranks, step)
    of_links = _slow_links(ranks)
    slow_links = _of_links(of_links, ranks)
    is_of_link = (pl.col("cause") == CAUSES["transfer_ns"]) & pl.col("rank").is_in(_ranks_of(of_links, ranks))
    late = late.filter(~is_of_link)  # the link is slow, not the rank
    members = [*late["member"], *(late_in_pipeline["member"] if stages else ())]
    bubble = pipeline_bubble(ranks, ranks.stages.filter(pl.col("member").is_in(members))["stage"].to_list(), slow_links)
    of_pipeline = [*stages, *slow_links, *bubble]
    if judgments.is_empty() or (_mostly_absent(ranks) and late.filter(pl.col("verdict") == "straggler").is_empty()):
        results = of_pipeline or last_ranks(ranks, step) or [_no_verdict(rows, ranks)]
    else:
        savings = partial(savings_at_pace_of_others, ranks)
        results = [*_late_ranks(late.rows(named=True), rows, ranks, savings), *of_pipeline] or [
            _no_straggler(judgments, ranks, step, complete["wait_ns"])
        ]
    frame = pl.DataFrame(results, schema_overrides={"saving_ns": pl.Int64}, infer_schema_length=None)
    frame = frame.with_columns(saving_frac=fraction(pl.col("saving_ns"), pl.lit(step, pl.Float64)))
    return RunAdvice.of(frame.select(RunAdvice.schema().names()).cast(RunAdvice.schema()))


def _spans_of(rows: pl.DataFrame, ranks: Ranks) -> dict[str, tuple[list[str], list[str]]]:
    """For each worker, (its spans in which it is a straggler, its other spans with a verdict)."""
    spans: dict[str, tuple[list[str], list[str]]] = {}
    names = ranks.workers.select("member", "worker", "span").rows()
    members = {member: (worker, span) for member, worker, span in names}
    for (_,), part in rows.group_by("place", maintain_order=True):
        for member, verdict in verdicts(part).select("member", "verdict").rows():
            worker, span = members[member]
            spans.setdefault(worker, ([], []))[verdict != "straggler"].append(span)
    return spans


def _only_in(slow: list[str], others: list[str]) -> str:
    """In which of its spans a rank is a straggler, if it is one in some only."""
    if not slow or not others:
        return ""
    labels = span_labels([*slow, *others])
    return f"Only in span {_few([labels[span] for span in slow])}, not in {_few([labels[span] for span in others])}. "


def _few(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return text.enumeration([*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])


def _late_stages(late: list[dict[str, Any]], rows: pl.DataFrame, ranks: Ranks, step_ns: float) -> list[dict[str, Any]]:
    """A row for each of the most expensive ranks of late stages, if it makes steps longer that they are late.

    What a stage does when no other one waits for it, as after its last transfer, doesn't: the simulation shows that.
    """
    if not all(row["device"] for row in late):
        return []
    part_of = {cause: part for part, cause in CAUSES.items()}
    parts = {row["worker"]: part_of[row["cause"]] for row in late}
    together = rows.with_columns(stage=pl.lit(None, pl.Int64))
    results = _late_ranks(late, together, ranks, partial(savings_at_pace_of_stages, ranks, rows, parts))
    if not results or results[0]["saving_ns"] < LEAST_FRAC * step_ns:
        return []
    return [
        {**row, "confidence": min(row["confidence"], "medium", key=_ORDER.index), "view": "pipeline"} for row in results
    ]


def _late_ranks(
    late: list[dict[str, Any]],
    rows: pl.DataFrame,
    ranks: Ranks,
    savings: Callable[[Sequence[Sequence[str]]], list[int | None]],
) -> list[dict[str, Any]]:
    """A row for each of the most expensive ranks; the first one says what all of them save together."""
    if not late:
        return []
    names, spans = [row["worker"] for row in late], _spans_of(rows, ranks)
    choices = [*([name] for name in names[:MOST_NAMED]), names]
    has_devices = all(row["device"] for row in late)
    *alone, together = savings(choices) if has_devices else [None] * len(choices)
    longer = [max(row["late_excess_ns"], row["part_ns"]) * row["slow_steps"] / row["steps"] for row in late]
    alone = [_at_most(saving, most) for saving, most in zip(alone, longer, strict=False)]
    alone = [_spread(saving, [row]) for saving, row in zip(alone, late, strict=False)]
    together = _spread(_at_most(together, sum(longer)), late)
    results = [
        _slow_rank(row, rows, spans, ranks, saving) for row, saving in zip(late[:MOST_NAMED], alone, strict=True)
    ]
    if len(late) > 1:
        first = results[0]
        first["title"] = f"{first['title'].removesuffix('.')}; {others_late(late[1:], together)}."
        if together is not None and alone[0] is not None:
            first["evidence"] += (
                f" As fast as the others, {name_of(late[0])} alone saves {text.time(alone[0])} per step."
            )
            first["saving_ns"] = together
    return results


def _at_most(saved_ns: int | None, longer_ns: float) -> int | None:
    """What ranks save that are as fast as the others: no more than they take longer.

    The simulation may say more, since it counts what a rank does before several collectives for each of them.
    """
    return None if saved_ns is None else min(saved_ns, round(longer_ns))


def _spread(saved_ns: int | None, late: Sequence[Mapping[str, Any]]) -> int | None:
    """What ranks save whose work is spread over all: each then has a part of it."""
    if saved_ns is None or not all(map(can_be_spread, late)):
        return saved_ns
    ranks = int(late[0]["ranks"])
    return round(saved_ns * max(0, ranks - len(late)) / ranks)


def _slow_rank(
    row: dict[str, Any],
    rows: pl.DataFrame,
    spans: dict[str, tuple[list[str], list[str]]],
    ranks: Ranks,
    saved_ns: int | None,
) -> dict[str, Any]:
    """The row of a slow rank.

    Threads of the host wait for each other in ways that no recording shows, so a simulation would miss some of it:
    without a device, the rank saves what its lateness costs.
    """
    is_straggler = row["verdict"] == "straggler"
    slow, others = spans.get(row["worker"], ([], []))
    only_in, count = _only_in(slow, others) if is_straggler else "", len(slow) + len(others)
    of_traces = f" This holds in {len(slow)} of {count} traces." if is_straggler and count > 1 and not only_in else ""
    is_once = row["slow_steps"] == 1
    operator = operator_with_more(ranks, row["worker"], row["late_steps"])
    communication = CommunicationOfOthers.of(rows, row["worker"])
    numbers = evidence({**row, "operator": operator}) + of_saving(row, saved_ns, communication)
    return {
        "rule": "straggler" if is_straggler else "slow_at_times",
        "title": title(row, communication),
        "evidence": only_in + numbers + of_traces + _absent(ranks),
        "action": action(row),
        "saving_ns": row["cost_ns"] if saved_ns is None else saved_ns,
        "confidence": "low" if is_once else "medium" if ranks.unknown_ranks else "high",
        "view": "stragglers" if is_straggler else "rank_steps",
        "filter": row["worker"],
    }


def _no_straggler(judgments: pl.DataFrame, ranks: Ranks, step_ns: float, waits: pl.Series) -> dict[str, Any]:
    """That no rank is slow, or that the steps vary too much to know."""
    most = judgments.sort("excess_ns", "rank", descending=[True, False]).row(0, named=True)
    name, excess = name_of(most), max(0, most["excess_ns"])
    others = f"{others_of(most)}{' most' if most['ranks'] > 2 else ''}"
    wait = float(waits.mean() or 0)  # type: ignore[arg-type]
    is_hidden, takes_turns = (part >= LEAST_ONCE_FRAC * step_ns > 0 for part in (excess, wait))
    kind = "recorded rank" if ranks.unknown_ranks else "rank"
    title = f"No {kind} is slower than noise explains."
    if is_hidden:
        title = f"Steps vary too much to tell whether {name} is slow."
    elif takes_turns:
        title = f"Ranks wait for each other in turns, {text.time(wait)} per step; none more than noise explains."
    return {
        "rule": "no_straggler",
        "title": title,
        "evidence": f"Of {text.times(judgments.height, 'rank')} over {text.times(most['steps'], 'step')}, {name} "
        f"exceeds {others}: typically by {text.time(excess)} per step. The threshold is "
        f"{text.time(most['threshold_ns'])}." + _absent(ranks),
        "action": "Record more steps, on machines that do nothing else."
        if is_hidden or takes_turns
        else "There is nothing to do.",
        "saving_ns": None,
        "confidence": "cannot_tell" if is_hidden or takes_turns else "medium" if ranks.unknown_ranks else "high",
        "view": "stragglers",
        "filter": None,
    }


def _slow_links(ranks: Ranks) -> pl.DataFrame:
    """The slowest message size of each slow link, the slowest link first."""
    slow = links(ranks).filter(pl.col("verdict") == SLOW).sort("slower_frac", descending=True)
    slow = slow.join(ranks.group_labels.select("group", "label"), "group", "left", maintain_order="left")
    pair = pl.concat_str(pl.lit("rank "), "sender", pl.lit(" → rank "), "receiver")
    slow = slow.with_columns(link=pl.when(pl.col("group") >= 0).then("label").otherwise(pair))
    return slow.unique("link", keep="first", maintain_order=True).head(MOST_NAMED)


def _ranks_of(links_of_ranks: pl.DataFrame, ranks: Ranks) -> list[int]:
    """The ranks at the ends of some links."""
    groups = links_of_ranks.filter(pl.col("group") >= 0)["group"].to_list()
    pairs = links_of_ranks.filter(pl.col("group") < 0).select("sender", "receiver").rows()
    in_groups = [rank for group in groups for rank in RankSet.of(ranks.groups["ranks"][group])]
    return sorted({*in_groups, *(rank for pair in pairs for rank in pair)})


def _of_links(slow: pl.DataFrame, ranks: Ranks) -> list[dict[str, Any]]:
    """A row for each slow link; those of groups have no saving, since a collective uses several links."""
    pairs = slow.filter(pl.col("group") < 0).select("link", "sender", "receiver", "bytes", "others_ns").rows()
    names = [name for name, *_ in pairs]
    savings = dict(zip(names, savings_of_links(ranks, [(s, r, size, ns) for _, s, r, size, ns in pairs]), strict=True))
    return [_of_link(row, savings.get(row["link"]), ranks) for row in slow.iter_rows(named=True)]


def _of_link(row: dict[str, Any], saving_ns: int | None, ranks: Ranks) -> dict[str, Any]:
    return {
        "rule": "slow_link",
        "title": f"{text.capitalize(row['link'])} moves data slowly: it takes "
        f"{text.digits(1 + row['slower_frac'])} times as long as comparable links.",
        "evidence": f"A {row['kind']} of {text.digits(row['bytes'] / 1e6)} MB typically takes "
        f"{text.time(row['transfer_ns'])} once all have come, and {text.time(row['others_ns'])} elsewhere, over "
        f"{text.times(row['calls'], 'call')}. The threshold is {text.percent(row['threshold_frac'])} longer."
        + _absent(ranks),
        "action": "Check its cables, switch and network cards, and what else uses them; compare the ranks' places in "
        "Topology.",
        "saving_ns": saving_ns,
        "confidence": "medium",
        "view": "links",
        "filter": row["link"],
    }


def _mostly_absent(ranks: Ranks) -> bool:
    """Whether more ranks have no trace than have one: nothing is known of the slowest rank then."""
    unknown_ranks = {*ranks.unknown_ranks}
    return len(unknown_ranks) > len({*ranks.workers["rank"]} - unknown_ranks)


def _no_verdict(rows: pl.DataFrame, ranks: Ranks) -> dict[str, Any]:
    steps = rows.filter("is_complete").group_by("member").len()["len"]
    rank_count = text.times(ranks.workers["rank"].n_unique(), "rank")
    most = text.times(int(steps.max() or 0), "complete step")  # type: ignore[arg-type]
    has = f"{rank_count} recorded at most {most} each. " if steps.len() else ""
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
    """A note on ranks without a trace that can be read, or with several, which may be slow."""
    missing, unreadable = ranks.missing_ranks, ranks.unreadable_ranks
    note = f" {same_rank(ranks)}, so none of these is compared." if ranks.duplicates.height else ""
    if missing:
        noun, have = ("Rank", "has") if len(missing) == 1 else ("Ranks", "have")
        note += f" {noun} {format_ranks(missing)} {have} no trace and may be slow too."
    if unreadable:
        noun, its = ("Rank", "its trace") if len(unreadable) == 1 else ("Ranks", "their traces")
        why = next(iter(unreadable.values())).rstrip(".")
        note += f" {noun} {format_ranks(sorted(unreadable))} may be slow too; {its} can't be read: {why}."
    return note


VIEW = View(
    run_advice,
    table=RunAdvice,
    title="Run advice",
    entry="Ranks",
    place=Part("stragglers"),
    scope="run",
    within="recording",
    needs=has_several_times,
    hint="Not enough data to detect slow ranks. Record at least two ranks and three complete steps.",
)
