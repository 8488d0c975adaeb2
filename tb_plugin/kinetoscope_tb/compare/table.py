"""The schema of a comparison, derived from the view's."""

from __future__ import annotations

from collections.abc import Sequence

from ..pictures import Tree, parent_column
from ..table import COUNT, ID, NUMBER, NUMERIC, TEXT, Column, Kind, Table
from ..view import View
from .tree_paths import labels, shown_names

SIDE = "only_in"


def compared_table(view: View, columns: Sequence[Column], *, is_per_step: bool) -> type[Table]:
    """One row is a row of either side; per compared column base, new, delta, ratio, noise and verdict."""
    table = view.table
    parent = parent_column(table.picture)
    keys, names = labels(table) if parent else table.key, shown_names(table)
    by_name = {c.name: c for c in table.columns}
    parts: dict[str, object] = {
        name: Column(by_name[name].kind, by_name[name].doc, shown_as=by_name[name].shown_as, words=by_name[name].words)
        for name in names
    }
    parts[SIDE] = Column(TEXT, "The side that alone has the row, base or new; missing if both have it.")
    for column in columns:
        parts |= _parts(column, is_per_step=is_per_step)
    if parent:
        parts[parent] = Column(ID, "Parent row in this table; missing at a root.")
    first = columns[0]
    weight = f"delta_{first.name}" if first.kind in NUMERIC else None
    attributes = {"key": tuple(keys), "weight": weight, "picture": Tree(parent) if parent else None}
    words = f"How the rows of “{view.title}” differ between two recordings, the base and the new."
    return type(f"Compared{table.__name__}", (Table,), {"__doc__": words, **parts, **attributes})


def _parts(column: Column, *, is_per_step: bool) -> dict[str, object]:
    doc, name = column.doc, column.name
    if column.kind not in NUMERIC:
        return {
            f"base_{name}": Column(TEXT, f"In the base: {doc}", words=column.words),
            f"new_{name}": Column(TEXT, f"In the new: {doc}", words=column.words),
            f"{name}_verdict": Column(TEXT, "same or changed."),
        }
    is_divided = is_per_step and column.adds_up
    kind = NUMBER if is_divided and column.kind is COUNT else column.kind
    per = " Mean per counted step." if is_divided else " Of the counted steps together." if is_per_step else ""
    return {
        f"base_{name}": Column(kind, f"In the base: {doc}{per}"),
        f"new_{name}": Column(kind, f"In the new: {doc}{per}"),
        f"delta_{name}": Column(kind, "New − base; for amounts, a missing row counts as 0."),
        f"{name}_ratio": Column(NUMBER, "New / base; missing if the base is 0 or missing."),
        f"noise_{name}": Column(
            _error_kind(kind),
            "A difference up to this is within the spread of these steps (Welch's test at 99 % of values and of "
            "their logarithms, for steps that resemble their neighbors or drift). Missing unless both sides have two "
            "steps of the same work.",
        ),
        f"{name}_verdict": Column(
            TEXT,
            "same: no difference. beyond noise: beyond the spread of these recordings' steps; another recording may "
            "differ as much. not certain: within it. unknown: no spread, or different work.",
        ),
    }


def _error_kind(kind: Kind) -> Kind:
    return NUMBER if kind is COUNT else kind
