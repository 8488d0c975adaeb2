"""One run of a history: the parts of its average step, and where it ran, by the summaries of its recordings.

The step is the mean over ranks of the mean of each rank's complete steps; windows of one process count together. Its
parts are whole nanoseconds and add up to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from ..arrays.gather import NONE
from ..distributed.model import Summary

COMPUTATION, COPIES = "computation", "copies"
LOADING, COLLECTING, IDLE = "data loading", "garbage collection", "other idle time"
OTHER_COMMUNICATION = "other communication"
_NOT_COMMUNICATION = (COMPUTATION, COPIES, LOADING, COLLECTING, IDLE)
_NO_STEPS = "all"  # the name of the only row of `steps` of a recording that marks none

Parts = Mapping[str, int]


@dataclass(frozen=True)
class Environment:
    """Where a run ran, and by what. Empty: unknown.

    Args:
        program: The program that it ran.
        devices: Names of the devices that worked.
        ranks: Number of ranks of the job.
        phases: Phases of a server that its steps are of.
        hosts: Names of the machines.
        torch, cuda, driver: Versions.
        arguments: Those of the program.
    """

    program: str = ""
    devices: str = ""
    ranks: str = ""
    phases: str = ""
    hosts: str = ""
    torch: str = ""
    cuda: str = ""
    driver: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class RecordedRun:
    """A run.

    Args:
        name: As everywhere on the page.
        started_ns: Unix time; 0: unknown.
        environment: Where it ran.
        parts: Of the average step, in ns; empty: no summary has a complete step.
        launches: Kernels that compute in a step, or without a device operators.
        recordings: Number of its recordings.
        summaries: How many of them have a summary.
        marks_steps: Whether its recordings mark steps.
        uses_device: Whether devices worked.
    """

    name: str
    started_ns: int
    environment: Environment
    parts: Parts = field(default_factory=dict)
    launches: int = 0
    recordings: int = 0
    summaries: int = 0
    marks_steps: bool = True
    uses_device: bool = False

    @cached_property
    def step_ns(self) -> int:
        """The average step: the sum of its parts."""
        return sum(self.parts.values())

    @cached_property
    def communication(self) -> Parts:
        """The exposed communication by kind."""
        return {name: ns for name, ns in self.parts.items() if name not in _NOT_COMMUNICATION}


@dataclass
class StepTotals:
    """The complete steps of one rank, all of its windows together."""

    steps: int = 0
    launches: int = 0
    parts: dict[str, int] = field(default_factory=dict)

    def add(self, summary: Summary) -> None:
        """Add a window; if it has no complete step, it adds nothing."""
        rows = summary.steps.with_row_index("row").filter(pl.col("is_complete"))
        self.steps += rows.height
        self.launches += int(rows["launches"].sum())
        for name, ns in _parts(rows, summary.calls).items():
            self.parts[name] = self.parts.get(name, 0) + ns


def marks_steps(summary: Summary) -> bool:
    """Whether a recording marks steps."""
    return summary.steps["step"].to_list() != [_NO_STEPS]


def mean_parts(totals: Iterable[StepTotals]) -> tuple[Parts, int]:
    """The parts of the average step, and its launches, over all ranks that have complete steps."""
    ranks = [rank for rank in totals if rank.steps]
    names = dict.fromkeys(name for rank in ranks for name in rank.parts)
    means = {name: sum(rank.parts.get(name, 0) / rank.steps for rank in ranks) / len(ranks) for name in names}
    launches = sum(rank.launches / rank.steps for rank in ranks) / len(ranks) if ranks else 0
    return {name: round(mean) for name, mean in means.items()}, round(launches)


def _parts(rows: pl.DataFrame, calls: pl.DataFrame) -> Parts:
    """The parts of these steps together, in ns; they add up to the lengths of the steps.

    Data loading and garbage collection are idle time of devices. Without a device, the loader's own operators compute
    at the same time, so no more of it counts than is idle.
    """
    idle = rows["idle_ns"]
    loading_ns = _smaller(rows["dataloader_ns"], idle)
    collecting_ns = _smaller(rows["collecting_ns"], idle - loading_ns)
    return {
        COMPUTATION: int(rows["computation_ns"].sum()),
        **_communication(rows, calls),
        COPIES: int(rows["exposed_copies_ns"].sum()),
        LOADING: int(loading_ns.sum()),
        COLLECTING: int(collecting_ns.sum()),
        IDLE: int((idle - loading_ns - collecting_ns).sum()),
    }


def _smaller(first: pl.Series, second: pl.Series) -> pl.Series:
    """The smaller one of each pair."""
    return pl.select(pl.min_horizontal(first, second)).to_series()


def _communication(rows: pl.DataFrame, calls: pl.DataFrame) -> Parts:
    """The exposed communication of the steps by kind.

    What several kinds expose at once they share in proportion. What no call explains is a part of its own.
    """
    exposed_ns = int(rows["exposed_communication_ns"].sum())
    is_of_steps = (pl.col("step") != NONE) & pl.col("step").is_in(rows["row"].to_list()) & (pl.col("exposed_ns") > 0)
    by_kind = calls.filter(is_of_steps).group_by("kind").agg(pl.col("exposed_ns").sum()).sort("kind")
    total = int(by_kind["exposed_ns"].sum())
    size = max(total, exposed_ns)
    parts = {kind: ns * exposed_ns // size for kind, ns in by_kind.iter_rows()} if size else {}
    return {**parts, OTHER_COMMUNICATION: exposed_ns - sum(parts.values())}
