"""What the calls behind a row of a view have in common: where they came from, what they worked on, and how long.

The operator of device work is the one that launched it, and that of a host event the one around it. Module and Python
line are those of the operator, as in the views of modules and call stacks. Lines are those of the program itself: the
innermost frame that belongs to no library.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...arrays.nesting import nearest
from ...measures.calls.call_tree import Rows
from ...measures.calls.kernel_work import KernelWork
from ...measures.calls.matrix_work import DTYPES
from ...measures.calls.module_calls import ModuleCalls
from ...measures.graphs.attribution import recorded_events
from ...measures.python.call_stacks import Stacks
from ...measures.python.frames import SEPARATOR
from ...names.python_frames import is_of_library
from ...trace import Trace
from ...trace.results import once_per_trace
from ...trace.row_filters import Events, is_operator_of_all
from ...view import View
from ..core.model import Timeline
from .duration_stats import stats_of
from .row_links import link_to
from .slice_summary import slice_summary

MOST = 6  # of each list
_MOST_STACKS = 200  # that are read for their lines
_INPUTS = ("input_shapes", "input_types")
_LAUNCH = ("grid", "block", "registers_per_thread")


@dataclass(frozen=True, eq=False)
class _Origins:
    """Where host events come from.

    Args:
        modules: The modules and their calls.
        module: Of each of all_host_events the number of its module, or NONE.
        classes: The class of each module.
        stacks: Their stacks.
        operator: Of each the operator around it, or NONE.
    """

    modules: ModuleCalls
    module: Rows
    classes: list[str]
    stacks: Stacks
    operator: Rows


@once_per_trace
def _origins(trace: Trace) -> _Origins:
    modules, host = ModuleCalls.of(trace), trace.all_host_events
    parent = host["parent"].to_numpy()
    around = gather(nearest(is_operator_of_all(trace), parent), parent).astype(np.int32)
    classes = [name.of_class or name.label for name in modules.names]
    return _Origins(modules, modules.of_host_rows(trace)[0], classes, Stacks.of(trace), around)


def row_facts(trace: Trace, timeline: Timeline, events: Events, views: Collection[View]) -> dict[str, Any]:
    """What the page shows of the calls behind a row; docs/http_api.md defines each field. It links to these views."""
    origins = _origins(trace)
    calls = _calls(trace, timeline, events, origins)
    if calls.is_empty():
        return {"durations": None, "slowest": None, "origins": [], "inputs": [], "steps": [], "roof": None}
    durations = stats_of(timeline, calls["slice"].to_numpy())
    return {
        "durations": durations,
        "slowest": slice_summary(timeline, durations["slowest"]),
        "origins": [
            *_operators(calls, trace, views),
            *_modules(trace, calls, origins, views),
            *_lines(calls, origins.stacks),
        ],
        "inputs": [*_shapes(calls, trace), *_launches(calls, trace)],
        "steps": _steps(calls, trace),
        "roof": _roof(calls, trace),
    }


def _calls(trace: Trace, timeline: Timeline, events: Events, origins: _Origins) -> pl.DataFrame:
    """The slices of the events.

    Each has its step, its device row, the operator that it belongs to (`operator`), and the host event whose inputs,
    module and stack are its own (`source`).
    """
    parts = [_calls_of(trace, timeline, frame, np.asarray(rows), origins) for frame, rows in events.items()]
    calls = pl.concat(parts) if parts else _calls_of(trace, timeline, "others", np.empty(0, np.int32), origins)
    return calls.filter(pl.col("slice") >= 0).unique("slice", maintain_order=True)


def _calls_of(
    trace: Trace, timeline: Timeline, frame: str, events: NDArray[np.integer], origins: _Origins
) -> pl.DataFrame:
    table = getattr(trace, frame)
    rows: Rows = events[events >= 0].astype(np.int32)
    slices, none = timeline.slices_of(frame, rows), np.full(rows.size, NONE, np.int32)
    columns = {"slice": slices, "dur_ns": gather(timeline.dur_ns, slices)}
    columns |= dict.fromkeys(("source", "operator", "device", "step"), none)
    if frame == "host_events":
        columns |= {"source": rows, "operator": gather(origins.operator, rows)}
    elif frame in ("device_events", "launches"):
        columns |= dict.fromkeys(("source", "operator"), table["op"].to_numpy()[rows])
    if frame == "device_events":
        columns["device"] = rows
    if "step" in table.columns:
        columns["step"] = table["step"].to_numpy()[rows]
    return pl.DataFrame({name: pl.Series(values, dtype=pl.Int64) for name, values in columns.items()})


def _texts(values: pl.Series, rows: pl.Series) -> pl.Series:
    return values.gather(rows.replace(NONE, None)).cast(pl.String)


def _largest(kind: str, calls: pl.DataFrame, *also: pl.Expr) -> list[dict[str, Any]]:
    """The calls by `text`, those with most time first; calls without a text are left out."""
    sums = pl.len().cast(pl.Int64).alias("calls"), pl.col("dur_ns").sum().alias("total_ns")
    sums_by_text = calls.filter(pl.col("text").is_not_null()).group_by("text").agg(*sums, *also)
    largest = sums_by_text.sort("total_ns", "text", descending=[True, False]).head(MOST)
    return [{"kind": kind, "stack": None, "instances": None, **row} for row in largest.to_dicts()]


def _operators(calls: pl.DataFrame, trace: Trace, views: Collection[View]) -> list[dict[str, Any]]:
    of_name = calls.with_columns(text=_texts(trace.all_host_events["name"], calls["operator"]))
    rows = _largest("operator", of_name, pl.struct("operator", "device").first().alias("row"))
    return [{**row, "row": link_to(views, trace, _event(trace, **row["row"]), row["text"])} for row in rows]


def _event(trace: Trace, operator: int, device: int) -> tuple[str, int]:
    """The operator as an event; of one that a graph replays its device row."""
    return ("host_events", operator) if operator < trace.host_events.height else ("device_events", device)


def _modules(trace: Trace, calls: pl.DataFrame, origins: _Origins, views: Collection[View]) -> list[dict[str, Any]]:
    """Modules by class, with the number of instances that the calls are of."""
    module = pl.Series(gather(origins.module, calls["source"].to_numpy().astype(np.int32)), dtype=pl.Int64)
    texts = _texts(pl.Series(origins.classes, dtype=pl.String), module)
    sums = pl.col("module").n_unique().alias("instances"), pl.col("module").first().alias("row")
    rows = _largest("module", calls.with_columns(module=module, text=texts), *sums)
    events = (_event_of_module(trace, origins, row["row"]) for row in rows)
    return [{**row, "row": link_to(views, trace, event, row["text"])} for row, event in zip(rows, events, strict=True)]


def _event_of_module(trace: Trace, origins: _Origins, module: int) -> tuple[str, int]:
    """A call of a module; of one that only graphs replay a device row."""
    calls = origins.modules.events_of([node == module for node in range(len(origins.classes))])
    events = recorded_events(trace, calls).items()
    return next((name, int(rows[rows >= 0][0])) for name, rows in events if (rows >= 0).any())


def _lines(calls: pl.DataFrame, stacks: Stacks) -> list[dict[str, Any]]:
    """The lines of the program that the calls come from, each with the stack that takes most of its time."""
    number = pl.Series("number", gather(stacks.number, calls["source"].to_numpy().astype(np.int32)), pl.Int64)
    by_stack = calls.with_columns(number).filter(pl.col("number") >= 0).group_by("number")
    times = by_stack.agg(pl.len().cast(pl.Int64).alias("calls"), pl.col("dur_ns").sum().alias("total_ns"))
    largest = times.sort("total_ns", "number", descending=[True, False]).head(_MOST_STACKS)
    texts = [text or "" for text in stacks.texts(largest["number"].to_numpy().astype(np.int32))]
    lines = [next((frame for frame in text.split(SEPARATOR) if not is_of_library(frame)), "") for text in texts]
    lines_and_stacks = (
        largest.with_columns(pl.Series("text", lines, pl.String), pl.Series("stack", texts, pl.String))
        .filter(pl.col("text") != "")
        .group_by("text", maintain_order=True)
        .agg(pl.col("calls").sum(), pl.col("total_ns").sum(), pl.col("stack").first())
    )
    rows = lines_and_stacks.sort("total_ns", "text", descending=[True, False]).head(MOST).to_dicts()
    return [{"kind": "line", "instances": None, **row} for row in rows]


def _shapes(calls: pl.DataFrame, trace: Trace) -> list[dict[str, Any]]:
    """The shapes of inputs, without those at the end that are of no tensor, and the number format of the first."""
    shapes, types = (_texts(trace.all_host_events[name], calls["source"]) for name in _INPUTS)
    dimensions = shapes.str.replace(r"(, \[\])+\]$", "]").str.replace(r"^\[(.*)\]$", "${1}")
    formats = {name: number_format for name, (number_format, _) in DTYPES.items()}
    first = types.str.extract(r'^\["([^"]+)').replace_strict(formats, default="").fill_null("")
    text = (dimensions + " " + first).str.strip_chars()
    return _largest("input", calls.with_columns(text=text).filter(~dimensions.is_in(["", "[]"])))


def _launches(calls: pl.DataFrame, trace: Trace) -> list[dict[str, Any]]:
    """Grids and blocks of kernels, and their registers where they are recorded (−1: not; AMD's never are)."""
    grid, block, registers = (_texts(trace.device_events[name], calls["device"]) for name in _LAUNCH)
    text = (grid + " × " + block + ", " + registers + " registers").str.replace(r", -1 registers$", "")
    return _largest("launch", calls.with_columns(text=text))


def _steps(calls: pl.DataFrame, trace: Trace) -> list[dict[str, Any]]:
    """Calls and time of each step in order of time; nothing where the trace has fewer than two steps."""
    if trace.steps.height < 2:
        return []
    sums = calls.group_by("step").agg(pl.len().cast(pl.Int64).alias("calls"), pl.col("dur_ns").sum().alias("total_ns"))
    steps = trace.steps.select(pl.col("name").cast(pl.String)).with_row_index("step").cast({"step": pl.Int64})
    rows = steps.join(sums, on="step", how="left", maintain_order="left")
    return rows.select("name", pl.col("calls", "total_ns").fill_null(0)).to_dicts()


def _roof(calls: pl.DataFrame, trace: Trace) -> dict[str, Any] | None:
    """How near the kernels of the calls come to the device's limits; None where no roof is known."""
    host = calls.filter(pl.col("device") < 0)["source"]
    device = trace.device_events.with_row_index("row")
    is_own = pl.col("row").cast(pl.Int64).is_in(calls["device"].implode()) | pl.col("op").is_in(
        host.filter(host >= 0).cast(pl.Int32).implode()
    )
    kernels = device.filter((pl.col("kind") == "kernel") & is_own)
    if kernels.is_empty():
        return None
    groups = [group for group in KernelWork.of(trace, kernels).groups if group.roof_ns is not None and group.time_ns]
    total = sum(group.time_ns for group in groups)
    if not total:
        return None
    return {
        "roof_frac": sum(group.roof_ns or 0.0 for group in groups) / total,
        "bound_by": groups[0].bound_by,
        "time_frac": total / int(kernels["dur_ns"].sum()),
    }
