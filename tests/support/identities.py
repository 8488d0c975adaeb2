"""The identities: quantities that several answers give, each with all of its sources, and the same to the nanosecond.

A quantity is an amount of nanoseconds by key: by device, by operator, by step, or one for the whole trace. Its sources
are columns of views, pivots and searches of the timeline, drawers, and what advice rests on. `columns` of a source are
the ones that it reads, so that a test finds columns of views that no identity names.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.arrays.intervals import length_within
from kinetoscope_tb.compare.headline import lengths
from kinetoscope_tb.critical_path.explanation import path_explanation
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.engine.answers import Missing, compute
from kinetoscope_tb.measures.calls.matrix_work import FORMULAS
from kinetoscope_tb.measures.recording.contents import has_device_events
from kinetoscope_tb.measures.recording.usual_step import usual_step
from kinetoscope_tb.measures.serving.costs import DEVICE_WORK
from kinetoscope_tb.measures.time.breakdown import intervals_of
from kinetoscope_tb.measures.time.idle import MOST_GAPS
from kinetoscope_tb.measures.time.idle_causes import CAUSES, not_shown_times
from kinetoscope_tb.measures.time.step_subset import counted_steps, rows_of_steps
from kinetoscope_tb.timeline.area.groups import NO_OPERATOR, NO_WORK, By, groups
from kinetoscope_tb.timeline.area.pivot import area
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.details.row_facts import row_facts
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS, VIEWS
from kinetoscope_tb.views.overview.critical_path_segments import MOST_ROWS

if TYPE_CHECKING:
    from kinetoscope_tb.timeline.core.model import Timeline
    from kinetoscope_tb.trace import Trace

Amounts = dict[Hashable, int]
WORK = ("Kernel", "Communication", "Memcpy", "Memset")
COMBINED = ("[other stacks]", "[other sequences]")  # rows that combine names
FEW = 3  # keys that a search or a drawer is asked about: those with most time


class Answers:
    """What the viewer answers about one trace, each answer computed once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._tables: dict[Hashable, pl.DataFrame] = {}

    def table(self, name: str, **arguments: Any) -> pl.DataFrame:
        """The rows of a view; none where the trace lacks what it needs."""
        key = name, *arguments.items()
        if key not in self._tables:
            view = EVERY_VIEW[name]
            answer = compute(view, self.ranks if name in RUN_VIEWS else self.trace, arguments)
            self._tables[key] = view.table.schema().to_frame() if isinstance(answer, Missing) else answer
        return self._tables[key]

    @cached_property
    def ranks(self) -> Ranks:
        """The trace as the only rank of a run."""
        return Ranks("run", (Member("rank0", "0", 0, summary(self.trace)),))

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline."""
        return timeline(self.trace)

    @cached_property
    def facts(self) -> Facts:
        """What advice rests on."""
        return Facts(self.trace)

    @cached_property
    def in_counted_steps(self) -> Answers:
        """The answers about the rows of the steps that averages cover."""
        return Answers(rows_of_steps(self.trace, counted_steps(self.trace)))

    def area(self, by: By) -> pl.DataFrame:
        """The pivot of the whole timeline."""
        key = "area", by
        if key not in self._tables:
            made, (begin, end) = self.timeline, self.timeline.window
            of = groups(self.trace, made, by)
            self._tables[key] = area(made, of, begin, end + 1, range(len(made.tracks)))
        return self._tables[key]

    def found_ns(self, **find: object) -> int:
        """The sum of the durations of the slices that a search finds."""
        numbers = search(self.trace, self.timeline, parse_find(json.dumps(find), VIEWS), VIEWS).numbers
        return int(self.timeline.dur_ns[numbers].sum())

    def drawer(self, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """What the drawer of a row shows."""
        events = VIEWS[view].events_of_row(self.trace, {name: row[name] for name in VIEWS[view].table.key})
        return row_facts(self.trace, self.timeline, events, ())


@dataclass(frozen=True)
class Source:
    """One answer that gives a quantity.

    Args:
        name: What a failure calls it.
        amounts: The amounts by key; None where the answer doesn't say. Keys without an amount may be missing.
        columns: The columns of tables that it reads, such as `kernels.total_ns`.
        is_part: Whether it says only some of the keys.
    """

    name: str
    amounts: Callable[[Answers], Amounts | None]
    columns: tuple[str, ...] = ()
    is_part: bool = False


@dataclass(frozen=True)
class Quantity:
    """A quantity and its sources; the first one is what the others are compared with."""

    name: str
    sources: tuple[Source, ...]


def sums(frame: pl.DataFrame, column: str, *keys: str) -> Amounts:
    """The sum of a column by keys; names of unknown operators become None, and a single key is itself."""
    unknown = dict.fromkeys(("[unattributed]", NO_OPERATOR))
    amounts = defaultdict[Hashable, int](int)
    for *key, amount in frame.select(*keys, column).rows():
        own = tuple(None if part in unknown else part for part in key)
        amounts[own[0] if len(own) == 1 else own] += amount or 0
    return {key: amount for key, amount in amounts.items() if amount}


def column(name: str, *keys: str, where: pl.Expr | None = None, also: Iterable[str] = (), **arguments: Any) -> Source:
    """The sum of a view's column `view.column`, with `also` of other columns of the view, by its columns `keys`.

    Args:
        name: The view and the column.
        keys: The columns of the key.
        where: Which rows count.
        also: Columns whose values are added.
        arguments: Parameters of the view.
    """
    view, of = name.split(".")
    columns = of, *also

    def amounts(answers: Answers) -> Amounts | None:
        table = answers.table(view, **arguments)
        if "name" in keys and table["name"].is_in(COMBINED).any():
            return None
        table = table if where is None else table.filter(where)
        if table.is_empty() or table[of].null_count() == table.height:
            return None
        return sums(table.with_columns(pl.sum_horizontal(columns).alias(of)), of, *keys)

    of_arguments = "".join(f", {key}={value}" for key, value in arguments.items())
    return Source(
        " + ".join(columns) + f" of {view}{of_arguments}", amounts, tuple(f"{view}.{part}" for part in columns)
    )


def pivot(by: By, *keys: str, where: pl.Expr, of: str = "total_ns") -> Source:
    """A column of the timeline's pivot."""
    return Source(
        f"{of} of the timeline by {by}",
        lambda answers: sums(answers.area(by).filter(where), of, *keys),
        (f"area.{of}",),
    )


ON_DEVICE = pl.col("is_device")
ON_DEVICE_WORK = ON_DEVICE & (pl.col("name") != NO_WORK)
IS_WORK = pl.col("category").is_in(WORK)
IS_KERNEL = pl.col("category").is_in(["Kernel", "Communication"])
IS_DEVICE = pl.col("scope") == "device"


def rows(name: str, *keys: str, where: pl.Expr | None = None) -> Source:
    """The sum of the durations of device rows, as the reader made them."""

    def amounts(answers: Answers) -> Amounts | None:
        frame = answers.trace.device_events.filter(True if where is None else where)
        return sums(
            frame.with_columns(pl.col("device").cast(pl.Int64), pl.col("name").cast(pl.String)), "dur_ns", *keys
        )

    return Source(name, amounts)


def largest(amounts: Amounts | None) -> list[Hashable]:
    """The keys with most time."""
    return sorted(amounts or {}, key=lambda key: (-(amounts or {})[key], repr(key)))[:FEW]


def drawers(view: str, of: str) -> Source:
    """The time of all calls in the drawers of the rows with most time, by the view's key."""
    keys = VIEWS[view].table.key

    def amounts(answers: Answers) -> Amounts | None:
        table = answers.table(view).sort(of, descending=True, nulls_last=True).head(FEW)
        shown = [(row, answers.drawer(view, row)["durations"]) for row in table.rows(named=True)]
        return {
            next(iter(sums(pl.DataFrame([row], infer_schema_length=None), of, *keys))): times["total_ns"]
            for row, times in shown
            if times and row[of]
        }

    return Source(f"drawers of {view}", amounts, is_part=True)


def drawer(view: str, of: str) -> Quantity:
    """What a view says of its rows, and the calls that their drawers sum up."""
    return Quantity(f"calls behind rows of {view}", (column(f"{view}.{of}", *VIEWS[view].table.key), drawers(view, of)))


def drawer_operators(answers: Answers) -> Amounts | None:
    """(kernel, operator): the largest of the operators in the drawers of kernels."""
    found: Amounts = {}
    for row in answers.table("kernels").head(FEW).rows(named=True):
        origins = answers.drawer("kernels", row)["origins"]
        found |= {(row["name"], part["text"]): part["total_ns"] for part in origins if part["kind"] == "operator"}
    return found


def kernels_found(answers: Answers, **find: object) -> int:
    """The time of the kernels that a search finds; those that communicate are a category of their own."""
    return sum(answers.found_ns(category=category, side="device", **find) for category in ("Kernel", "Communication"))


def searched_kernels(answers: Answers) -> Amounts | None:
    """The time of the kernels with most of it, as searches for their names find them."""
    keys = largest(sums(answers.table("kernels"), "total_ns", "name"))
    return {key: kernels_found(answers, name=key) for key in keys}


def searched_operators(answers: Answers) -> Amounts | None:
    keys = largest(sums(answers.table("operators"), "device_self_ns", "name"))
    return {key: answers.found_ns(op=key, side="device") for key in keys}


def searched_operators_kernels(answers: Answers) -> Amounts | None:
    keys = largest(sums(answers.table("kernels_by_op"), "total_ns", "op"))
    return {key: kernels_found(answers, op=key) for key in keys}


def mean_of_steps(column: str) -> Callable[[Answers], Amounts | None]:
    """The mean of a column of the steps over those that averages cover, rounded as the overview rounds it."""

    def amounts(answers: Answers) -> Amounts | None:
        values = answers.table("steps")[column].gather(counted_steps(answers.trace)).to_numpy()
        return {(): int(np.rint(values.mean()))}

    return amounts


def per_counted_step(view: str, of: str, kind: str) -> Source:
    """The rows of the overview's list as a view of the counted steps alone has them, per step."""

    def amounts(answers: Answers) -> Amounts | None:
        inner, steps = answers.in_counted_steps, len(counted_steps(answers.trace))
        shown = sums(answers.table("top").filter(kind=kind), "mean_ns", "name")
        return {name: round(ns / steps) for name, ns in sums(inner.table(view), of, "name").items() if name in shown}

    return Source(f"{of} of {view} in the counted steps", amounts)


def of_steps(frame: Callable[[Answers], pl.DataFrame], of: str = "total_ns") -> Callable[[Answers], Amounts]:
    """The amounts of a frame by its steps."""
    return lambda answers: sums(frame(answers), of, "step")


def has_one_device(answers: Answers) -> bool:
    """Whether what holds of all devices together holds of the only one."""
    return answers.trace.device_events["device"].n_unique() == 1


def of_the_device(source: Source) -> Source:
    """A source about all devices together, which says something of a single one only."""
    return Source(
        source.name,
        lambda answers: source.amounts(answers) if has_one_device(answers) else None,
        source.columns,
        source.is_part,
    )


def with_marks(source: Source) -> Source:
    """A source about steps, which says nothing where none were marked."""

    def amounts(answers: Answers) -> Amounts | None:
        return source.amounts(answers) if answers.trace.steps["name"].to_list() != ["all"] else None

    return Source(source.name, amounts, source.columns, source.is_part)


def few_gaps(source: Source) -> Source:
    """A source that lists the longest gaps, where that is all of them."""

    def amounts(answers: Answers) -> Amounts | None:
        return source.amounts(answers) if answers.table("gaps").height < MOST_GAPS else None

    return Source(source.name, amounts, source.columns, source.is_part)


def largest_of(name: str, *keys: str, where: pl.Expr | None = None, also: Iterable[str] = ()) -> Source:
    """The largest value of a view's column, with `also` of other columns added, by its columns `keys`."""
    view, of = name.split(".")
    columns = of, *also

    def amounts(answers: Answers) -> Amounts | None:
        table = answers.table(view)
        table = (table if where is None else table.filter(where)).with_columns(pl.sum_horizontal(columns).alias(of))
        if table.is_empty():
            return None
        largest = table.group_by(keys).agg(pl.col(of).max()) if keys else table.select(pl.col(of).max())
        return sums(largest, of, *keys)

    return Source(f"largest {' + '.join(columns)} of {view}", amounts, tuple(f"{view}.{part}" for part in columns))


def other_families(answers: Answers) -> Amounts | None:
    """The kernels of operators that do no matrix work by device, where the view of operators has rows."""
    if answers.table("operator_efficiency").is_empty():
        return None
    others = ~pl.col("operator").is_in(list(FORMULAS))
    return sums(answers.table("kernel_efficiency").filter(others), "time_ns", "device")


def unprofiled(answers: Answers) -> Amounts | None:
    """How long the average counted step takes without the profiler, where recording slows it."""
    usual, length = usual_step(answers.trace), answers.trace.steps["end_ns"] - answers.trace.steps["start_ns"]
    return {(): usual.mean_ns(length[counted_steps(answers.trace)].mean())} if usual else None


def counts_all(answers: Answers) -> bool:
    """Whether advice is about all counted steps: none of them is warm-up."""
    return bool(np.flatnonzero(answers.facts.is_counted).tolist() == counted_steps(answers.trace))


def simulated(answers: Answers) -> Amounts | None:
    """The same of the steps that savings are simulated of."""
    if usual_step(answers.trace) is None:
        return None
    lengths = path_explanation(answers.trace).what_if.lengths
    return {(): round(float(lengths[counted_steps(answers.trace)].mean()))}


def unprofiled_of_mfu(answers: Answers) -> Amounts | None:
    """The same by the ratio of the two shares of the peak."""
    rows = answers.table("mfu").filter(pl.col("usual_mfu_frac") > 0)
    if rows.is_empty():
        return None
    row = rows.row(0, named=True)
    return {(): round(row["step_ns"] * row["mfu_frac"] / row["usual_mfu_frac"])}


def utilization(answers: Answers) -> Amounts | None:
    """Utilization as time."""
    window = answers.trace.steps["end_ns"][-1] - answers.trace.steps["start_ns"][0]
    time = (pl.col("utilization_frac") * window).round().cast(pl.Int64)
    return sums(answers.table("gpus").with_columns(time.alias("busy_ns")), "busy_ns", "device")


def utilization_over_time(answers: Answers) -> Amounts | None:
    """The utilization of the parts of time as time."""
    amounts = defaultdict[Hashable, int](int)
    rows = answers.table("gpu_activity").select("device", "time_ns", "dur_ns", "utilization_frac").drop_nulls()
    for device, start, length, share in rows.rows():
        ends = np.array([start]), np.array([start + length])
        amounts[device] += round(share * (length - int(not_shown_times(answers.trace, *ends, device)[0])))
    return {device: amount for device, amount in amounts.items() if amount}


def running(answers: Answers) -> Amounts | None:
    """When any kernel runs, from the first step's start to the last one's end."""
    kernels = answers.trace.device_events.filter(pl.col("kind") == "kernel")
    window = (
        answers.trace.steps[name].to_numpy()[at : at + 1 or None] for name, at in (("start_ns", 0), ("end_ns", -1))
    )
    first, last = window
    return {
        device: int(length_within(intervals_of(of), first, last)[0]) for (device,), of in kernels.group_by("device")
    }


def culprit_gaps(answers: Answers, of: str, *keys: str) -> Amounts:
    """Of the culprits with most time, a column of the gaps that they have a part in."""
    found: Amounts = {}
    for device, culprit in answers.table("idle_culprits").select("device", "culprit").head(FEW).rows():
        found |= sums(answers.table("culprit_gaps", device=device, culprit=culprit), of, *keys)
    return found


def gaps_of_culprits(answers: Answers) -> Amounts | None:
    """How long their gaps are."""
    return culprit_gaps(answers, "dur_ns", "device", "start_ns")


def time_of_culprits(answers: Answers) -> Amounts | None:
    """How much of all of their gaps they have."""
    return culprit_gaps(answers, "culprit_ns", "device", "culprit")


def idle_in_counted_steps(answers: Answers) -> Amounts | None:
    """The idle time of the device by cause, in the steps that advice is about."""
    table = answers.table("idle", per="step").filter(IS_DEVICE)
    names = answers.trace.steps["name"].filter(pl.Series(answers.facts.is_counted))
    table = table.filter(pl.col("step").is_in(names.implode()))
    causes = dict(zip(IDLE_COLUMNS, CAUSES, strict=True))
    return {causes[name]: int(table[name].sum()) for name in IDLE_COLUMNS}


def idle_of_advice(answers: Answers) -> Amounts | None:
    """The idle time by cause that advice rests on."""
    parts = answers.facts.idle_parts.with_columns(
        pl.col("cause").cast(pl.String), dur_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    return sums(parts, "dur_ns", "cause")


def whole_kernels(answers: Answers) -> Amounts | None:
    """The time of all kernels of the counted steps, per step."""
    kernels = answers.in_counted_steps.table("kernels")
    return (
        None if kernels.is_empty() else {(): round(int(kernels["total_ns"].sum()) / len(counted_steps(answers.trace)))}
    )


def whole_operators(answers: Answers) -> Amounts | None:
    """The device time, or the host time where no device was recorded, of all operators of the counted steps, per step."""
    operators = answers.in_counted_steps.table("operators")
    of = "device_self_ns" if has_device_events(answers.in_counted_steps.trace) else "host_self_ns"
    return None if operators.is_empty() else {(): round(int(operators[of].sum()) / len(counted_steps(answers.trace)))}


IS_HOST = pl.col("scope") == "host"
HOST_PARTS = ("dataloader_ns", "cpu_exec_ns", "other_ns")
PHASE_GAPS = tuple(name for name in VIEWS["phases"].table.schema() if name.startswith("gap_") and name != "gap_ns")
PHASE_WORK = tuple(f"{work}_ns" for work in DEVICE_WORK)
IDLE_COLUMNS = tuple(f"{cause.replace(' ', '_')}_ns" for cause in CAUSES)
LATE_COLUMNS = tuple(name for name in VIEWS["idle"].table.schema() if name.startswith("late_"))
STRIP_IDLE = (*LATE_COLUMNS, *(name for name in IDLE_COLUMNS if name != "host_late_ns"))


def cause_quantity(name: str) -> Quantity:
    """Idle time of a device of one cause."""
    parts = LATE_COLUMNS if name == "host_late_ns" else (name,)
    cause = name.removesuffix("_ns").replace("_", " ")
    return Quantity(
        f"idle time by device: {cause}",
        (
            column(f"idle.{name}", "device", where=IS_DEVICE),
            column(f"idle.{parts[0]}", "device", where=IS_DEVICE, also=parts[1:]),
            column(f"activity_strip.{parts[0]}", "device", where=IS_DEVICE, also=parts[1:]),
            column("idle_culprits.total_ns", "device", where=pl.col("cause") == cause),
            few_gaps(column("gap_culprits.culprit_ns", "device", where=pl.col("cause") == cause)),
        ),
    )


QUANTITIES = (
    Quantity(
        "device work",
        (
            rows("device rows"),
            column("operators.device_self_ns"),
            column("operators_by_shape.device_self_ns"),
            column("call_stacks.device_self_ns"),
            column("modules.device_self_ns"),
            column("modules_by_class.device_self_ns"),
            column("python_calls.device_self_ns"),
            column("gpus.device_total_ns"),
            column("launches.device_total_ns"),
            pivot("name", where=ON_DEVICE & IS_WORK),
            pivot("operator", where=ON_DEVICE_WORK),
            pivot("module", where=ON_DEVICE_WORK),
            pivot("annotation", where=ON_DEVICE_WORK),
        ),
    ),
    Quantity("device work by device", (rows("device rows", "device"), column("gpus.device_total_ns", "device"))),
    Quantity(
        "kernel time",
        (
            rows("kernels", where=pl.col("kind") == "kernel"),
            column("kernels.total_ns"),
            column("kernels_by_op.total_ns"),
            column("kernel_durations.total_ns"),
            column("kernel_efficiency.time_ns"),
            pivot("category", where=ON_DEVICE & pl.col("name").is_in(["Kernel", "Communication"])),
        ),
    ),
    Quantity(
        "kernel time by device",
        (
            rows("kernels", "device", where=pl.col("kind") == "kernel"),
            column("gpus.kernel_total_ns", "device"),
            column("kernel_efficiency.time_ns", "device"),
        ),
    ),
    Quantity(
        "kernel time by name",
        (
            rows("kernels", "name", where=pl.col("kind") == "kernel"),
            column("kernels.total_ns", "name"),
            column("kernels_by_op.total_ns", "name"),
            pivot("name", "name", where=ON_DEVICE & IS_KERNEL),
            Source("search for kernels by name", searched_kernels, is_part=True),
        ),
    ),
    Quantity(
        "copies and fills by name",
        (
            rows("copies", "name", where=pl.col("kind") != "kernel"),
            column("copies.total_ns", "name"),
            pivot("name", "name", where=ON_DEVICE & IS_WORK & ~IS_KERNEL),
        ),
    ),
    Quantity(
        "device time by operator",
        (
            column("operators.device_self_ns", "name"),
            column("operators_by_shape.device_self_ns", "name"),
            column("call_stacks.device_self_ns", "name"),
            pivot("operator", "name", where=ON_DEVICE_WORK),
            Source("search for device work by operator", searched_operators, is_part=True),
        ),
    ),
    Quantity(
        "kernel time by operator",
        (
            column("kernels_by_op.total_ns", "op"),
            Source("search for kernels by operator", searched_operators_kernels, is_part=True),
        ),
    ),
    Quantity(
        "kernel time by kernel and operator",
        (
            column("kernels_by_op.total_ns", "name", "op"),
            Source("operators in drawers of kernels", drawer_operators, is_part=True),
        ),
    ),
    Quantity(
        "device time by operator with nested operators",
        (
            column("operators.device_total_ns", "name", where=pl.col("name") != "[unattributed]"),
            column("operators_by_shape.device_total_ns", "name", where=pl.col("name") != "[unattributed]"),
            column("op_kernels.device_total_ns", "name"),
        ),
    ),
    Quantity(
        "host time by operator",
        (
            column("operators.host_self_ns", "name"),
            column("operators_by_shape.host_self_ns", "name"),
            column("call_stacks.host_self_ns", "name"),
        ),
    ),
    Quantity(
        "host time by operator with nested calls",
        (
            column("operators.host_total_ns", "name"),
            column("operators_by_shape.host_total_ns", "name"),
            column("call_stacks.host_total_ns", "name"),
        ),
    ),
    Quantity(
        "kernel time of operators without a formula by device",
        (
            column("operator_efficiency.time_ns", "device", where=~pl.col("name").is_in(list(FORMULAS))),
            Source("efficiency of kernels of other families", other_families, ("kernel_efficiency.time_ns",)),
        ),
    ),
    Quantity(
        "device time by module",
        (
            column("modules.device_self_ns", "path"),
            pivot("module", "name", where=ON_DEVICE_WORK),
        ),
    ),
    Quantity(
        "device time of modules, forward and backward",
        (
            column("modules.device_total_ns", "path", where=~pl.col("path").str.starts_with("[")),
            column("modules.forward_device_ns", "path", also=["backward_device_ns"]),
        ),
    ),
    Quantity(
        "host time of modules, forward and backward",
        (
            column("modules.host_total_ns", "path", where=~pl.col("path").str.starts_with("[")),
            column("modules.forward_host_ns", "path", also=["backward_host_ns"]),
        ),
    ),
    Quantity("host time of modules", (column("modules.host_self_ns"), column("modules_by_class.host_self_ns"))),
    Quantity("Python in modules", (column("modules.python_self_ns"), column("modules_by_class.python_self_ns"))),
    Quantity(
        "calls of the runtime by name",
        (
            column("launches.total_ns", "call"),
            pivot("name", "name", where=pl.col("category") == "Runtime"),
        ),
    ),
    Quantity(
        "busy time by device",
        (
            column("idle.busy_ns", "device", where=IS_DEVICE),
            column("exposed_time.computation_ns", "device", also=["exposed_communication_ns", "exposed_copies_ns"]),
            column("activity_strip.kernel_ns", "device", where=IS_DEVICE, also=["copy_ns", "communication_ns"]),
        ),
    ),
    Quantity(
        "window of the host",
        (
            column("activity_strip.dur_ns", where=IS_HOST),
            column("activity_strip.runtime_ns", where=IS_HOST, also=[*HOST_PARTS, "communication_ns"]),
        ),
    ),
    Quantity(
        "exposed communication by device",
        (
            column("idle.exposed_communication_ns", "device", where=IS_DEVICE),
            column("exposed_time.exposed_communication_ns", "device"),
        ),
    ),
    Quantity(
        "communication by device, hidden or not",
        (
            column("exposed_time.communication_ns", "device"),
            column("exposed_time.exposed_communication_ns", "device", also=["overlap_ns"]),
        ),
    ),
    Quantity(
        "time with a running kernel by device",
        (
            Source("utilization of GPUs", utilization, ("gpus.utilization_frac",)),
            Source(
                "utilization over time", utilization_over_time, ("gpu_activity.utilization_frac", "gpu_activity.dur_ns")
            ),
            Source("union of kernels", running),
        ),
    ),
    Quantity(
        "longest gap by device",
        (
            largest_of("idle.longest_ns", "device", where=IS_DEVICE),
            largest_of("gaps.dur_ns", "device"),
        ),
    ),
    Quantity(
        "gaps",
        (
            few_gaps(column("gaps.dur_ns", "device", "start_ns")),
            few_gaps(column("gap_culprits.culprit_ns", "device", "start_ns")),
            Source("gaps of the largest culprits", gaps_of_culprits, ("culprit_gaps.dur_ns",), is_part=True),
        ),
    ),
    Quantity(
        "largest culprits",
        (
            column("idle_culprits.total_ns", "device", "culprit"),
            few_gaps(Source("their gaps", time_of_culprits, ("culprit_gaps.culprit_ns",), is_part=True)),
            few_gaps(column("gap_culprits.culprit_ns", "device", "culprit")),
        ),
    ),
    Quantity(
        "idle time by device that the host was late for",
        (
            column("idle.host_late_ns", "device", where=IS_DEVICE),
            few_gaps(column("gaps.host_late_ns", "device")),
        ),
    ),
    Quantity(
        "idle time by device",
        (
            column("idle.idle_ns", "device", where=IS_DEVICE),
            column(f"idle.{IDLE_COLUMNS[0]}", "device", where=IS_DEVICE, also=IDLE_COLUMNS[1:]),
            column("exposed_time.idle_ns", "device"),
            column("idle_culprits.total_ns", "device"),
            few_gaps(column("gaps.dur_ns", "device")),
            few_gaps(column("gap_culprits.culprit_ns", "device")),
            column(f"activity_strip.{STRIP_IDLE[0]}", "device", where=IS_DEVICE, also=STRIP_IDLE[1:]),
        ),
    ),
    *(cause_quantity(name) for name in IDLE_COLUMNS),
    Quantity(
        "time of computation by device",
        (
            column("exposed_time.computation_ns", "device"),
            column("activity_strip.kernel_ns", "device", where=IS_DEVICE),
        ),
    ),
    Quantity(
        "exposed copies by device",
        (
            column("exposed_time.exposed_copies_ns", "device", also=["exposed_communication_ns"]),
            column("activity_strip.copy_ns", "device", where=IS_DEVICE, also=["communication_ns"]),
        ),
    ),
    Quantity(
        "the window by device",
        (
            column("idle.window_ns", "device", where=IS_DEVICE),
            column("exposed_time.window_ns", "device"),
            column("activity_strip.dur_ns", "device", where=IS_DEVICE),
        ),
    ),
    Quantity(
        "length by step",
        (
            column("steps.total_ns", "step"),
            of_the_device(column("idle.window_ns", "step", where=IS_DEVICE, per="step")),
            of_the_device(column("exposed_time.window_ns", "step", per="step")),
            column("rank_steps.total_ns", "step"),
            column(
                "steps.kernel_ns",
                "step",
                also=[
                    "memcpy_ns",
                    "memset_ns",
                    "communication_ns",
                    "runtime_ns",
                    "dataloader_ns",
                    "cpu_exec_ns",
                    "other_ns",
                ],
            ),
            with_marks(
                Source(
                    "lengths of the steps that advice looks at",
                    lambda a: dict(zip(a.trace.steps["name"], map(int, a.facts.length), strict=True)),
                )
            ),
            column("critical_path.path_ns", "step", per="step"),
        ),
    ),
    Quantity(
        "length of the average step",
        (
            Source("mean of steps", mean_of_steps("total_ns")),
            column("overview.mean_ns", where=pl.col("category") == "Step"),
            column("mfu.step_ns", where=pl.col("device") == pl.col("device").min()),
            Source("the headline of a comparison", lambda a: {(): int(np.rint(lengths(a.trace).mean()))}),
        ),
    ),
    Quantity(
        "idle time by step of the only device",
        (
            of_the_device(column("idle.idle_ns", "step", where=IS_DEVICE, per="step")),
            of_the_device(column("exposed_time.idle_ns", "step", per="step")),
            of_the_device(column("rank_steps.idle_ns", "step")),
            of_the_device(column("rank_steps.idle_other_ns", "step", also=["idle_loading_ns", "idle_collecting_ns"])),
            of_the_device(
                Source(
                    "advice",
                    lambda a: dict(zip(a.trace.steps["name"], map(int, a.facts.exposure_parts["idle"]), strict=True)),
                )
            ),
        ),
    ),
    Quantity(
        "exposed communication by step of the only device",
        (
            of_the_device(column("exposed_time.exposed_communication_ns", "step", per="step")),
            of_the_device(column("rank_steps.exposed_communication_ns", "step")),
            of_the_device(
                Source(
                    "advice",
                    lambda a: dict(
                        zip(
                            a.trace.steps["name"],
                            map(int, a.facts.exposure_parts["exposed communication"]),
                            strict=True,
                        )
                    ),
                )
            ),
        ),
    ),
    Quantity(
        "idle time of the only device in the steps that advice is about, by cause",
        (
            of_the_device(Source("idle time by step and cause", idle_in_counted_steps)),
            of_the_device(Source("advice", idle_of_advice)),
        ),
    ),
    *(
        Quantity(
            f"{name} by step of the only device",
            (
                of_the_device(column(f"exposed_time.{of}", "step", per="step")),
                of_the_device(column(f"rank_steps.{of}", "step")),
            ),
        )
        for name, of in (
            ("computation", "computation_ns"),
            ("hidden communication", "overlap_ns"),
            ("exposed copies", "exposed_copies_ns"),
        )
    ),
    Quantity(
        "exposed communication of ranks by step",
        (
            column("rank_steps.exposed_communication_ns", "step"),
            column("rank_steps.exposed_transfer_ns", "step", also=["exposed_wait_ns"]),
        ),
    ),
    Quantity(
        "length by step, as time with and without waiting for other ranks",
        (
            column("rank_steps.total_ns", "step", where=pl.col("exposed_wait_ns").is_not_null()),
            column("rank_steps.without_waiting_ns", "step", also=["exposed_wait_ns"]),
        ),
    ),
    Quantity(
        "critical path by part",
        (
            column("critical_path.path_ns", "part"),
            column("critical_path_names.path_ns", "part"),
        ),
    ),
    Quantity(
        "critical path by step",
        (
            column("critical_path.path_ns", "step", per="step"),
            Source(
                "its culprits",
                lambda a: sums(
                    a.table("critical_path_culprits").filter(pl.col("step").is_in(a.trace.steps["name"].implode())),
                    "path_ns",
                    "step",
                ),
                ("critical_path_culprits.path_ns",),
                is_part=True,
            ),
            Source(
                "its segments",
                lambda a: (
                    None
                    if a.table("critical_path_segments").height == MOST_ROWS
                    else sums(a.table("critical_path_segments"), "dur_ns", "step")
                ),
                ("critical_path_segments.dur_ns",),
            ),
        ),
    ),
    Quantity(
        "length of the average step that advice is about",
        (
            Source("advice", lambda a: {(): a.facts.usual_step_ns}),
            largest_of("what_if.now_ns"),
            largest_of("what_if.step_ns", also=["saved_ns"]),
        ),
    ),
    Quantity(
        "length of the average counted step without the profiler",
        (
            Source("the recorder's", unprofiled),
            Source("advice", lambda a: {(): a.facts.usual_step_ns} if counts_all(a) and a.facts.usual_step else None),
            Source("the simulated steps", simulated),
            Source("MFU", unprofiled_of_mfu),
        ),
    ),
    *(
        Quantity(
            f"time of all {kind}s per counted step",
            (largest_of("top.whole_ns", where=pl.col("kind") == kind), Source(f"{kind}s of the counted steps", whole)),
        )
        for kind, whole in (("kernel", whole_kernels), ("operator", whole_operators))
    ),
    Quantity(
        "time of a data loader by step",
        (column("steps.dataloader_ns", "step"), column("rank_steps.dataloader_ns", "step")),
    ),
    Quantity(
        "top kernels",
        (
            column("top.mean_ns", "name", where=pl.col("kind") == "kernel"),
            per_counted_step("kernels", "total_ns", "kernel"),
            per_counted_step("kernels_by_op", "total_ns", "kernel"),
        ),
    ),
    Quantity(
        "top operators",
        (
            column("top.mean_ns", "name", where=pl.col("kind") == "operator"),
            Source(
                "operators of the counted steps",
                lambda a: per_counted_step(
                    "operators",
                    "device_self_ns" if has_device_events(a.in_counted_steps.trace) else "host_self_ns",
                    "operator",
                ).amounts(a),
            ),
        ),
    ),
    Quantity(
        "work of graphs",
        (
            column("graphs.device_total_ns"),
            column("graph_kernels.total_ns"),
            column("graph_captures.total_ns"),
        ),
    ),
    Quantity(
        "work of graphs by graph",
        (column("graphs.device_total_ns", "graph", "device"), column("graph_kernels.total_ns", "graph", "device")),
    ),
    drawer("kernels", "total_ns"),
    drawer("kernels_by_op", "total_ns"),
    drawer("copies", "total_ns"),
    drawer("launches", "total_ns"),
    drawer("graphs", "device_total_ns"),
    drawer("graph_kernels", "total_ns"),
    drawer("kernel_efficiency", "time_ns"),
    drawer("kernel_marks", "total_ns"),
    drawer("gpus", "device_total_ns"),
    Quantity(
        "totals of phases",
        (
            column("iterations.total_ns", "phase"),
            column("phases.total_ns", "phase", where=pl.col("phase") != "outside", of="all"),
            column("limits.time_ns", "phase", of="all"),
        ),
    ),
    Quantity(
        "busy time of phases",
        (
            column("iterations.busy_ns", "phase"),
            column("phases.busy_ns", "phase", of="all"),
        ),
    ),
    Quantity(
        "time between iterations by phase",
        (
            column("iterations.gap_ns", "phase"),
            column("phases.gap_ns", "phase", of="all"),
            column(f"phases.{PHASE_GAPS[0]}", "phase", also=PHASE_GAPS[1:], of="all"),
        ),
    ),
    Quantity(
        "kernels by phase",
        (
            column("limits.kernels_ns", "phase", of="all"),
            column(f"phases.{PHASE_WORK[0]}", "phase", also=PHASE_WORK[1:], of="all"),
        ),
    ),
    Quantity(
        "idle time of phases",
        (
            column(f"iterations.{IDLE_COLUMNS[0]}", "phase", also=IDLE_COLUMNS[1:]),
            column(f"phases.{IDLE_COLUMNS[0]}", "phase", also=IDLE_COLUMNS[1:], of="all"),
            column(
                "limits.time_ns",
                "phase",
                where=pl.col("part").str.starts_with("idle: ") | (pl.col("part") == "not shown"),
                of="all",
            ),
        ),
    ),
)


@dataclass(frozen=True)
class Ratio:
    """A share or a mean of other columns of the same view; `times` of it is the part, to the nanosecond.

    Args:
        name: The view and the column.
        part: What it is a share or a mean of.
        whole: What it is divided by.
    """

    name: str
    part: str
    whole: pl.Expr

    def errors(self, answers: Answers) -> pl.DataFrame:
        """The rows in which the ratio isn't the part divided by the whole."""
        view, of = self.name.split(".")
        table = answers.table(view).select(ratio=of, part=self.part, whole=self.whole).drop_nulls()
        is_time = table.schema["ratio"] == pl.Int64
        exact = pl.col("part") / pl.col("whole")
        # A time is rounded to the nanosecond; a share of rounded times is off by what that rounding is of the whole.
        most = 0.5 if is_time else (1 + pl.col("ratio").abs()) / pl.col("whole")
        return table.filter(pl.col("whole") > 0, (pl.col("ratio") - exact).abs() > most + 1e-9)


def of_all(name: str, *keys: str) -> pl.Expr:
    """The sum of a column over all rows, or over those with equal keys."""
    return pl.col(name).sum().over(keys) if keys else pl.col(name).sum()


def per_call(view: str, part: str = "total_ns", calls: str = "calls") -> Ratio:
    """The mean time of a call."""
    return Ratio(f"{view}.mean_ns", part, pl.col(calls))


RATIOS = (
    *(per_call(view) for view in ("kernels", "kernels_by_op", "copies", "graph_kernels", "kernel_marks", "launches")),
    per_call("op_kernels", "device_total_ns"),
    per_call("idle_culprits", calls="gaps"),
    per_call("phases", calls="iterations"),
    per_call("limits", "time_ns", "iterations"),
    Ratio("overview.share_frac", "mean_ns", pl.col("mean_ns").filter(pl.col("category") == "Step").first()),
    Ratio("top.share_frac", "mean_ns", pl.col("whole_ns")),
    Ratio("what_if.saved_frac", "saved_ns", pl.col("now_ns")),
    Ratio("iterations.busy_frac", "busy_ns", pl.col("total_ns")),
    Ratio("iterations.token_ns", "total_ns", pl.col("tokens")),
    Ratio("phases.busy_frac", "busy_ns", pl.col("total_ns")),
    Ratio("phases.total_frac", "total_ns", of_all("total_ns")),
    Ratio("limits.share_frac", "time_ns", of_all("time_ns", "phase")),
    Ratio("idle.idle_frac", "idle_ns", pl.col("window_ns")),
    Ratio("idle_culprits.idle_frac", "total_ns", of_all("total_ns", "device")),
    Ratio("gap_culprits.gap_frac", "culprit_ns", of_all("culprit_ns", "device", "start_ns")),
    Ratio("exposed_time.computation_frac", "computation_ns", pl.col("window_ns")),
    Ratio("exposed_time.overlap_frac", "overlap_ns", pl.col("communication_ns")),
    Ratio("critical_path.path_frac", "path_ns", of_all("path_ns")),
    Ratio("critical_path_names.path_frac", "path_ns", of_all("path_ns")),
    Ratio("critical_path_culprits.path_frac", "path_ns", of_all("path_ns", "step")),
    Ratio("path_by_rank.path_frac", "path_ns", pl.col("total_ns").max().over("step")),
    Ratio("graph_captures.time_frac", "total_ns", of_all("total_ns")),
)
"""Columns that are derived from others of their view."""

STATISTICS = ("min_ns", "max_ns", "median_ns", "stdev_ns", "p50_ns", "p95_ns", "longest_", "largest_", "mean_occupancy")
"""Parts of names of columns that describe the distribution of single calls, steps or iterations."""
ALONE = {
    "what_if.path_ns critical_path.mean_ns critical_path_names.mean_ns critical_path_names.whole_ns "
    "critical_path_culprits.mean_ns": ("only the rows of the critical path give it"),
    "critical_path.saved_ns critical_path.saved_frac critical_path_names.saved_ns "
    "critical_path_names.saved_frac path_across_ranks.saved_ns path_across_ranks.saved_frac": (
        "simulated: tests of what_if, and of paths across ranks, hold it"
    ),
    "advice.saving_low_ns advice.saving_high_ns what_if.saved_low_ns what_if.saved_high_ns critical_path.saved_low_ns "
    "critical_path.saved_high_ns": "tests/oracle/test_measured_pairs.py holds them",
    "advice.saving_ns advice.saving_frac run_advice.saving_ns run_advice.saving_frac": (
        "an upper bound, of another definition for each rule; tests/oracle/test_advice.py holds it"
    ),
    "iterations.host_ns phases.token_ns limits.token_ns": "only servers' views give it",
    "limits.known_frac limits.bandwidth_frac limits.roof_frac operator_efficiency.roof_frac "
    "operator_efficiency.gap_ns kernel_efficiency.roof_frac kernel_efficiency.gap_ns "
    "mfu.mfu_frac mfu.usual_mfu_frac mfu.time_of_known_work_frac": (
        "against the device's limits, which only rooflines know"
    ),
    "lanes.busy_ns lanes.recording_share_frac": "of threads too, and of the time in which anything is recorded, not of steps",
    "idle_culprits.per_step_ns idle_culprits.window_frac": "of the same total as its neighbors, by another whole",
    "activity_strip.gap_ns": "repeated in each part that the gap reaches into",
    "gaps.cause_ns gaps.host_ns gaps.late_ns gaps.queued_before_ns": "only the list of gaps names a single cause and activity",
    "launches.mean_delay_ns launches.mean_empty_queue_delay_ns operators.mean_empty_queue_delay_ns "
    "operators_by_shape.mean_empty_queue_delay_ns": "a mean over calls that differ: empty queues, operators",
    "launch_durations.from_ns launch_durations.to_ns kernel_durations.from_ns kernel_durations.to_ns": "edges of bins",
    "kernel_durations.calls_up_to_here_frac kernel_durations.total_up_to_here_frac": "cumulative",
    "gpus.occupancy_known_frac": "only kernels' own rows have an occupancy",
    "operators.tc_self_frac operators.tc_total_frac operators_by_shape.tc_self_frac operators_by_shape.tc_total_frac "
    "gpus.tc_time_frac gpus.tc_known_frac": "of operators over all time, of devices over the steps: both say so",
    "gpus.sm_efficiency_frac gpus.occupancy_frac gpu_activity.sm_efficiency_frac": (
        "integrals of amounts other than time; tests/unit/views/test_gpu_activity.py compares them"
    ),
    "python_calls.device_total_ns python_functions.device_total_ns call_stacks.device_total_ns "
    "modules_by_class.device_total_ns modules_by_class.host_total_ns modules_by_class.forward_device_ns "
    "modules_by_class.backward_device_ns modules_by_class.forward_host_ns modules_by_class.backward_host_ns": (
        "totals with what is nested, which count recursion once by a key that no other view has"
    ),
    "python_calls.host_self_ns python_calls.host_total_ns python_functions.host_self_ns "
    "python_functions.host_total_ns python_functions.device_self_ns": "of Python, with or without operators",
    "annotations_by_name.host_total_ns annotations_by_name.mean_host_ns annotations_by_name.gpu_ns "
    "annotations_by_name.gpu_sum_ns annotations_by_name.gpu_span_ns annotations_by_name.gpu_idle_ns "
    "annotations_by_name.host_per_step_ns annotations.host_total_ns annotations.mean_host_ns annotations.gpu_ns "
    "annotations.gpu_sum_ns annotations.gpu_span_ns annotations.gpu_idle_ns annotations.host_per_step_ns": (
        "ranges with what is inside, by name or by nesting; the property tests of annotations hold them"
    ),
    "kernel_marks.gpu_ns kernel_marks.total_frac": "only marked kernels",
    "graphs.mean_span_ns graphs.max_span_ns graphs.gap_ns graphs.gap_frac": "only graphs have spans",
    "graph_captures.high_frac": "a share by confidence",
    "gpu_counters.interval_ns memory_events.lifetime_ns snapshot_blocks.lifetime_ns": "no time of work",
    "memory_devices.peak_reserved_frac memory_peak.alive_frac snapshot_alive.alive_frac "
    "snapshot_segments.scattered_frac snapshot_layout.used_frac": "of memory",
    "path_across_ranks.path_ns path_across_ranks.mean_ns path_across_ranks.path_frac path_by_rank.path_ns "
    "path_by_rank.total_ns path_across_ranks_segments.dur_ns path_across_ranks_segments.share_frac "
    "path_across_ranks_segments.segment_ns pipeline.total_ns pipeline.computation_ns pipeline.bubble_ns pipeline.idle_ns "
    "pipeline.bubble_frac pipeline.waits_for_ns rank_waits.wait_ns stragglers.mean_cost_ns "
    "stragglers.mean_without_waiting_ns stragglers.mean_exposed_wait_ns pace.start_lag_ns communication.total_ns communication.mean_ns "
    "communication.mean_transfer_ns communication.mean_wait_ns collectives.transfer_ns collectives.mean_wait_ns "
    "collectives.max_wait_ns collectives.total_wait_ns clocks.offset_ns": (
        "of several ranks; tests/unit/distributed/test_identities.py compares the views of runs"
    ),
    "stragglers.typical_excess_ns stragglers.part_in_slow_steps_ns stragglers.threshold_ns links.slower_frac links.threshold_frac "
    "links.transfer_ns links.others_ns rank_waits.noise_ns collectives.noise_ns pace.clock_error_ns clocks.error_ns clocks.residual_ns clocks.differs_ns pipeline.ideal_frac": (
        "statistics over several ranks, which only their view gives; tests/unit/distributed hold them"
    ),
}
"""Columns that no other answer gives, or whose definition says how it differs, each with the reason."""


def differences(quantity: Quantity, answers: Answers) -> dict[str, dict[Hashable, tuple[int, int]]]:
    """Of each source that differs from the first one that says the quantity: by key, what both say."""
    said = [(source, amounts) for source in quantity.sources if (amounts := source.amounts(answers)) is not None]
    found = {}
    for source, amounts in said[1:]:
        first = said[0][1]
        keys = amounts if source.is_part else first | amounts
        differing = {key: (first.get(key, 0), amounts.get(key, 0)) for key in keys}
        if differing := {key: pair for key, pair in differing.items() if pair[0] != pair[1]}:
            found[f"{source.name}, not {said[0][0].name}"] = differing
    return found
