"""Which functions of the program make the host's part of the step longer or shorter than in the base.

Of two recordings of one program, time that no device works shows as *CPU Exec* or *Other*: categories that name no
code. Python's stacks do, and without a difference of stacks the ranges that the program annotates.

Each function counts with its time while no device works and nothing communicates, on average per step, without what is
itself named: inner functions come first, so that a function isn't named for what it calls. One is named if the means of
both sides differ by more than their steps vary, in the direction of the step, and by more than all else on the host
does: a slower host isn't the fault of what takes most of it. The training loop says nothing, and a function of one side
alone is not new where the other side has one in its stead. Equal calls of operators that take longer say something of
the operators, which have rows of their own, and nothing of the function that calls them.

Files and lines move between versions. So a function is the same by the name of its file and its own; if a file defines
several of this name, as methods of classes, by their order, and where their numbers differ, all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.intervals import Intervals, length_within, merge
from ..measures.calls.recursion import without_recursion
from ..measures.python.frames import parse_frames, without_addresses
from ..measures.python.program_calls import annotated_ranges, function_calls
from ..measures.time.breakdown import CATEGORIES, activities, breakdown, intervals_of
from ..measures.time.host_activity import host_activities
from ..measures.time.step_subset import counted_steps
from ..names import text
from ..names.python_frames import function_name
from ..trace import Trace
from ..trace.row_filters import is_operator
from .headline import pair_of_times
from .statistics import Spread, margin

Floats = NDArray[np.float64]

FUNCTION, ANNOTATION = "function", "annotation"
MOST = 3  # that are named
_LEAST_FRAC = 0.02  # of the average step of the base
_MUCH = 0.25  # of the step's change
_LOOP = 0.9  # of the step: what is open as long in both recordings is the training loop
_LONGER = 1.2  # times as long as by the pace of the rest: equal code takes so much longer on another day
_SOME = 0.1  # of the host's time: less has no pace
_EQUAL, _MOSTLY = 0.02, 0.5  # more calls of operators, and of a function's difference
_IN_ITS_STEAD = 0.25  # of a function's time
_NOT_OF_HOST, _OF_HOST = CATEGORIES[:4], CATEGORIES[4:]


@dataclass(frozen=True)
class HostChange:
    """A function that makes the host's part of the step longer or shorter.

    Args:
        kind: FUNCTION or ANNOTATION.
        name: Its name in the new recording, or else in the base.
        base_ns, new_ns: Its time in each counted step while no device works, without what is itself named.
        is_rest: Whether it calls another one that is named.
    """

    kind: str
    name: str
    base_ns: Floats
    new_ns: Floats
    is_rest: bool

    @property
    def delta_ns(self) -> float:
        """How much longer it is in the average step."""
        return float(self.new_ns.mean() - self.base_ns.mean())


def host_changes(base: Trace, new: Trace) -> list[HostChange]:
    """The functions, or else the annotated ranges, that differ most, the largest difference first."""
    functions = _changes(FUNCTION, base, new)
    return functions or _changes(ANNOTATION, base, new)


def sentences(changes: Sequence[HostChange], *, uses_device: bool) -> list[str]:
    """Such as: `check_labels (data.py)` takes 2.93 ms more per step: 0.07 → 3 ms."""
    meanwhile = " while no device works" if uses_device else ""
    return [_sentence(change, meanwhile) for change in changes]


def _sentence(change: HostChange, meanwhile: str) -> str:
    name = f"`{text.visible(function_name(change.name))}`{' itself' if change.is_rest else ''}"
    size = text.time(abs(change.delta_ns))
    both = pair_of_times(float(change.base_ns.mean()), float(change.new_ns.mean()))
    return f"{name} takes {size} {'more' if change.delta_ns > 0 else 'less'} per step{meanwhile}: {both}."


class _Side:
    """The calls of one recording, and what of their time counts.

    Args:
        trace: The recording.
        calls: Of functions, as in measures/python/program_calls.py.
        names: What each of these functions is called on both sides.
    """

    def __init__(self, trace: Trace, calls: pl.DataFrame, names: Mapping[str, str]) -> None:
        self._steps = counted_steps(trace)
        lengths = (trace.steps["end_ns"] - trace.steps["start_ns"]).to_numpy()
        self.step_ns = float(lengths[self._steps].mean())
        parts = breakdown(trace)
        self._host_ns = float(sum(parts[category][self._steps].mean() for category in _OF_HOST))
        own_names = pl.col("name").cast(pl.String).replace_strict(names, return_dtype=pl.String)
        self._calls = without_recursion(calls.with_columns(own_names))
        active = activities(trace)
        waits = host_activities(trace)["synchronizing"]
        self._left_out = merge([*(active[category] for category in _NOT_OF_HOST), waits])
        is_op = is_operator(trace)
        self._operators = intervals_of(trace.host_events, is_op)
        self._operator_starts = np.sort(trace.host_events["start_ns"].to_numpy()[is_op])
        self._spans_with_name = merge([])
        self._ns_with_name = 0.0
        sums = self._calls.group_by("name").agg(pl.col("dur_ns").sum() / len(self._steps))
        self.mean_ns: dict[str, float] = dict(sums.rows())  # for which a function is open in the average step

    def own_ns(self, name: str) -> Floats:
        """What counts of a function in each counted step."""
        rows = self._calls.filter(pl.col("name") == name)
        start = rows["start_ns"].to_numpy()
        end = start + rows["dur_ns"].to_numpy()
        counts = end - start - length_within(self._left_out, start, end)
        nth = np.searchsorted(self._steps, rows["step"].to_numpy())
        return np.bincount(nth, counts, len(self._steps)).astype(np.float64)

    def operator_calls(self, name: str) -> float:
        """How many operators begin in a function in the average step."""
        first, last = (np.searchsorted(self._operator_starts, at) for at in self._spans(name))
        return float((last - first).sum()) / len(self._steps)

    def operators_ns(self, name: str) -> float:
        """How long operators run in a function in the average step."""
        return float(length_within(self._operators, *self._spans(name)).sum()) / len(self._steps)

    def rest_ns(self, own_ns: Floats) -> float:
        """The time of the host in the average step without a function and those that have their names."""
        return self._host_ns - float(own_ns.mean()) - self._ns_with_name

    def has_pace(self, own_ns: Floats) -> bool:
        """Whether enough is left without a function to show how fast the host is."""
        return self.rest_ns(own_ns) >= _SOME * self._host_ns

    def leave_out(self, name: str, own_ns: Floats) -> None:
        """Count the time of a function no more."""
        spans = self._spans(name)
        self._left_out = merge([self._left_out, spans])
        self._spans_with_name = merge([self._spans_with_name, spans])
        self._ns_with_name += float(own_ns.mean())

    def calls_one_left_out(self, name: str) -> bool:
        """Whether a function that counts no more runs within this one."""
        return bool(length_within(self._spans_with_name, *self._spans(name)).any())

    def _spans(self, name: str) -> Intervals:
        return intervals_of(self._calls.filter(pl.col("name") == name))


def _changes(kind: str, base: Trace, new: Trace) -> list[HostChange]:
    sides = _functions_of(base, new) if kind == FUNCTION else _annotations_of(base, new)
    changes: list[HostChange] = []
    for name in _candidates(sides):
        base_ns, new_ns = (side.own_ns(name) for side in sides)
        is_rest = any(side.calls_one_left_out(name) for side in sides)
        change = HostChange(kind, name, base_ns, new_ns, is_rest)
        is_other_code = not _is_of_equal_operators(change, sides) and not _is_in_place_of_another(change, sides)
        if is_other_code and _is_worth_a_word(change, sides):
            changes.append(change)
            for side, own_ns in zip(sides, (base_ns, new_ns), strict=True):
                side.leave_out(name, own_ns)
    return sorted(changes, key=lambda change: -abs(change.delta_ns))[:MOST]


def _functions_of(base: Trace, new: Trace) -> list[_Side]:
    calls = [function_calls(trace) for trace in (base, new)]
    names = common_names(*(frame["name"].cast(pl.String).unique().to_list() for frame in calls))
    return [_Side(trace, *own) for trace, own in zip((base, new), zip(calls, names, strict=True), strict=True)]


def _annotations_of(base: Trace, new: Trace) -> list[_Side]:
    calls = [annotated_ranges(trace) for trace in (base, new)]
    names = [{name: name for name in frame["name"].cast(pl.String).unique()} for frame in calls]
    return [_Side(trace, *own) for trace, own in zip((base, new), zip(calls, names, strict=True), strict=True)]


def _candidates(sides: Sequence[_Side]) -> list[str]:
    """The functions that may differ by as much as is worth a word, inner ones first; not the training loop."""
    least_ns = _least_ns(sides)
    names = {name for side in sides for name in side.mean_ns}
    longest = {name: max(side.mean_ns.get(name, 0.0) for side in sides) for name in names}
    is_loop = {name: all(side.mean_ns.get(name, 0.0) >= _LOOP * side.step_ns for side in sides) for name in names}
    return sorted(
        (name for name in names if longest[name] >= least_ns and not is_loop[name]),
        key=lambda name: (longest[name], name),
    )


def _least_ns(sides: Sequence[_Side]) -> float:
    """By how much a function has to differ."""
    before, after = (side.step_ns for side in sides)
    return max(_LEAST_FRAC * before, _MUCH * abs(after - before))


def _is_worth_a_word(change: HostChange, sides: Sequence[_Side]) -> bool:
    """Whether a function makes the step longer or shorter, beyond its variation and the pace of all else."""
    delta, step_delta = change.delta_ns, sides[1].step_ns - sides[0].step_ns
    before, after = (Spread.of(own_ns[None, :]) for own_ns in (change.base_ns, change.new_ns))
    limit = float(margin(before, after, np.array([delta]))[0])
    if delta * step_delta <= 0 or not abs(delta) > limit:
        return False
    of_sides = list(zip(sides, (change.base_ns, change.new_ns), strict=True))
    (shorter, short_ns), (longer, long_ns) = of_sides if delta > 0 else of_sides[::-1]
    pace = 1.0
    if shorter.has_pace(short_ns) and longer.has_pace(long_ns):
        pace = max(pace, longer.rest_ns(long_ns) / shorter.rest_ns(short_ns))
    expected_ns = pace * float(short_ns.mean())
    return float(long_ns.mean()) >= max(_LONGER * expected_ns, expected_ns + _least_ns(sides))


def _is_of_equal_operators(change: HostChange, sides: Sequence[_Side]) -> bool:
    """Whether a function calls as many operators on both sides, and these take most of what it takes longer."""
    before, after = (side.operator_calls(change.name) for side in sides)
    if abs(after - before) > _EQUAL * min(before, after):
        return False
    of_operators = sides[1].operators_ns(change.name) - sides[0].operators_ns(change.name)
    return abs(of_operators) >= _MOSTLY * abs(change.delta_ns) and of_operators * change.delta_ns > 0


def _is_in_place_of_another(change: HostChange, sides: Sequence[_Side]) -> bool:
    """Whether a function runs on one side alone, and another one on the other side alone, as after a new name."""
    before, after = (side.mean_ns for side in sides)
    if change.name in before and change.name in after:
        return False
    own, other = (after, before) if change.name in after else (before, after)
    return any(ns >= _IN_ITS_STEAD * abs(change.delta_ns) for name, ns in other.items() if name not in own)


class _Definition(NamedTuple):
    """Where a function is defined, in order."""

    file: str
    line: int
    frame: str


def common_names(base: Iterable[str], new: Iterable[str]) -> list[dict[str, str]]:
    """What the functions of each side are called on both sides, by their frames.

    Where a file defines one function of a name, this is `collate (data.py)`, without its line, else the frame in the
    new recording.
    """
    sides = _definitions(base), _definitions(new)
    names: list[dict[str, str]] = [{}, {}]
    for key in sides[0].keys() | sides[1].keys():
        of_sides = [side.get(key, []) for side in sides]
        newest = of_sides[1] or of_sides[0]
        is_single = len(newest) == 1 or len({len(own) for own in of_sides if own}) > 1
        without_line = f"{key[1]} ({newest[0].file})" if newest[0].file else key[1]
        for own_names, own in zip(names, of_sides, strict=True):
            for nth, definition in enumerate(own):
                own_names[definition.frame] = without_line if is_single else newest[nth].frame
    return names


def _definitions(frames: Iterable[str]) -> dict[tuple[str, str], list[_Definition]]:
    """Where functions are defined, by the names of their files and their own; cells of notebooks have no name."""
    frames = list(frames)
    rows = parse_frames(without_addresses(pl.Series(frames, dtype=pl.String)))
    by_name: dict[tuple[str, str], list[_Definition]] = {}
    for frame, (function, file, line) in zip(frames, rows.rows(), strict=True):
        path = "" if (file or "<").startswith("<") else file
        by_name.setdefault((basename(path.replace("\\", "/")), function), []).append(
            _Definition(path, line or 0, frame)
        )
    return {name: sorted(definitions) for name, definitions in by_name.items()}
