"""The recordings of a run side by side, with what is worked out of all of them together, once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, texts
from ..critical_path import SEGMENTS
from ..trace.meta import clock_offset
from .clocks.estimate import clocks
from .clocks.offsets import offsets
from .collectives.matching import matched, matches
from .collectives.waits import waited
from .model import CALLS, GROUPS, STEPS, TRAFFIC, Summary
from .process_groups import group_label

_MOST_RANKS = 1 << 17  # that are looked for; a larger job than any so far
_LAST_NUMBER = re.compile(r"(\d+)\D*$")
_HOST_AND_PROCESS = re.compile(r"(?P<host>.+)_\d+$")


@dataclass(frozen=True)
class Member:
    """One recording of a run, and its summary, or why there is none.

    Args:
        worker: Its worker's name.
        span: Its name among those of the worker.
        place: Which of the worker's recordings it is: those of the same place are of the same time.
        summary: What is kept of it; None if it can't be read.
        problem: Why it can't be.
    """

    worker: str
    span: str
    place: int
    summary: Summary | None
    problem: str = ""


@dataclass(frozen=True)
class Ranks:
    """Recordings of a run. `member` in each frame is a place in `members`.

    Args:
        run: Its name.
        members: In the order of the page; those that can't be read too.
        place: Of the recordings that were asked for, where the members are of several.
        notes: What is to be told of how the summaries were found.
    """

    run: str
    members: tuple[Member, ...]
    place: int = 0
    notes: tuple[str, ...] = ()

    def holds(self, part: str) -> bool:
        """Whether there is any row of `steps`, `calls`, `matches` or `traffic`; `several`: whether two can be read."""
        if part == "several":
            return len({self.members[i].worker for i, _ in self.readable}) > 1
        frame: pl.DataFrame = getattr(self, part)
        return not frame.is_empty()

    @cached_property
    def readable(self) -> tuple[tuple[int, Summary], ...]:
        """The members with a summary, with their places."""
        return tuple((i, member.summary) for i, member in enumerate(self.members) if member.summary is not None)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """One row per member: member, worker, span, place, rank, host, device, origin_ns, world_size; null: unknown.

        Where no recording tells its rank, the number at the end of the worker's name counts, else its place.
        """
        facts = [{} if member.summary is None else member.summary.facts for member in self.members]
        ranks = _ranks([member.worker for member in self.members], [fact.get("rank") for fact in facts])
        columns = {
            "member": range(len(self.members)),
            "worker": [member.worker for member in self.members],
            "span": [member.span for member in self.members],
            "place": [member.place for member in self.members],
            "rank": ranks,
            "host": [_host(member.worker, fact) for member, fact in zip(self.members, facts, strict=True)],
            "device": [_devices(fact) for fact in facts],
            "origin_ns": [_whole(fact.get("origin_ns")) or 0 for fact in facts],
            "world_size": [_whole(fact.get("world_size")) for fact in facts],
        }
        schema = {
            **dict.fromkeys(("member", "place"), pl.Int32),
            **dict.fromkeys(("rank", "origin_ns", "world_size"), pl.Int64),
            **dict.fromkeys(("worker", "span", "host", "device"), pl.String),
        }
        return pl.DataFrame(columns, schema_overrides=schema)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """STEPS with `member` and `place`, in the order of the members."""
        return self._stacked([summary.steps for _, summary in self.readable], STEPS)

    @cached_property
    def _groups_and_numbers(self) -> tuple[pl.DataFrame, list[pl.Series]]:
        """The groups of all members, each once, and of each readable member the new numbers of its own."""
        known: dict[tuple[Any, ...], int] = {}
        described: list[tuple[Any, ...]] = []
        numbers = []
        for _, summary in self.readable:
            of_mine = []
            for name, description, size, ranks in summary.groups.rows():
                number = known.setdefault((name, size, ranks), len(known))
                if number == len(described):
                    described.append((name, description, size, ranks))
                of_mine.append(number)
            numbers.append(pl.Series(of_mine, dtype=pl.Int32))
        return pl.DataFrame(described, schema=GROUPS, orient="row"), numbers

    @property
    def groups(self) -> pl.DataFrame:
        """GROUPS: each group of the run once."""
        return self._groups_and_numbers[0]

    @cached_property
    def group_labels(self) -> pl.DataFrame:
        """Of each group its number, `group`, and what people call it, `label`; two of the same label are numbered."""
        labels = [group_label(*row) for row in self.groups.rows()]
        seen: Counter[str] = Counter()
        taken = Counter(labels)
        told = []
        for label in labels:
            seen[label] += 1
            told.append(label if taken[label] == 1 else f"{label} ({seen[label]})")
        return pl.DataFrame({"group": range(len(told)), "label": told}, schema={"group": pl.Int32, "label": pl.String})

    @cached_property
    def calls(self) -> pl.DataFrame:
        """CALLS with `member`, `place`, `rank`, `step_name`, and what `matched` and `waited` add."""
        calls = self._stacked([summary.calls for _, summary in self.readable], CALLS)
        steps_before = _before([summary.steps.height for _, summary in self.readable])
        groups_before = _before([summary.groups.height for _, summary in self.readable])
        counts = [summary.calls.height for _, summary in self.readable]
        step, group = calls["step"].to_numpy(), calls["group"].to_numpy()
        numbers = pl.concat([pl.Series(dtype=pl.Int32), *self._groups_and_numbers[1]]).to_numpy()
        step = np.where(step >= 0, step + np.repeat(steps_before, counts), NONE).astype(np.int32)
        group = np.where(group >= 0, group + np.repeat(groups_before, counts), NONE).astype(np.int32)
        named = calls.with_columns(
            group=pl.Series(gather(numbers, group)),
            step_name=texts(self.steps["step"], step),
            rank=self.workers["rank"].gather(calls["member"]),
            group_size=self._sizes(gather(numbers, group)),
        )
        return waited(matched(named))

    @cached_property
    def segments(self) -> pl.DataFrame:
        """SEGMENTS with `member` and `place`; `step` is a row of `steps`, `sync_point` and `since` of `calls`."""
        segments = self._stacked([summary.segments for _, summary in self.readable], SEGMENTS)
        heights = [summary.segments.height for _, summary in self.readable]
        steps = np.repeat(_before([summary.steps.height for _, summary in self.readable]), heights)
        calls = np.repeat(_before([summary.calls.height for _, summary in self.readable]), heights)
        moved = [
            pl.Series(name, np.where((rows := segments[name].to_numpy()) >= 0, rows + by, NONE), dtype=pl.Int32)
            for name, by in (("step", steps), ("sync_point", calls), ("since", calls))
        ]
        return segments.with_columns(moved)

    @cached_property
    def matches(self) -> pl.DataFrame:
        """MATCHES."""
        return matches(self.calls, self.groups)

    @cached_property
    def clocks(self) -> pl.DataFrame:
        """OFFSETS of all members."""
        machines = [
            member.summary.facts.get("host") if member.summary and not member.summary.facts.get("devices") else None
            for member in self.members
        ]
        origin_ns = self.workers["origin_ns"].to_list()
        facts = [{} if member.summary is None else member.summary.facts for member in self.members]
        measured = [clock_offset(fact.get("clock")) for fact in facts]
        return offsets(clocks(self.calls, origin_ns, machines), origin_ns, measured)

    def on_one_clock(self, rows: pl.DataFrame, column: str) -> pl.Series:
        """Instants of rows with a `member`, each on its own clock, on the clock of the first member."""
        told = rows.select("member", column).join(self.clocks, "member", "left", maintain_order="left")
        away = (pl.col(column) - pl.col("middle_ns")).cast(pl.Float64)
        return told.select(
            pl.col(column) + pl.col("shift_ns") + (pl.col("drift") * away).round().cast(pl.Int64)
        ).to_series()

    @cached_property
    def traffic(self) -> pl.DataFrame:
        """TRAFFIC with `member` and `place`."""
        return self._stacked([summary.traffic for _, summary in self.readable], TRAFFIC)

    @cached_property
    def absent_ranks(self) -> list[int]:
        """The ranks of the job of which there is no recording."""
        size = max((size for size in self.workers["world_size"].to_list() if size is not None), default=0)
        there = set(self.workers["rank"].to_list())
        return [rank for rank in range(min(size, _MOST_RANKS)) if rank not in there]

    @cached_property
    def missing_ranks(self) -> list[int]:
        """Those of `absent_ranks` that were to record, by what the recordings say."""
        told = [summary.facts.get("ranks") for _, summary in self.readable]
        if not told or not all(isinstance(known, list) for known in told):
            return self.absent_ranks
        chosen = {rank for known in told for rank in known or ()}
        return [rank for rank in self.absent_ranks if rank in chosen]

    def _sizes(self, group: NDArray[np.int32]) -> pl.Series:
        sizes = self.groups["size"].to_numpy()
        return pl.Series(gather(sizes, group), dtype=pl.Int64)

    def _stacked(self, frames: Sequence[pl.DataFrame], schema: Mapping[str, Any]) -> pl.DataFrame:
        """The frames of the readable members below each other, with whose they are."""
        heights = [frame.height for frame in frames]
        member = np.repeat(np.array([i for i, _ in self.readable], np.int32), heights)
        place = np.array([one.place for one in self.members] or [0], np.int32)[member]
        return pl.concat([pl.DataFrame(schema=schema), *frames]).with_columns(
            member=pl.Series(member, dtype=pl.Int32), place=pl.Series(place, dtype=pl.Int32)
        )


def _before(heights: Sequence[int]) -> NDArray[np.int64]:
    """How many rows lie above each of some frames below each other."""
    return np.cumsum([0, *heights])[:-1]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _host(worker: str, fact: Any) -> str | None:
    """The machine, as the producer tells it, or as torch's names of workers do: host_process."""
    if isinstance(fact.get("host"), str):
        return str(fact["host"])
    named = _HOST_AND_PROCESS.match(worker)
    return named["host"] if named and not named["host"].lower().endswith(("rank", "worker")) else None


def _devices(fact: Any) -> str | None:
    devices = fact.get("devices")
    if not isinstance(devices, list) or not devices:
        return None
    return ", ".join(f"{number}: {name}" if name else str(number) for number, name in devices)


def _ranks(workers: Sequence[str], told: Sequence[Any]) -> list[int]:
    """Each recording's rank: as the file tells it; else by the worker's name if that tells all apart, or its place."""
    known = [_whole(rank) for rank in told]
    names = list(dict.fromkeys(workers))
    numbers = {name: int(match[1]) for name in names if (match := _LAST_NUMBER.search(name)) and len(match[1]) < 7}
    by_name = numbers if len(set(numbers.values())) == len(names) else {name: i for i, name in enumerate(names)}
    of_worker = {worker: rank for worker, rank in zip(workers, known, strict=True) if rank is not None}
    return [
        rank if rank is not None else of_worker.get(worker, by_name[worker])
        for worker, rank in zip(workers, known, strict=True)
    ]
