"""Annotations in a sentence: which range takes the host longest, what a device does in it, which calls stand out."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...measures.calls.annotation_totals import FAR_LONGER, annotation_totals, names_inside
from ...measures.recording.contents import has_annotations
from ...measures.recording.lost_launches import are_launches_known
from ...measures.recording.vendor import device_noun
from ...measures.time.idle import Windows
from ...measures.time.idle_causes import matters, not_shown_times
from ...names.annotations import STEP
from ...names.text import as_clause, code, enumeration, percent, time, times
from ...table import Summary
from ...trace import Trace
from ...view import Lead, View

_MOST_NAMED = 2  # ranges besides the longest
_LEAST = 0.1  # of the longest range: shorter ones aren't named
_FEWEST = 3  # calls: of fewer, none is far longer than the others
_FEW = 0.2  # of the calls, or a single one
_MUCH = 0.1  # of what all calls of the name take
_NOTICEABLE = 0.05  # of the longest range


class AnnotationsSummary(
    Summary,
    colors={"range": "annotation"},
    rule="`range`.",
    title="The range with the longest host time, its share of the time, and how often it is called.",
    evidence=(
        "How long devices run its work and are idle in between, what a call takes, the next longest ranges, and the "
        "range of which a few calls take more than three times the median."
    ),
    confidence="low: the device may have been busy with what isn't in the recording; else high.",
    view="Id of the view that lists all ranges.",
):
    """Which of the program's own ranges takes the host longest; of those of libraries, if the program has none."""


def annotations_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if steps are all that is annotated."""
    totals = annotation_totals(trace).filter(pl.col("name") != STEP)
    own = totals.filter(pl.col("source").is_null())
    ranges = (own if own.height else totals).rows(named=True)
    whose, only = ("the libraries' ranges", "")
    if own.height:
        whose, only = ("the program's ranges", ", the program's only range,")
    if not ranges or not ranges[0]["host_total_ns"]:
        return AnnotationsSummary.of_row(None)
    texts = (_title(trace, ranges, whose, only), _evidence(trace, ranges), _confidence(trace))
    return AnnotationsSummary.of_row(("range", *texts, "annotations_by_name"))


def _title(trace: Trace, ranges: list[dict[str, Any]], whose: str, only: str) -> str:
    """The longest range; its share of the time if its calls neither overlap nor lie outside of the steps."""
    first = ranges[0]
    total_ns, whole_ns = first["host_total_ns"], Windows.of(trace, per_step=False).length_ns
    is_share = first["open_ns"] == total_ns
    share = f"{percent(total_ns / whole_ns)} of the time, {time(total_ns)}" if is_share else time(total_ns)
    threads = f" on {first['threads']} threads" if first["threads"] > 1 else ""
    takes = f"{share} in {times(first['calls'], 'call')}{threads}."
    if len(ranges) == 1:
        return f"{code(first['name'])}{only} takes the host {takes}"
    return f"Of {whose}, {code(first['name'])} takes the host longest: {takes}"


def _confidence(trace: Trace) -> str:
    """Low if a device may have been busy with what isn't in the recording while nothing recorded ran."""
    windows = Windows.of(trace, per_step=False)
    hidden_ns = int(not_shown_times(trace, windows.start, windows.end).sum())
    return "low" if matters(hidden_ns, windows.length_ns) else "high"


def _evidence(trace: Trace, ranges: list[dict[str, Any]]) -> str:
    first = ranges[0]
    sentences = [*_device(trace, first), *_per_call(first), *_far_longer(ranges), *_next(trace, ranges)]
    return " ".join(sentences)


def _device(trace: Trace, first: dict[str, Any]) -> list[str]:
    """What devices do in a range; nothing if none was recorded."""
    noun = device_noun(trace)
    if first["gpu_ns"] is None:
        return []
    if not are_launches_known(trace):
        return [f"How long the {as_clause(noun)} works for it is unknown: some launching calls aren't recorded."]
    if not first["gpu_ns"]:
        return [f"It launches no work on the {as_clause(noun)}."]
    idle = f"idle in between: {time(first['gpu_idle_ns'])}" if first["gpu_idle_ns"] else "never idle in between"
    return [f"{noun} busy with its work: {time(first['gpu_ns'])}; {idle}."]


def _per_call(first: dict[str, Any]) -> list[str]:
    mean, longest = time(first["mean_host_ns"]), time(first["longest_host_ns"])
    return [f"A call takes {mean} on average, the longest {longest}."] if first["calls"] > 1 else []


def _far_longer(ranges: list[dict[str, Any]]) -> list[str]:
    """The range of which a few calls take most time beyond what its median call takes."""
    least_ns = _NOTICEABLE * ranges[0]["host_total_ns"]
    uneven = [row for row in ranges if _is_uneven(row) and row["beyond_median_ns"] >= least_ns]
    if not uneven:
        return []
    row = max(uneven, key=lambda row: row["beyond_median_ns"])
    few, of_calls = row["far_longer_calls"], f"of {times(row['calls'], 'call')} of {code(row['name'])}"
    median, longest = time(row["median_host_ns"]), time(row["longest_host_ns"])
    if few == 1:
        return [f"One {of_calls} takes {longest}; the median is {median}."]
    return [f"{few} {of_calls} take more than {FAR_LONGER} times the median of {median}, up to {longest}."]


def _is_uneven(row: dict[str, Any]) -> bool:
    """Whether a few calls are far longer than the median, and cost much of what all take."""
    few, calls = row["far_longer_calls"] or 0, row["calls"]
    if not row["median_host_ns"] or calls < _FEWEST or few > max(1, _FEW * calls):
        return False
    return bool(few and row["beyond_median_ns"] >= _MUCH * row["host_total_ns"])


def _next(trace: Trace, ranges: list[dict[str, Any]]) -> list[str]:
    """The next longest ranges, and which of them lie inside the first one."""
    first, *others = ranges
    large = [row for row in others if row["host_total_ns"] >= _LEAST * first["host_total_ns"]][:_MOST_NAMED]
    inside = names_inside(trace, first["name"]) if large else set()
    words = [
        f"{code(row['name'])}{' (inside it)' if row['name'] in inside else ''} {time(row['host_total_ns'])}"
        for row in large
    ]
    return [f"The next longest: {enumeration(words)}."] if words else []


VIEW = View(
    annotations_summary,
    table=AnnotationsSummary,
    title="Annotations in a sentence",
    entry="Annotations",
    place=Lead("annotations_by_name"),
    within="recording",
    needs=has_annotations,
    hint="No named ranges were recorded. Put torch.profiler.record_function(name) around parts of the program.",
)
