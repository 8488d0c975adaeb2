"""What candidates save: the steps, simulated again with their delays shortened.

So the number of a claim and that of its slider are one: the slider shows a part of the candidate, and a part never
saves more than the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.intervals import Intervals, Ints, length_within, merge
from ..critical_path.classes import (
    BETWEEN_ROWS,
    CALL,
    CLASSES,
    COMMUNICATION,
    COMPUTATION,
    COPY,
    LAUNCH,
    OPERATOR,
    SYNCHRONIZATION,
)
from ..critical_path.explanation import Explanation, path_explanation
from ..critical_path.what_if import WAITS
from ..names import text
from .facts import LARGE_SHARE, LEAST_SHARE, Facts
from .model import Advice, Candidate, Cleared, Result

_OF_ROWS = (COMPUTATION, COMMUNICATION, COPY)
_BEFORE_ROWS = (LAUNCH, BETWEEN_ROWS)
_ALL, _HALF = 100, 50  # percent
_MOSTLY = 0.5  # of the host's own time in a call that waits
_NEARLY = 0.8  # of what a claim saves
_MORE = 1.05  # times the time that is known to be saved: what else is saved is said
_LONG_NS = 200_000  # of a call or an operator between two boundaries


def simulate(facts: Facts, results: Sequence[Result]) -> list[Result]:
    """The results, each with what its candidate saves; one whose steps would be as long as now is no advice."""
    advice = [a for a in results if isinstance(a, Advice) and a.candidate and a.candidate.less is not None]
    if not advice:
        return list(results)
    explanation = path_explanation(facts.trace)
    changes = [percents(a.candidate, explanation) for a in advice if a.candidate]
    per_step = [explanation.what_if.saved_together(change) for change in changes]
    by_rule = {a.rule: _judge(facts, a, facts.mean(ns)) for a, ns in zip(advice, per_step, strict=True)}
    remedies = {
        a.rule: remedy
        for a in by_rule.values()
        if isinstance(a, Advice) and (remedy := _with_remedy(facts, a, explanation)) is not a
    }
    topics = {advice.remedy.topic for advice in remedies.values() if advice.remedy}
    results = [r for r in results if not (isinstance(r, Cleared) and r.topic in topics)]
    results = [_with_saving(facts, r, explanation) if isinstance(r, Cleared) else r for r in results]
    return [{**by_rule, **remedies}.get(r.rule, r) if isinstance(r, Advice) else r for r in results]


def _with_saving(facts: Facts, result: Cleared, explanation: Explanation) -> Cleared:
    """What isn't acted on, but for what less of it would save: that may be much, though it costs little by itself."""
    if result.candidate is None or result.lost_ns:
        return result
    changes = partly(percents(result.candidate, explanation), _HALF)
    saved_ns = facts.mean(explanation.what_if.saved_together(changes))
    if saved_ns < LARGE_SHARE * facts.usual_step_ns:
        return result
    words, share = result.candidate.words, text.percent(saved_ns / facts.usual_step_ns)
    evidence = f"{result.evidence}, though half of {words} would save {share} with all that comes earlier then"
    return replace(result, evidence=evidence, lost_ns=saved_ns)


def _judge(facts: Facts, advice: Advice, saved_ns: int) -> Advice | Cleared:
    if saved_ns >= LEAST_SHARE * facts.usual_step_ns or facts.is_bounded_by_usual_step(advice):
        return replace(advice, saving_ns=min(saved_ns, facts.usual_step_ns), evidence=_with_rest(advice, saved_ns))
    part = facts.percent(advice.size_ns or 0)
    words = advice.rule.replace("_", " ")
    return Cleared(words, f"{part} for {words}, but by what was recorded steps would be as long without")


def _with_rest(advice: Advice, saved_ns: int) -> str:
    """The evidence, with what is saved besides the time that it gives."""
    less = advice.candidate.less if advice.candidate else None
    given_ns = (advice.size_ns or saved_ns) * (less if isinstance(less, float) else 1.0)
    if saved_ns <= _MORE * given_ns:
        return advice.evidence
    rest = f"{text.time(saved_ns - given_ns)} of the saving is other work that comes earlier then."
    return f"{advice.evidence.rstrip()} {rest}"


def _with_remedy(facts: Facts, advice: Advice, explanation: Explanation) -> Advice:
    """The advice with its remedy, if that saves nearly as much."""
    if advice.remedy is None:
        return advice
    changes = percents(advice.remedy.candidate, explanation)
    saved_ns = facts.mean(explanation.what_if.saved_together(changes))
    if saved_ns < _NEARLY * (advice.saving_ns or 0):
        return advice
    others = ", with other gaps that are hidden then" if saved_ns > _MORE * (advice.saving_ns or 0) else ""
    sentence = advice.remedy.evidence.format(saved=f"{text.time(saved_ns)}{others}")
    evidence = f"{advice.evidence.rstrip()} {sentence}"
    return replace(advice, evidence=evidence, action=f"{advice.action} {advice.remedy.action}")


def partly(percents: NDArray[np.uint8], percent: int) -> NDArray[np.uint8]:
    """Some of what a candidate would change, `percent` of it."""
    shares = (percents & ~WAITS).astype(np.uint16) * percent // _ALL
    return shares.astype(np.uint8) | np.where(shares > 0, percents & WAITS, np.uint8(0))


def percents(candidate: Candidate, explanation: Explanation) -> NDArray[np.uint8]:
    """By how much the delay of each node would be shorter, in percent, with WAITS where the host wouldn't wait."""
    what_if, nodes = explanation.what_if, explanation.graph.nodes
    percents = np.where(_classes(_codes(candidate)), np.uint8(_ALL), np.uint8(0))[what_if.part]
    if candidate.rows is not None:
        less = _in_percent(_less_of_rows(candidate, nodes.rows))
        for rows, part in ((explanation.graph.holding_row, nodes.starts), (slice(-1), nodes.ends)):
            is_row = _classes(_OF_ROWS)[what_if.part[part]]
            percents[part] = np.maximum(percents[part], less[rows] * is_row)
        if candidate.is_of_launches:
            is_before = _classes(_BEFORE_ROWS)[what_if.part[nodes.starts]]
            percents[nodes.starts] = np.maximum(percents[nodes.starts], less[:-1] * is_before)
    if candidate.spans is not None:
        thread, time = nodes.boundaries.thread, nodes.boundaries.time
        is_of_candidate = np.zeros(nodes.boundaries.first.size, bool)
        is_of_candidate[np.asarray(candidate.threads, np.int64)] = True
        at = np.flatnonzero(is_of_candidate[thread])
        inside = _in_percent(_share_inside(candidate, time[at] - what_if.pace.own_ns[at], time[at]))
        percents[at] = np.maximum(percents[at], inside)
    if candidate.rows is not None:
        _shorten_unexplained_waits(candidate, explanation, percents)
    if candidate.waits:
        at = what_if.waiting_nodes()
        own_ns, time = what_if.pace.own_ns[at], nodes.boundaries.time[at]
        for_unrecorded = _MOSTLY * own_ns < _within(candidate.unrecorded, time - own_ns, time)
        percents[at] = np.where(for_unrecorded, np.uint8(0), WAITS + _ALL)
    return percents


def on_path(candidate: Candidate, path: pl.DataFrame) -> Ints:
    """How much of each segment of the critical path it is."""
    start, end, part, row = (path[name].to_numpy() for name in ("start_ns", "end_ns", "class", "device_event"))
    share = np.isin(part, (*_codes(candidate), SYNCHRONIZATION) if candidate.waits else _codes(candidate)).astype(
        np.float64
    )
    if candidate.rows is not None:
        less = _less_of_rows(candidate, max(row.max(initial=0), candidate.rows.max(initial=0)) + 1)
        of_rows = _OF_ROWS + _BEFORE_ROWS if candidate.is_of_launches else _OF_ROWS
        share = np.maximum(share, less[row] * np.isin(part, of_rows))
    on_host = np.isin(path["thread"].to_numpy(), candidate.threads) & (row == NONE)
    share[on_host] = np.maximum(share[on_host], _share_inside(candidate, start[on_host], end[on_host]))
    return np.asarray(np.round((end - start) * share).astype(np.int64))


def _shorten_unexplained_waits(candidate: Candidate, explanation: Explanation, percents: NDArray[np.uint8]) -> None:
    """Of calls and operators that may wait for the rows, though nothing recorded says so, count what is inside.

    Those are the long ones: without a wait, launching takes µs. So a saving stays an upper bound.
    """
    nodes = explanation.graph.nodes
    time = nodes.boundaries.time
    waits = np.diff(time, prepend=0) >= _LONG_NS
    waits &= _classes((SYNCHRONIZATION, CALL, OPERATOR))[explanation.what_if.part[: time.size]]
    waits[explanation.what_if.waiting_nodes()] = False
    waits[:1] = False
    at = np.flatnonzero(waits)
    if not at.size:
        return
    busy = merge([(nodes.time[nodes.starts][candidate.rows], nodes.time[nodes.ends][candidate.rows])])
    inside = length_within(busy, time[at - 1], time[at])
    less = 1.0 if candidate.less is None else float(np.mean(candidate.less))
    share = less * inside / np.maximum(time[at] - time[at - 1], 1)
    percents[at] = np.maximum(percents[at], _in_percent(share))


def _in_percent(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.round(_ALL * np.maximum(shares, 0)).astype(np.uint8)


def _classes(codes: tuple[int, ...]) -> NDArray[np.bool_]:
    """For each class whether it is one of some."""
    is_chosen = np.zeros(len(CLASSES), bool)
    is_chosen[list(codes)] = True
    return is_chosen


def _less_of_rows(candidate: Candidate, rows: int) -> NDArray[np.float64]:
    """By which share of its time each row could be shorter; 0 behind the last one, for NONE."""
    less = np.zeros(rows + 1)
    less[candidate.rows] = 1.0 if candidate.less is None else candidate.less
    return less


def _share_inside(candidate: Candidate, start: Ints, end: Ints) -> NDArray[np.float64]:
    """The share of some ranges of time that lies inside the spans."""
    less = candidate.less if isinstance(candidate.less, float) else 1.0
    return np.asarray(less * _within(candidate.spans, start, end) / np.maximum(end - start, 1))


def _within(spans: Intervals | None, start: Ints, end: Ints) -> Ints:
    """How much of some ranges of time lies inside the spans; nothing without any."""
    return np.zeros(start.size, np.int64) if spans is None else np.asarray(length_within(spans, start, end))


def _codes(candidate: Candidate) -> tuple[int, ...]:
    return tuple(map(CLASSES.index, candidate.classes))
