"""Offset of each clock from the first one, with error and source, as all views use it.

A measurement of the recorder takes precedence over estimates from collectives. A rank without one is aligned with the
measured ranks by the collectives that connect them. A rank without either has its wall clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from .estimate import CLOCKS

REFERENCE, MEASURED, COLLECTIVES, WALL_CLOCK = "reference", "measurement", "collectives", "wall clock"

OFFSETS = {
    **CLOCKS,  # shift_ns and error_ns are those of the source
    "source": pl.String,
    "differs_ns": pl.Int64,  # estimate from collectives − measurement; null: without both
}


def offsets(
    estimate: pl.DataFrame, origin_ns: Sequence[int], measurements: Sequence[tuple[int, int] | None]
) -> pl.DataFrame:
    """The frame OFFSETS: one row per member.

    Args:
        estimate: CLOCKS.
        origin_ns: Unix time of each member's origin, by its own clock.
        measurements: For each member the offset of its clock from the run's reference (positive: ahead), and its error.
    """
    shift, island = estimate["shift_ns"].to_numpy().copy(), estimate["island"].to_numpy()
    error = estimate["error_ns"].fill_null(np.nan).to_numpy().copy()
    is_tied = ~np.isnan(error) & (estimate["collectives"].to_numpy() > 0)
    source = np.where(is_tied & (error > 0), COLLECTIVES, WALL_CLOCK).astype(object)
    source[(island == np.arange(island.size)) & is_tied] = REFERENCE
    is_measured = np.array([measurement is not None for measurement in measurements], bool)
    differs = np.full(shift.size, np.nan)
    if is_measured.sum() > 1:
        ahead, wrong = np.array([measurement or (0, 0) for measurement in measurements], np.int64).T
        common = np.array(origin_ns, np.int64) - ahead  # of each origin, by the reference's clock
        shift_measured = common + _zero(shift, common, island, is_measured, origin_ns)
        for first in np.unique(island[is_measured]):
            mine = island == first
            both = mine & is_measured
            correction = int(np.median(shift_measured[both] - shift[both]))
            shift[mine] += correction
            differs[both & is_tied] = (shift - shift_measured)[both & is_tied]
            error[mine] += np.median(wrong[both])
            source[mine & is_tied] = COLLECTIVES
        shift[is_measured], source[is_measured] = shift_measured[is_measured], MEASURED
        error[is_measured] = wrong[is_measured] + (wrong[0] if is_measured[0] else 0)
        error[0] = 0.0 if is_measured[0] else error[0]
    rows = estimate.with_columns(
        shift_ns=pl.Series(shift),
        error_ns=pl.Series(error, nan_to_null=True),
        source=pl.Series(source.tolist(), dtype=pl.String),
        differs_ns=pl.Series(differs, nan_to_null=True).round(),
    )
    return rows.select(*OFFSETS).cast(pl.Schema(OFFSETS))


def _zero(
    shift: np.ndarray, common: np.ndarray, island: np.ndarray, is_measured: np.ndarray, origin_ns: Sequence[int]
) -> int:
    """The offset from times on the reference clock to times of the first member."""
    if is_measured[0]:
        return int(-common[0])
    is_connected = (island == island[0]) & is_measured
    return int(np.median((shift - common)[is_connected])) if is_connected.any() else -origin_ns[0]
