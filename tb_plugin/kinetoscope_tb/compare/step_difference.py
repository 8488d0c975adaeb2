"""Why a step of one recording takes longer than a step of another, whatever code ran: terms that add up.

The typical steps of both are aligned (alignment/alignment.py). The difference of their accounts (account.py) is then
what the same work takes more or less, the work that only one side has, exposed communication, overlap, and idle time by
cause: to the nanosecond. Both are sums of the same pieces: device rows, overlaps and gaps. So a term opens its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ..errors import BadParameter
from ..measures.time.idle_causes import CAUSE_WORDS
from ..names.text import as_clause, digits
from ..table import COUNT, DURATION, FRACTION, INSTANT, TEXT, Column, Table
from ..trace import Trace
from .account import Account, account_of_typical_step
from .alignment.alignment import align
from .alignment.pairs import Floats, Rows
from .alignment.units import Units, units
from .headline import growth_text, pair_of_times

ID = "step_difference"  # what the command line calls it, where it names a view
ROWS_ID = "step_difference_rows"  # what its terms consist of
SAME, ONLY_BASE, ONLY_NEW = "same work", "only in base", "only in new"
MESSAGES, OVERLAP, IDLE = "exposed communication", "overlap", "idle"
_CAUSES = {cause: as_clause(words) for cause, words in CAUSE_WORDS.items()}
KINDS = (SAME, ONLY_BASE, ONLY_NEW, MESSAGES, OVERLAP, IDLE)
SIDES = ("base", "new")
TERM = ("kind", "base_work", "new_work")  # what identifies a term
_END = "the end of the step"


class StepDifference(Table):
    """What the difference of two steps consists of: each column of times adds up to its step."""

    key, weight = ("kind", "base_work", "new_work"), "delta_ns"

    kind = Column(
        TEXT,
        "same work: on both sides, by their alignment. only in base, only in new: no counterpart is probable. "
        "exposed communication: while no kernel computes. overlap: kernels that run at once, subtracted. "
        "idle: no device has a row, by cause.",
    )
    base_work = Column(
        TEXT, "The work in the base: its operators, or kernels where the operator isn't known; or the cause."
    )
    new_work = Column(TEXT, "The same in the new recording.")
    base_ns = Column(DURATION, "What it adds to the step of the base.")
    new_ns = Column(DURATION, "What it adds to the step of the new recording.")
    delta_ns = Column(DURATION, "New − base.")
    base_rows = Column(COUNT, "Its kernels, copies and fills in the base; of idle time its gaps.")
    new_rows = Column(COUNT, "The same in the new recording.")
    posterior_frac = Column(FRACTION, "Of the same work: how probable the least probable of its matches is.")


class StepDifferenceRows(Table):
    """What a term of the difference of two steps consists of: matches that repeat, as of equal layers, are a row."""

    key, weight = ("kind", "base_work", "new_work", "base_kernels", "new_kernels"), "delta_ns"

    kind = Column(TEXT, "Of the term.")
    base_work = Column(TEXT, "Of the term: the work in the base.")
    new_work = Column(TEXT, "Of the term: the work in the new recording.")
    repeats = Column(
        COUNT, "How often it occurs: as matches, or on the side where it occurs more often.", adds_up=False
    )
    base_kernels = Column(TEXT, "Kernels, copies or fills of the base; of idle time what runs after the gap.")
    new_kernels = Column(TEXT, "The same of the new recording.")
    base_ns = Column(DURATION, "What it adds to the step of the base.")
    new_ns = Column(DURATION, "What it adds to the step of the new recording.")
    delta_ns = Column(DURATION, "New − base.")
    base_rows = Column(COUNT, "Its kernels, copies and fills in the base; of idle time its gaps.")
    new_rows = Column(COUNT, "The same in the new recording.")
    posterior_frac = Column(FRACTION, "Of the same work: how probable the least probable of its matches is.")
    base_start_ns = Column(INSTANT, "When the first of them begins in the base.")
    base_end_ns = Column(INSTANT, "When that one ends.")
    new_start_ns = Column(INSTANT, "When the first of them begins in the new recording.")
    new_end_ns = Column(INSTANT, "When that one ends.")


_PIECES = {
    "side": pl.Int64,  # 0: of the base
    "kind": pl.String,
    "base_work": pl.String,
    "new_work": pl.String,
    "item": pl.Int64,  # of the pieces of one match the same number, of all others their own
    "role": pl.Int64,  # equal for interchangeable pieces of a side
    "kernel": pl.String,
    "ns": pl.Int64,  # what it adds to its step
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "posterior_frac": pl.Float64,
}
"""A row per device row of both steps, kernel that overlaps, and part of a gap: their times add up to the steps."""


@dataclass(frozen=True)
class Difference:
    """The difference of two steps.

    Args:
        base, new: Their accounts.
        pieces: What both steps consist of.
        matched_frac: Of both sides, the share of the work that has a counterpart.
        growth: How many times larger FLOPs and sizes of the new recording are.
    """

    base: Account
    new: Account
    pieces: pl.DataFrame
    matched_frac: tuple[float, float]
    growth: float

    @cached_property
    def frame(self) -> pl.DataFrame:
        """StepDifference, the largest difference first."""
        return StepDifference.of(_terms(self.pieces))

    def rows(self, term: Mapping[str, str]) -> pl.DataFrame:
        """StepDifferenceRows of the terms with these values in their key, the largest difference first.

        Raises:
            BadParameter: There is no such column of the key, or no such kind.
        """
        if others := [name for name in term if name not in TERM]:
            raise BadParameter(f"{ROWS_ID} has no parameter {others[0]!r}; it takes {', '.join(TERM)}.")
        if (kind := term.get("kind", SAME)) not in KINDS:
            raise BadParameter(f"kind={kind!r} is not possible; choose one of {', '.join(KINDS)}.")
        return StepDifferenceRows.of(_rows_of_terms(self.pieces.filter(**term)))

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
        growth = f" Sizes are {digits(self.growth)} times those of the base." if self.growth != 1 else ""
        share = f"{base} of the device time of the base, {new} of the new."
        return f"Matched by operators, sizes, FLOPs and order: {share}{growth}"


def step_difference(base: Trace, new: Trace) -> Difference:
    """Split the difference of the typical steps of two recordings."""
    traces = (base, new)
    accounts = [account_of_typical_step(trace) for trace in traces]
    sides = [units(trace, account.rows) for trace, account in zip(traces, accounts, strict=True)]
    alignment = align(*sides)
    matches = (alignment.first, alignment.second)
    work = pl.concat([_work(*parts) for parts in zip((0, 1), traces, accounts, sides, matches, strict=True)])
    others = [
        part
        for nth, (trace, account) in enumerate(zip(traces, accounts, strict=True))
        for part in (_overlaps(nth, trace, account), _gaps(nth, account, work.filter(side=nth)))
    ]
    pieces = pl.concat([_pieces_of_work(work, alignment.posterior), *others])
    own_item = -1 - pl.int_range(pl.len())
    pieces = pieces.with_columns(item=pl.coalesce("item", own_item))
    return Difference(accounts[0], accounts[1], pieces, _matched_shares(work), alignment.growth)


def _work(nth: int, trace: Trace, account: Account, side: Units, match: Rows) -> pl.DataFrame:
    """A row per unit of a side: its match, what it counts, its names, its signature, and whether it communicates."""
    work_ns = np.zeros(trace.device_events.height, np.int64)
    work_ns[account.rows] = account.work_ns
    kernels = _device_rows(trace, side.rows)
    signatures = side.signatures[side.codes]
    return kernels.select(
        side=pl.lit(nth, pl.Int64),
        match=pl.Series(match),
        role=pl.Series(side.codes),
        name=pl.when(signatures["operator"] == "").then("kernel").otherwise(signatures["operator"]),
        kernel="kernel",
        ns=pl.Series(work_ns[side.rows]),
        start_ns="start_ns",
        end_ns="end_ns",
        is_message=signatures["family"] == "communication",
    )


def _device_rows(trace: Trace, rows: Rows) -> pl.DataFrame:
    """The name and the time of some rows of device_events."""
    end = pl.col("start_ns") + pl.col("dur_ns")
    return trace.device_events[rows].select(kernel=pl.col("name").cast(pl.String), start_ns="start_ns", end_ns=end)


def _pieces_of_work(work: pl.DataFrame, posterior: Floats) -> pl.DataFrame:
    """Device rows as pieces: a match is named by the work of both sides, what has none by its own."""
    matches = work.filter(pl.col("match") >= 0).group_by("match")
    names = matches.agg(pl.col("is_message").any().alias("has_message"), *_texts_of_sides("name", "work"))
    own = [
        pl.coalesce(f"{side}_work", pl.when(pl.col("side") == nth).then("name").otherwise(pl.lit(""))).alias(
            f"{side}_work"
        )
        for nth, side in enumerate(SIDES)
    ]
    is_matched, is_message = pl.col("match") >= 0, pl.coalesce("has_message", "is_message")
    only = pl.when(pl.col("side") == 0).then(pl.lit(ONLY_BASE)).otherwise(pl.lit(ONLY_NEW))
    kind = pl.when(is_message).then(pl.lit(MESSAGES)).when(is_matched).then(pl.lit(SAME)).otherwise(only)
    probable = pl.Series("posterior_frac", posterior).to_frame().with_row_index("match")
    with_names = work.join(names, on="match", how="left").join(
        probable.cast({"match": pl.Int64}), on="match", how="left"
    )
    item = pl.when(is_matched).then("match")
    return with_names.with_columns(*own, kind=kind, item=item).select(list(_PIECES))


def _overlaps(nth: int, trace: Trace, account: Account) -> pl.DataFrame:
    """Kernels that overlap those that began before them, which is subtracted."""
    is_overlap = account.overlaps_ns > 0
    kernels = _device_rows(trace, account.rows[is_overlap])
    return _pieces(nth, OVERLAP, kernels.with_columns(work=pl.lit(""), ns=pl.Series(-account.overlaps_ns[is_overlap])))


def _gaps(nth: int, account: Account, work: pl.DataFrame) -> pl.DataFrame:
    """Parts of gaps, by cause; and before which work."""
    in_order = work.sort("start_ns")
    next_row = in_order["start_ns"].to_numpy().searchsorted(account.gaps["end_ns"].to_numpy())
    names = pl.concat([in_order["name"], pl.Series([_END])]).gather(next_row)
    length, cause = pl.col("end_ns") - pl.col("start_ns"), pl.col("cause").cast(pl.String).replace(_CAUSES)
    return _pieces(nth, IDLE, account.gaps.with_columns(work=cause, ns=length, kernel="before " + names))


def _pieces(nth: int, kind: str, parts: pl.DataFrame) -> pl.DataFrame:
    """Parts of a side that have no counterpart as pieces: `work`, `kernel`, `ns`, `start_ns`, `end_ns`."""
    columns = [pl.col(name) for name in ("kernel", "ns", "start_ns", "end_ns")]
    same = {"side": nth, "kind": kind, "item": None, "role": 0, "posterior_frac": None}
    constants = [pl.lit(value, _PIECES[name]).alias(name) for name, value in same.items()]
    return parts.select(*columns, *constants, base_work="work", new_work="work").select(list(_PIECES))


def _texts_of_sides(column: str, name: str) -> list[pl.Expr]:
    """The distinct texts of each side, in order: base_work and new_work for `work`."""
    texts = [pl.col(column).filter(pl.col("side") == nth).unique(maintain_order=True) for nth in range(len(SIDES))]
    return [text.str.join(" + ").alias(f"{side}_{name}") for side, text in zip(SIDES, texts, strict=True)]


def _amounts() -> list[pl.Expr]:
    """The times and numbers of pieces by side, and the least posterior."""
    of_side = [(side, pl.col("side") == nth) for nth, side in enumerate(SIDES)]
    times = [pl.col("ns").filter(is_own).sum().alias(f"{side}_ns") for side, is_own in of_side]
    numbers = [is_own.sum().cast(pl.Int64).alias(f"{side}_rows") for side, is_own in of_side]
    return [*times, *numbers, pl.col("posterior_frac").min()]


def _terms(pieces: pl.DataFrame) -> pl.DataFrame:
    """StepDifference."""
    return _in_order(pieces.group_by(TERM).agg(_amounts()), StepDifference)


def _rows_of_terms(pieces: pl.DataFrame) -> pl.DataFrame:
    """StepDifferenceRows: matches of the same kernels and signatures are a row, so are gaps before the same work."""
    ends = [
        expression
        for nth, side in enumerate(SIDES)
        for expression in (
            pl.col("start_ns").filter(pl.col("side") == nth).min().alias(f"{side}_start_ns"),
            pl.col("end_ns").filter(pl.col("side") == nth).max().alias(f"{side}_end_ns"),
        )
    ]
    items = pieces.group_by("item").agg(
        pl.col(*TERM).first(),
        pl.concat_str("side", "role", separator=" ").sort().str.join(",").alias("roles"),
        *_texts_of_sides("kernel", "kernels"),
        *_amounts(),
        *ends,
    )
    is_alone = pl.col("kind").is_in([IDLE, OVERLAP])
    name = pl.max_horizontal("base_kernels", "new_kernels")
    key = pl.when(is_alone).then(name).otherwise(pl.concat_str("base_kernels", "new_kernels", "roles", separator="\n"))
    by_key = items.with_columns(key=key).group_by(*TERM, "key")
    return _in_order(by_key.agg(*_sums_of_items()), StepDifferenceRows)


def _sums_of_items() -> list[pl.Expr]:
    """The columns of folded items: sums, and the time of the first of them on each side."""
    numbers = [(pl.col(f"{side}_rows") > 0).sum() for side in SIDES]
    first = [
        pl.col(name).sort_by(f"{side}_start_ns").drop_nulls().first()
        for side in SIDES
        for name in (f"{side}_start_ns", f"{side}_end_ns")
    ]
    return [
        pl.max_horizontal(*numbers).cast(pl.Int64).alias("repeats"),
        pl.col("base_kernels", "new_kernels").max(),
        pl.col("base_ns", "new_ns", "base_rows", "new_rows").sum(),
        pl.col("posterior_frac").min(),
        *first,
    ]


def _in_order(rows: pl.DataFrame, table: type[Table]) -> pl.DataFrame:
    """Rows as a table, the largest difference first."""
    rows = rows.with_columns(delta_ns=pl.col("new_ns") - pl.col("base_ns"))
    by = [pl.col("delta_ns").abs(), *table.key]
    return rows.sort(by, descending=[True, *(False for _ in table.key)]).select(table.schema().names())


def _matched_shares(work: pl.DataFrame) -> tuple[float, float]:
    """Of each side the share of the work that has a match; 1 without work."""

    def share(side: pl.DataFrame) -> float:
        total = int(side["ns"].sum())
        return int(side.filter(pl.col("match") >= 0)["ns"].sum()) / total if total else 1.0

    return share(work.filter(side=0)), share(work.filter(side=1))


def _signed_text(ns: int) -> str:
    return f"{'−' if ns < 0 else '+'}{pair_of_times(abs(ns))}"
