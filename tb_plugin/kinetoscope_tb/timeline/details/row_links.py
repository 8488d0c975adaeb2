"""The rows of other views that count a slice: the view, and the filter that shows the row there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...names.kernels import step_number
from ...names.matrix_work import FORMULAS
from ...trace import Trace
from ..core.model import Timeline
from .provenance import Provenance

_PLAIN = re.compile(r"(?!-|re:)\S+")
_SPECIAL = re.compile(r"[\\^$.*+?()\[\]{}|]")
_MODULE = "nn.Module: "


def filter_of(name: str) -> str:
    """The filter for rows that contain this text: the text itself, or a pattern if it isn't one word."""
    return name if _PLAIN.fullmatch(name) else "re:" + _SPECIAL.sub(r"\\\g<0>", name.strip())


def row_links(trace: Trace, timeline: Timeline, number: int, source: Provenance | None) -> list[dict[str, str]]:
    """The id of each view that counts the slice, or what led to it, with the filter for its row."""
    frame, row = timeline.source_of(number)
    rows = [*_own(trace, frame, row), *_of_origin(trace, frame, source)]
    if step := _step(trace, frame, row):
        rows.append(("steps", step))
    distinct = dict.fromkeys((view, name) for view, name in rows if name)
    return [{"view": view, "filter": filter_of(name)} for view, name in distinct]


def _own(trace: Trace, frame: str, row: int) -> Iterator[tuple[str, str]]:
    rows = getattr(trace, frame)
    name = rows["name"][row] or ""
    if frame == "host_events" and rows["kind"][row] == "operator":
        yield "operators", name
        yield "operators_by_shape", name
        if name in FORMULAS:
            yield "operator_efficiency", name
        if (trace.memory["op"] == row).any():
            yield "memory_by_operator", name
    elif frame == "launches":
        yield "launches", name
    elif frame == "device_events":
        is_kernel = rows["kind"][row] == "kernel"
        yield ("kernels" if is_kernel else "copies"), name
        if is_kernel:
            yield "kernels_by_op", name
        if rows["graph_id"][row] >= 0:
            yield "graphs", str(rows["graph_id"][row])
    elif frame == "python_calls":
        if rows["module_id"][row] >= 0:
            yield "modules", name.removeprefix(_MODULE)
        yield "python_calls", _function(name)


def _function(name: str) -> str:
    """The name of the function in `file.py(12): function`, as the view shows it."""
    match = re.fullmatch(r"(?s).*\(\d{1,9}\): (.*)", name)
    return match[1] if match else name


def _of_origin(trace: Trace, frame: str, source: Provenance | None) -> Iterator[tuple[str, str]]:
    if source is None:
        return
    if source.call >= 0:
        yield "launches", trace.launches["name"][source.call] or ""
    if source.op >= 0 and frame in ("device_events", "launches", "syncs"):
        yield "operators", trace.host_events["name"][source.op] or ""
    module_frame, row = source.module
    if row >= 0 and module_frame == "python_calls" and frame != "python_calls":
        yield "modules", (trace.python_calls["name"][row] or "").removeprefix(_MODULE)


def _step(trace: Trace, frame: str, row: int) -> str | None:
    return step_number(trace.host_events["name"][row] or "") if frame == "host_events" else None
