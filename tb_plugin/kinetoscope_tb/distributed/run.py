"""The summaries of a run side by side, with everything that is computed from all of them, once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, texts
from ..critical_path.segments import SEGMENTS
from ..names.processes import UNRANKED
from ..trace.meta import clock_offset
from .clocks.estimate import clocks
from .clocks.offsets import offsets
from .collectives.matching import match_calls, matches
from .collectives.waits import add_waits
from .model import CALLS, GROUPS, INPUTS, STEPS, TRAFFIC, Summary
from .pipeline import Pipeline
from .process_groups import format_ranks, group_label

_MOST_RANKS = 1 << 17  # that missing ranks are searched in; no job is larger so far
_NOISE_FACTOR = 3  # × the median distance of ends from the common ends
_MOST_NAMED = 3  # workers
_LAST_NUMBER = re.compile(r"(\d+)\D*$")
_HOST_AND_PROCESS = re.compile(r"(?P<host>.+)_\d+$")


@dataclass(frozen=True)
class Member:
    """One trace of a run with its summary, or the reason why it has none.

    Args:
        worker: Its worker's name.
        span: Its span's name.
        place: Index of the span: traces with the same place were recorded at the same time.
        summary: Its summary; None if the trace is unreadable.
        problem: Why it is unreadable.
    """

    worker: str
    span: str
    place: int
    summary: Summary | None
    problem: str = ""


@dataclass(frozen=True)
class Ranks:
    """The traces of a run. `member` in each frame is an index of `members`.

    Args:
        run: Its name.
        members: In the order of the page, including unreadable ones.
        place: Of the requested span, if the members are of several.
        notes: Problems with stored summaries.
    """

    run: str
    members: tuple[Member, ...]
    place: int = 0
    notes: tuple[str, ...] = ()

    @cached_property
    def of_span(self) -> Ranks:
        """The recordings of the requested span alone."""
        members = tuple(member for member in self.members if member.place == self.place)
        return Ranks(self.run, members, self.place, self.notes)

    @cached_property
    def readable(self) -> tuple[tuple[int, Summary], ...]:
        """The members with a summary, with their indices."""
        return tuple((i, member.summary) for i, member in enumerate(self.members) if member.summary is not None)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """One row per member: member, worker, span, place, rank, host, device, origin_ns, world_size; null: unknown.

        Without a rank in the trace, it is the number at the end of the worker's name, or else the worker's index.
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
    def duplicates(self) -> pl.DataFrame:
        """The `workers` whose rank another worker of the same span has too; nothing says which is that rank's.

        They are compared with no rank: their calls are unmatched, and their steps are no common ones.
        """
        readable = self.workers.filter(pl.col("member").is_in([i for i, _ in self.readable]))
        return readable.filter(pl.len().over("place", "rank") > 1)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """STEPS with `member` and `place`, in the order of the members.

        Iterations of servers have the numbers of their own recordings. Where ranks ran different ones, such as prefill
        and decode workers, the number is no common step: then the worker's name precedes it. It also precedes the steps
        of `duplicates`.
        """
        frame = self._stack([summary.steps for _, summary in self.readable], STEPS)
        ran = [str(summary.facts.get("iterations") or "") for _, summary in self.readable]
        alone = {*self.duplicates["member"].to_list()}
        if len(set(ran)) > 1:
            alone.update(i for (i, _), mine in zip(self.readable, ran, strict=True) if mine)
        if not alone:
            return frame
        before = {i: f"{self.members[i].worker} " if i in alone else "" for i, _ in self.readable}
        return frame.with_columns(step=pl.col("member").replace_strict(before, return_dtype=pl.String) + pl.col("step"))

    @cached_property
    def _groups_and_numbers(self) -> tuple[pl.DataFrame, list[pl.Series]]:
        """The distinct groups of all members, and for each readable member the new numbers of its groups."""
        number_of: dict[tuple[Any, ...], int] = {}
        groups: list[tuple[Any, ...]] = []
        numbers = []
        for _, summary in self.readable:
            of_mine = []
            for name, description, size, ranks in summary.groups.rows():
                number = number_of.setdefault((name, size, ranks), len(number_of))
                if number == len(groups):
                    groups.append((name, description, size, ranks))
                of_mine.append(number)
            numbers.append(pl.Series(of_mine, dtype=pl.Int32))
        return pl.DataFrame(groups, schema=GROUPS, orient="row"), numbers

    @property
    def groups(self) -> pl.DataFrame:
        """GROUPS: each group of the run once."""
        return self._groups_and_numbers[0]

    @cached_property
    def group_labels(self) -> pl.DataFrame:
        """Number (`group`) and `label` of each group; equal labels are numbered."""
        labels = [group_label(*row) for row in self.groups.rows()]
        nth: Counter[str] = Counter()
        counts = Counter(labels)
        unique_labels = []
        for label in labels:
            nth[label] += 1
            unique_labels.append(label if counts[label] == 1 else f"{label} ({nth[label]})")
        return pl.DataFrame(
            {"group": range(len(unique_labels)), "label": unique_labels}, schema={"group": pl.Int32, "label": pl.String}
        )

    @cached_property
    def calls(self) -> pl.DataFrame:
        """CALLS with `member`, `place`, `rank`, `step_name`, and what `match_calls` and `add_waits` add."""
        calls = self._stack([summary.calls for _, summary in self.readable], CALLS)
        steps_before = _before([summary.steps.height for _, summary in self.readable])
        groups_before = _before([summary.groups.height for _, summary in self.readable])
        counts = [summary.calls.height for _, summary in self.readable]
        step, group = calls["step"].to_numpy(), calls["group"].to_numpy()
        numbers = pl.concat([pl.Series(dtype=pl.Int32), *self._groups_and_numbers[1]]).to_numpy()
        step = np.where(step >= 0, step + np.repeat(steps_before, counts), NONE).astype(np.int32)
        group = np.where(group >= 0, group + np.repeat(groups_before, counts), NONE).astype(np.int32)
        calls = calls.with_columns(
            group=pl.Series(gather(numbers, group)),
            step_name=texts(self.steps["step"], step),
            rank=self.workers["rank"].gather(calls["member"]),
            group_size=self._sizes(gather(numbers, group)),
        )
        return add_waits(match_calls(calls, self.duplicates["member"].to_list()))

    @cached_property
    def segments(self) -> pl.DataFrame:
        """SEGMENTS with `member` and `place`; `step` is a row of `steps`, `sync_point` and `since` of `calls`."""
        segments = self._stack([summary.segments for _, summary in self.readable], SEGMENTS)
        heights = [summary.segments.height for _, summary in self.readable]
        steps = np.repeat(_before([summary.steps.height for _, summary in self.readable]), heights)
        calls = np.repeat(_before([summary.calls.height for _, summary in self.readable]), heights)
        pointers = [
            pl.Series(name, np.where((rows := segments[name].to_numpy()) >= 0, rows + by, NONE), dtype=pl.Int32)
            for name, by in (("step", steps), ("sync_point", calls), ("since", calls))
        ]
        return segments.with_columns(pointers)

    @cached_property
    def inputs(self) -> pl.DataFrame:
        """INPUTS with `member` and `place`; `step` is a row of `steps`."""
        inputs = self._stack([summary.inputs for _, summary in self.readable], INPUTS)
        heights = [summary.inputs.height for _, summary in self.readable]
        before = np.repeat(_before([summary.steps.height for _, summary in self.readable]), heights)
        return inputs.with_columns(step=pl.Series(inputs["step"].to_numpy() + before, dtype=pl.Int32))

    @cached_property
    def matches(self) -> pl.DataFrame:
        """MATCHES."""
        return matches(self.calls, self.groups)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline that the ranks are stages of, if they are."""
        return Pipeline.of(self.calls)

    @property
    def stages(self) -> pl.DataFrame:
        """STAGES of the pipeline; empty if there is none."""
        return self.pipeline.stages

    @cached_property
    def clocks(self) -> pl.DataFrame:
        """OFFSETS of all members."""
        machines = [
            member.summary.facts.get("host") if member.summary and not member.summary.facts.get("devices") else None
            for member in self.members
        ]
        origin_ns = self.workers["origin_ns"].to_list()
        facts = [{} if member.summary is None else member.summary.facts for member in self.members]
        measurements = [clock_offset(fact.get("clock")) for fact in facts]
        return offsets(clocks(self.calls, origin_ns, machines), origin_ns, measurements)

    def on_one_clock(self, rows: pl.DataFrame, column: str) -> pl.Series:
        """Instants of rows with a `member`, each on its own clock, on the clock of the first member."""
        with_clocks = rows.select("member", column).join(self.clocks, "member", "left", maintain_order="left")
        away = (pl.col(column) - pl.col("middle_ns")).cast(pl.Float64)
        return with_clocks.select(
            pl.col(column) + pl.col("shift_ns") + (pl.col("drift") * away).round().cast(pl.Int64)
        ).to_series()

    def end_noise(self, calls: pl.DataFrame) -> pl.Series:
        """How far the ends of each matched call's collective scatter, in ns: shorter waits say nothing.

        Args:
            calls: Some columns of `calls`, with `member` and `match`.
        """
        with_residual = calls.join(
            self.clocks.select("member", residual=pl.col("residual_ns").fill_null(0.0)),
            "member",
            "left",
            maintain_order="left",
        )
        return with_residual.select((_NOISE_FACTOR * pl.col("residual").max().over("match")).round()).to_series()

    @cached_property
    def traffic(self) -> pl.DataFrame:
        """TRAFFIC with `member` and `place`."""
        return self._stack([summary.traffic for _, summary in self.readable], TRAFFIC)

    @cached_property
    def absent_ranks(self) -> list[int]:
        """The ranks of the job without a trace."""
        size = max((size for size in self.workers["world_size"].to_list() if size is not None), default=0)
        there = set(self.workers["rank"].to_list())
        return [rank for rank in range(min(size, _MOST_RANKS)) if rank not in there]

    @cached_property
    def missing_ranks(self) -> list[int]:
        """The ranks of `absent_ranks` that should have recorded, according to the traces."""
        ranks_by_trace = [summary.facts.get("ranks") for _, summary in self.readable]
        if not ranks_by_trace or not all(isinstance(ranks, list) for ranks in ranks_by_trace):
            return self.absent_ranks
        recording_ranks = {rank for ranks in ranks_by_trace for rank in ranks or ()}
        return [rank for rank in self.absent_ranks if rank in recording_ranks]

    @cached_property
    def unreadable_ranks(self) -> dict[int, str]:
        """The ranks none of whose traces can be read, and why the first of these can't."""
        ranks = self.workers["rank"].to_list()
        seen_ranks = {ranks[member] for member, _ in self.readable}
        problems = zip(ranks, (member.problem for member in self.members), strict=True)
        return {rank: problem for rank, problem in reversed([*problems]) if rank is not None and rank not in seen_ranks}

    @property
    def unknown_ranks(self) -> list[int]:
        """The ranks of which nothing is known: those that should have recorded, and those with unreadable traces."""
        return sorted({*self.missing_ranks, *self.unreadable_ranks})

    def _sizes(self, group: NDArray[np.int32]) -> pl.Series:
        sizes = self.groups["size"].to_numpy()
        return pl.Series(gather(sizes, group), dtype=pl.Int64)

    def _stack(self, frames: Sequence[pl.DataFrame], schema: Mapping[str, Any]) -> pl.DataFrame:
        """Concatenate the frames of the readable members, with `member` and `place`."""
        heights = [frame.height for frame in frames]
        members = [i for i, _ in self.readable]
        columns = {"member": members, "place": [self.members[i].place for i in members]}
        return pl.concat([pl.DataFrame(schema=schema), *frames]).with_columns(
            pl.Series(name, np.repeat(np.array(values, np.int32), heights)) for name, values in columns.items()
        )


def same_rank(ranks: Ranks) -> str:
    """Which workers have one rank, as a clause; there must be `duplicates`."""
    duplicates = ranks.duplicates
    names = duplicates["worker"].unique(maintain_order=True).to_list()
    workers = ", ".join(names[:_MOST_NAMED]) + (", …" if names[_MOST_NAMED:] else "")
    shared_ranks = format_ranks(sorted(set(duplicates["rank"].to_list())))
    return f"More than one worker says that it is rank {shared_ranks} ({workers})"


def _before(heights: Sequence[int]) -> NDArray[np.int64]:
    """Number of rows before each of several concatenated frames."""
    return np.cumsum([0, *heights])[:-1]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _host(worker: str, fact: Any) -> str | None:
    """The host name, from the recorder, or from torch's worker names: host_process."""
    if isinstance(fact.get("host"), str):
        return str(fact["host"])
    match = _HOST_AND_PROCESS.match(worker)
    return match["host"] if match and not match["host"].lower().endswith(("rank", "worker")) else None


def _devices(fact: Any) -> str | None:
    devices = fact.get("devices")
    if not isinstance(devices, list) or not devices:
        return None
    return ", ".join(f"{number}: {name}" if name else str(number) for number, name in devices)


def _ranks(workers: Sequence[str], recorded_ranks: Sequence[Any]) -> list[int]:
    """Each trace's rank: from the file, else from the worker's name if all numbers differ, else the worker's index.

    The number of a process is no rank: in files of several processes, those without a rank get the free ones in order.
    """
    valid = [_whole(rank) for rank in recorded_ranks]
    names = list(dict.fromkeys(workers))
    numbers = {name: int(match[1]) for name in names if (match := _LAST_NUMBER.search(name)) and len(match[1]) < 7}
    by_name = numbers if len(set(numbers.values())) == len(names) else {name: i for i, name in enumerate(names)}
    of_worker = {worker: rank for worker, rank in zip(workers, valid, strict=True) if rank is not None}
    names_without_rank = [name for name in names if name.startswith(UNRANKED) and name not in of_worker]
    used_ranks = {*of_worker.values(), *(by_name[name] for name in names if name not in names_without_rank)}
    by_name |= zip(names_without_rank, (rank for rank in count() if rank not in used_ranks), strict=False)
    return [
        rank if rank is not None else of_worker.get(worker, by_name[worker])
        for worker, rank in zip(workers, valid, strict=True)
    ]
