"""The bubble of a pipeline in words: which stage waits for which, and how much of that its schedule explains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from ...names import text
from ..pipeline import bubbles
from ..run import Ranks

_SOME_FRAC = 0.05  # of the step
_MORE_THAN_IDEAL = 1.2
_MORE_THAN_OTHERS = 1.1
_MOST_LISTED = 8  # stages


def pipeline_bubble(
    ranks: Ranks, late_stages: Collection[int] = (), slow_links: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """One sentence as a row of RunAdvice; none without a pipeline, or without complete steps.

    Args:
        ranks: The traces.
        late_stages: Those with ranks that take longer for another reason than that they have more of the model.
        slow_links: Rows of RunAdvice of slow links.
    """
    pipeline = ranks.pipeline
    steps = bubbles(ranks.calls, ranks.steps, pipeline).filter("is_complete")
    if steps.is_empty():
        return []
    by_stage = (
        steps.group_by("stage")
        .agg(
            pl.col("bubble_ns").mean(),
            pl.col("total_ns").mean(),
            pl.col("computation_ns").mean(),
            pl.col("exposed_copies_ns").mean(),
            pl.col("idle_ns").mean(),
            waits_for=pl.col("waits_for").drop_nulls().mode().first(),
        )
        .sort("stage")
    )
    most = by_stage.sort("bubble_ns", "stage", descending=[True, False]).row(0, named=True)
    frac = most["bubble_ns"] / max(1, most["total_ns"])
    saving_ns = _saving_of_even_stages(by_stage, frac, ranks, late_stages)
    names = [f"stage {stage}" for stage in sorted(set(late_stages))]
    names += [f"the link {link['filter']}" for link in slow_links if link["saving_ns"]]
    left_ns = most["bubble_ns"]
    if names and saving_ns is None:
        left_ns = min(left_ns, _ideal_bubble(by_stage.filter(~pl.col("stage").is_in(list(late_stages))), ranks))
    return [
        {
            "rule": "pipeline",
            "title": _title(most, frac, ranks),
            "evidence": _evidence(by_stage, ranks, saving_ns) + _left(names, left_ns, most["bubble_ns"]),
            "action": _first(names, _action(by_stage, frac, ranks, is_uneven=saving_ns is not None)),
            "saving_ns": round(left_ns if saving_ns is None else saving_ns) if frac >= _SOME_FRAC else None,
            "confidence": "medium",
            "view": "pipeline",
            "filter": None,
        }
    ]


def _ideal_bubble(others: pl.DataFrame, ranks: Ranks) -> float:
    """The bubble of the schedule if all stages took as long as the typical one of these; infinite if it is unknown."""
    ideal = ranks.pipeline.ideal_frac
    busy_ns = others.select(pl.sum_horizontal("computation_ns", "exposed_copies_ns").median()).item()
    return float("inf") if ideal is None or busy_ns is None else float(busy_ns) * ideal / (1 - ideal)


def _left(names: list[str], left_ns: float, bubble_ns: float) -> str:
    """What is left of the bubble without what late stages and slow links add."""
    if left_ns == bubble_ns:
        return ""
    add = "adds" if len(names) == 1 else "add"
    return f" Without what {text.enumeration(names)} {add}, {text.time(left_ns)} is left of it."


def _first(names: list[str], action: str) -> str:
    """What to do about the bubble, after what makes it longer than its schedule."""
    return f"Begin with {text.enumeration(names)}. {action}" if names else action


def _title(most: dict[str, Any], frac: float, ranks: Ranks) -> str:
    if frac < _SOME_FRAC:
        return f"The stages of the pipeline wait for each other for {text.percent(frac)} of a step at most."
    number = dict(ranks.workers.join(ranks.pipeline.stages, "member").select("rank", "stage").rows())
    of = f"stage {number[most['waits_for']]}" if most["waits_for"] in number else f"rank {most['waits_for']}"
    return (
        f"Stage {most['stage']} of the pipeline waits for {of}: a bubble of {text.time(most['bubble_ns'])} in a step "
        f"of {text.time(most['total_ns'])}, {text.percent(frac)}."
    )


def _evidence(by_stage: pl.DataFrame, ranks: Ranks, saving_ns: float | None) -> str:
    pipeline = ranks.pipeline
    shares = by_stage.select("stage", pl.col("bubble_ns") / pl.col("total_ns").clip(1)).rows()
    shares_by_stage = ", ".join(f"{stage}: {text.percent(share)}" for stage, share in shares[:_MOST_LISTED])
    more = ", …" if shares[_MOST_LISTED:] else ""
    sentence = f"Bubbles by stage, as shares of the average step: {shares_by_stage}{more}."
    if saving_ns is not None:
        longest = _by_computation(by_stage).row(0, named=True)
        sentence += (
            f" Stage {longest['stage']} computes for {text.time(longest['computation_ns'])}, the average stage for "
            f"{text.time(_mean(by_stage['computation_ns']))}: as even stages, they take {text.time(saving_ns)} less."
        )
    if pipeline.ideal_frac is None:
        return sentence + _idle(by_stage)
    chunks = f" of {pipeline.chunks} chunks each" if pipeline.chunks > 1 else ""
    return (
        f"{sentence} {text.times(pipeline.count, 'equal stage')}{chunks} with "
        f"{pipeline.micro_batches} micro-batch{'es' if pipeline.micro_batches > 1 else ''} have bubbles of "
        f"{text.percent(pipeline.ideal_frac)}." + _idle(by_stage)
    )


def _idle(by_stage: pl.DataFrame) -> str:
    """How long stages are idle besides: for a stage that neither receives nor sends then, no transfer shows a wait."""
    shares = by_stage.select("stage", pl.col("idle_ns") / pl.col("total_ns").clip(1)).rows()
    idle = [f"{text.percent(share)} of stage {stage}'s step" for stage, share in shares if share >= _SOME_FRAC]
    most = [*idle[:_MOST_LISTED], *(["…"] if idle[_MOST_LISTED:] else [])]
    return (
        f" Not counted is idle time in which no transfer shows what a stage waits for: {text.enumeration(most)}."
        if idle
        else ""
    )


def _by_computation(by_stage: pl.DataFrame) -> pl.DataFrame:
    return by_stage.sort("computation_ns", "stage", descending=[True, False])


def _mean(values: pl.Series) -> float:
    return float(values.mean() or 0)  # type: ignore[arg-type]  # numbers


def _saving_of_even_stages(
    by_stage: pl.DataFrame, frac: float, ranks: Ranks, late_stages: Collection[int]
) -> float | None:
    """How much shorter a step of even stages is, in ns; None if the schedule explains the bubbles, or that is little.

    With n micro-batches on each stage, counting those of each chunk, a step takes as long as one micro-batch on all
    stages and n − 1 on the longest. Even stages have the sum of all stages, too, so that the longest is what they save.
    A late stage with the same work as the others has no layers to give away.
    """
    in_order = _by_computation(by_stage)
    longest = in_order["computation_ns"]
    pipeline, ideal = ranks.pipeline, ranks.pipeline.ideal_frac
    is_uneven = longest[0] > _MORE_THAN_OTHERS * _mean(longest[1:])
    if (
        frac < _SOME_FRAC
        or not is_uneven
        or in_order["stage"][0] in late_stages
        or (ideal is not None and frac <= _MORE_THAN_IDEAL * ideal)
    ):
        return None
    count = pipeline.chunks * pipeline.micro_batches
    saving = float((longest[0] - _mean(longest)) * ((count - 1) / count if count else 1))
    return saving if saving >= _SOME_FRAC * _mean(by_stage["total_ns"]) else None


def _action(by_stage: pl.DataFrame, frac: float, ranks: Ranks, *, is_uneven: bool) -> str:
    """Balance stages if bubbles are longer than the schedule explains and one stage computes longer than the others."""
    if frac < _SOME_FRAC:
        return "There is nothing to do."
    if is_uneven:
        return f"Move layers from stage {_by_computation(by_stage)['stage'][0]}, which computes longest, to the others."
    if ranks.pipeline.chunks > 1:
        return "Use more micro-batches per step: they make the bubble smaller."
    return "Use more micro-batches per step, or an interleaved schedule: both make the bubble smaller."
