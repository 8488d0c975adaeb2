"""Inputs of operators that are larger on some ranks: what ranks have more to do, without what is as large on all.

Parameters are as large on all ranks of a job, and often much larger than the activations that a late rank has more of.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..run import Ranks

_LEAST_FRAC = 0.02  # of the elements of all inputs: less explains nothing
_STEP = ["place", "name", "stage"]  # of ranks that do the same work


def uneven_elements(ranks: Ranks) -> pl.DataFrame:
    """The elements of uneven inputs: `elements` of each `row` of Ranks.steps in whose step there are enough."""
    steps = _steps(ranks)
    sums = _uneven_inputs(ranks).group_by("row").agg(uneven=pl.col("elements").sum())
    steps = steps.join(sums, "row", "left").with_columns(pl.col("uneven").fill_null(0))
    share = (pl.col("uneven") / pl.col("elements").clip(1)).max().over(_STEP)
    return steps.filter(share >= _LEAST_FRAC).select("row", elements=pl.col("uneven").clip(1))


def operator_with_more(ranks: Ranks, worker: str, steps: Sequence[str]) -> str | None:
    """The operator whose uneven inputs are larger by most elements on a rank than on the others in some steps."""
    names = _steps(ranks).select("row", "name")
    workers = ranks.workers.select("member", "worker")
    inputs = _uneven_inputs(ranks).join(names, "row").filter(pl.col("name").is_in(list(steps)))
    is_own = pl.col("worker") == worker
    sums = inputs.join(workers, "member").group_by("operator", "worker").agg(pl.col("elements").sum())
    more = pl.col("elements").filter(is_own).sum() - pl.col("elements").filter(~is_own).median().fill_null(0)
    largest = sums.group_by("operator").agg(more=more).filter(pl.col("more") > 0).sort("more", "operator")
    return largest["operator"][-1] if largest.height else None


def _steps(ranks: Ranks) -> pl.DataFrame:
    steps = ranks.steps.with_row_index("row").rename({"step": "name"})
    return steps.join(ranks.stages, "member", "left", maintain_order="left").select("row", "member", "elements", *_STEP)


def _uneven_inputs(ranks: Ranks) -> pl.DataFrame:
    """INPUTS with `member` and `row` of Ranks.steps, without those that all ranks with the same step have as large."""
    steps = _steps(ranks).with_columns(ranks=pl.len().over(_STEP)).drop("member", "elements")
    inputs = ranks.inputs.drop("place").rename({"step": "row"}).with_columns(pl.col("row").cast(pl.UInt32))
    inputs = inputs.join(steps, "row", maintain_order="left")
    same = [*_STEP, "operator", "input"]
    is_even = (pl.len().over(same) == pl.col("ranks")) & (pl.col("elements").n_unique().over(same) == 1)
    return inputs.filter(~is_even)
