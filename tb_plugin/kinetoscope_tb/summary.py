"""The first screen, from the answers of the page: of a run of several ranks, then of one recording.

It is a list of blocks: claims, tables of names with numbers, and sentences. The terminal shows them as text, a notebook
as HTML.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from .measures.calls.kernel_names import labels_of_kernels
from .measures.recording.contents import has_snapshot
from .names import text
from .names.text import visible
from .trace import Trace
from .trace.steps import step_noun

OF_RUN = ("run_advice", "stragglers")
OF_RECORDING = ("advice", "environment", "lanes", "mfu", "overview", "phases", "top")
OF_SNAPSHOT = ("environment", "snapshot_failure", "snapshot_levels", "snapshot_alive", "snapshot_growth")
"""The views that it is made of; what a recording doesn't have is left out."""

MOST = 5  # kernels and operators
MOST_RANKS = 8
MOST_LANES = 12
WIDTH = 100
_BAR = 20
_TABLE, _LEAST_NAME = 80, 20  # characters of a table without its indentation, and of the names in it
_NOTHING = "nothing_to_fix"
_NO_FAULT = ("no_straggler", "unknown")
_LATE = ("straggler", "slow_at_times")

_OF_COMMUNICATION = ("communication", "gloo")
_MOSTLY = 0.5  # of what communication takes
_NEARLY_ALL = 0.99  # of the kernel time

Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Claim:
    """What was found.

    Args:
        title: What it is, with its size.
        evidence: The numbers that say so.
        action: What to do; empty if there is nothing to do.
        number: Its number among the further ones; 0 if it is the first.
    """

    title: str
    evidence: str
    action: str = ""
    number: int = 0


@dataclass(frozen=True)
class CellColumn:
    """A column behind the names of a table.

    Args:
        heading: Its heading, or nothing.
        width: Characters of a cell as text.
        is_text: Whether its cells are words, which begin at the left.
    """

    heading: str
    width: int
    is_text: bool = False


@dataclass(frozen=True)
class NameTable:
    """A short table: names, and numbers as text behind them.

    Args:
        title: What it shows.
        columns: The columns behind the names.
        rows: A name and its cells each.
        shares: What part of the whole each row is, to draw bars, or nothing.
        name_width: Characters of a name as text; None: as many as there is room for.
        remainder: What is left out.
    """

    title: str
    columns: tuple[CellColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[float, ...] = ()
    name_width: int | None = None
    remainder: str = ""


Block = Claim | NameTable | str
"""A part of the first screen; an empty text is an empty line."""


def views_of(trace: Trace) -> tuple[str, ...]:
    """The views that the summary of a recording, or of a memory snapshot, is made of."""
    return OF_SNAPSHOT if has_snapshot(trace) else OF_RECORDING


def run_blocks(frames: Frames) -> Iterator[Block]:
    """What the page says about the run: which rank is slow, why, and how the ranks compare.

    Args:
        frames: The views OF_RUN, as far as there is data for them.
    """
    for row in _rows(frames, "run_advice"):
        yield _claim(row, has_action=row["rule"] not in _NO_FAULT)
        yield ""
    ranks = _rows(frames, "stragglers")
    if not ranks:
        return
    rows = (
        (visible(row["worker"]), text.time(row["without_waiting_ns"]), text.time(row["wait_ns"]), row["verdict"])
        for row in ranks[:MOST_RANKS]
    )
    columns = CellColumn("own time", 13), CellColumn("waiting", 13), CellColumn("verdict", 19, is_text=True)
    left_out = len(ranks) - MOST_RANKS
    remainder = f"… and {text.times(left_out, 'rank')} that took less" if left_out > 0 else ""
    yield NameTable("Ranks, per typical step", columns, tuple(rows), remainder=remainder)
    yield ""


def waiting_for(frames: Frames, worker: str) -> tuple[str, int]:
    """(the slow ranks that a worker waits for, how long in the average step, in ns); no rank and 0 if it doesn't."""
    slow = {row["filter"]: row["saving_ns"] for row in _rows(frames, "run_advice") if row["rule"] in _LATE}
    return (text.listed(list(slow)), next(iter(slow.values()))) if slow and worker not in slow else ("", 0)


def recording_blocks(trace: Trace, frames: Frames, waiting: tuple[str, int] = ("", 0)) -> Iterator[Block]:
    """What the page says about one recording.

    Args:
        trace: The recording.
        frames: Its `views_of`, as far as it has data for them.
        waiting: The slow rank that it waits for, and how long per step: communicating less doesn't shorten that.
    """
    if has_snapshot(trace):
        yield from _snapshot(frames)
        return
    advice = [_after_slow_rank(row, *waiting) for row in _rows(frames, "advice")]
    if advice:
        yield _claim(advice[0], has_action=advice[0]["rule"] != _NOTHING)
        yield ""
    yield from _server(_rows(frames, "phases"))
    if trace.meta.foreign_writer is not None:
        yield from _busy_lanes(trace, _rows(frames, "lanes"))
    if trace.meta.foreign_writer is None or not trace.device_events.is_empty():
        yield from _breakdown(trace, _rows(frames, "overview"))
    yield from _utilization(trace, _rows(frames, "mfu"))
    labels = labels_of_kernels(trace)
    for kind in ("kernel", "operator"):
        yield from _top(trace, frames.get("top"), kind, labels)
    yield from _others(advice[1:])


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


def _server(phases: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Tokens per second of a server, by phase."""
    said = [
        f"{row['phase']} {row['tokens_per_s']:,.0f} tokens/s".replace(",", "\u202f")
        + (f", {text.time(row['token_ns'])} per token" if row["token_ns"] is not None else "")
        for row in phases
        if row["tokens_per_s"] is not None
    ]
    if said:
        yield f"The server processes: {'; '.join(said)}."


def _snapshot(frames: Frames) -> Iterator[Block]:
    """Of a memory snapshot: why the last allocation failed, the peak, what was alive then, and what grew."""
    for row in _rows(frames, "snapshot_failure")[:1]:
        yield Claim(row["sentence"], row["evidence"], row["action"])
        yield ""
    for row in _rows(frames, "snapshot_levels"):
        if row["what"] == "peak":
            levels = [text.memory_size(row[f"{name}_bytes"]) for name in ("allocated", "active", "reserved")]
            yield f"Peak of device {row['device']}: {levels[0]} allocated, {levels[1]} active, {levels[2]} reserved"
    for title, view, amount, count in (
        ("Alive at the peak, by line", "snapshot_alive", "alive_bytes", "blocks"),
        ("Growth from the first period to the last", "snapshot_growth", "growth_bytes", "grown_periods"),
    ):
        rows = [
            (visible(row["place"]), text.memory_size(row[amount]), f"{row[count]:,}")
            for row in _rows(frames, view)[:MOST]
        ]
        if rows:
            yield ""
            columns = CellColumn("memory", 14), CellColumn(count.replace("grown_", ""), 10)
            yield NameTable(title, columns, tuple(rows))


def _breakdown(trace: Trace, rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        return
    whole = rows[-1]
    count, noun = _counted(trace), step_noun(trace.steps)
    unit = "The recording" if not count else f"Average of {count} {noun}s" if count > 1 else f"One {noun}"
    spread = f" ± {text.time(whole['stdev_ns'])}" if whole["stdev_ns"] is not None else ""
    parts = [(row["category"], row["mean_ns"], row["share_frac"] or 0.0) for row in rows[:-1] if row["mean_ns"]]
    yield NameTable(
        f"{unit}: {text.time(whole['mean_ns'])}{spread}",
        (CellColumn("", 10), CellColumn("", 9)),
        tuple((category, text.time(mean_ns), f"{100 * share:.1f} %") for category, mean_ns, share in parts),
        shares=tuple(share for _, _, share in parts),
        name_width=14,
    )
    yield ""


def _busy_lanes(trace: Trace, lanes: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    rows = (
        (
            visible(f"{row['process']} · {row['lane']}"),
            text.time(row["busy_ns"]),
            f"{100 * (row['busy_frac'] or 0):.1f} %",
            f"{row['events']:,}",
        )
        for row in lanes[:MOST_LANES]
    )
    window_ns = trace.window[1] - trace.window[0]
    title = f"Busy time by lane: {trace.meta.events:,} events in {text.time(window_ns)}"
    yield NameTable(title, (CellColumn("", 13), CellColumn("", 9), CellColumn("", 10)), tuple(rows))


def _utilization(trace: Trace, devices: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """What share of the peak a step's matrix work reaches; of several devices, their mean."""
    rows = [row for row in devices if row["mfu_frac"] is not None]
    if not rows:
        return
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in ("mfu_frac", "known_frac", "peak_flop_per_s")}
    bound = "" if mean["known_frac"] > _NEARLY_ALL else "at least "
    devices_of = f", mean of {len(rows)} devices" if len(rows) > 1 else ""
    usual = rows[0]["usual_mfu_frac"]
    without = f" ({text.percent(usual)} of one without the profiler)" if usual is not None else ""
    unit = f"the average {step_noun(trace.steps)}" if _counted(trace) else "the recording"
    yield (
        f"MFU: {bound}{text.percent(mean['mfu_frac'])} of {text.digits(mean['peak_flop_per_s'] / 1e12)} Tflop/s "
        f"({rows[0]['dtype']}) over {unit} of {text.time(rows[0]['step_ns'])}{without}{devices_of}; FLOPs are known of "
        f"{text.percent(mean['known_frac'])} of the kernel time."
    )
    yield ""


def _counted(trace: Trace) -> int:
    """The steps that averages are over; 0 if none were marked."""
    is_marked = trace.steps["name"].to_list() != ["all"]
    return (int(trace.steps["is_complete"].sum()) or trace.steps.height) if is_marked else 0


def _top(trace: Trace, frame: pl.DataFrame | None, kind: str, labels: Mapping[str, str]) -> Iterator[Block]:
    """The same rows and numbers as on the page: per complete step."""
    top = [] if frame is None else frame.filter(kind=kind).head(MOST).rows(named=True)
    if not top:
        return
    per = f"per {step_noun(trace.steps)}" if _counted(trace) > 1 else "total"
    rows = (
        (
            visible(labels.get(row["name"], row["name"]) if kind == "kernel" else row["name"]),
            text.time(row["mean_ns"]),
            f"{100 * row['share_frac']:.1f} %",
            "" if row["calls"] is None else text.often(row["calls"] / max(1, _counted(trace))),
        )
        for row in top
    )
    columns = CellColumn(per, 13), CellColumn("share", 9), CellColumn("calls", 10)
    yield NameTable(f"Top {kind}s by {top[0]['measure']}", columns, tuple(rows))
    yield ""


def _others(advice: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """What to do besides, and what is fine."""
    causes = [row for row in advice if row["rule"] != _NOTHING]
    if causes:
        yield "Also"
    for number, row in enumerate(causes, 1):
        yield _claim(row, number)
    for row in advice[len(causes) :]:
        yield ""
        yield f"{row['title']} {row['evidence']}"


def _claim(advice: Mapping[str, Any], number: int = 0, *, has_action: bool = True) -> Claim:
    action = advice["action"] if has_action else ""
    return Claim(f"{advice['title']} ({_size(advice)})", advice["evidence"], action, number)


def text_lines(blocks: Iterable[Block], width: int = WIDTH) -> Iterator[str]:
    """The blocks as text.

    Args:
        blocks: The blocks.
        width: Of a line, in characters.
    """
    for block in blocks:
        if isinstance(block, Claim):
            yield from _claim_lines(block, width)
        elif isinstance(block, NameTable):
            yield from _table_lines(block, width)
        else:
            yield from _wrapped(block, width) or [""]


def _claim_lines(claim: Claim, width: int) -> Iterator[str]:
    before = f"{claim.number:>2}. " if claim.number else ""
    after = " " * (len(before) or 2)
    yield from _wrapped(claim.title, width, before)
    yield from _wrapped(claim.evidence, width, after)
    yield from _wrapped(claim.action, width, f"{after}→ ")


def _table_lines(table: NameTable, width: int) -> Iterator[str]:
    numbers = sum(column.width for column in table.columns)
    room = table.name_width or max(_LEAST_NAME, min(_TABLE - numbers, width - 2 - numbers))
    headings = [column.heading for column in table.columns]
    if any(headings):
        yield f"{_cut(table.title, room + 2):<{room + 2}}{_cells(table.columns, headings)}"
    else:
        yield table.title
    for number, (name, *cells) in enumerate(table.rows):
        bar = "  " + "█" * round(_BAR * table.shares[number]) if table.shares else ""
        yield f"  {_cut(name, room):<{room}}{_cells(table.columns, cells)}{bar}".rstrip()
    if table.remainder:
        yield f"  {table.remainder}"


def _cells(columns: Sequence[CellColumn], cells: Sequence[str]) -> str:
    pairs = zip(columns, cells, strict=True)
    return "".join(f"  {cell}" if column.is_text else f"{cell:>{column.width}}" for column, cell in pairs)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _wrapped(sentence: str, width: int, before: str = "") -> list[str]:
    after = " " * len(before)
    return textwrap.wrap(
        visible(sentence), width, initial_indent=before, subsequent_indent=after, break_long_words=False
    )
