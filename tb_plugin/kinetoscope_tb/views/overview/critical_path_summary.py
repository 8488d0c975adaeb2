"""The critical path in a sentence: what most of it is, and the longest time in a row on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...arrays.intervals import length_within
from ...critical_path.classes import ON_DEVICE
from ...critical_path.culprits import NOT_SHOWN, PARTS, WAITING, WHO, path_culprits, pieces_by_name, saved_by_part
from ...critical_path.explanation import critical_paths, path_explanation
from ...critical_path.names import NAMELESS, UNLINKED
from ...measures.calls.kernel_names import labels_of_kernels
from ...measures.recording.contents import has_work
from ...measures.recording.lost_launches import are_launches_known, is_no_launch_known
from ...measures.recording.vendor import vendor_terms
from ...measures.time.breakdown import intervals_of
from ...measures.time.idle_causes import NOT_IN_RECORDING
from ...measures.time.step_subset import counted_steps
from ...names import text
from ...names.python_frames import function_name
from ...table import Summary
from ...trace import Trace
from ...trace.steps import step_in_words, step_noun
from ...view import Lead, View

_LEAST = 0.03  # of the path: smaller parts aren't named
_MOST_NAMED = 3  # parts besides the largest
_LARGE = 0.25  # of the path: a culprit that takes as much is named first
_MOSTLY = 0.5  # of a culprit's time on the path
_HALF, _MUCH_MORE = 50, 1.5  # percent; times what the largest part would save
_NO_WORK = (*WAITING, "between_kernels")
"""Causes that nobody can make faster."""
_LONGEST_NAME = 64
_BEFORE = ("launch", "between_kernels", "unexplained")
"""Causes in which a GPU event waits, which then is the culprit's name."""
_CAUSES = {
    "kernel": ("kernels on the {device}", "kernel"),
    "communication": ("communication", "communication"),
    "copy": ("copies and fills", "memcpy"),
    "launch": ("launching", "runtime"),
    "between_kernels": ("time between {device} events", "other"),
    "unexplained": ("waits of the {device} that the trace doesn't explain", "warning"),
    "data": ("data loading", "dataloader"),
    "host_operator": ("operators on the host", "cpu-exec"),
    "host_python": ("Python on the host", "python"),
    "host_annotation": ("annotated code on the host", "cpu-exec"),
    "host_unrecorded": ("host code that wasn't recorded", "other"),
    "host_sync": ("synchronization of the host", "runtime"),
    NOT_SHOWN: (NOT_IN_RECORDING, "warning"),
}
"""Each cause in words, and its color on the page."""
_UNKNOWN = (
    NOT_SHOWN,
    "What the critical path is can't be said: which calls launched device work isn't recorded.",
    "Without them a path knows what the host does and what each stream runs, but not what waits for what.",
    "cannot_tell",
    "health",
)


_MAY_WAIT = "It may include waits for other ranks: where these are recorded, *All ranks* has the path without them."


class CriticalPathSummary(
    Summary,
    colors={cause: color for cause, (_, color) in _CAUSES.items()},
    rule="The cause of the largest part, as in the critical path by culprit.",
    title="The largest part of the path, or its culprit if that is a quarter of the path or more.",
    evidence=(
        "What is most of that, and that communication may include waits for other ranks; the other large parts, and "
        "the longest time in a row on the host."
    ),
    confidence=(
        "cannot_tell: no recorded call launched device work; low: most of the path is not in the recording, or waits "
        "that it doesn't explain, or some launches aren't; else high."
    ),
    view="Id of the view that says what to do.",
):
    """What the critical path of the complete steps mostly consists of, in one row."""


def critical_path_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if no step has a path."""
    if is_no_launch_known(trace):
        return CriticalPathSummary.of_row(_UNKNOWN)
    steps = counted_steps(trace)
    pieces = pieces_by_name(trace).drop("python_call", "host_event")
    pieces = pieces.filter(pl.col("step").is_in(steps), pl.col("dur_ns") > 0)
    path = critical_paths(trace).select("start_ns", is_host=~pl.col("class").is_in(list(ON_DEVICE)))
    pieces = pieces.hstack(path.select(pl.all().gather(pieces["segment"])))
    pieces = pieces.with_columns(is_host=pl.col("is_host") & (pl.col("cause") != NOT_SHOWN))
    return CriticalPathSummary.of_row(None if pieces.is_empty() else _row(trace, pieces, len(steps)))


def _row(trace: Trace, pieces: pl.DataFrame, steps: int) -> tuple[object, ...]:
    """The columns of CriticalPathSummary."""
    device = "GPU" if vendor_terms(trace).vendor else "device"
    words = {cause: text.format(device=device) for cause, (text, _) in _CAUSES.items()}
    if not are_launches_known(trace):
        words[NOT_SHOWN] = "of unknown cause, since launches aren't recorded"
    whole = int(pieces["dur_ns"].sum())
    (cause, cause_ns), *others = _sums(pieces).rows()
    of_cause = pieces.filter(pl.col("cause") == cause)
    culprit = _largest_culprit(trace, of_cause)
    other_parts = [f"{text.percent(ns / whole)} {words[other]}" for other, ns in others if ns >= _LEAST * whole]
    is_large = culprit["dur_ns"] >= _LARGE * whole and culprit["name"] not in (NAMELESS, UNLINKED)
    title = f"{text.percent(cause_ns / whole)} of the critical path is {words[cause]}."
    sentences = [_largest(trace, culprit, cause_ns, steps)]
    if is_large:
        title = f"{text.percent(culprit['dur_ns'] / whole)} of the critical path is {_quote(trace, culprit)}."
        all_of = f"{_time(trace, cause_ns, steps)}, {text.percent(cause_ns / whole)} of the path"
        rest = f" All {words[cause]} together: {all_of}." if cause_ns > culprit["dur_ns"] else ""
        sentences = [f"It takes {_time(trace, culprit['dur_ns'], steps)} ({words[cause]}{_at(culprit)}).{rest}"]
        sentences += _blocking_launches(trace, of_cause.filter(pl.col("name") == culprit["name"]), device)
    if cause == "communication":
        sentences.append(_MAY_WAIT)
    if other_parts:
        sentences.append(f"Other parts of the path: {text.enumeration(other_parts[:_MOST_NAMED])}.")
    if saves := _saves_most(trace, cause, words):
        sentences.append(saves)
    if trace.device_events.height and pieces["is_host"].any():
        sentences.append(_longest_on_host(trace, pieces, words))
    is_unknown = cause in (NOT_SHOWN, "unexplained") or not are_launches_known(trace)
    confidence = "low" if is_unknown else "high"
    return cause, title, " ".join(sentences), confidence, "advice"


def _blocking_launches(trace: Trace, pieces: pl.DataFrame, device: str) -> list[str]:
    """That calls which launch work return when it ends, if that is most of their time on the path: a sentence."""
    rows, calls = trace.device_events, trace.launches
    launch = rows["launch"].to_numpy()
    ends = gather((calls["start_ns"] + calls["dur_ns"]).to_numpy(), launch, missing=0)
    own = (launch != NONE) & ((rows["start_ns"] + rows["dur_ns"]).to_numpy() <= ends)
    start = pieces["start_ns"].to_numpy()
    lengths = length_within(intervals_of(rows, own), start, start + pieces["dur_ns"].to_numpy())
    share = float(lengths.sum()) / max(1, int(pieces["dur_ns"].sum()))
    if pieces["cause"][0] != "launch" or share < _MOSTLY:
        return []
    return [f"The {device} works for {text.percent(share)} of that: these calls return when what they launched ends."]


def _largest(trace: Trace, culprit: dict[str, Any], cause_ns: int, steps: int) -> str:
    """What is most of a cause."""
    share, time = culprit["dur_ns"] / cause_ns, _time(trace, culprit["dur_ns"], steps)
    if culprit["name"] == UNLINKED:
        return f"Which calls launched the work around that isn't recorded: {time}."
    if culprit["name"] == NAMELESS:
        return f"For {text.percent(share)} of that, nothing is recorded: {time}."
    share_words = "All" if share == 1 else text.percent(share)
    is_source = f"{culprit['source']}".endswith(f": {culprit['name']}")  # a function, not what it calls
    who = f"`{function_name(culprit['source'])}`" if is_source else f"{_quote(trace, culprit)}{_at(culprit)}"
    return f"{share_words} of that is {who}: {time}."


def _at(culprit: dict[str, Any]) -> str:
    return f" at `{function_name(culprit['source'])}`" if culprit["source"] else ""


def _time(trace: Trace, total_ns: int, steps: int) -> str:
    return f"{text.time(total_ns / steps)} per {step_noun(trace.steps)}" if steps > 1 else text.time(total_ns)


def _saves_most(trace: Trace, largest: str, words: dict[str, str]) -> str:
    """Which part saves most if it takes half as long, where the largest part of the path saves much less."""
    steps, what_if = counted_steps(trace), path_explanation(trace).what_if
    savings = saved_by_part(trace, _HALF)[:, steps].sum(axis=1) / max(1, int(what_if.lengths[steps].sum()))
    most = int(np.where([cause in _NO_WORK for cause in PARTS], 0.0, savings).argmax())
    of_largest = 0.0 if largest in WAITING else savings[PARTS.index(largest)]
    if savings[most] < _LEAST or savings[most] < _MUCH_MORE * of_largest:
        return ""
    than = "" if largest in WAITING else f"; {words[largest]} {text.percent(of_largest)}"
    return (
        f"Yet {words[PARTS[most]]} would save most: {text.percent(savings[most])} of {step_in_words(trace.steps)} with "
        f"half of that time, on the path or not{than}."
    )


def _longest_on_host(trace: Trace, pieces: pl.DataFrame, words: dict[str, str]) -> str:
    """The longest time in which the path doesn't leave the host, and what takes most of it."""
    changes = (pl.col("is_host") != pl.col("is_host").shift(1)) | (pl.col("step") != pl.col("step").shift(1))
    runs = pieces.with_columns(run=changes.fill_null(value=False).cum_sum()).filter(pl.col("is_host"))
    lengths = runs.group_by("run").agg(pl.col("dur_ns").sum(), pl.col("start_ns").min())
    longest = lengths.sort("dur_ns", "start_ns", descending=[True, False]).row(0, named=True)
    inside = runs.filter(pl.col("run") == longest["run"])
    culprit = _largest_culprit(trace, inside)
    step = trace.steps["name"][inside["step"][0]]
    where = "" if step == "all" else f" in {step_noun(trace.steps)} {step}"
    length = text.time(longest["dur_ns"])
    cause, cause_ns = _sums(inside).row(0)
    what = f"{text.most_or_percent(cause_ns / longest['dur_ns'])} of it is {words[cause]}"
    if culprit["name"] != NAMELESS and culprit["dur_ns"] >= _LARGE * longest["dur_ns"]:
        what = f"its largest part is {_quote(trace, culprit)}"
    return f"The longest stretch on the host is {length}{where}; {what}."


def _sums(pieces: pl.DataFrame) -> pl.DataFrame:
    """The time of each cause; the most first."""
    sums = pieces.group_by("cause").agg(pl.col("dur_ns").sum()).cast({"cause": pl.String})
    return sums.sort("dur_ns", "cause", descending=[True, False])


def _largest_culprit(trace: Trace, pieces: pl.DataFrame) -> dict[str, Any]:
    """Who has most time of some pieces: WHO, and that time."""
    sums = pieces.group_by("culprit").agg(pl.col("dur_ns").sum()).join(path_culprits(trace).with_numbers(), "culprit")
    return sums.sort("dur_ns", *WHO, descending=[True, *(False for _ in WHO)]).row(0, named=True)


def _quote(trace: Trace, culprit: dict[str, Any]) -> str:
    """The name as code, that of a kernel readable; of what waited, that it did."""
    name = culprit["name"]
    label = labels_of_kernels(trace).get(name, name)
    short = label if len(label) <= _LONGEST_NAME else label[: _LONGEST_NAME - 1] + "…"
    is_before = culprit["cause"] in _BEFORE and trace.device_events["name"].is_in([name]).any()
    return f"{'before ' if is_before else ''}{text.code(short)}"


VIEW = View(
    critical_path_summary,
    table=CriticalPathSummary,
    title="Critical path in a sentence",
    entry="Critical path",
    place=Lead("critical_path_culprits"),
    within="recording",
    shares=path_explanation,
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    reads_captures=True,
)
