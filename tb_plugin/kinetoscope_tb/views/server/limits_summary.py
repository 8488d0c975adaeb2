"""What limits tokens per second, in a sentence: how many there are, and what takes most of the main phase."""

from __future__ import annotations

import polars as pl

from ...advice.serving import PART_WORDS, limiting_part, mean_time, phase_words
from ...advice.trace_advice import trace_advice
from ...diagnostics.diagnose import diagnose
from ...measures.recording.contents import has_device_iterations
from ...measures.serving.limits import IDLE, phase_parts
from ...measures.time.idle_causes import NOT_SHOWN, matters
from ...names import text
from ...table import Summary
from ...trace import Trace
from ...view import Lead, View

_RULES = ("serving_phase", "server_load", "server_function", "missing_graphs")
_MOST_NAMED = 3


class LimitsSummary(
    Summary,
    colors={"device": "kernel", "host": "runtime", "unknown": "warning"},
    rule="device, host, or unknown: where the largest part is.",
    title="That phase, its tokens per second, if tokens were recorded, and what limits them.",
    evidence="The numbers behind it, and the other phases.",
    action="What to do; missing if advice says nothing of it.",
    confidence="As in advice; low if advice says nothing of it.",
    view="Id of the view that shows more.",
):
    """What limits tokens per second in the phase that takes most of the time: as advice says, if it does."""


def limits_summary(trace: Trace) -> pl.DataFrame:
    """One row, or none."""
    parts = phase_parts(trace, of="steady")
    if parts.is_empty():
        return LimitsSummary.of_row(None)
    is_longest = pl.col("whole") == parts["whole"].max()
    return LimitsSummary.of_row(_row(trace, parts.filter(is_longest), _others_in_words(parts.filter(~is_longest))))


def _others_in_words(parts: pl.DataFrame) -> str:
    """The other phases with their iterations, as a sentence; empty if there are none."""
    rows = parts.unique("phase", maintain_order=True).rows(named=True)
    phases = [f"{phase_words(row)} ({text.times(row['iterations'], 'iteration')})" for row in rows]
    return f" Other phase{'s' if len(phases) > 1 else ''}: {text.enumeration(phases)}." if phases else ""


def _row(trace: Trace, parts: pl.DataFrame, others: str) -> tuple[object, ...]:
    """The columns of LimitsSummary, from the parts of a phase."""
    rows = parts.rows(named=True)
    first, _ = limiting_part(rows)
    hidden_ns = sum(row["time_ns"] for row in rows if row["part"] == NOT_SHOWN)
    least = "at least " if matters(hidden_ns, first["whole"]) else ""
    rate = f"{least}{text.digits(first['tokens'] / first['whole'] * 1e9)} tokens/s" if first["tokens"] else ""
    phase = text.capitalize(phase_words(first))
    rule = "unknown" if first["part"] == NOT_SHOWN else "host" if first["part"].startswith(IDLE) else "device"
    for advice in trace_advice(trace, diagnose).advice:
        if advice.rule in _RULES:
            title = f"{phase}: {rate}. {advice.title}" if rate else advice.title
            return rule, title, f"{advice.evidence}{others}", advice.action, advice.confidence, "limits"
    largest = [f"{text.percent(row['share_frac'])} {PART_WORDS[row['part']]}" for row in rows[:_MOST_NAMED]]
    evidence = f"{text.times(first['iterations'], 'iteration')}, {mean_time(first)}.{others}"
    title = f"{phase}: {f'{rate}; ' if rate else ''}{text.enumeration(largest)}."
    return rule, title, evidence, None, "low", "limits"


VIEW = View(
    limits_summary,
    table=LimitsSummary,
    title="What limits tokens per second, in a sentence",
    entry="Overview",
    place=Lead("limits"),
    within="recording",
    needs=has_device_iterations,
    hint="No iterations of a server with work of a GPU were recorded. docs/inference.md says how to record a server.",
    is_of_advice=True,
    reads_captures=True,
)
