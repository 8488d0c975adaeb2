"""From a row of another view to its slices: the view, and the row's key as the view's table has it.

The slices of a row are those that it counts, so there are as many as it says. Views whose rows are facts of the whole
recording, moments, or amounts of memory have no slices; a row that sums up the rest of a table has none either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..kernel_names import step_number
from ..trace import NONE, Trace
from ..trace.duration_bins import EDGES
from ..trace.graph_launches import LAUNCH, graph_launches, graph_rows
from ..trace.launch_outcomes import launch_outcomes
from ..trace.lookup import by_name, take
from ..trace.matrix_calls import each_matrix_call
from ..trace.module_calls import ModuleCalls
from ..trace.op_calls import UNATTRIBUTED
from ..trace.python_frames import parsed
from ..trace.python_paths import ELSEWHERE, PathNumbers, PythonPaths
from ..trace.stacks import Stacks
from .model import Timeline
from .path_slices import path_row
from .wanted import is_equal, rows_of_op, rows_where, slices_at_byte

Key = Mapping[str, Any]
Numbers = NDArray[np.integer]


def slices_of_view_row(trace: Trace, timeline: Timeline, view: str, key: Key) -> Numbers:
    """The slices of the row of a view; a part of the key that isn't given chooses no rows."""
    of_row = VIEW_SLICES[view][1]
    return of_row(trace, timeline, {name: key.get(name) for name in VIEW_SLICES[view][0]})


def _operators(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    """Calls that only wrap a call of the same name are one with it, as in the table."""
    if key["name"] == UNATTRIBUTED:
        return timeline.slices_of("device_events", rows_where(trace.device_events, op=None))
    return timeline.slices_of("host_events", _calls(trace, key))


def _calls(trace: Trace, key: Key) -> NDArray[np.int32]:
    return rows_where(trace.host_events, kind="operator", is_repeat=False, **key)


def _call_stacks(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    rows, stacks = _calls(trace, {"name": key["name"]}), Stacks.of(trace)
    number = stacks.number[rows]
    used = np.unique(number)
    is_so = [
        text == key["stack"] and (None if n < 0 else bool(n % 2)) == key["is_forward_stack"]
        for n, text in zip(used.tolist(), stacks.texts(used), strict=True)
    ]
    return timeline.slices_of("host_events", rows[np.isin(number, used[np.array(is_so, bool)])])


def _of_modules(trace: Trace, timeline: Timeline, wanted: Callable[[ModuleCalls], list[bool]]) -> Numbers:
    """The calls of modules; a hook that says again what the call around it says is the same node, and no other call."""
    found = ModuleCalls.of(trace)
    forest, node = found.forest, found.tree.node
    is_wanted = take(np.array(wanted(found), bool), node, missing=False)
    is_own = found.is_module & (take(node, forest.parent) != node) & is_wanted
    python, host = (np.where(forest.is_python, forest.row, NONE)[is_own], forest.host[is_own])
    return np.concatenate([timeline.slices_of("python_calls", python), timeline.slices_of("host_events", host)])


def _modules(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    return _of_modules(trace, timeline, lambda found: [path == key["path"] for path in found.paths()])


def _modules_by_class(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    return _of_modules(
        trace, timeline, lambda found: [(name.of_class or name.shown) == key["name"] for name in found.names]
    )


def _python_calls(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    """Paths of all operators are looked at: those of outermost ones, or of none, are among them."""
    paths = PythonPaths.of(trace, None, "all")
    forest, tree = paths.forest, paths.tree
    if key["path"] == ELSEWHERE:
        return timeline.slices_of("device_events", np.flatnonzero(forest.launching(trace) < 0))
    numbers, shown = PathNumbers(tree, paths.texts, paths.kinds), parsed(pl.Series(paths.texts))["function"]
    is_called_so = np.array([*is_equal(shown, key["function"]), False])[tree.code]
    node = next((n for n in np.flatnonzero(is_called_so).tolist() if numbers.of(n) == key["path"]), NONE)
    is_thread = node >= 0 and paths.kinds[tree.code[node]] == "thread"
    rows = paths.root == node if is_thread else paths.is_call & (tree.node == node)
    python = np.where(forest.is_python, forest.row, NONE)[rows]
    called = timeline.slices_of("host_events", forest.host[rows])
    return np.concatenate([timeline.slices_of("python_calls", python), called])


def _kernels(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    return timeline.slices_of("device_events", rows_where(trace.device_events, kind="kernel", **key))


def _kernels_by_op(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    own = {name: value for name, value in key.items() if name != "op"}
    rows = rows_where(trace.device_events, kind="kernel", **own)
    return timeline.slices_of("device_events", rows[rows_of_op(trace, trace.device_events[rows], key["op"])])


def _kernel_durations(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    kernels = (trace.device_events["kind"] == "kernel").to_numpy()
    return timeline.slices_of(
        "device_events", np.flatnonzero(kernels & _in_bin(trace.device_events["dur_ns"], key["from_ns"]))
    )


def _launch_durations(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    is_launching = (launch_outcomes(trace)["device_rows"] > 0).to_numpy()
    return timeline.slices_of(
        "launches", np.flatnonzero(is_launching & _in_bin(trace.launches["dur_ns"], key["from_ns"]))
    )


def _in_bin(dur: pl.Series, from_ns: int | None) -> NDArray[np.bool_]:
    """Whether durations fall into the bin that begins there."""
    place = int(np.searchsorted(EDGES, -1 if from_ns is None else from_ns))
    if place >= EDGES.size - 1 or EDGES[place] != from_ns:
        return np.zeros(dur.len(), bool)
    return ((dur >= int(EDGES[place])) & (dur < int(EDGES[place + 1]))).to_numpy()


def _copies(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    rows = rows_where(trace.device_events, **key)
    return timeline.slices_of("device_events", rows[(trace.device_events["kind"][rows] != "kernel").to_numpy()])


def _launches(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    if key["call"] == UNATTRIBUTED:
        return timeline.slices_of("device_events", rows_where(trace.device_events, launch=None))
    return timeline.slices_of("launches", rows_where(trace.launches, name=key["call"]))


def _graphs(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    launched = graph_launches(trace)
    of_graph = is_equal(launched["graph"], key["graph"]) & is_equal(launched["device"], key["device"])
    wanted = launched.filter(pl.Series(of_graph & rows_of_op(trace, launched, key["op"])))
    rows = graph_rows(trace).join(wanted.select(LAUNCH), LAUNCH, "semi", nulls_equal=True)
    return timeline.slices_of("device_events", rows["row"].to_numpy())


def _matrix_calls(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    calls = each_matrix_call(trace)
    values = {"concrete_inputs" if name == "input_values" else name: value for name, value in key.items()}
    device = values.pop("device")
    rows = rows_where(calls, **values)
    on_device = calls["device"][rows].eq_missing(pl.Series([device], dtype=calls["device"].dtype))
    return timeline.slices_of("host_events", calls["row"].to_numpy()[rows[on_device.to_numpy()]])


def _work(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    """Work of a device, or of a stream of it; of a step what reaches into its window."""
    place = {name: key[name] for name in ("device", "stream") if key.get(name) is not None}
    rows, events = rows_where(trace.device_events, **place), trace.device_events
    if key.get("step") not in (None, "all"):
        step = trace.steps.filter(pl.col("name") == key["step"])
        start, dur = (events[name].to_numpy()[rows] for name in ("start_ns", "dur_ns"))
        begin, end = (step[side].to_numpy() for side in ("start_ns", "end_ns"))
        rows = rows[(start < end[0]) & (start + dur > begin[0])] if step.height else rows[:0]
    return timeline.slices_of("device_events", rows)


def _steps(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    is_so = by_name(trace.host_events["name"], lambda name: step_number(name) == key["step"] is not None)
    is_annotation = (trace.host_events["kind"] == "annotation").to_numpy()
    return timeline.slices_of("host_events", np.flatnonzero(is_so & is_annotation))


def _gaps(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    """The work that ended when the gap began, and what began next on the device."""
    rows, at = rows_where(trace.device_events, device=key["device"]), key["start_ns"]
    start, dur = (trace.device_events[name].to_numpy()[rows] for name in ("start_ns", "dur_ns"))
    if at is None:
        return rows[:0]
    following = start[start > at]
    around = (start + dur == at) | (start == (following.min() if following.size else NONE))
    return timeline.slices_of("device_events", rows[around])


def _takers(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    return _operators(trace, timeline, {"name": key["name"]})


def _asker(trace: Trace, timeline: Timeline, key: Key) -> Numbers:
    return slices_at_byte(trace, timeline, key["first_byte"])


VIEW_SLICES: dict[str, tuple[tuple[str, ...], Callable[[Trace, Timeline, Key], Numbers]]] = {
    "steps": (("step",), _steps),
    "operators": (("name",), _operators),
    "operators_by_shape": (("name", "input_shapes"), _operators),
    "call_stacks": (("name", "stack", "is_forward_stack"), _call_stacks),
    "modules": (("path",), _modules),
    "modules_by_class": (("name",), _modules_by_class),
    "python_calls": (("function", "path"), _python_calls),
    "kernels": (("name",), _kernels),
    "kernels_by_op": (
        ("name", "op", "grid", "block", "registers_per_thread", "shared_memory_bytes"),
        _kernels_by_op,
    ),
    "kernel_durations": (("from_ns",), _kernel_durations),
    "copies": (("name", "device", "from_device", "to_device"), _copies),
    "launches": (("call",), _launches),
    "launch_durations": (("from_ns",), _launch_durations),
    "graphs": (("graph", "op", "device"), _graphs),
    "operator_efficiency": (("name", "input_shapes", "input_types", "input_values", "device"), _matrix_calls),
    "gpus": (("device",), _work),
    "exposed_time": (("device", "step"), _work),
    "idle": (("scope", "device", "stream", "step"), _work),
    "gaps": (("device", "start_ns"), _gaps),
    "critical_path": (("step", "part"), path_row),
    "critical_path_names": (("name", "part"), path_row),
    "critical_path_stretches": (("step", "start_ns"), path_row),
    "memory_by_operator": (("device", "name"), _takers),
    "memory_events": (("device", "first_byte"), _asker),
}
VIEW_KEYS = {view: keys for view, (keys, _) in VIEW_SLICES.items()}
"""The key of each view whose rows are slices."""
