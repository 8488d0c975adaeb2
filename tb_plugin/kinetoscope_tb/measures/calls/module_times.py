"""Host and device time of the modules of `module_calls.py`, and its table columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, scatter_add
from ...table import COUNT, DURATION, TEXT, Column, Table
from ...trace.model import Trace
from ..graphs.attribution import RECORDED, SOURCES, joined_sources, provenance, provenance_doc
from .call_tree import Ints, Rows
from .module_calls import ModuleCalls

OUTSIDE = "[outside modules]"
UNATTRIBUTED = "[unattributed]"


class ModuleCosts(Table):
    """Costs of modules."""

    calls = Column(COUNT, "Number of calls.")
    operators = Column(COUNT, "Operators that it called itself in the forward pass, not those inside other operators.")
    device_self_ns = Column(DURATION, "Device time that it launched without nested modules, forward and backward.")
    device_total_ns = Column(DURATION, "Device time that it and nested modules launched, forward and backward.")
    host_self_ns = Column(
        DURATION,
        "Host time in it, but not in what it calls that has rows here: modules. Operators that it calls are its own "
        "time, forward and backward.",
    )
    host_total_ns = Column(DURATION, "Host time in it and nested modules, forward and backward.")
    python_self_ns = Column(DURATION, "Part of its host self time in which no operator ran: Python itself.")
    forward_device_ns = Column(DURATION, "Part of its device total time that was launched in its calls.")
    backward_device_ns = Column(
        DURATION, "Part of its device total time that the backward of the operators in its calls launched."
    )
    forward_host_ns = Column(DURATION, "Part of its host total time that was spent in its calls.")
    backward_host_ns = Column(
        DURATION, "Part of its host total time that the backward of the operators in its calls took, on any thread."
    )
    provenance = Column(TEXT, provenance_doc("module") + " With nested modules.")


@dataclass(frozen=True)
class ModuleTimes:
    """Costs of each module without nested modules; the last entry is for work outside modules.

    Attributes:
        forward_host: Host time in its calls, in ns; `backward_host` that of its operators' backward.
        python: The part of `forward_host` in which no operator ran.
        forward_device: Device time launched in its calls, `backward_device` by its operators' backward; both are None
            if the trace has no device row.
        unattributed_ns: Device time that no module and no known operator launched; no other number includes it.
        operators: Operators that it called itself in the forward pass.
        rows_by_source: Device rows that it launched, by how their module is known (SOURCES).
    """

    forward_host: Ints
    backward_host: Ints
    python: Ints
    forward_device: Ints | None
    backward_device: Ints | None
    unattributed_ns: int
    operators: Ints
    rows_by_source: tuple[Ints, ...]

    @classmethod
    def of(cls, trace: Trace, modules: ModuleCalls) -> ModuleTimes:
        """The sums over all calls."""
        forest, own = modules.forest, modules.forest.self_ns
        is_called = ~modules.is_module & ~modules.is_backward & gather(modules.is_module, forest.parent, missing=True)
        forward_device = backward_device = None
        unattributed_ns, rows_by_source = 0, tuple[Ints, ...]()
        if trace.device_events.height:
            launch_row, dur = forest.rows_at_launch(trace), trace.device_events["dur_ns"].to_numpy()
            node, is_backward = modules.of_rows(launch_row)
            unattributed_ns = int(dur[launch_row < 0].sum())
            forward_device = _per_module(modules, node, dur * ((launch_row >= 0) & ~is_backward))
            backward_device = _per_module(modules, node, dur * is_backward)
            source = provenance(trace).fill_null(RECORDED)  # a call in the module launched it, outside operators
            rows_by_source = tuple(_per_module(modules, node, (source == name).to_numpy()) for name in SOURCES)
        return cls(
            _per_module(modules, modules.node, own * ~modules.is_backward),
            _per_module(modules, modules.node, own * modules.is_backward),
            _per_module(modules, modules.node, own * modules.is_module),
            forward_device,
            backward_device,
            unattributed_ns,
            _per_module(modules, modules.node, is_called),
            rows_by_source,
        )


def _per_module(modules: ModuleCalls, node: Rows, value: NDArray[Any]) -> Ints:
    """The sum for each module, and last the sum outside modules."""
    outside = modules.calls.size
    return scatter_add(np.where(node == NONE, np.int32(outside), node), value, outside + 1)


def module_amounts(times: ModuleTimes, total: Callable[[Ints], Ints], own: Callable[[Ints], Ints]) -> dict[str, Any]:
    """The columns of ModuleCosts except the calls.

    Args:
        times: Costs of each module without nested modules.
        total: From amounts of each module to totals of each row, with nested modules.
        own: From amounts of each module to those of each row.
    """
    columns: dict[str, Any] = {"operators": own(times.operators[:-1]), "python_self_ns": own(times.python[:-1])}
    parts = {"host": (times.forward_host[:-1], times.backward_host[:-1])}
    if times.forward_device is not None and times.backward_device is not None:
        parts["device"] = times.forward_device[:-1], times.backward_device[:-1]
    for side, (forward, backward) in parts.items():
        columns |= {f"{side}_self_ns": own(forward + backward), f"{side}_total_ns": total(forward + backward)}
        columns |= {f"forward_{side}_ns": total(forward), f"backward_{side}_ns": total(backward)}
    if times.rows_by_source:
        columns["provenance"] = joined_sources([total(rows[:-1]) > 0 for rows in times.rows_by_source])
    return columns


def rest_rows(times: ModuleTimes) -> list[dict[str, str | int | None]]:
    """The rows for work outside modules: name and columns of ModuleCosts; empty rows are left out."""
    device = None if times.forward_device is None else int(times.forward_device[-1])
    host, operators = int(times.forward_host[-1]), int(times.operators[-1])
    rows: list[dict[str, str | int | None]] = []
    if host or device or operators:
        sums = {"device_self_ns": device, "device_total_ns": device, "host_self_ns": host, "host_total_ns": host}
        rows.append({"name": OUTSIDE, "operators": operators, **sums})
    if times.unattributed_ns:
        sums = {"device_self_ns": times.unattributed_ns, "device_total_ns": times.unattributed_ns}
        rows.append({"name": UNATTRIBUTED, **sums})
    return rows
