"""The recordings of both sides, as values that the test may exchange: one per process.

Windows of one process share its memory layout, its clocks and its machine. Exchanging them with those of another
process would take the difference of two processes for a change, so they are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from ..workload import LEAST_COMMON_FRAC, Workload, common_frac, difference_of_places

_MOST_TROUBLES = 3  # of a side


@dataclass(frozen=True)
class Recording:
    """One process of a side.

    Args:
        name: What to call it.
        process: What its windows have in common.
        values: The gated numbers.
        rows: `kind`, `name` and `value` of the rows that may explain them.
        work: What was recorded, and where.
        started_ns: When, in ns since 1970; 0: unknown.
        marks_steps: Whether its values are per step.
        problems: What was wrong while it was made, in words.
        windows: Number of windows that the values are averaged over.
        path: Its file.
    """

    name: str
    process: str
    values: tuple[float, ...]
    rows: pl.DataFrame
    work: Workload
    started_ns: int
    marks_steps: bool
    problems: tuple[str, ...] = ()
    windows: int = 1
    path: str = ""


def by_process(recordings: Sequence[Recording]) -> list[Recording]:
    """One recording per process: the geometric mean of its windows, in the order of the first."""
    groups: dict[str, list[Recording]] = {}
    for recording in recordings:
        groups.setdefault(recording.process, []).append(recording)
    return [_average(windows) for windows in groups.values()]


def _average(windows: Sequence[Recording]) -> Recording:
    if len(windows) == 1:
        return windows[0]
    rows = pl.concat(window.rows for window in windows)
    return replace(
        windows[0],
        values=tuple(
            math.exp(sum(map(math.log, values)) / len(values))
            for values in zip(*(window.values for window in windows), strict=True)
        ),
        rows=rows.group_by("kind", "name", maintain_order=True).agg(pl.col("value").sum() / len(windows)),
        problems=tuple(dict.fromkeys(problem for window in windows for problem in window.problems)),
        windows=len(windows),
    )


def why_uncertain(base: Sequence[Recording], new: Sequence[Recording]) -> str:
    """Why a difference of the sides needn't come from the code; empty if nothing speaks against it."""
    if len({recording.marks_steps for recording in (*base, *new)}) > 1:
        return "only some of the recordings mark steps, and a whole recording can't be compared with a step"
    for recording in (*base, *new):
        hostless = [replace(side.work, host="") for side in (base[0], recording)]
        if difference := difference_of_places(*hostless):
            return difference
    return _why_one_machine(base, new)


def _why_one_machine(base: Sequence[Recording], new: Sequence[Recording]) -> str:
    """Machines that only one side ran on can't be distinguished from its code, unless each recording had its own."""
    hosts = [[recording.work.host for recording in side if recording.work.host] for side in (base, new)]
    is_shared = any(len(set(side)) < len(side) for side in hosts)
    if is_shared and all(hosts) and not set(hosts[0]) & set(hosts[1]):
        names = "; ".join(", ".join(sorted(set(side))[:3]) for side in hosts)
        return f"the sides ran on different machines ({names}): the machine may be the difference"
    return ""


def notes(base: Sequence[Recording], new: Sequence[Recording]) -> list[str]:
    """What a reader should know about the recordings, as sentences."""
    sentences = []
    for side, recordings in (("Base", base), ("New", new)):
        windows = sum(recording.windows for recording in recordings)
        if windows > len(recordings):
            sentences.append(
                f"{side}: {windows} windows of {_processes(len(recordings))}. Windows of one process share its clocks "
                "and memory, so they count once."
            )
        sentences += _troubles(side, recordings)
    starts = [[recording.started_ns for recording in side] for side in (base, new)]
    if all(map(all, starts)) and (max(starts[0]) < min(starts[1]) or max(starts[1]) < min(starts[0])):
        sentences.append(
            "One side was recorded before the other: a machine that became slower meanwhile looks like a change. "
            "kinetoscope gate record --interleave takes turns."
        )
    common = common_frac(base[0].work, new[0].work)
    if common is not None and common < LEAST_COMMON_FRAC:
        sentences.append(f"The sides have {100 * common:.0f} % of their operators in common.")
    if not base[0].marks_steps:
        sentences.append("The recordings mark no steps, so whole recordings are compared.")
    return sentences


def _troubles(side: str, recordings: Sequence[Recording]) -> list[str]:
    """What was wrong while the recordings were made; the first of many, and how many more."""
    sentences = [f"{side} {recording.name}: {text}." for recording in recordings for text in recording.problems]
    more = len(sentences) - _MOST_TROUBLES
    return sentences if more <= 0 else [*sentences[:_MOST_TROUBLES], f"{side}: {more} more such findings, in JSON."]


def _processes(count: int) -> str:
    return "one process" if count == 1 else f"{count} processes"
