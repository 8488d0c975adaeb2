"""Gaps that recur: the same gap, before the same kernel or copy, of similar length, in nearly every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from ..arrays.gather import NONE
from ..arrays.intervals import Ints
from ..measures.python.whereabouts import location_at
from ..measures.recording.contents import has_graphs
from ..measures.recording.options import was_on
from ..measures.time.host_activity import launching_threads
from ..measures.time.idle_causes import CAUSES
from ..measures.time.threads import main_thread
from ..names import text
from ..names.kernel_labels import kernel_label
from ..names.kernels import step_number
from ..names.python_frames import function_name
from ..trace.results import once_per_trace
from .facts import Facts
from .faults import UNKNOWN, lacks_launches, link_launches, why_unknown
from .model import Advice

_LONG = 0.005  # of the step: shorter gaps are a matter of launching, and too many to name
_NEARLY_ALL = 0.8  # of the steps
_SPREAD = 0.5  # of the median length: more isn't the same gap
_LARGE = 0.10  # of the step
_MOST = 0.5
_NAMED = 3
_LONGEST_NAME = 60


class Gap(NamedTuple):
    """The same gap in many steps.

    Attributes:
        after: The row of device_events that ends it, where its length is most typical.
        before: The row that it follows there.
        per_step: How often it is there.
        typical_ns: The median over the steps of the longest.
        lengths: The time of all in each step.
        numbers: Their numbers (measures/time/idle.py).
    """

    after: int
    before: int
    per_step: float
    typical_ns: int
    lengths: Ints
    numbers: list[int]


@once_per_trace
def repeated_gaps(facts: Facts, causes: tuple[str, ...]) -> list[Gap]:
    """The gaps that recur, by the time that any of some causes explains in them, the largest first.

    A gap recurs if the same row follows the same row in nearly every step that counts, after a time that varies by less
    than half of its median.
    """
    if facts.count < 2:
        return []
    pieces = facts.with_edges(_pieces(facts, causes).filter(pl.col("length") >= _LONG * facts.step_ns))
    pieces = pieces.filter((pl.col("after") != NONE) & (pl.col("before") != NONE))
    codes = facts.trace.device_events["name"].to_physical()
    pieces = pieces.with_columns(next=codes.gather(pieces["after"]), last=codes.gather(pieces["before"])).sort("gap")
    alike = [
        gap for _, rows in pieces.group_by("next", "last", maintain_order=True) for gap in _of_same_rows(facts, rows)
    ]
    return sorted(alike, key=lambda gap: -facts.mean(gap.lengths))


def _pieces(facts: Facts, causes: tuple[str, ...]) -> pl.DataFrame:
    """How long some causes last in each gap and window: gap, window, length. Parts come in the order of both."""
    is_meant = np.array([cause in causes for cause in CAUSES])
    parts = facts.idle_parts.filter(pl.Series(is_meant[facts.idle_parts["cause"].to_physical().to_numpy()]))
    gap, window, start, end = (parts[name].to_numpy() for name in ("gap", "window", "start_ns", "end_ns"))
    first = np.flatnonzero((np.diff(gap, prepend=NONE) != 0) | (np.diff(window, prepend=NONE) != 0))
    length = np.add.reduceat(end - start, first) if first.size else end - start
    return pl.DataFrame({"gap": gap[first], "window": window[first], "length": length})


def _of_same_rows(facts: Facts, rows: pl.DataFrame) -> Iterator[Gap]:
    """The gaps between the same rows that recur, those of similar length as one, the longest first."""
    while rows.height:
        longest = rows.group_by("window").agg(pl.col("length").max())["length"].to_numpy()
        typical = float(np.median(longest))
        is_alike = pl.col("length") >= (1 - _SPREAD) * typical
        alike, rows = rows.filter(is_alike), rows.filter(~is_alike)
        if longest.size < _NEARLY_ALL * facts.count:
            return
        if longest.max() - longest.min() <= _SPREAD * typical:
            yield _gap(facts, alike, typical)


def _gap(facts: Facts, rows: pl.DataFrame, typical: float) -> Gap:
    lengths = np.zeros(facts.length.size, np.int64)
    np.add.at(lengths, rows["window"].to_numpy(), rows["length"].to_numpy())
    nearest = int(np.abs(rows["length"].to_numpy() - typical).argmin())
    after, before = (int(rows[side][nearest]) for side in ("after", "before"))
    return Gap(after, before, rows.height / facts.count, round(typical), lengths, rows["gap"].to_list())


def gaps_of_unknown_cause(facts: Facts) -> list[Gap]:
    """Those that repeated_gap reports instead of unexplained_idle: they recur, and make up most of it; else none."""
    if is_loading(facts):
        return []
    gaps = repeated_gaps(facts, UNKNOWN)
    total = sum(facts.idle.get(cause, 0.0) for cause in UNKNOWN)
    share = facts.share(sum(facts.mean(gap.lengths) for gap in gaps))
    lengths = np.sum([gap.lengths for gap in gaps], axis=0) if gaps else np.zeros(facts.length.size, np.int64)
    return gaps if facts.is_worth(lengths, _LARGE) and share >= _MOST * total else []


def repeated_gap(facts: Facts) -> Iterator[Advice]:
    """The device stands idle in the same places of every step, and nothing recorded says why."""
    if not facts.has_device or facts.is_worth(facts.graph_captures):
        return
    gaps = gaps_of_unknown_cause(facts)
    if not gaps:
        return
    lengths = np.sum([gap.lengths for gap in gaps], axis=0)
    first, part = gaps[0], facts.of_steps(lengths)
    evidence = (
        f"{text.enumeration([_gap_in_words(facts, gap) for gap in gaps[:_NAMED]])} recur{_others(facts, gaps)}"
        f"{facts.recurs(lengths)}. {_gap_context(facts, first)}"
    )
    if lacks_launches(facts):
        title, action = why_unknown(facts, part), link_launches(facts)
    else:
        is_busy = "are" if facts.waits == "wait" else "is"
        title = (
            f"{facts.subject} {is_busy} idle for {part} in gaps that recur: the largest lasts "
            f"{text.time(first.typical_ns)}, before {described_row(facts, first)}."
        )
        evidence += " Why it lasts wasn't recorded."
        action = (
            f"Look at what the {facts.noun} does there: work of the device that wasn't recorded (another process, a "
            f"node of a graph), or a wait of the host. {how_to_see_host(facts)}"
        )
    size = facts.mean(lengths)
    yield Advice("repeated_gap", title, evidence, action, None, "cannot_tell", "gaps", "", size)


def is_loading(facts: Facts) -> bool:
    """Whether most of the idle time of unknown cause is a wait for data, around work whose launch isn't recorded."""
    if facts.are_launches_known:
        return False
    return facts.share(facts.mean(facts.waits_for_data)) > _MOST * sum(facts.idle.get(cause, 0.0) for cause in UNKNOWN)


def how_to_see_host(facts: Facts) -> str:
    """What would record more of what the host and graphs do."""
    ways = ["without graphs"] if has_graphs(facts.trace) else []
    ways += [] if was_on(facts.trace, "with_stack") else ["with Python stacks"]
    if not ways:
        return "Annotate what the host does (`torch.profiler.record_function`)."
    return f"Record {', or '.join(ways)}, to see it."


def _others(facts: Facts, gaps: list[Gap]) -> str:
    rest = gaps[_NAMED:]
    if not rest:
        return ""
    size = sum(facts.mean(gap.lengths) for gap in rest)
    return f", with {text.times(len(rest), 'other')} of {text.time(size)} together"


def described_row(facts: Facts, gap: Gap) -> str:
    """The row that follows a gap, with the operator that launched it."""
    device = facts.trace.device_events
    name, op = kernel_label(str(device["name"][gap.after])), int(device["op"][gap.after])
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    return f"`{name}`" + ("" if op == NONE else f" of `{facts.trace.all_host_events['name'][op]}`")


def _gap_in_words(facts: Facts, gap: Gap) -> str:
    """Such as: 63.5 ms before `Memset (Device)`."""
    often = "" if gap.per_step < 1.5 else f" ({text.often(gap.per_step)} times)"
    return f"{text.time(gap.typical_ns)} before {described_row(facts, gap)}{often}"


def _gap_context(facts: Facts, gap: Gap) -> str:
    """What is known of a gap: which call launched the row that ends it, and where the host is."""
    trace = facts.trace
    device = trace.device_events
    before, after = (int(device["launch"][row]) for row in (gap.before, gap.after))
    if before == after != NONE:
        call = trace.launches["name"][after]
        return f"Both GPU events around the largest gap belong to one `{call}`: neither host nor launching holds it up."
    start = int(device["start_ns"][gap.after])
    where = host_at(facts, start - gap.typical_ns // 2)
    calls = trace.launches
    launch = "Which call launched the work after the largest gap isn't recorded"
    if after != NONE:
        early = text.time(start - int(calls["start_ns"][after]))
        launch = f"The work after the largest gap was launched by `{calls['name'][after]}` {early} before it began"
    return launch + (f"; the host is {where} meanwhile." if where else ".")


def host_at(facts: Facts, at: int) -> str:
    """Where a launching thread is at an instant: its runtime call, operator or annotation, and its Python line.

    The main thread counts where no launch is recorded.
    """
    trace = facts.trace
    for thread in np.flatnonzero(launching_threads(trace)).tolist() or [main_thread(trace)]:
        names = []
        is_open = (pl.col("start_ns") <= at) & (pl.col("start_ns") + pl.col("dur_ns") > at)
        for frame in (trace.launches, trace.host_events):
            rows = frame.filter(is_open & (pl.col("thread") == thread)).sort("start_ns")
            inner = rows["name"].cast(pl.String).to_list()[-1:]
            names += [f"`{name}`" for name in inner if step_number(name) is None]
        location = location_at(trace, thread, at)
        if location:
            names.append(f"`{function_name(location.caller)}`" if location.caller else location.words)
        if names:
            return "in " + ", in ".join(names)
    return ""
