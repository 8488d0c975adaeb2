"""The first screen as text, from the answers of the page: of a run of several ranks, then of one recording."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from .measures.calls.kernel_names import labels_of_kernels
from .measures.recording.contents import has_snapshot
from .names import text
from .names.text import visible
from .trace import Trace
from .trace.steps import step_noun

OF_RUN = ("run_advice", "stragglers")
OF_RECORDING = ("advice", "environment", "lanes", "overview", "phases", "top")
OF_SNAPSHOT = ("environment", "snapshot_failure", "snapshot_levels", "snapshot_alive", "snapshot_growth")
"""The views that it is made of; what a recording doesn't have is left out."""

MOST = 5  # kernels and operators
MOST_RANKS = 8
MOST_LANES = 12
WIDTH = 100
_BAR = 20
_NAME, _LEAST_NAME = 48, 20
_NUMBERS = 32  # characters of the numbers behind a name
_NOTHING = "nothing_to_fix"
_NO_FAULT = ("no_straggler", "unknown")
_LATE = ("straggler", "slow_at_times")

_OF_COMMUNICATION = ("communication", "gloo")
_MOSTLY = 0.5  # of what communication takes

Frames = Mapping[str, pl.DataFrame]


def views_of(trace: Trace) -> tuple[str, ...]:
    """The views that the summary of a recording, or of a memory snapshot, is made of."""
    return OF_SNAPSHOT if has_snapshot(trace) else OF_RECORDING


def run_lines(frames: Frames, width: int = WIDTH) -> Iterator[str]:
    """What the page says about the run: which rank is slow, why, and how the ranks compare.

    Args:
        frames: The views OF_RUN, as far as there is data for them.
        width: Of a line, in characters.
    """
    advice = _rows(frames, "run_advice")
    for row in advice:
        yield from _paragraph(row, "", width, has_action=row["rule"] not in _NO_FAULT)
        yield ""
    ranks, room = _rows(frames, "stragglers"), _room(width) - len("slow at times")
    if ranks:
        yield f"{'Ranks, per typical step':<{room + 2}}{'own time':>13}{'waiting':>13}  {'verdict'}"
    for row in ranks[:MOST_RANKS]:
        own, wait = text.time(row["without_waiting_ns"]), text.time(row["wait_ns"])
        yield f"  {_cut(visible(row['worker']), room):<{room}}{own:>13}{wait:>13}  {row['verdict']}"
    if ranks[MOST_RANKS:]:
        yield f"  … and {text.times(len(ranks) - MOST_RANKS, 'rank')} that took less"
    if ranks:
        yield ""


def waiting_for(frames: Frames, worker: str) -> tuple[str, int]:
    """(the slow rank that a worker waits for, how long in the average step, in ns); no rank and 0 if it doesn't."""
    slow = {row["filter"]: row["saving_ns"] for row in _rows(frames, "run_advice") if row["rule"] in _LATE}
    return next(iter(slow.items())) if slow and worker not in slow else ("", 0)


def recording_lines(
    trace: Trace, frames: Frames, width: int = WIDTH, waiting: tuple[str, int] = ("", 0)
) -> Iterator[str]:
    """What the page says about one recording.

    Args:
        trace: The recording.
        frames: Its `views_of`, as far as it has data for them.
        width: Of a line, in characters.
        waiting: The slow rank that it waits for, and how long per step: communicating less doesn't shorten that.
    """
    if has_snapshot(trace):
        yield from _snapshot(frames, width)
        return
    advice = [_after_slow_rank(row, *waiting) for row in _rows(frames, "advice")]
    if advice:
        yield from _paragraph(advice[0], "", width, has_action=advice[0]["rule"] != _NOTHING)
        yield ""
    yield from _server(_rows(frames, "phases"), width)
    if trace.meta.foreign_writer is not None:
        yield from _busy_lanes(trace, _rows(frames, "lanes"), width)
    if trace.meta.foreign_writer is None or not trace.device_events.is_empty():
        yield from _breakdown(trace, _rows(frames, "overview"))
    labels = labels_of_kernels(trace)
    for kind in ("kernel", "operator"):
        yield from _top(trace, frames.get("top"), kind, labels, width)
    yield from _others(advice[1:], width)


def _after_slow_rank(advice: dict[str, Any], slow: str, wait_ns: int) -> dict[str, Any]:
    """Advice about communication that mostly waits for a slow rank: that rank comes first."""
    if advice["rule"] not in _OF_COMMUNICATION or wait_ns < _MOSTLY * (advice["saving_ns"] or 0) or not wait_ns:
        return advice
    title = f"{advice['title'].removesuffix('.')}: {text.time(wait_ns)} of it is waiting for {slow}."
    return {**advice, "title": title, "action": f"Make {slow} as fast as the other ranks first."}


def environment_line(trace: Trace, frames: Frames) -> str:
    """The device and the versions, and the program that wrote the file if it isn't PyTorch's profiler."""
    facts = {row["fact"]: row["value"] for row in _rows(frames, "environment")}
    shown = [f"{name} {facts[name]}" for name in ("torch", "CUDA", "ROCm") if name in facts]
    by = [f"written by {trace.meta.foreign_writer}"] if trace.meta.foreign_writer is not None else []
    return visible(" · ".join([*([facts["Device"]] if "Device" in facts else []), *shown, *by]))


def _rows(frames: Frames, view: str) -> list[dict[str, Any]]:
    return frames[view].rows(named=True) if view in frames else []


def _size(advice: Mapping[str, Any]) -> str:
    confidence = f"confidence {advice['confidence'].replace('_', ' ')}"
    if advice["saving_ns"] is None:
        return confidence
    return f"saves at most {text.time(advice['saving_ns'])}, {text.percent(advice['saving_frac'] or 0)}; {confidence}"


def _server(phases: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """Tokens per second of a server, by phase."""
    said = [
        f"{row['phase']} {row['tokens_per_s']:,.0f} tokens/s".replace(",", "\u202f")
        + (f", {text.time(row['token_ns'])} per token" if row["token_ns"] is not None else "")
        for row in phases
        if row["tokens_per_s"] is not None
    ]
    if said:
        yield from _wrapped(f"The server processes: {'; '.join(said)}.", width)


def _snapshot(frames: Frames, width: int) -> Iterator[str]:
    """Of a memory snapshot: why the last allocation failed, the peak, what was alive then, and what grew."""
    for row in _rows(frames, "snapshot_failure")[:1]:
        for sentence, before in ((row["sentence"], ""), (row["evidence"], "  "), (row["action"], "  → ")):
            yield from _wrapped(sentence, width, before)
        yield ""
    for row in _rows(frames, "snapshot_levels"):
        if row["what"] == "peak":
            levels = [text.memory_size(row[f"{name}_bytes"]) for name in ("allocated", "active", "reserved")]
            yield f"Peak of device {row['device']}: {levels[0]} allocated, {levels[1]} active, {levels[2]} reserved"
    room = _room(width) + _NUMBERS - 26
    for title, view, amount, count in (
        ("Alive at the peak, by line", "snapshot_alive", "alive_bytes", "blocks"),
        ("Growth from the first period to the last", "snapshot_growth", "growth_bytes", "grown_periods"),
    ):
        rows = _rows(frames, view)[:MOST]
        if rows:
            yield ""
            yield f"{_cut(title, room + 2):<{room + 2}}{'memory':>14}{count.replace('grown_', ''):>10}"
        for row in rows:
            line = _cut(visible(row["place"]), room)
            yield f"  {line:<{room}}{text.memory_size(row[amount]):>14}{row[count]:>10,}"


def _breakdown(trace: Trace, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    whole = rows[-1]
    count, noun = _counted(trace), step_noun(trace.steps)
    unit = "The recording" if not count else f"Average of {count} {noun}s" if count > 1 else f"One {noun}"
    spread = f" ± {text.time(whole['stdev_ns'])}" if whole["stdev_ns"] is not None else ""
    yield f"{unit}: {text.time(whole['mean_ns'])}{spread}"
    for row in rows[:-1]:
        share = row["share_frac"] or 0.0
        if row["mean_ns"]:
            bar = "█" * round(_BAR * share)
            yield f"  {row['category']:<14}{text.time(row['mean_ns']):>10}{100 * share:>7.1f} %  {bar}".rstrip()
    yield ""


def _busy_lanes(trace: Trace, lanes: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    room = _room(width)
    yield f"Busy time by lane: {trace.meta.events:,} events in {text.time(trace.window[1] - trace.window[0])}"
    for row in lanes[:MOST_LANES]:
        busy = f"{text.time(row['busy_ns']):>13}{100 * (row['busy_frac'] or 0):>7.1f} %"
        name = _cut(visible(f"{row['process']} · {row['lane']}"), room)
        yield f"  {name:<{room}}{busy}{row['events']:>10,}"
    yield ""


def _counted(trace: Trace) -> int:
    """The steps that averages are over; 0 if none were marked."""
    is_marked = trace.steps["name"].to_list() != ["all"]
    return (int(trace.steps["is_complete"].sum()) or trace.steps.height) if is_marked else 0


def _top(trace: Trace, frame: pl.DataFrame | None, kind: str, labels: Mapping[str, str], width: int) -> Iterator[str]:
    """The same rows and numbers as on the page: per complete step."""
    rows = [] if frame is None else frame.filter(kind=kind).head(MOST).rows(named=True)
    if not rows:
        return
    per = f"per {step_noun(trace.steps)}" if _counted(trace) > 1 else "total"
    room = _room(width)
    title = f"Top {kind}s by {rows[0]['measure']}"
    yield f"{_cut(title, room + 2):<{room + 2}}{per:>13}{'share':>9}{'calls':>10}"
    for row in rows:
        name = _cut(visible(labels.get(row["name"], row["name"]) if kind == "kernel" else row["name"]), room)
        share = 100 * row["share_frac"]
        calls = "" if row["calls"] is None else text.often(row["calls"] / max(1, _counted(trace)))
        yield f"  {name:<{room}}{text.time(row['mean_ns']):>13}{share:>7.1f} %{calls:>10}".rstrip()
    yield ""


def _others(advice: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """What to do besides, and what is fine."""
    causes = [row for row in advice if row["rule"] != _NOTHING]
    if causes:
        yield "Also"
    for number, row in enumerate(causes, 1):
        yield from _paragraph(row, f"{number:>2}. ", width)
    for row in advice[len(causes) :]:
        yield ""
        yield from _wrapped(f"{row['title']} {row['evidence']}", width)


def _paragraph(advice: Mapping[str, Any], before: str, width: int, *, has_action: bool = True) -> Iterator[str]:
    """A title with its size, the evidence, and what to do."""
    after = " " * (len(before) or 2)
    yield from _wrapped(f"{advice['title']} ({_size(advice)})", width, before)
    yield from _wrapped(advice["evidence"], width, after)
    if has_action:
        yield from _wrapped(advice["action"], width, f"{after}→ ")


def _room(width: int) -> int:
    """The characters for a name before three numbers."""
    return max(_LEAST_NAME, min(_NAME, width - 2 - _NUMBERS))


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _wrapped(sentence: str, width: int, before: str = "") -> list[str]:
    after = " " * len(before)
    return textwrap.wrap(
        visible(sentence), width, initial_indent=before, subsequent_indent=after, break_long_words=False
    )
