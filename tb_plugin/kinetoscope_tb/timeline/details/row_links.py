"""Links from an event to the rows of views that count it: the view, and the filter that shows the row there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from ...arrays.gather import NONE
from ...table import TEXT
from ...trace import Trace
from ...view import View
from .provenance import Provenance

Event = tuple[str, int]
"""A row of a frame of the trace."""
Link = dict[str, str]
"""`view`, its `title`, and a `filter`."""

_PLAIN = re.compile(r"(?!-|re:)\S+")
_SPECIAL = re.compile(r"[\\^$.*+?()\[\]{}|]")


def filter_of(name: str) -> str:
    """The filter for rows that contain this text: the text itself, or a pattern if it isn't one word."""
    return name if _PLAIN.fullmatch(name) else "re:" + _SPECIAL.sub(r"\\\g<0>", name.strip())


def names_of_rows(views: Iterable[View], trace: Trace, event: Event) -> Iterator[tuple[View, str]]:
    """The row of each view that counts the event, by the text of its key that names it, in the order of the views."""
    for view in views:
        column = _name_column(view)
        key = view.row_of_event(trace, *event) if column else None
        if column and key and key[column]:
            yield view, key[column]


def slice_links(views: Iterable[View], trace: Trace, event: Event, source: Provenance | None) -> list[Link]:
    """The rows that count a slice's event, then for each event that led to it the first row that counts that."""
    rows = [*names_of_rows(views, trace, event)]
    for origin in _origins(trace, event, source):
        rows += islice(names_of_rows(views, trace, origin), 1)
    distinct = {(view.id, name): link(view, name) for view, name in rows}
    return list(distinct.values())


def link_to(views: Iterable[View], trace: Trace, event: Event, name: str) -> Link | None:
    """The link to the first row with this name that counts the event; None if there is none."""
    rows = names_of_rows(views, trace, event)
    return next((link(view, of_row) for view, of_row in rows if of_row == name), None)


def link(view: View, name: str) -> Link:
    """The link to the rows of a view that a text names."""
    return {"view": view.id, "title": view.title, "filter": filter_of(name)}


def _name_column(view: View) -> str | None:
    """The first text of the key that isn't a choice of the page, such as the device."""
    choices = {parameter.name for parameter in view.parameters}
    names = (column.name for column in view.table.columns if column.kind is TEXT)
    return next((name for name in names if name in view.table.key and name not in choices), None)


def _origins(trace: Trace, event: Event, source: Provenance | None) -> Iterator[Event]:
    """The call, the operator and the module that led to an event; of what a graph replays the row itself names them."""
    if source is None:
        return
    frame, row = event
    is_replayed = frame == "device_events" and trace.device_events["op"][row] != trace.recorded_op[row]
    op = source.op if frame in ("device_events", "launches", "syncs") and not is_replayed else NONE
    module = ("", NONE) if frame == "python_calls" else source.module
    yield from (origin for origin in (("launches", source.call), ("host_events", op), module) if origin[1] >= 0)
