"""The critical path in a sentence: what most of it is, and the longest time in a row on the host."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...critical_path.classes import CLASSES, ON_DEVICE
from ...critical_path.explanation import counted_path, path_explanation
from ...critical_path.names import NAMELESS, Names, Places
from ...measures.calls.kernel_names import labels_of_kernels
from ...measures.recording.contents import has_work
from ...measures.recording.vendor import vendor_terms
from ...measures.time.step_subset import counted_steps
from ...names import text
from ...pictures import Sentence
from ...table import PROSE, TEXT, Column, Table
from ...trace import Trace
from ...trace.steps import step_noun
from ...view import Head, View

_LEAST = 0.03  # of the path: smaller parts aren't named
_MOST_NAMED = 3  # parts besides the largest
_LONGEST_NAME = 60
_BEFORE = ("launch latency", "between GPU events", "unexplained wait")
"""Parts in which what comes next waits."""
_PARTS = {
    "computation": ("kernels on the {device}", "kernel"),
    "device communication": ("communication on the {device}", "communication"),
    "copy": ("copies and fills", "memcpy"),
    "launch latency": ("launch latency", "runtime"),
    "between GPU events": ("time between {device} events", "other"),
    "unexplained wait": ("waits of the {device} that the trace doesn't explain", "warning"),
    "data loading": ("data loading", "dataloader"),
    "host communication": ("communication on the host", "communication"),
    "operator": ("operators on the host", "cpu-exec"),
    "runtime call": ("runtime calls", "runtime"),
    "synchronization": ("synchronization of the host", "runtime"),
    "between operators": ("host code between operators", "other"),
}
"""Each part of the path in words, and the color of its category on the page."""


class CriticalPathSummary(Table):
    """What the critical path of the complete steps mostly consists of, in one row."""

    key, weight = ("rule",), None
    picture = Sentence(
        texts=("rule", "title", "evidence", "action", "confidence", "view"),
        colors={},
    )

    rule = Column(TEXT, "The category of the largest part.")
    title = Column(PROSE, "The largest part of the path.")
    evidence = Column(PROSE, "What is most of that, the other large parts, and the longest time in a row on the host.")
    action = Column(PROSE, "Always missing: advice says what to do.")
    confidence = Column(TEXT, "low: most of the path is waits that the trace doesn't explain; else high.")
    view = Column(TEXT, "Id of the view that says what to do.")


def critical_path_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if no step has a path."""
    steps = counted_steps(trace)
    names, path = Names.of(trace), counted_path(trace)
    path = path.select(
        "step",
        "start_ns",
        "class",
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        is_host=~pl.col("class").is_in(list(ON_DEVICE)),
        name=pl.Series(names.merged_names(Places.of_path(path))),
    )
    spent = np.bincount(path["class"].to_numpy(), path["dur_ns"].to_numpy(), len(CLASSES))
    rows = [_row(trace, path, names, spent, len(steps))] if spent.any() else []
    return CriticalPathSummary.of(pl.DataFrame(rows, schema=CriticalPathSummary.schema(), orient="row"))


def _row(trace: Trace, path: pl.DataFrame, names: Names, spent: np.ndarray, steps: int) -> tuple[object, ...]:
    """The columns of CriticalPathSummary; `name` of the path is a number of the names."""
    device = "GPU" if vendor_terms(trace).vendor else "device"
    words = [_PARTS[part][0].format(device=device) for part in CLASSES]
    most, *others = np.argsort(-spent, kind="stable").tolist()
    shares = spent / spent.sum()
    named = [f"{text.percent(shares[part])} {words[part]}" for part in others if shares[part] >= _LEAST]
    sentences = [_largest_name(trace, path.filter(pl.col("class") == most), names, steps)]
    if named:
        sentences.append(f"Other parts of the path: {text.listed(named[:_MOST_NAMED])}.")
    if trace.device_events.height and path["is_host"].any():
        sentences.append(_longest_on_host(trace, path, names))
    title = f"{text.percent(shares[most])} of the critical path is {words[most]}."
    color = _PARTS[CLASSES[most]][1]
    confidence = "low" if CLASSES[most] == "unexplained wait" else "high"
    return color, title, " ".join(sentences), None, confidence, "advice"


def _largest_name(trace: Trace, part: pl.DataFrame, names: Names, steps: int) -> str:
    name, spent = _most(part, names)
    each = f"{text.time(spent / steps)} per step" if steps > 1 else text.time(spent)
    share = spent / int(part["dur_ns"].sum())
    if name == NAMELESS:
        return f"For {text.percent(share)} of that, nothing is recorded: {each}."
    before = "before " if CLASSES[part["class"][0]] in _BEFORE else ""
    return f"{'All' if share == 1 else text.percent(share)} of that is {before}{_quoted(trace, name)}: {each}."


def _longest_on_host(trace: Trace, path: pl.DataFrame, names: Names) -> str:
    """The longest time in which the path doesn't leave the host, and what takes most of it."""
    changes = (pl.col("is_host") != pl.col("is_host").shift(1)) | (pl.col("step") != pl.col("step").shift(1))
    runs = path.with_columns(run=changes.fill_null(value=False).cum_sum()).filter(pl.col("is_host"))
    lengths = runs.group_by("run").agg(pl.col("dur_ns").sum(), pl.col("start_ns").min())
    longest = lengths.sort("dur_ns", "start_ns", descending=[True, False]).row(0, named=True)
    inside = runs.filter(pl.col("run") == longest["run"])
    name, _ = _most(inside, names)
    step = trace.steps["name"][inside["step"][0]]
    where = "" if step == "all" else f" in {step_noun(trace.steps)} {step}"
    length = text.time(longest["dur_ns"])
    what = "mostly with nothing recorded" if name == NAMELESS else f"its largest part is {_quoted(trace, name)}"
    return f"The longest stretch on the host is {length}{where}; {what}."


def _most(segments: pl.DataFrame, names: Names) -> tuple[str, int]:
    """The name with most time, and that time."""
    sums = segments.group_by("name").agg(pl.col("dur_ns").sum())
    sums = sums.with_columns(name=names.text(sums["name"].to_numpy()).fill_null(NAMELESS))
    name, spent = sums.sort("dur_ns", "name", descending=[True, False]).row(0)
    return name, spent


def _quoted(trace: Trace, name: str) -> str:
    """A name as code, that of a kernel readable."""
    label = labels_of_kernels(trace).get(name, name).replace("`", "'")
    short = label if len(label) <= _LONGEST_NAME else label[: _LONGEST_NAME - 1] + "…"
    return f"`{short}`"


VIEW = View(
    critical_path_summary,
    table=CriticalPathSummary,
    title="Critical path in a sentence",
    entry="Critical path",
    place=Head(),
    within="recording",
    shares=path_explanation,
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    reads_captures=True,
)
