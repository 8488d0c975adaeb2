"""Why a step of one recording takes longer than a step of another, whatever code ran: terms that add up.

The typical steps of both are aligned (alignment/alignment.py). The difference of their accounts (account.py) is then
what the same work takes more or less, the work that only one side has, exposed communication, overlap, and idle time by
cause: to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ..trace import Trace
from .account import Account, account_of_typical_step
from .alignment.alignment import align
from .alignment.pairs import Floats, Rows
from .alignment.units import Units, units
from .headline import growth_text, pair_of_times

ID = "step_difference"  # what the command line calls it, where it names a view
SAME, ONLY_BASE, ONLY_NEW = "same work", "only in base", "only in new"
MESSAGES, OVERLAP, IDLE = "exposed communication", "overlap", "idle"


class StepDifference(Table):
    """What the difference of two steps consists of: each column of times adds up to its step."""

    key, weight = ("kind", "base", "new"), "delta_ns"

    kind = Column(
        TEXT,
        "same work: on both sides, by their alignment. only in base, only in new: no counterpart is probable. "
        "exposed communication: while no kernel computes. overlap: kernels that run at once, subtracted. "
        "idle: no device has a row, by cause.",
    )
    base = Column(TEXT, "The work in the base: its operators, or kernels where the operator isn't known; or the cause.")
    new = Column(TEXT, "The same in the new recording.")
    base_ns = Column(DURATION, "What it adds to the step of the base.")
    new_ns = Column(DURATION, "What it adds to the step of the new recording.")
    delta_ns = Column(DURATION, "New − base.")
    base_rows = Column(COUNT, "Its kernels, copies and fills in the base.")
    new_rows = Column(COUNT, "The same in the new recording.")
    posterior_frac = Column(FRACTION, "Of the same work: how probable the least probable of its matches is.")


_TERMS = {name: kind for name, kind in StepDifference.schema().items() if name != "delta_ns"}


@dataclass(frozen=True)
class Difference:
    """The difference of two steps.

    Args:
        base, new: Their accounts.
        frame: StepDifference, the largest difference first.
        matched_frac: Of both sides, the share of the work that has a counterpart.
        growth: How many times larger FLOPs and sizes of the new recording are.
    """

    base: Account
    new: Account
    frame: pl.DataFrame
    matched_frac: tuple[float, float]
    growth: float

    @property
    def headline(self) -> str:
        """Such as: A step: 18.40 → 9.12 ms, −50.4 %, of which −8.00 ms idle, −1.28 ms same work."""
        before, after = self.base.length_ns, self.new.length_ns
        by_kind = self.frame.group_by("kind").agg(pl.col("delta_ns").sum()).filter(pl.col("delta_ns") != 0)
        largest = by_kind.sort(pl.col("delta_ns").abs(), "kind", descending=[True, False])
        parts = ", ".join(f"{_signed_text(ns)} {kind}" for kind, ns in largest.iter_rows())
        return (
            f"The typical step ({self.base.step} of the base, {self.new.step} of the new): "
            f"{pair_of_times(before, after)}, {growth_text(before, after)}{f', of which {parts}' if parts else ''}."
        )

    @property
    def coverage(self) -> str:
        """How much of the work was matched, in a sentence."""
        base, new = (f"{100 * share:.0f} %" for share in self.matched_frac)
        growth = f" Sizes are {self.growth:.3g} times those of the base." if self.growth != 1 else ""
        share = f"{base} of the device time of the base, {new} of the new."
        return f"Matched by operators, sizes, FLOPs and order: {share}{growth}"


def step_difference(base: Trace, new: Trace) -> Difference:
    """Split the difference of the typical steps of two recordings."""
    traces = (base, new)
    accounts = [account_of_typical_step(trace) for trace in traces]
    sides = [units(trace, account.rows) for trace, account in zip(traces, accounts, strict=True)]
    alignment = align(*sides)
    matches = (alignment.first, alignment.second)
    rows = pl.concat([_work(*parts) for parts in zip((0, 1), traces, accounts, sides, matches, strict=True)])
    terms = pl.concat([_terms_of_work(rows, alignment.posterior), _other_terms(*accounts)])
    terms = terms.with_columns(delta_ns=pl.col("new_ns") - pl.col("base_ns"))
    in_order = terms.sort(pl.col("delta_ns").abs(), "kind", "base", "new", descending=[True, False, False, False])
    frame = StepDifference.of(in_order.select(StepDifference.schema().names()))
    return Difference(accounts[0], accounts[1], frame, _matched_shares(rows), alignment.growth)


def _work(nth: int, trace: Trace, account: Account, side: Units, match: Rows) -> pl.DataFrame:
    """A row per unit of a side: its match, what it counts, its name, and whether it communicates."""
    work_ns = np.zeros(trace.device_events.height, np.int64)
    work_ns[account.rows] = account.work_ns
    kernels = trace.device_events["name"].gather(side.rows).cast(pl.String)
    return side.signatures[side.codes].select(
        side=pl.lit(nth),
        match=pl.Series(match),
        ns=pl.Series(work_ns[side.rows]),
        name=pl.when(pl.col("operator") == "").then(kernels).otherwise("operator"),
        is_message=pl.col("family") == "communication",
    )


def _terms_of_work(rows: pl.DataFrame, posterior: Floats) -> pl.DataFrame:
    """The terms of device work: matches whose work has the same names together, and work without a match by name."""
    is_matched = pl.col("match") >= 0
    sums = [
        part
        for nth, side in enumerate(("base", "new"))
        for part in (
            pl.col("ns").filter(pl.col("side") == nth).sum().alias(f"{side}_ns"),
            (pl.col("side") == nth).sum().cast(pl.Int64).alias(f"{side}_rows"),
            pl.col("name").filter(pl.col("side") == nth).unique(maintain_order=True).str.join(" + ").alias(side),
        )
    ]
    is_message = pl.col("is_message").any()
    pairs = rows.filter(is_matched).group_by("match").agg(*sums, is_message)
    pairs = pairs.with_columns(kind=pl.lit(SAME), posterior_frac=pl.Series(posterior)[pairs["match"]])
    alone = rows.filter(~is_matched).group_by("side", "name", "is_message").agg(*sums)
    kind = pl.when(pl.col("side") == 0).then(pl.lit(ONLY_BASE)).otherwise(pl.lit(ONLY_NEW))
    alone = alone.with_columns(kind=kind, posterior_frac=pl.lit(None, pl.Float64))
    both = pl.concat([frame.select("is_message", *_TERMS) for frame in (pairs, alone)])
    kind = pl.when("is_message").then(pl.lit(MESSAGES)).otherwise("kind")
    amounts = pl.col("base_ns", "new_ns", "base_rows", "new_rows").sum()
    by_name = both.with_columns(kind=kind).group_by("kind", "base", "new")
    terms = by_name.agg(amounts, pl.col("posterior_frac").min())
    return terms.select(list(_TERMS))


def _other_terms(base: Account, new: Account) -> pl.DataFrame:
    """Overlap, and idle time by cause."""
    causes = dict.fromkeys([*base.idle_ns, *new.idle_ns])
    rows = [(OVERLAP, "", "", -base.overlap_ns, -new.overlap_ns)]
    rows += [(IDLE, cause, cause, base.idle_ns.get(cause, 0), new.idle_ns.get(cause, 0)) for cause in causes]
    frame = pl.DataFrame(rows, schema=["kind", "base", "new", "base_ns", "new_ns"], orient="row")
    frame = frame.filter((pl.col("base_ns") != 0) | (pl.col("new_ns") != 0))
    columns = [frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height) for name in _TERMS]
    return pl.DataFrame(columns, schema_overrides=_TERMS)


def _matched_shares(rows: pl.DataFrame) -> tuple[float, float]:
    """Of each side the share of the work that has a match; 1 without work."""

    def share(side: pl.DataFrame) -> float:
        total = int(side["ns"].sum())
        return int(side.filter(pl.col("match") >= 0)["ns"].sum()) / total if total else 1.0

    return share(rows.filter(side=0)), share(rows.filter(side=1))


def _signed_text(ns: int) -> str:
    return f"{'−' if ns < 0 else '+'}{pair_of_times(abs(ns))}"
