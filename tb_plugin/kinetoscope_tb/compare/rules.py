"""Limits on changes: `step>5%`, `operators.device_self_ns>10%`, `aten::mm>1ms`.

    RULE     = SUBJECT (">" | "<") LIMIT ("and" LIMIT)*
    SUBJECT  = "step" | VIEW | VIEW "." COLUMN | VIEW "[" ROW "]" | VIEW "." COLUMN "[" ROW "]" | ROW
    LIMIT    = NUMBER ("%" | "ns" | "us" | "µs" | "ms" | "s" | "B" | "KiB" | "MiB" | "GiB" | "pp" | "")

An increase beyond the limit breaks `>`, a decrease beyond it breaks `<`; with several limits, all must be exceeded.
`%` is percent of the base, `pp` percentage points of a share. `step` is the average step. VIEW is any view, COLUMN one
of its columns (default: its weight), ROW the key of a row (default: all rows), its parts joined by " · "; a ROW alone
refers to the compared view. The last `>` or `<` before a limit is the comparison, so names of C++ kernels need no
quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ..errors import BadParameter, NotFound
from ..table import BYTES, COUNT, DURATION, FLOP, FRACTION, Column, Kind
from ..view import View
from .comparison import BEYOND, Comparison

_LIMIT = r"\d+(?:\.\d+)?\s*(?:%|ns|us|µs|ms|s|B|KiB|MiB|GiB|pp)?"
_RULE = re.compile(rf"\s*(?P<subject>.+?)\s*(?P<sign>[<>])\s*(?P<limits>{_LIMIT}(?:\s+and\s+{_LIMIT})*)\s*", re.DOTALL)
_SUBJECT = re.compile(r"(?P<view>\w+)(?:\.(?P<column>\w+))?(?:\[(?P<row>.+)\])?", re.DOTALL)
_UNITS: dict[str, tuple[float, Kind | None]] = {
    "ns": (1, DURATION),
    "us": (1e3, DURATION),
    "µs": (1e3, DURATION),
    "ms": (1e6, DURATION),
    "s": (1e9, DURATION),
    "B": (1, BYTES),
    "KiB": (2**10, BYTES),
    "MiB": (2**20, BYTES),
    "GiB": (2**30, BYTES),
    "pp": (0.01, FRACTION),
    "": (1, None),
}
_OF_THE_CODE = (BYTES, COUNT, FLOP)  # kinds of values that don't depend on the machine's state
JOINT = " · "  # between the parts of a row's key


@dataclass(frozen=True)
class Limit:
    """How much a value may change: `amount` in the column's unit, or that share of the base."""

    amount: float
    is_relative: bool
    kind: Kind | None


@dataclass(frozen=True)
class Rule:
    """A limit on the change of a column.

    Args:
        text: The rule as written.
        view: The view's id.
        column: Name of the column; the view's weight if empty.
        row: Key of the row, or None for all.
        grows: Whether an increase breaks it, or a decrease.
        limits: It is broken if all of these are exceeded.
    """

    text: str
    view: str
    column: str
    row: str | None
    grows: bool
    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Verdict:
    """The result of a rule.

    Args:
        rule: The rule.
        column: The column that it applies to.
        names: Names of the rows that break it.
        broken: These rows of the comparison.
        in_noise: Number of further rows that exceed the limits only within noise.
        unjudged: Further rows that exceed the limits, which one recording a side can't judge.
    """

    rule: Rule
    column: Column
    names: tuple[str, ...]
    broken: pl.DataFrame
    in_noise: int
    unjudged: pl.DataFrame


def parse_rule(text: str, views: Mapping[str, View], default: str) -> Rule:
    """Parse a rule; a row alone refers to the `default` view.

    Raises:
        BadParameter: It isn't a rule, or names a column that can't be compared.
    """
    match = _RULE.fullmatch(text)
    if not match:
        raise BadParameter(
            f"{text!r} isn't a rule. A rule is a subject, > or <, and a limit, such as step>5%, "
            "operators.device_self_ns>10% or aten::mm>1ms."
        )
    subject = match["subject"]
    reference = _SUBJECT.fullmatch(subject)
    grows, limits = match["sign"] == ">", tuple(_limit(part) for part in re.split(r"\s+and\s+", match["limits"]))
    if subject == "step":
        return _check_unit(Rule(text, "overview", "mean_ns", "Step", grows, limits), views["overview"])
    if reference and reference["view"] in views:
        view = views[reference["view"]]
        return _check_unit(Rule(text, view.id, reference["column"] or "", reference["row"], grows, limits), view)
    return _check_unit(Rule(text, default, "", subject, grows, limits), views[default])


def _limit(text: str) -> Limit:
    number, unit = re.fullmatch(r"([\d.]+)\s*(.*)", text.strip()).groups()  # type: ignore[union-attr]  # _RULE matched it
    if unit == "%":
        return Limit(float(number) / 100, is_relative=True, kind=None)
    factor, kind = _UNITS[unit]
    return Limit(float(number) * factor, is_relative=False, kind=kind)


def _check_unit(rule: Rule, view: View) -> Rule:
    column = compared_column(rule, view)
    for limit in rule.limits:
        is_plain = limit.kind is None and column.kind not in (DURATION, BYTES, FRACTION)
        if not (limit.is_relative or is_plain or limit.kind is column.kind):
            raise BadParameter(
                f"{rule.text!r}: {column.name} is a {column.kind.name}; give the limit in its unit or in %."
            )
    return rule


def compared_column(rule: Rule, view: View) -> Column:
    """The column that the rule applies to.

    Raises:
        BadParameter: There is none.
    """
    name = rule.column or view.table.weight
    numbers = {c.name: c for c in view.table.columns if c.name not in view.table.key}
    if name is None or name not in numbers:
        raise BadParameter(f"{rule.text!r}: name a column of {view.id!r}, one of {', '.join(numbers)}.")
    return numbers[name]


def judge(rule: Rule, comparison: Comparison, *, ignores_noise: bool, is_within_recording: bool) -> Verdict:
    """Check the rule.

    A time, a share or a rate of one recording says nothing about the next one, so that a difference of these breaks no
    rule unless asked for. Counts, bytes and FLOPs are of the code: they break it unless they vary that much by step.

    Args:
        rule: The rule.
        comparison: Of its view and column.
        ignores_noise: Whether every difference beyond the limits breaks the rule.
        is_within_recording: Whether a difference beyond the steps of the two recordings does.

    Raises:
        NotFound: Neither side has the row.
    """
    column = compared_column(rule, comparison.view)
    rows = _rows_of(rule, comparison)
    base, delta = pl.col(f"base_{column.name}"), pl.col(f"delta_{column.name}")
    change = delta if rule.grows else -delta
    beyond = [change > limit.amount * (base.abs().fill_null(0) if limit.is_relative else 1.0) for limit in rule.limits]
    beyond_limits = rows.filter(pl.all_horizontal(beyond))
    verdict = pl.col(f"{column.name}_verdict")
    is_noise = pl.lit(value=False) if ignores_noise else verdict == "not certain"
    is_judged = pl.lit(value=True)
    if not ignores_noise and column.kind not in _OF_THE_CODE:
        is_judged = pl.lit(is_within_recording).and_(verdict == BEYOND)
    beyond_noise = beyond_limits.filter(~is_noise)
    violations = beyond_noise.filter(is_judged)
    names = tuple(row_names(comparison, violations))
    in_noise = beyond_limits.height - beyond_noise.height
    return Verdict(rule, column, names, violations, in_noise, beyond_noise.filter(~is_judged))


def row_names(comparison: Comparison, rows: pl.DataFrame) -> pl.Series:
    """Names of rows of a comparison: their keys."""
    key = [pl.col(name).cast(pl.String) for name in comparison.table.key]
    return rows.select(pl.concat_str(key, separator=JOINT, ignore_nulls=True)).to_series()


def _rows_of(rule: Rule, comparison: Comparison) -> pl.DataFrame:
    frame = comparison.frame
    if rule.row is None:
        return frame
    names = row_names(comparison, frame)
    rows = frame.filter(names == rule.row)
    if rows.is_empty():
        raise NotFound(f"row in either side of {comparison.view.id!r}", rule.row, names.head(8).to_list())
    return rows
