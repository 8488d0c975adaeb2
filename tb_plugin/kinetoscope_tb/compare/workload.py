"""Whether two recordings are of the same work: machine, devices, ranks, phases, operators.

The difference of steps of different work is a fact about these two recordings, and no evidence of a change.

What two programs have in common is the Dice coefficient of their operators, each weighted by the logarithm of how
often a step calls it: a loop that calls one operator ten thousand times more doesn't make it another program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..measures.recording.device_properties import Devices
from ..measures.time.step_subset import counted_steps
from ..names.text import visible
from ..trace import Trace

LEAST_COMMON_FRAC = 0.5
"""Programs that have less in common are different ones. Before and after a change of one part, recordings had 0.79 and
more in common; of 136 pairs of different models 112 had less than 0.5."""


@dataclass(frozen=True)
class Workload:
    """What was recorded, and where. Empty or None: the file doesn't say.

    Args:
        host: Name of the machine.
        devices: Names of the devices that worked.
        uses_device: Whether it has device work.
        world_size: Number of ranks of the job.
        phases: Phases of a server that the counted steps are of.
        has_stacks: Whether Python's calls were recorded.
        calls: Calls in a step by operator, or by kernel where no operator was recorded.
    """

    host: str
    devices: tuple[str, ...]
    uses_device: bool
    world_size: int | None
    phases: frozenset[str]
    has_stacks: bool
    calls: Mapping[str, float]

    @classmethod
    def of(cls, trace: Trace) -> Workload:
        """The work of a trace."""
        device_ids = trace.device_events["device"].unique().to_list()
        facts = Devices.of(trace.meta)
        names = {facts.facts(device).name for device in device_ids} - {None, ""}
        phases = trace.steps[counted_steps(trace)]["phase"].drop_nulls()
        host = str(trace.meta.producer.get("host") or trace.meta.top.get("host_name") or "")
        devices = tuple(sorted(map(str, names)))
        has_stacks = trace.python_calls.height > 0
        return cls(host, devices, bool(device_ids), trace.meta.world_size, frozenset(phases), has_stacks, _calls(trace))


def _calls(trace: Trace) -> dict[str, float]:
    """The calls in a step by name."""
    operators = trace.host_events.filter(pl.col("kind") == "operator")
    rows = operators if operators.height else trace.device_events
    counts = rows.group_by(pl.col("name").cast(pl.String)).agg(pl.len() / max(1, trace.steps.height))
    return {name: count for name, count in counts.iter_rows() if name is not None}


def common_frac(base: Workload, new: Workload) -> float | None:
    """How much the operators of both have in common, 0 to 1; None if a side has none."""
    if not (base.calls and new.calls):
        return None
    names = base.calls.keys() | new.calls.keys()
    weights = np.log1p([[side.calls.get(name, 0.0) for name in names] for side in (base, new)])
    return float(2 * weights.min(axis=0).sum() / weights.sum())


def difference_of_places(base: Workload, new: Workload) -> str:
    """In what the machines or jobs differ; empty if in nothing known."""
    if base.uses_device != new.uses_device:
        return "only one side has device work"
    for what, first, second in (
        ("devices", ", ".join(base.devices), ", ".join(new.devices)),
        ("machines", base.host, new.host),
        ("numbers of ranks", str(base.world_size or ""), str(new.world_size or "")),
        ("phases", ", ".join(sorted(base.phases)), ", ".join(sorted(new.phases))),
    ):
        if first and second and first != second:
            return visible(f"the sides are of different {what} ({first}; {second})")
    return ""


def difference_of_programs(base: Workload, new: Workload) -> str:
    """Why times of both have nothing to do with each other; empty if they may.

    Other models, and the same one compiled, have other operators too, but a step of a training is still a step.
    """
    common = common_frac(base, new)
    if bool(base.phases) == bool(new.phases) or common is None or common >= LEAST_COMMON_FRAC:
        return ""
    return f"iterations of a server and steps of a training have {100 * common:.0f} % of their operators in common"


def difference_of_work(base: Workload, new: Workload) -> str:
    """Why the steps of both can't be expected to take equally long; empty if nothing speaks against it."""
    common = common_frac(base, new)
    if common is not None and common < LEAST_COMMON_FRAC:
        return f"the sides have little in common: {100 * common:.0f} % of their operators, as different models do"
    if base.has_stacks != new.has_stacks:
        return (
            f"only the {'base' if base.has_stacks else 'new side'} has Python stacks, and recording them slows the host"
        )
    return difference_of_places(base, new)
