"""Who takes the host's time: the function, operator or annotation that most of some time lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from ..arrays.gather import map_categories, texts
from ..arrays.intervals import Intervals, length_within, merge
from ..measures.calls.recursion import without_recursion
from ..measures.python.whereabouts import callers
from ..measures.time.breakdown import intervals_of
from ..measures.time.host_activity import working_threads
from ..names import text
from ..names.kernels import step_number
from ..names.python_frames import function_name, is_machinery, is_of_library, without_address
from .facts import Facts, launched_within
from .model import Culprit

_MOST = 0.5  # of the time, or of the kernels
_HARDLY = 0.02  # of the kernels
_MUCH = 0.25  # of the time
_NEARLY_ALL = 0.98  # of the kernels
_CLEARLY_MOST = 0.9  # of the time
_FEW_KERNELS = 0.6  # of a function's share of the time: its share of the kernels' time
_FORWARD = ": forward"
_LONG_NS = 1_000_000


class HostCulprit(NamedTuple):
    """Who takes some of the host's time.

    Attributes:
        words: What it is, such as `log (train.py:12)`.
        inside_ns: How much of the time lies in it.
        spans: When it runs, hidden behind the device's work or not; empty if that isn't known, or if it launches work,
            which must remain.
        names: What it is, by kind.
    """

    words: str
    inside_ns: int
    spans: Intervals
    names: Culprit


def culprit(facts: Facts, spans: Intervals) -> HostCulprit | None:
    """The innermost function of the program that most of the time lies in; without stacks an operator or annotation.

    An operator that nearly all of it lies in comes before shorter ranges, which hold some of its calls.
    Without any of these, the function of a library, which the training loop itself calls; or code that wasn't recorded,
    by the operator that it follows. None if there is no such.
    """
    frames = _candidates(facts, facts.trace.python_calls, spans, is_of_library)
    ranges = _candidates(facts, facts.trace.host_events, spans, lambda name: step_number(name) is not None)
    of_libraries = _candidates(
        facts, facts.trace.python_calls, spans, lambda name: not is_of_library(name) or is_machinery(name)
    )
    return next(frames, None) or _innermost(ranges, spans) or next(of_libraries, None) or _code_after(facts, spans)


def _innermost(ranges: Iterator[HostCulprit], spans: Intervals) -> HostCulprit | None:
    """The first of some ranges, or the first operator that nearly all of the time lies in."""
    most_ns = _CLEARLY_MOST * int((spans[1] - spans[0]).sum())
    return min(ranges, key=lambda who: who.names.operator is None or who.inside_ns < most_ns, default=None)


def launching_function(facts: Facts, spans: Intervals, said_ns: int) -> tuple[str, Culprit]:
    """The function of the program in which the host is too late for much of some time, as the end of a sentence.

    The sentence is about `said_ns`, of which it says how much lies in the function.

    It is one that much of the time lies in, and that launches little for that: the rest of a program has a share of the
    kernels, too. Else it is the innermost one that most of the time lies in. What launches nearly all kernels is none:
    it is the program; nor is a module's forward, unless most of the time lies in it. Empty without stacks, and if there
    is no such.
    """
    whole = int((spans[1] - spans[0]).sum())
    rows = rows_of_host(facts, facts.trace.python_calls, is_of_library)
    sums = time_inside(rows, spans).filter((pl.col("inside") > 0) & (pl.col("inside") >= _MUCH * whole))
    dur_ns = facts.trace.device_events["dur_ns"].to_numpy()[facts.kernel_rows]
    innermost = None
    parts = []
    for name, inside in sums.sort("dur_ns", pl.col("name").cast(pl.String)).select("name", "inside").rows():
        own_spans = intervals_of(rows.filter(pl.col("name") == name))
        is_own = launched_within(facts.trace, own_spans)[facts.kernel_rows]
        share, kernels = inside / whole, float(is_own.mean()) if is_own.size else 0.0
        if kernels >= _NEARLY_ALL or facts.is_training_loop(without_address(str(name))):
            continue
        if innermost is None and share >= _MOST:
            innermost = inside, str(name)
        is_forward = str(name).endswith(_FORWARD)
        if not is_forward and int(dur_ns[is_own].sum()) <= _FEW_KERNELS * share * int(dur_ns.sum()):
            parts.append((inside, str(name)))
    largest = max(parts, default=innermost)
    if largest is None:
        return "", Culprit()
    inside_ns, function = largest[0], without_address(largest[1])
    share = text.part_of_time(inside_ns / max(1, said_ns))
    return f", {share} in `{function_name(function)}`", Culprit(function=function)


def rows_of_host(facts: Facts, rows: pl.DataFrame, is_left_out: Callable[[str], bool]) -> pl.DataFrame:
    """Name, kind, start and duration of the rows of the main thread and of those that launch, without some names."""
    threads = working_threads(facts.trace)
    kind = pl.col("kind").cast(pl.String) if "kind" in rows.columns else pl.lit("function")
    rows = rows.select("name", "thread", "start_ns", "dur_ns", kind=kind)
    return rows.filter(pl.Series(threads[rows["thread"].to_numpy()] & ~map_categories(rows["name"], is_left_out)))


def time_inside(rows: pl.DataFrame, spans: Intervals) -> pl.DataFrame:
    """For each name how long its rows are, and how much of that lies in some spans; recursive calls count once."""
    rows = without_recursion(rows)
    start = rows["start_ns"].to_numpy()
    inside = length_within(spans, start, start + rows["dur_ns"].to_numpy())
    return rows.with_columns(inside=pl.Series(inside)).group_by("name").agg(pl.col("dur_ns", "inside").sum())


def _candidates(
    facts: Facts, rows: pl.DataFrame, spans: Intervals, is_left_out: Callable[[str], bool]
) -> Iterator[HostCulprit]:
    """Those that most of the time lies in, the shortest first; not the training loop, which launches the work."""
    rows = rows_of_host(facts, rows, is_left_out)
    most = time_inside(rows, spans).filter(pl.col("inside") >= _MOST * int((spans[1] - spans[0]).sum()))
    most = most.select(pl.col("name").cast(pl.String), "dur_ns", "inside").sort("dur_ns", "name")
    for name, inside_ns in most.select("name", "inside").rows():
        own = rows.filter(pl.col("name") == name)
        own_spans = intervals_of(own)
        share = (
            float(launched_within(facts.trace, own_spans)[facts.kernel_rows].mean()) if facts.kernel_rows.size else 0.0
        )
        if share <= _MOST:
            spans_of = own_spans if share <= _HARDLY else merge([])
            names = culprit_of_kind(own["kind"][0], without_address(name))
            yield HostCulprit(f"`{function_name(name)}`", inside_ns, spans_of, names)


def _code_after(facts: Facts, spans: Intervals) -> HostCulprit | None:
    """Code that wasn't recorded, if most of the time lies in long stretches of it behind one operator."""
    host, (start, end) = facts.trace.host_events, spans
    is_long = end - start >= _LONG_NS
    middle, length = (start + end)[is_long] // 2, (end - start)[is_long]
    operators = host.filter(pl.col("kind") == "operator").select("name", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    operators = operators.sort("end_ns", maintain_order=True)
    last = np.searchsorted(operators["end_ns"].to_numpy(), middle, "right") - 1
    before = pl.DataFrame({"name": texts(operators["name"], last), "length": length}).drop_nulls()
    sums = before.group_by("name").agg(pl.col("length").sum()).sort("length", "name")
    if sums.is_empty() or sums["length"][-1] < _MOST * int((end - spans[0]).sum()):
        return None
    suffix = " that wasn't recorded" if facts.trace.python_calls.is_empty() else ""
    words = f"code after `{sums['name'][-1]}`"
    return HostCulprit(f"{words}{suffix}", sums["length"][-1], merge([]), Culprit(range=words.replace("`", "")))


def culprit_of_kind(kind: str, name: str) -> Culprit:
    """The function, operator or range of a name."""
    if kind == "function":
        return Culprit(function=name)
    return Culprit(operator=name) if kind == "operator" else Culprit(range=name)


def in_program(
    facts: Facts, spans: Intervals, of: str = "it", counts: Callable[[str], bool] = bool
) -> tuple[str, Culprit]:
    """The function of the program that the main thread is in for most of some time, as the end of a sentence.

    Empty without stacks, and where that is the training loop.

    Args:
        facts: Of the trace.
        spans: The time.
        of: What most of lies in it, as a pronoun.
        counts: Whether an innermost frame of this name does.
    """
    shares = callers(facts.trace, facts.host_time.thread, spans, counts)
    caller, share = shares[0] if shares else ("", 0.0)
    if share < _MOST or facts.is_training_loop(caller):
        return "", Culprit()
    return f", most of {of} in `{function_name(caller)}`", Culprit(function=caller)
