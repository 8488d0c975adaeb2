"""Whether two recordings are of the same work: machine, devices, ranks, phases, operators.

The difference of steps of different work is a fact about these two recordings, and no evidence of a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ..measures.recording.device_properties import Devices
from ..measures.time.step_subset import counted_steps
from ..names.text import visible
from ..trace import Trace

_LEAST_COMMON_FRAC = 0.5  # of the calls, by name


@dataclass(frozen=True)
class Workload:
    """What was recorded, and where. Empty or None: the file doesn't say.

    Args:
        host: Name of the machine.
        devices: Names of the devices that worked.
        uses_device: Whether it has device work.
        world_size: Number of ranks of the job.
        phases: Phases of a server that the counted steps are of.
        calls: Share of the calls by operator, or by kernel where no operator was recorded.
    """

    host: str
    devices: tuple[str, ...]
    uses_device: bool
    world_size: int | None
    phases: frozenset[str]
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
        return cls(host, devices, bool(device_ids), trace.meta.world_size, frozenset(phases), _calls(trace))


def _calls(trace: Trace) -> dict[str, float]:
    """The share of the calls by name."""
    operators = trace.host_events.filter(pl.col("kind") == "operator")
    rows = operators if operators.height else trace.device_events
    counts = rows.group_by(pl.col("name").cast(pl.String)).agg(pl.len() / rows.height)
    return {name: share for name, share in counts.iter_rows() if name is not None}


def common_frac(base: Workload, new: Workload) -> float | None:
    """The share of the calls that both have; None if a side has none."""
    if not (base.calls and new.calls):
        return None
    return sum(min(share, new.calls.get(name, 0.0)) for name, share in base.calls.items())


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
    if bool(base.phases) == bool(new.phases) or common is None or common >= _LEAST_COMMON_FRAC:
        return ""
    return f"iterations of a server and steps of a training have {100 * common:.0f} % of their calls in common"


def difference_of_work(base: Workload, new: Workload) -> str:
    """Why the steps of both can't be expected to take equally long; empty if nothing speaks against it."""
    common = common_frac(base, new)
    if common is not None and common < _LEAST_COMMON_FRAC:
        return f"the sides have little in common: {100 * common:.0f} % of the calls, as different models do"
    return difference_of_places(base, new)
