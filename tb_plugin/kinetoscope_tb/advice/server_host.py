"""What the iterations of a server wait for on the host: a function, in all or some; launches that a graph would save.

What these claims are about no other rule about a late host counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, map_categories
from ..arrays.intervals import Intervals, Ints, length_within, merge, without
from ..arrays.nesting import outward
from ..measures.time.breakdown import intervals_of
from ..measures.time.host_activity import working_threads
from ..names import text
from ..names.calls import launches_graph, synchronizes
from ..names.iterations import iteration_name
from ..names.python_frames import function_name, is_of_program, is_wait, without_address
from ..trace.results import once_per_trace
from .contention import lock_holder
from .culprit import culprit_of_kind, rows_of_host, time_inside
from .facts import LEAST_SHARE, Facts, launched_within
from .model import Advice, Candidate, Culprit

_MUCH = 0.25  # of the time in which devices wait for the host
_NEARLY_ALL = 0.8  # of the time in the largest function: then what it calls says more
_HARDLY = 0.02  # of the kernels
_MOST = 0.5
_FEWEST = 3  # iterations: of fewer nothing shows what recurs
_AS_BUSY = 1.5  # times: iterations of unknown phase that compute longer may be those of prompts
_MOST_SIZES = 4
_SHORTEN = (
    "Do less of it, or do it in another process before the iteration needs it: nothing is launched while it runs. If "
    "the server launches the next iteration before it reads the tokens of this one, the device's work hides some of "
    "it: `--async-scheduling` (vLLM), no `--disable-overlap-schedule` (SGLang)."
)
_SPREAD_OUT = " Where few iterations have it, a part of it in each of them may be hidden, too."
_CAPTURE = (
    "Let the server capture graphs for {sizes}, too, or pad such batches to a size that has one: "
    "`cudagraph_capture_sizes` of vLLM, `--cuda-graph-bs` of SGLang."
)
_LOOK = "See why no graph is replayed there, such as a size for which none was captured or an option that excludes it."


class LateFunction(NamedTuple):
    """What devices wait for on the host of a server.

    Attributes:
        words: What it is, such as `allocate (scheduler.py:12)`.
        culprit: The same, by its kind.
        spans: When it runs; of another thread's function, when the server's thread waits for it.
        late: How long devices wait for it in each step.
        takes: What its spans are, as the beginning of a sentence.
        evidence: What calls it, or which thread runs it, as a sentence.
    """

    words: str
    culprit: Culprit
    spans: Intervals
    late: Ints
    takes: str
    evidence: str


class MissingGraphs(NamedTuple):
    """Iterations that run without a graph, though others of their phase replay one.

    Attributes:
        steps: Which steps these are.
        replays: Which steps of the same phase replay one.
        late: How much longer devices wait for the host in each of them than in the others; 0 in these.
        latency: The same of launch latency.
        phase: The phase, if it is known.
    """

    steps: NDArray[np.bool_]
    replays: NDArray[np.bool_]
    late: Ints
    latency: Ints
    phase: str


class LateOfServer(NamedTuple):
    """How long devices wait for the host in each step, without what the claims of this module are about.

    Attributes:
        synchronization: After the host waited for them.
        host: For no other reason.
        claims: What the claims are about.
        spans: When that is.
    """

    synchronization: Ints
    host: Ints
    claims: Ints
    spans: Intervals


@once_per_trace
def late_of_server(facts: Facts) -> LateOfServer:
    """What is left for the other rules about a late host; of other programs than servers all of it."""
    late, function, missing = facts.late, late_function(facts), missing_graphs(facts)
    claims, latency, spans = np.zeros_like(late.host), np.zeros_like(late.host), []
    if missing is not None:
        claims, latency, spans = missing.late, missing.latency, [_windows(facts, missing.steps)]
    if function is not None:
        claims, spans = claims + function.late, [*spans, function.spans]
    rest = np.maximum(late.synchronizing + late.host - claims, 0)
    after_waits = np.minimum(late.synchronizing, rest)
    return LateOfServer(after_waits, rest - after_waits, claims + latency, merge(spans))


def server_function(facts: Facts) -> Iterator[Advice]:
    """Iterations of a server wait for one function of the host."""
    function = late_function(facts)
    if function is None:
        return
    late, spread = function.late, facts.spread(function.late)
    mean, of, often = float(late[facts.is_counted][spread.has].mean()), facts.steps_of(late), "each"
    if not spread.has.all():
        of, often = f"the average {facts.noun}", f"{int(spread.has.sum())} of {facts.count} {facts.noun}s"
    has_stacks = not facts.trace.python_calls.is_empty()
    yield Advice(
        "server_function",
        f"{facts.subject} {facts.waits} for `{function.words}` for {facts.percent(facts.mean(late))} of {of}: "
        f"{text.time(mean)} in {often}.",
        f"{_part_of_late(facts, function)}{_own_time(facts, function, spread.has)}{_lengths(facts, spread.has)}"
        f"{function.evidence}",
        _SHORTEN + (_SPREAD_OUT if spread.is_rare else ""),
        None,
        "medium" if has_stacks else "high",
        "gaps",
        "host late",
        facts.mean(late),
        facts.host_candidate(function.words, without(function.spans, facts.profiler_spans)),
        function.culprit,
    )


def _part_of_late(facts: Facts, function: LateFunction) -> str:
    whole = facts.late.synchronizing + facts.late.host
    share = text.percent(min(1.0, facts.mean(function.late) / max(1, facts.mean(whole))))
    return f"{share} of the time in which {facts.device} {facts.waits} for the host lies in it. "


def _own_time(facts: Facts, function: LateFunction, has: NDArray[np.bool_]) -> str:
    """How long it runs in the iterations that wait for it, and in the others, as a sentence."""
    host = (facts.trace.steps[side].to_numpy() for side in ("host_start_ns", "host_end_ns"))
    lengths = length_within(function.spans, *host)[facts.is_counted]
    there = text.time(float(lengths[has].mean()))
    if has.all():
        return f"{function.takes} {there} per {facts.plain_noun}. "
    others = float(lengths[~has].mean())
    elsewhere = f", {text.time(others)} in the others on average" if others else ""
    return f"{function.takes} {there} there{elsewhere}. "


def _lengths(facts: Facts, has: NDArray[np.bool_]) -> str:
    """How long the iterations with a cost take, and the others, as a sentence."""
    if has.all():
        return ""
    lengths = facts.length[facts.is_counted]
    there, others = (text.time(float(lengths[which].mean())) for which in (has, ~has))
    return f"These {facts.noun}s take {there}, the others {others}. "


@once_per_trace
def late_function(facts: Facts) -> LateFunction | None:
    """The function, or without stacks the range or the operator, in which much of the time lies that devices wait.

    It launches hardly anything: else launching is what takes long. Of functions that call each other it is the
    innermost that nearly all of the outermost one's time lies in. None if another thread holds Python's lock: then
    whatever runs looks slow.
    """
    if not _is_of_server(facts):
        return None
    late, calls = without(facts.late.unnamed, facts.profiler_spans), facts.trace.python_calls
    rows = rows_of_host(facts, facts.trace.host_events, _is_mark)
    rows = rows if calls.is_empty() else rows_of_host(facts, calls, lambda name: not is_of_program(name))
    name = _dominant(facts, rows, late)
    return None if name is None else _late_function(facts, rows, name, late)


def _is_of_server(facts: Facts) -> bool:
    """Whether these are enough iterations of a server, or steps that it marks, with work of a device."""
    is_server = (facts.has_iterations and not facts.is_training) or bool(facts.server)
    return facts.has_device and facts.count >= _FEWEST and is_server


def _late_function(facts: Facts, rows: pl.DataFrame, name: str, late: Intervals) -> LateFunction | None:
    own = rows.filter(pl.col("name") == name)
    spans, kind, evidence = without(intervals_of(own), facts.request_waits), str(own["kind"][0]), _caller(facts, name)
    within, takes = _both(late, spans), "It takes"
    waits = _both(spans, _waits(facts, working_threads(facts.trace)))
    other = _of_other_thread(facts, waits) if _length(_both(waits, within)) >= _MOST * _length(within) else None
    if other is not None:
        evidence = f"Another thread runs it, for which the server's thread waits in `{function_name(name)}`. "
        name, spans, within, takes = other, waits, _both(late, waits), "Waiting for it takes"
    elif kind == "function" and lock_holder(facts, within):
        return None
    lengths: Ints = np.asarray(length_within(within, facts.windows.start, facts.windows.end))
    if not facts.is_worth(lengths) or facts.share(facts.mean(lengths)) < LEAST_SHARE:
        return None
    who = culprit_of_kind(kind, without_address(name))
    return LateFunction(function_name(name), who, spans, lengths, takes, evidence)


def _dominant(facts: Facts, rows: pl.DataFrame, late: Intervals) -> str | None:
    """The innermost of some rows that nearly all of the time lies in which the largest of them has."""
    whole = _length(late)
    sums = time_inside(rows, late).filter((pl.col("inside") > 0) & (pl.col("inside") >= _MUCH * whole))
    largest = sums.with_columns(pl.col("name").cast(pl.String)).sort("inside", "dur_ns", "name", descending=True)
    for top in largest["name"].to_list():
        spans = intervals_of(rows.filter(pl.col("name") == top))
        is_inside = launched_within(facts.trace, spans)[facts.kernel_rows]
        if is_inside.size and float(is_inside.mean()) > _HARDLY:
            continue
        within = _both(late, spans)
        inner = time_inside(rows, within).filter(pl.col("inside") >= _NEARLY_ALL * _length(within))
        return str(inner.sort("dur_ns", pl.col("name").cast(pl.String))["name"][0])
    return None


def _of_other_thread(facts: Facts, waits: Intervals) -> str | None:
    """The function of another thread that runs for most of some time, but for its own waits."""
    threads = working_threads(facts.trace)
    rows = _functions_of(facts, ~threads)
    runs = without(waits, _waits(facts, ~threads))
    sums = time_inside(rows, runs).filter(pl.col("inside") >= _MOST * _length(waits))
    if sums.is_empty():
        return None
    inner = sums.filter(pl.col("inside") >= _NEARLY_ALL * pl.col("inside").max())
    return str(inner.sort("dur_ns", pl.col("name").cast(pl.String))["name"][0])


def _functions_of(facts: Facts, threads: NDArray[np.bool_]) -> pl.DataFrame:
    calls = facts.trace.python_calls.select("name", "thread", "start_ns", "dur_ns")
    is_chosen = threads[calls["thread"].to_numpy()] & map_categories(calls["name"], is_of_program)
    return calls.filter(pl.Series(is_chosen, dtype=pl.Boolean))


def _waits(facts: Facts, threads: NDArray[np.bool_]) -> Intervals:
    """When any of some threads is in a call of Python that waits."""
    calls = facts.trace.python_calls
    return intervals_of(calls, threads[calls["thread"].to_numpy()] & map_categories(calls["name"], is_wait))


def _caller(facts: Facts, name: str) -> str:
    """The function of the program that calls a function, as a sentence; empty if there is none, or it isn't one."""
    calls = facts.trace.python_calls
    rows = np.flatnonzero(map_categories(calls["name"], partial(str.__eq__, name)))
    around = outward(calls["parent"].to_numpy(), int(calls["parent"][int(rows[0])])) if rows.size else ()
    names = (str(calls["name"][parent]) for parent in around)
    caller = next((frame for frame in names if is_of_program(frame)), "")
    return f"`{function_name(caller)}` calls it. " if caller else ""


def _is_mark(name: str) -> bool:
    """Whether a range marks an iteration."""
    return iteration_name(name) is not None


def _both(spans: Intervals, others: Intervals) -> Intervals:
    """The time in both of two unions."""
    return without(spans, without(spans, others))


def _length(spans: Intervals) -> int:
    return int((spans[1] - spans[0]).sum())


@once_per_trace
def missing_graphs(facts: Facts) -> MissingGraphs | None:
    """Iterations without a graph among those of a phase that replay one; None: none, or devices hardly wait longer.

    Of iterations whose phase isn't known only those count in which devices compute about as long.
    """
    if not _is_of_server(facts):
        return None
    launches, size = facts.trace.launches, facts.is_counted.size
    is_replay = map_categories(launches["name"], launches_graph) & (launches["step"] >= 0).to_numpy()
    replays = np.bincount(launches["step"].to_numpy()[is_replay], minlength=size) > 0
    kernels = np.bincount(facts.trace.device_events["step"].gather(facts.kernel_rows).to_numpy(), minlength=size) > 0
    phase = facts.trace.steps["phase"].cast(pl.String).fill_null("other").to_numpy()
    candidates = (_missing_in_phase(facts, name, phase == name, replays, kernels) for name in ("decode", "other"))
    return next((missing for missing in candidates if missing is not None), None)


def _missing_in_phase(
    facts: Facts, phase: str, of_phase: NDArray[np.bool_], replays: NDArray[np.bool_], has_kernels: NDArray[np.bool_]
) -> MissingGraphs | None:
    which = facts.is_counted & of_phase
    has_graph, missing = which & replays, which & ~replays & has_kernels
    if has_graph.sum() < _FEWEST or not missing.any():
        return None
    if phase == "other":
        missing &= facts.computation <= _AS_BUSY * float(np.median(facts.computation[has_graph]))
    late, latency = (
        np.where(missing, np.maximum(lengths - round(float(np.median(lengths[has_graph]))), 0), 0)
        for lengths in (facts.late.host + facts.late.synchronizing, facts.late.latency)
    )
    if not facts.is_worth(late + latency):
        return None
    return MissingGraphs(missing, has_graph, late, latency, phase if phase != "other" else "")


def iterations_without_graphs(facts: Facts) -> Iterator[Advice]:
    """Some iterations of a phase run without a graph, which the others replay."""
    missing = missing_graphs(facts)
    if missing is None:
        return
    count, whole = int(missing.steps.sum()), int((missing.steps | missing.replays).sum())
    noun = f"{missing.phase} iterations" if missing.phase else f"{facts.noun}s"
    takes, usual = (text.time(float(facts.length[which].mean())) for which in (missing.steps, missing.replays))
    late = missing.late + missing.latency
    more = text.time(float(late[missing.steps].mean()))
    sizes, comparison, action = _sizes(facts, missing)
    yield Advice(
        "missing_graphs",
        f"{count} of {whole} {noun} run without a graph{sizes}: they take {takes}, those that replay one {usual}.",
        f"{facts.subject} {facts.waits} {more} longer for the host in each of them, since it launches each kernel"
        f"{facts.recurs(late)}.{comparison}",
        action,
        None,
        "high",
        "iterations",
        "",
        facts.mean(late),
        _host_code(facts, missing),
    )


def _host_code(facts: Facts, missing: MissingGraphs) -> Candidate:
    """What the host does in these iterations, as far as it takes longer than in the others."""
    spans = without(_host_windows(facts, missing.steps), _synchronization(facts))
    usual_ns, own_ns = (
        _length(without(_host_windows(facts, which), _synchronization(facts))) / int(which.sum())
        for which in (missing.replays, missing.steps)
    )
    candidate = facts.host_candidate("host code without a graph", spans)
    return replace(candidate, less=max(0.0, 1 - usual_ns / max(1.0, own_ns)))


def _host_windows(facts: Facts, which: NDArray[np.bool_]) -> Intervals:
    start, end = (facts.trace.steps[side].to_numpy()[which] for side in ("host_start_ns", "host_end_ns"))
    return merge([(start, end)])


def _windows(facts: Facts, which: NDArray[np.bool_]) -> Intervals:
    return merge([(facts.windows.start[which], facts.windows.end[which])])


def _synchronization(facts: Facts) -> Intervals:
    calls = facts.trace.launches
    return intervals_of(calls, map_categories(calls["name"], synchronizes))


def _sizes(facts: Facts, missing: MissingGraphs) -> tuple[str, str, str]:
    """Their numbers of requests as a clause, what the others have as a sentence, and what to do."""
    batch = facts.trace.steps["batch"].to_numpy()
    is_known = batch != NONE
    without_graph, graph_sizes = (np.unique(batch[which & is_known]) for which in (missing.steps, missing.replays))
    if not without_graph.size or not graph_sizes.size:
        return "", "", _LOOK
    clause, comparison = f", of {_requests(without_graph)}", f" The others have {_requests(graph_sizes)}."
    if np.isin(without_graph, graph_sizes).any():
        return clause, comparison, _LOOK
    if without_graph[0] > graph_sizes[-1]:
        comparison = f" The others have {_requests(graph_sizes)}: no larger batch replays a graph."
    return clause, comparison, _CAPTURE.format(sizes=_requests(without_graph))


def _requests(sizes: NDArray[np.integer]) -> str:
    """Such as 8 requests, 8 and 16 requests, 17 to 40 requests."""
    numbers = [str(size) for size in sizes]
    words = text.enumeration(numbers) if len(numbers) <= _MOST_SIZES else f"{numbers[0]} to {numbers[-1]}"
    return f"{words} request{'' if numbers == ['1'] else 's'}"
