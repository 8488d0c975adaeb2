"""The gated number of a recording: the average step, or a row of any view, per step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ...errors import BadParameter, NotFound
from ...measures.time.step_subset import has_steps
from ...table import NUMERIC, Column
from ...trace import Trace
from ...view import View
from ..headline import lengths
from ..rules import Rule, compared_column, parse_rule
from ..sides import values_of_steps

STEP = "step"


@dataclass(frozen=True)
class Number:
    """A number of a recording.

    Args:
        name: As the user wrote it.
        rule: Its view, column and row; None is the average step.
    """

    name: str
    rule: Rule | None

    def value(self, views: Mapping[str, View], trace: Trace) -> float:
        """Its value in a trace: the mean over the counted steps, or of the whole recording without steps.

        Raises:
            BadParameter: It isn't above 0, so that it has no logarithm.
            NotFound: The trace has no such row.
        """
        value = float(lengths(trace).mean()) if self.rule is None else _value(self.rule, views[self.rule.view], trace)
        if not value > 0:
            raise BadParameter(f"{self.name!r} is {value:g} in {trace.path}: growth is measured from a number above 0.")
        return value

    def unit(self, views: Mapping[str, View]) -> str:
        """The kind of its column, such as duration."""
        return "duration" if self.rule is None else compared_column(self.rule, views[self.rule.view]).kind.name


def parse_number(text: str, views: Mapping[str, View]) -> Number:
    """Parse what a rule of `compare` has before its limit: `step`, `overview[Kernel]`, `operators.calls[aten::mm]`.

    Raises:
        BadParameter: It names no row of a column.
    """
    if text == STEP:
        return Number(text, None)
    rule = parse_rule(f"{text}>0%", views, "operators")
    if rule.row is None:
        raise BadParameter(f"{text!r}: name one row, such as operators.device_self_ns[aten::mm] or overview[Kernel].")
    column = compared_column(rule, views[rule.view])
    if column.kind not in NUMERIC:
        raise BadParameter(f"{text!r}: {column.name} is no number.")
    return Number(text, rule)


def _value(rule: Rule, view: View, trace: Trace) -> float:
    column = compared_column(rule, view)
    rows = named_values(view, trace, column)
    values = rows.filter(pl.col("name") == rule.row)["value"]
    if values.is_empty():
        raise NotFound(f"row in {view.id!r} of {trace.path}", rule.row or "", rows["name"].head(8).to_list())
    return float(values[0] or 0.0)


def named_values(view: View, trace: Trace, column: Column) -> pl.DataFrame:
    """The rows of a view: `name`, its keys as in a rule, and `value`, the amount per step."""
    if view.is_missing(trace):
        return pl.DataFrame(schema={"name": pl.String, "value": pl.Float64})
    frame = values_of_steps(view, trace, [column]) if has_steps(trace) else view.frame(trace, {})
    key = [pl.col(name).cast(pl.String) for name in view.table.key]
    return frame.select(
        pl.concat_str(key, separator=" · ", ignore_nulls=True).alias("name"),
        pl.col(column.name).cast(pl.Float64).alias("value"),
    )
