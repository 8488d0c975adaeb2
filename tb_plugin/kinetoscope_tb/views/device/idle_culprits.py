"""Idle time by culprit: why a device was idle, and what the host was doing then.

The causes are those of the view `idle`, and so are their sums. What the host was doing is the innermost Python
function, operator or runtime call on the thread that launched the work which ended the gap; while that thread has
nothing recorded, the main thread counts.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction, gather, texts
from ...measures.recording.contents import has_device_events
from ...measures.time.host_activity import ACTIVITY_WORDS
from ...measures.time.idle import Windows
from ...measures.time.idle_causes import CAUSE_WORDS
from ...measures.time.idle_culprits import HOST_WITH_OP, CulpritPieces, culprit_pieces
from ...measures.time.step_subset import counted_steps, has_steps
from ...names.kernel_labels import kernel_label
from ...table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...trace.steps import step_noun
from ...view import Part, Slices, View


class IdleCulprits(Table):
    """Why each device was idle, and what the host was doing then: the rows of a device add up to its idle time.

    With more than 64 devices, those that were idle longest.
    """

    key, weight = ("device", "culprit"), "total_ns"

    cause = Column(
        TEXT,
        "Why it was idle: the causes of the view of idle time, with the same sums.",
        shown_as="name",
        words=CAUSE_WORDS,
    )
    host = Column(
        TEXT,
        "The innermost Python function, module, operator, annotation or runtime call (in the operator that made it) "
        "then, on the thread that launched the next work; missing if nothing is recorded, where work was queued, so "
        "that the host delayed nothing (a launch latency of 0.2 ms or more is the host's), and where it isn't in the "
        "recording whether the device was idle.",
        shown_as="name",
    )
    device = Column(ID, "Index of the device.")
    total_ns = Column(DURATION, "Idle time with this cause and culprit.")
    idle_frac = Column(FRACTION, "Share of the idle time of the device.")
    source = Column(
        TEXT,
        "File, first line and name of the innermost Python function around it that belongs to the program, not to a "
        "library; of the innermost function with a file if none does. Missing without with_stack=True.",
        shown_as="place",
    )
    activity = Column(
        TEXT,
        "Where the host was late, what its launching threads did: data loading, synchronizing, runtime call, operator, "
        "python, annotation, or nothing recorded; the first that applies.",
        words=ACTIVITY_WORDS,
    )
    gaps = Column(COUNT, "In how many gaps.", adds_up=False)
    longest_ns = Column(DURATION, "The most in one gap.")
    mean_ns = Column(DURATION, "Mean per gap: total / gaps, rounded to the nanosecond.")
    per_step_ns = Column(
        DURATION, "Its time within complete steps ÷ the number of these; missing without steps.", adds_up=False
    )
    pattern = Column(
        TEXT,
        "Whether it repeats: in how many complete steps, and which work follows its gaps if that is always the same; "
        "of launch latency without a host, also which operator launched the work after a gap that is more than half of "
        "it.",
    )
    kind = Column(TEXT, "What that is: function, module, operator, annotation or runtime call.")
    window_frac = Column(FRACTION, "Share of the whole time, idle or busy.")
    steps = Column(COUNT, "In how many complete steps it occurs; missing without steps.", adds_up=False)
    ended_by = Column(
        TEXT, "The kernel, copy or fill that ended the gap with most of its time; missing if none followed."
    )
    culprit = Column(
        TEXT, "Hash of cause, activity, host, kind, operator and source; the same in every trace.", shown_as="hash"
    )


def idle_culprits(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The largest first; with from_ns or to_ns only the idle time within; of at most MOST_DEVICES devices."""
    pieces = CulpritPieces.within(trace, device, from_ns, to_ns)
    steps = len(counted_steps(trace)) if has_steps(trace) else 0
    rows = _describe(trace, pieces, steps)
    window = Windows.of(trace, per_step=False)
    begin = max(int(window.start[0]), window.start[0] if from_ns is None else from_ns)
    end = min(int(window.end[-1]), window.end[-1] if to_ns is None else to_ns)
    rows = rows.with_columns(
        pl.col("device").cast(pl.Int64),
        idle_frac=fraction(pl.col("total_ns"), pl.col("total_ns").sum().over("device")),
        window_frac=pl.col("total_ns") / max(int(end - begin), 1),
    )
    rows = rows.sort("total_ns", "device", "culprit", descending=[True, False, False])
    return IdleCulprits.of(rows.select(IdleCulprits.schema().names()))


def _describe(trace: Trace, pieces: CulpritPieces, steps: int) -> pl.DataFrame:
    """The rows: one per device and culprit, without shares."""
    who = pieces.who.with_row_index("number").with_columns(pl.col("number").cast(pl.Int32))
    rows = pieces.sums(trace).rename({"culprit": "number"}).join(who, "number", how="left", maintain_order="left")
    rows = rows.with_columns(
        mean_ns=(pl.col("total_ns") / pl.col("gaps")).round().cast(pl.Int64),
        per_step_ns=pl.when(pl.lit(steps) > 0, pl.col("steps") > 0).then(
            (pl.col("in_steps_ns") / max(steps, 1)).round().cast(pl.Int64)
        ),
        steps=pl.when(pl.lit(steps) > 0).then("steps"),
        ended_by=texts(trace.device_events["name"], rows["after"].to_numpy()),
        host=HOST_WITH_OP,
    )
    launched_by = gather(trace.device_events["op"].to_numpy(), rows["after"].to_numpy())
    is_one_gap = (2 * pl.col("longest_ns") > pl.col("total_ns")) & pl.col("host").is_null()
    is_one_gap &= pl.col("cause") == "launch latency"
    noun = f"{step_noun(trace.steps)}s"
    pattern_inputs = rows.select(
        "steps",
        "gaps",
        pl.when("follows").then("ended_by"),
        op=pl.when(is_one_gap).then(texts(trace.all_host_events["name"], launched_by)),
    )
    patterns = [_pattern(steps, noun, *row) for row in pattern_inputs.iter_rows()]
    return rows.with_columns(pattern=pl.Series(patterns, dtype=pl.String))


def _pattern(
    all_steps: int, nouns: str, steps: int | None, gaps: int, always_before: str | None, longest_by: str | None
) -> str | None:
    """In how many steps it occurs, which work always follows its gaps, and who ends the gap that is most of it."""
    parts = []
    if steps and all_steps > 1:
        parts.append(f"in each of {all_steps} {nouns}" if steps == all_steps else f"in {steps} of {all_steps} {nouns}")
    if gaps > 1 and always_before is not None:
        parts.append(f"always before {kernel_label(always_before)}")
    if longest_by is not None:
        parts.append(f"most of it before the work of {longest_by}")
    return ", ".join(parts) or None


def events_of_row(trace: Trace, key: Key) -> Events:
    """What the host was doing; where it delayed nothing, the work that ended the gaps."""
    return CulpritPieces.within(trace, key["device"]).of_culprit(key["culprit"]).events()


VIEW = View(
    idle_culprits,
    table=IdleCulprits,
    title="Idle time by culprit",
    entry="Idle",
    within="recording",
    needs=has_device_events,
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    place=Part("idle"),
    slices=Slices(events_of_row, "An event may be behind several gaps, with several causes."),
    shares=culprit_pieces,
)
