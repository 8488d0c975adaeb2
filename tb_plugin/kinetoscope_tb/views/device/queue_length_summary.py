"""Queues in a sentence: whether the host runs ahead of a device, by the queue of the stream that computes most."""

from __future__ import annotations

import polars as pl

from ...arrays.intervals import length_within
from ...measures.recording.contents import has_linked_work
from ...measures.recording.lost_launches import are_launches_known, capture_spans
from ...measures.recording.vendor import device_noun
from ...measures.time.idle import Windows
from ...measures.time.idle_causes import NOT_SHOWN, gap_parts, matters
from ...measures.time.queues import QueueUse, queue_uses
from ...names.text import as_clause, often, percent, time
from ...table import Summary
from ...trace import Trace
from ...view import Lead, View

_MOSTLY, _RARELY = 0.25, 0.75  # of the time with nothing queued: the host runs ahead until there, and from there not


class QueueLengthSummary(
    Summary,
    colors={"queue": "runtime"},
    rule="`queue`.",
    title=(
        "Whether the host runs ahead of the device, and for how long nothing is queued on the stream that computes "
        "most; of the device of which that is longest."
    ),
    evidence=(
        "How long the device is idle because the host is late, as in the view of idle time, which counts captures of "
        "graphs, too, and how much work was "
        "queued at most."
    ),
    confidence="low: the device may have been busy with what isn't in the recording; else high.",
    view="Id of the view that shows the lengths over time.",
):
    """Whether the host launches work early enough."""


def queue_length_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if no recorded call launched recorded work, or launches are missing."""
    windows = Windows.of(trace, per_step=False)
    uses = _of_main_streams(trace, windows) if are_launches_known(trace) else []
    if not uses:
        return QueueLengthSummary.of_row(None)
    use = max(uses, key=lambda use: use.empty_ns)
    device = f"{as_clause(device_noun(trace))} {use.device}"
    late_ns, hidden_ns = _idle(trace, use.device, windows)
    is_hidden = matters(hidden_ns, windows.length_ns)
    late = _late(trace, windows, late_ns, device) if late_ns else _never_late(device, is_hidden=is_hidden)
    were = "was" if use.most == 1 else "were"
    most = f"At most {often(use.most)} of the stream's kernels, copies and fills {were} queued at once."
    title = _title(use, windows.length_ns, device)
    return QueueLengthSummary.of_row(("queue", title, f"{late} {most}", "low" if is_hidden else "high", "queue_length"))


def _of_main_streams(trace: Trace, windows: Windows) -> list[QueueUse]:
    """How the queue of each device's main stream was filled: of those that have one, where kernels run longest.

    Communication doesn't count: its kernels last as long as other ranks take, and are few. Where nothing else was
    launched, all work counts.
    """
    computes = (pl.col("kind") == "kernel") & ~pl.col("is_communication")
    lasts = pl.col("dur_ns").filter(computes).sum().alias("computes_ns"), pl.col("dur_ns").sum()
    work = trace.device_events.group_by("device", "stream").agg(lasts)
    lengths = {(device, stream): tuple(sums) for device, stream, *sums in work.iter_rows()}
    main: dict[int, QueueUse] = {}
    for use in sorted(queue_uses(trace, windows), key=lambda use: lengths[use.device, use.stream]):
        main[use.device] = use
    return list(main.values())


def _idle(trace: Trace, device: int, windows: Windows) -> tuple[int, int]:
    """(how long the device is idle because the host is late, how long it may run what isn't recorded)."""
    parts = gap_parts(trace, "device", windows).filter(pl.col("device") == device)
    length = pl.col("end_ns") - pl.col("start_ns")
    sums = (length.filter(pl.col("cause") == cause).sum().alias(cause) for cause in ("host late", NOT_SHOWN))
    late_ns, hidden_ns = parts.select(sums).row(0)
    return late_ns, hidden_ns


def _title(use: QueueUse, whole_ns: int, device: str) -> str:
    stream = f"stream {use.stream}" if use.stream >= 0 else "its streams"
    if not use.empty_ns:
        return f"The host always runs ahead of {device}: work is queued on {stream} all the time."
    share = use.empty_ns / whole_ns
    ahead = f"runs ahead of {device} only at times"
    if not _MOSTLY <= share <= _RARELY:
        ahead = f"{'mostly' if share < _MOSTLY else 'rarely'} runs ahead of {device}"
    empty = f"{percent(share)} of the time, {time(use.empty_ns)} of {time(whole_ns)}"
    return f"The host {ahead}: nothing is queued on {stream} for {empty}."


def _late(trace: Trace, windows: Windows, late_ns: int, device: str) -> str:
    captured_ns = int(length_within(capture_spans(trace), windows.start, windows.end).sum())
    why = "is late or captures graphs" if matters(captured_ns, windows.length_ns) else "is late"
    return f"Because the host {why}, {device} is idle for {time(late_ns)}."


def _never_late(device: str, *, is_hidden: bool) -> str:
    return f"The host is never late for {device}{' in what was recorded' if is_hidden else ''}."


VIEW = View(
    queue_length_summary,
    table=QueueLengthSummary,
    title="Queues in a sentence",
    entry="Idle",
    place=Lead("queue_length"),
    within="recording",
    needs=has_linked_work,
    hint="No GPU event is linked to its launch. Record ProfilerActivity.CPU together with the device's activity.",
)
