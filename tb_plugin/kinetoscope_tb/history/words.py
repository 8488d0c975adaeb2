"""A history in sentences: since when the step takes longer, what of it, and what changed at that run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import pairwise

from ..compare.headline import growth_text, pair_of_times
from ..names.text import few_digits, percent
from .change_points import AVERAGE_RUN_LENGTH, FEWEST_RUNS, POWER, WINDOWS
from .recorded_run import COMPUTATION, IDLE, RecordedRun
from .series import Level, Series
from .shares import rounded_points, shares

_MOST_PARTS = 3  # of a change, by name
_NEARBY = 2  # runs: a change is placed to within about as many
_MOST_NAMED = 5  # runs
_FACTS = {"torch": "torch", "cuda": "CUDA", "driver": "driver", "hosts": "machine", "arguments": "arguments"}
_LEAST_LAUNCHES_FRAC = 0.02  # of a step's kernels


def sentences(series: Series, path: str) -> list[str]:
    """The changes, the newest first; then what the answer rests on, what isn't compared, and what would change that.

    Args:
        series: The runs.
        path: Of the logdir, for commands.
    """
    pairs = list(pairwise(series.levels))
    changes = [_change(series, *pair) for pair in reversed(pairs)]
    return [*changes, *_basis(series), *_left_out(series), *_next_command(series, path)]


def _next_command(series: Series, path: str) -> Iterator[str]:
    if any(map(_is_partial, series.runs)):
        yield f"kinetoscope index {path} makes the summaries that are missing, or says why it can't."


def _run_label(series: Series, index: int) -> str:
    """Such as: run 41 (nightly-41, 2026-11-21 03:00)."""
    run = series.runs[index]
    return f"run {index + 1} ({', '.join(filter(None, (run.name, time_text(run.started_ns))))})"


def time_text(started_ns: int) -> str:
    """A time in UTC; empty if it is unknown."""
    return f"{datetime.fromtimestamp(started_ns // 10**9, timezone.utc):%Y-%m-%d %H:%M}" if started_ns > 0 else ""


def _change(series: Series, before: Level, after: Level) -> str:
    pair, growth = pair_of_times(before.step_ns, after.step_ns), growth_text(before.step_ns, after.step_ns)
    facts = [*_launches(before, after), *_facts(series, after.first)]
    environment = f"; {', '.join(facts)}" if facts else "; nothing known of the environment changed"
    parts = _points(before, after)
    return f"Since {_run_label(series, after.first)}: {growth}, {pair} a step, of which {parts}{environment}."


def _points(before: Level, after: Level) -> str:
    """Such as: +5.0 points all_reduce, +1.0 computation; they add up to the growth."""
    rows = shares(before, after)
    tenths = rounded_points(rows)
    main = [row for row in range(min(_MOST_PARTS, len(rows))) if tenths[row]]
    rest = sum(tenths) - sum(tenths[row] for row in main)
    parts = [(tenths[row], rows[row].name) for row in main] + ([(rest, "the rest")] if rest else [])
    texts = [f"{_points_text(points)}{' points' if not at else ''} {name}" for at, (points, name) in enumerate(parts)]
    return ", ".join(texts)


def _points_text(tenths: int) -> str:
    return f"{'−' if tenths < 0 else '+'}{few_digits(abs(tenths) / 10)}"


def _launches(before: Level, after: Level) -> Iterator[str]:
    """More or fewer kernels in a step: the work itself changed."""
    old, new = (sum(run.launches for run in level.runs) / len(level.runs) for level in (before, after))
    if old and abs(new / old - 1) >= _LEAST_LAUNCHES_FRAC:
        what = "kernels" if after.runs[0].uses_device else "operators"
        yield f"{what} in a step {old:,.0f} → {new:,.0f}"


def _facts(series: Series, first: int) -> Iterator[str]:
    """What changed in the environment at a run, or within a few runs of it."""
    at = series.indices.index(first)
    for name, word in _FACTS.items():
        for nearby in sorted(range(at - _NEARBY, at + _NEARBY + 1), key=lambda index: abs(index - at)):
            if not 0 < nearby < len(series.indices):
                continue
            old, new = (getattr(series.runs[series.indices[index]].environment, name) for index in (nearby - 1, nearby))
            if old and new and old != new:
                yield f"{word} {old} → {new}" + (f" (run {series.indices[nearby] + 1})" if nearby != at else "")
                break


def _basis(series: Series) -> Iterator[str]:
    """How many runs were compared, and which changes they would show, at which rate of false points."""
    count = len(series.indices)
    if not series.is_long_enough:
        yield f"{count} comparable runs can't show a change: it takes {FEWEST_RUNS}."
        return
    if len(series.levels) == 1:
        yield f"The step hasn't changed: {pair_of_times(series.levels[0].step_ns)} in {count} runs."
    yield (
        f"{count} runs compared, which vary by {100 * series.spread_frac:.2g} % between changes.{_power(series)} "
        f"Judged after each run, at most one point in {AVERAGE_RUN_LENGTH:,} runs is false, but two among the first "
        "thirty runs of a level; later runs take most of these back."
    )
    hosts = sorted({run.environment.hosts for run in _comparable_runs(series)} - {""})
    if len(hosts) > 1:
        yield f"They ran on {len(hosts)} different machines ({_list(hosts)}): a machine may be what changed."


def _power(series: Series) -> str:
    """Which change the next runs would show; empty if too few runs are of the newest level."""
    if math.isnan(series.finds_frac):
        return ""
    cases = f"{100 * POWER:.0f} of 100 cases"
    return f" A change of {percent(series.finds_frac)} from now on is seen within {WINDOWS[0]} runs in about {cases}."


def _left_out(series: Series) -> Iterator[str]:
    """The runs that aren't compared, by reason; and those of which only a part is summarized."""
    names: dict[str, list[str]] = {}
    for run, reason in zip(series.runs, series.reasons, strict=True):
        if reason:
            names.setdefault(reason, []).append(run.name)
    for reason, runs in names.items():
        yield f"Not compared, {reason}: {_list(runs)}."
    partial = [
        f"{run.name} ({run.summaries} of {run.recordings})" for run in _comparable_runs(series) if _is_partial(run)
    ]
    if partial:
        yield f"Only some recordings have a summary: {_list(partial)}."


def culprits(run: RecordedRun) -> str:
    """What a step waits for longest, besides computing: the two largest parts by name."""
    rest = {name: ns for name, ns in run.parts.items() if name not in (COMPUTATION, IDLE) and ns * 100 >= run.step_ns}
    largest = sorted(rest.items(), key=lambda part: -part[1])[:2]
    return ", ".join(f"{name} {pair_of_times(ns)}" for name, ns in largest)


def _comparable_runs(series: Series) -> list[RecordedRun]:
    return [series.runs[index] for index in series.indices]


def _is_partial(run: RecordedRun) -> bool:
    return run.summaries < run.recordings


def _list(names: list[str]) -> str:
    text = ", ".join(names[:_MOST_NAMED])
    return f"{text} and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else text
