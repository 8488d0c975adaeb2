"""Stages of a pipeline that the others wait for although they have no more of the model.

A stage with more layers than others computes longer; that is a matter of balance (`pipeline_bubble`). Here are those
that compute longer in as many kernels of the same size: their device is slower. And those whose host, data loader or
copies take longer than on other stages. They are found like slow ranks, by their own time without waiting, compared
with the ranks of all other stages. What slow ranks of one stage take longer than the rest of it is theirs, not the
stage's: of a late stage all ranks are late.
"""

from __future__ import annotations

import polars as pl

from ..run import Ranks
from .stragglers import CAUSES, late_ranks, verdicts

_SAME_FRAC = 0.02  # of work


def late_stages(ranks: Ranks, rows: pl.DataFrame, step_ns: float) -> pl.DataFrame:
    """The frame VERDICTS of the ranks of late stages, with `stage`; the most expensive first.

    Args:
        ranks: The traces.
        rows: `step_rows` of them.
        step_ns: The average step.
    """
    together = rows.filter(pl.col("stage").is_not_null()).with_columns(stage=pl.lit(None, pl.Int64))
    late = late_ranks(verdicts(together).join(ranks.stages, "member"), step_ns)
    is_same = [(pl.col(name) - 1).abs() <= _SAME_FRAC for name in ("launches_frac", "threads_frac", "elements_frac")]
    is_same_work = is_same[0] & is_same[1] & is_same[2].fill_null(value=True)
    is_own = (pl.col("cause") == CAUSES["computation_ns"]) & is_same_work.fill_null(value=False)
    is_own |= ~pl.col("cause").is_in([CAUSES["computation_ns"], CAUSES["transfer_ns"]])
    own = late.filter(is_own.fill_null(value=False))
    sizes = ranks.stages.group_by("stage").agg(size=pl.len())
    return own.join(sizes, "stage", maintain_order="left").filter(pl.len().over("stage") == pl.col("size")).drop("size")
