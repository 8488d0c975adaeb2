"""What candidates cover: delays of the dependency graph, and segments of the critical path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..arrays.intervals import Intervals, Ints, length_within, merge
from ..arrays.native import Function
from ..critical_path.classes import (
    BETWEEN_ROWS,
    CLASSES,
    COMMUNICATION,
    COMPUTATION,
    COPY,
    LAUNCH,
    SYNCHRONIZATION,
)
from ..critical_path.explanation import Explanation, critical_stretches
from ..critical_path.path import PathPart
from ..critical_path.what_if import MAY_WAIT, WAITS
from ..trace import Trace
from .model import Candidate

_find_percents_of_parts = Function("percents_of_parts")
_raise_percents_of_rows = Function("raise_percents_of_rows")
_raise_percents_of_boundaries = Function("raise_percents_of_boundaries")

_OF_ROWS = (COMPUTATION, COMMUNICATION, COPY)
_BEFORE_ROWS = (LAUNCH, BETWEEN_ROWS)
_ALL = 100  # percent
_MOSTLY = 0.5  # of the host's own time in a call that waits


def partly(percents: NDArray[np.uint8], percent: int) -> NDArray[np.uint8]:
    """Some of what a candidate would change, `percent` of it."""
    shares = (percents & ~WAITS).astype(np.uint16) * percent // _ALL
    return shares.astype(np.uint8) | np.where(shares > 0, percents & WAITS, np.uint8(0))


def percents(candidate: Candidate, explanation: Explanation) -> NDArray[np.uint8]:
    """By how much the delay of each node would be shorter, in percent, with WAITS where the host wouldn't wait."""
    what_if, nodes = explanation.what_if, explanation.graph.nodes
    percents = np.empty(nodes.time.size, np.uint8)
    _find_percents_of_parts(what_if.part, np.where(_classes(_codes(candidate)), np.uint8(_ALL), np.uint8(0)), percents)
    if candidate.rows is not None:
        of_row, before = _percents_of_rows(candidate, nodes.rows), _BEFORE_ROWS if candidate.is_of_launches else ()
        parts = _classes(_OF_ROWS), _classes(before)
        _raise_percents_of_rows(
            what_if.part, of_row, explanation.graph.holding_row, *parts, nodes.starts.start, percents
        )
    if candidate.spans is not None:
        _raise_percents_of_spans(candidate, candidate.spans, explanation, percents)
    at, shares = _unexplained_waits(candidate, explanation)
    percents[at] = np.maximum(percents[at], _in_percent(shares))
    if candidate.waits:
        at = what_if.waiting_nodes
        own_ns, time = explanation.graph.delays_of(at), nodes.time[at]
        for_unrecorded = _MOSTLY * own_ns < _within(candidate.unrecorded_work, time - own_ns, time)
        percents[at] = np.where(for_unrecorded, np.uint8(0), WAITS + _ALL)
    return percents


def _raise_percents_of_spans(
    candidate: Candidate, spans: Intervals, explanation: Explanation, percents: NDArray[np.uint8]
) -> None:
    """Raise the percents of what threads of a candidate do to the share of it that lies inside the spans."""
    graph, boundaries = explanation.graph, explanation.graph.nodes.boundaries
    is_meant = np.zeros(boundaries.first.size, bool)
    is_meant[np.asarray(candidate.threads, np.int64)] = True
    before = np.append(0, np.cumsum(spans[1] - spans[0]))
    columns = boundaries.first, graph.first, graph.predecessor, graph.nodes.time
    less = np.array([_less_of_spans(candidate)])
    _raise_percents_of_boundaries(*columns, is_meant, spans, before, less, percents)


def on_path(candidate: Candidate) -> Callable[[PathPart], Ints]:
    """How much of each segment or stretch of the critical path it is, in ns."""
    codes = (*_codes(candidate), SYNCHRONIZATION) if candidate.waits else _codes(candidate)
    of_rows = _OF_ROWS + _BEFORE_ROWS if candidate.is_of_launches else _OF_ROWS
    less = np.zeros(0) if candidate.rows is None else _less_of_rows(candidate, candidate.rows)
    is_of_class, is_of_rows = _classes(codes).astype(np.float64), _classes(of_rows)

    def amount(path: PathPart) -> Ints:
        start, end, part, row, thread = path
        share = is_of_class[part]
        if less.size:
            of_row = gather(less, np.where(row < less.size, row, NONE), missing=0.0)
            share = np.maximum(share, of_row * is_of_rows[part])
        on_host = np.isin(thread, candidate.threads) & (row == NONE)
        share[on_host] = np.maximum(share[on_host], _share_inside(candidate, start[on_host], end[on_host]))
        return np.asarray(np.round((end - start) * share).astype(np.int64))

    return amount


def inferred_waits_ns(candidate: Candidate, trace: Trace, explanation: Explanation) -> float:
    """For how long the host may wait for a candidate's rows on the path, in calls that the candidate doesn't hold."""
    if candidate.rows is None:
        return 0.0
    may_wait = pl.col("class").is_in(MAY_WAIT)
    segments = critical_stretches(trace).long_segments.filter(may_wait, pl.col("thread") != NONE)
    start, end, thread = (segments[name].to_numpy() for name in ("start_ns", "end_ns", "thread"))
    inside = candidate.mean_less * length_within(_times_of_rows(candidate, explanation), start, end)
    in_spans = np.where(np.isin(thread, candidate.threads), _within(candidate.spans, start, end), 0)
    return float(np.maximum(inside - in_spans, 0.0).sum())


def _unexplained_waits(candidate: Candidate, explanation: Explanation) -> tuple[Ints, NDArray[np.float64]]:
    """The calls and operators that may wait for the rows, though nothing recorded says so, and which part may be that.

    Those are the long ones: without a wait, launching takes µs. So a saving stays an upper bound.
    """
    if candidate.rows is None:
        return np.zeros(0, np.int64), np.zeros(0)
    time = explanation.graph.nodes.boundaries.time
    at = explanation.what_if.long_host_nodes
    if not at.size:
        return at, np.zeros(0)
    inside = length_within(_times_of_rows(candidate, explanation), time[at - 1], time[at])
    return at, np.asarray(candidate.mean_less * inside / np.maximum(time[at] - time[at - 1], 1))


def _times_of_rows(candidate: Candidate, explanation: Explanation) -> Intervals:
    """When devices run any of the rows."""
    nodes = explanation.graph.nodes
    return merge([(nodes.time[nodes.starts][candidate.rows], nodes.time[nodes.ends][candidate.rows])])


def _in_percent(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.round(_ALL * np.maximum(shares, 0)).astype(np.uint8)


def _classes(codes: tuple[int, ...]) -> NDArray[np.bool_]:
    """For each class whether it is one of some."""
    is_chosen = np.zeros(len(CLASSES), bool)
    is_chosen[list(codes)] = True
    return is_chosen


def _percents_of_rows(candidate: Candidate, rows: int) -> NDArray[np.uint8]:
    """By how many percent of its time each row could be shorter."""
    percents = np.zeros(rows, np.uint8)
    percents[candidate.rows] = _in_percent(np.asarray(1.0 if candidate.less is None else candidate.less))
    return percents


def _less_of_rows(candidate: Candidate, rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """By which share of its time each row up to the last of the candidate's could be shorter."""
    less = np.zeros(int(rows.max(initial=0)) + 1)
    less[rows] = 1.0 if candidate.less is None else candidate.less
    return less


def _share_inside(candidate: Candidate, start: Ints, end: Ints) -> NDArray[np.float64]:
    """The share of some ranges of time that lies inside the spans."""
    less = _less_of_spans(candidate)
    return np.asarray(less * _within(candidate.spans, start, end) / np.maximum(end - start, 1))


def _less_of_spans(candidate: Candidate) -> float:
    """By which share the time inside the spans could be shorter."""
    return candidate.mean_less if candidate.is_of_host or isinstance(candidate.less, float) else 1.0


def _within(spans: Intervals | None, start: Ints, end: Ints) -> Ints:
    """How much of some ranges of time lies inside the spans; nothing without any."""
    return np.zeros(start.size, np.int64) if spans is None else np.asarray(length_within(spans, start, end))


def _codes(candidate: Candidate) -> tuple[int, ...]:
    return tuple(map(CLASSES.index, candidate.classes))
