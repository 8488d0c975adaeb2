"""Warm-up within the recording: first steps that differ from the others, and first launches that load code.

Without a device the same work may take longer at first, since libraries are loaded, kernels generated and memory taken
at the first call: then the operators that take longer are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, map_categories
from ..arrays.intervals import Intervals, length_within, merge
from ..measures.time.breakdown import intervals_of
from ..measures.time.idle_causes import SLOW_LAUNCH_NS
from ..names import text
from ..names.calls import allocates
from ..names.compiled_code import is_compilation
from ..trace.row_filters import name_mask
from .compiled_code import compilations
from .facts import LEAST_SHARE, LOADING_NS, Facts
from .model import Advice

_LOADS = re.compile(
    r"Module(?:Load|GetFunction)|LibraryLoad|GetModule|Lazy Function Loading|hipModuleLoad|FuncGetAttributes"
)
_EXPLAINS = 0.3  # of what warm-up takes beyond a steady step
_MOST = 0.8  # of the time of slow launches
_TIMES = 2  # as long: from here on in times, not in percent more
_LONGER = 1.5  # times the longest other step, without a device
_MOSTLY = 0.5  # of what the step takes longer
_PART = 0.2  # of that: an operator that is worth a name
_FEW = 3  # operators


class _Part(NamedTuple):
    """One way in which warm-up shows.

    Attributes:
        title: What an advice says if this is the largest part.
        evidence: The numbers.
        saving_ns: Time of a step that counts; None: steps that don't count take it.
        size_ns: How much of a step it is about.
        is_known: Whether what takes the time was recorded as such.
    """

    title: str
    evidence: str
    saving_ns: int | None
    size_ns: int
    is_known: bool


def warm_up(facts: Facts) -> Iterator[Advice]:
    """The recording holds what a program does only once."""
    parts = [*_first_steps(facts), *_set_up(facts), *_first_compilations(facts)]
    if not parts:
        return
    parts.sort(key=lambda part: -part.size_ns)
    savings = [part.saving_ns for part in parts if part.saving_ns is not None]
    yield Advice(
        "warm_up",
        parts[0].title,
        " ".join(part.evidence for part in parts),
        "Record later: call `profiler.step()` after each batch, with `schedule(wait=…, warmup=…)`. Judge averages "
        "without warm-up.",
        sum(savings) if savings else None,
        "high" if all(part.is_known for part in parts) else "medium",
        "gaps" if facts.is_whole and facts.has_device else "steps",
        "",
        parts[0].size_ns,
    )


def _first_steps(facts: Facts) -> Iterator[_Part]:
    """The first steps take longer than the others."""
    warm = facts.complete & ~facts.is_counted
    count = int(warm.sum())
    if not count:
        yield from _slow_first_step(facts)
        return
    steady, first = facts.step_ns, float(facts.length[warm].mean())
    mean = float(facts.length[facts.complete].mean())
    causes = {
        what: part
        for what, spans in _first_time_work(facts).items()
        if (part := _excess(facts, spans)) >= _EXPLAINS * (first - steady)
    }
    activities = text.enumeration([f"{what} ({text.time(part)})" for what, part in causes.items()]) if causes else ""
    which = f"The first {facts.noun} takes" if count == 1 else f"The first {count} {facts.noun}s take"
    on_average = "" if count == 1 else " on average"
    slow = SlowOperators((), "") if facts.has_device else slow_operators(facts, warm)
    yield _Part(
        f"{which} {text.time(first)}{on_average}, the others {text.time(steady)}{slow.clause}: the recording holds "
        "warm-up.",
        f"A steady {facts.noun} takes {text.time(steady)}; averages over all {facts.complete.sum()} complete "
        f"{facts.noun}s are {_longer_in_words(mean / steady)}. This advice is about the {facts.count} others."
        + (f" What warm-up does: {activities}." if activities else "")
        + (f" {slow.numbers}" if slow.numbers else ""),
        None,
        round(mean - steady),
        bool(causes),
    )


def _slow_first_step(facts: Facts) -> Iterator[_Part]:
    """The first counted step takes much longer, since few operators do; it does no more work, or few steps are left."""
    row = slow_step(facts)
    if row is None or facts.is_counted[:row].any():
        return
    others = facts.is_counted & (np.arange(facts.is_counted.size) != row)
    first, usual = int(facts.length[row]), float(np.median(facts.length[others]))
    slow = slow_operators(facts, ~others & facts.is_counted)
    if not slow.names:
        return
    other = f"the other {facts.noun}" if facts.count == 2 else f"the median other {facts.noun}"
    yield _Part(
        f"The first {facts.noun} takes {text.time(first)}, {other} {text.time(usual)}{slow.clause}: it may be warm-up.",
        f"{slow.numbers} The average {facts.noun} holds it.",
        None,
        round((first - usual) / facts.count),
        is_known=False,
    )


def _set_up(facts: Facts) -> Iterator[_Part]:
    """A recording without steps: calls that set up the device, and first launches, which load code."""
    if not (facts.is_whole and facts.has_device):
        return
    setting_up, slow = facts.late.setting_up, slow_launches(facts)
    loading_ns = int(slow["length"].sum()) if loads_code(facts, slow) else 0
    saving = facts.mean(setting_up) + loading_ns
    if facts.share(saving) < LEAST_SHARE:
        return
    parts, what = [], "calls that set up the device"
    if loading_ns:
        kernels = "one kernel" if slow.height == 1 else f"{slow.height} kernels"
        longest = longest_launcher(facts, slow)
        where = f"; {'the longest ' if slow.height > 1 else ''}{longest}" if longest else ""
        parts.append(f"{text.time(loading_ns)} for the first launch of {kernels} (which loads code{where})")
        what = "first launches of kernels"
    if facts.mean(setting_up):
        what = "setting up and first launches" if loading_ns else what
        parts.append(f"{text.time(facts.mean(setting_up))} for calls that set up the device and its libraries")
    yield _Part(
        f"The recording holds warm-up: {what} take {facts.percent(saving)} of it.",
        f"{facts.subject} {facts.waits} {text.enumeration(parts)}, of {text.time(facts.step_ns)}.",
        saving,
        saving,
        is_known=False,
    )


def _first_compilations(facts: Facts) -> Iterator[_Part]:
    cost = compilations(facts)
    if cost is None or not cost.is_first:
        return
    yield _Part(
        f"The recording holds warm-up: torch.compile compiles for {facts.percent(cost.saving_ns)} of {facts.unit}.",
        f"{text.times(cost.rows.size, 'compilation')} in {'the recording' if facts.is_whole else 'one step'}: "
        f"{facts.part(cost.saving_ns)}; none is known to be a second one of its frame.",
        cost.saving_ns,
        cost.saving_ns,
        is_known=True,
    )


def slow_launches(facts: Facts) -> pl.DataFrame:
    """The parts of gaps in which a single call takes long to launch work, with their `length`."""
    parts = facts.idle_parts.with_columns(length=pl.col("end_ns") - pl.col("start_ns"))
    return parts.filter((pl.col("cause") == "launch latency") & (pl.col("length") >= SLOW_LAUNCH_NS))


def loads_code(facts: Facts, slow: pl.DataFrame) -> bool:
    """Whether most slow launches of a recording without steps load code: they last so long, each its kernel's first."""
    if not facts.is_whole or slow.is_empty():
        return False
    rows = facts.with_edges(slow).filter(pl.col("after") != NONE)
    first = rows.filter((pl.col("length") >= LOADING_NS) & _is_first_of_name(facts, rows["after"]))
    return int(first["length"].sum()) >= _MOST * int(slow["length"].sum())


def are_first_launches(facts: Facts, slow: pl.DataFrame) -> bool:
    """Whether most of the time of slow launches is before the first kernel of its name, whose code they may load."""
    rows = facts.with_edges(slow).filter(pl.col("after") != NONE)
    first = rows.filter(_is_first_of_name(facts, rows["after"]))
    return 2 * int(first["length"].sum()) >= int(slow["length"].sum())


def longest_launcher(facts: Facts, slow: pl.DataFrame) -> str:
    """The operator that makes the slowest of some launches, such as in `aten::add_`; empty if it isn't recorded."""
    rows = facts.with_edges(slow.sort("length", "start_ns"))
    after = rows.filter(pl.col("after") != NONE)["after"].tail(1)
    op = facts.trace.recorded_op.gather(after).replace(NONE, None)
    names = facts.trace.host_events["name"].gather(op).cast(pl.String).drop_nulls()
    return "".join(f"in `{name}`" for name in names)


def _first_time_work(facts: Facts) -> dict[str, Intervals]:
    """When the host does what it does once only."""
    trace = facts.trace
    host, launches, others = trace.host_events, trace.launches, trace.others
    loads = [intervals_of(f, map_categories(f["name"], lambda n: bool(_LOADS.search(n)))) for f in (launches, others)]
    return {
        "compiling": intervals_of(host, name_mask(host["name"], is_compilation)),
        "loading code": merge(loads),
        "taking device memory": intervals_of(launches, map_categories(launches["name"], allocates)),
    }


def _longer_in_words(ratio: float) -> str:
    return f"{text.percent(ratio - 1)} longer" if ratio < _TIMES else f"{text.digits(ratio)} times as long"


def _excess(facts: Facts, spans: Intervals) -> float:
    """By how much longer it lasts in a step of the warm-up than in the others."""
    lengths = length_within(spans, facts.windows.start, facts.windows.end)
    return float(lengths[facts.complete & ~facts.is_counted].mean() - lengths[facts.is_counted].mean())


def _is_first_of_name(facts: Facts, rows: pl.Series) -> pl.Series:
    """Whether each of some device rows is the first of its name in the recording."""
    names = facts.trace.device_events["name"].to_physical().to_numpy()
    first = np.zeros(names.size, bool)
    first[np.unique(names, return_index=True)[1]] = True
    return pl.Series(first)[rows]


class SlowOperators(NamedTuple):
    """What takes longer in some steps.

    Attributes:
        names: The operators, the one that takes longest first; none if many take a little longer each.
        numbers: How long each takes there, and in the median other step, in words.
    """

    names: tuple[str, ...]
    numbers: str

    @property
    def clause(self) -> str:
        """That most of the difference is in them, as the end of a sentence; empty without any."""
        names = text.enumeration([f"`{name}`" for name in self.names])
        return f", most of the difference in {names}" if names else ""


def slow_step(facts: Facts) -> int | None:
    """The one counted step without a device that takes much longer than any other, if there is one."""
    if facts.has_device or facts.has_iterations or facts.count < 2:
        return None
    lengths = np.where(facts.is_counted, facts.length, 0)
    *_, second, longest = np.sort(lengths)
    return int(lengths.argmax()) if longest >= _LONGER * second else None


def slow_operators(facts: Facts, is_slow: NDArray[np.bool_]) -> SlowOperators:
    """The few operators that take most of what some steps take longer than the median other one.

    Args:
        facts: Of the trace.
        is_slow: For each step whether it is one of these.
    """
    others = facts.is_counted & ~is_slow
    host = facts.trace.host_events.filter(pl.col("kind") == "operator", pl.col("step") >= 0)
    sums = host.group_by("name", "step").agg(pl.col("self_ns").sum())
    by_name = (
        sums.with_columns(pl.col("name").cast(pl.String)).pivot("step", index="name", values="self_ns").sort("name")
    )
    steps = by_name.drop("name").fill_null(0)
    numbers = np.array(steps.columns, np.int64)
    times = steps.to_numpy().astype(np.float64).reshape(by_name.height, numbers.size)
    if not (is_slow[numbers].any() and others[numbers].any()):
        return SlowOperators((), "")
    there, elsewhere = times[:, is_slow[numbers]].mean(axis=1), np.median(times[:, others[numbers]], axis=1)
    more_ns = float(facts.length[is_slow].mean() - np.median(facts.length[others]))
    longer = there - elsewhere
    rows = [row for row in np.argsort(-longer, kind="stable")[:_FEW] if longer[row] >= _PART * more_ns]
    if longer[rows].sum() < _MOSTLY * more_ns:
        return SlowOperators((), "")
    names = tuple(by_name["name"].gather(rows).to_list())
    sentences = [
        f"`{name}` takes {text.time(float(there[row]))} there, {text.time(float(elsewhere[row]))} elsewhere"
        for name, row in zip(names, rows, strict=True)
    ]
    return SlowOperators(names, "; ".join(sentences) + ".")
