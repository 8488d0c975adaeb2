"""The first screen: an answer as a list of blocks: claims, tables of names with numbers, and sentences.

The terminal shows them as text, a notebook as HTML.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..names import text
from ..names.text import visible
from .model import Answer, Claim

WIDTH = 100
_BAR = 20
_TABLE, _LEAST_NAME = 80, 20  # characters of a table without its indentation, and of the names in it


@dataclass(frozen=True)
class ClaimBlock:
    """What was found, in words.

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


Block = ClaimBlock | NameTable | str
"""A part of the first screen; an empty text is an empty line."""


def blocks_of(answer: Answer, option: str) -> Iterator[Block]:
    """The first screen: what costs most, where the time went, and what else there is to do.

    Args:
        answer: The answer.
        option: What chooses the worker of a run.
    """
    own = [claim for claim in answer.claims if claim.about == "recording"]
    is_first = bool(own) and answer.verdict is own[0]
    if is_first:
        yield from (_block(answer, own[0]), "")
    if answer.ranks:
        yield from _run(answer)
        yield visible(f"{answer.worker} alone; {option} chooses another")
    if own and not is_first:
        yield from (_block(answer, own[0]), "")
    if "losses" in answer.sentences:
        yield from (visible(answer.sentences["losses"]), "")
    yield from _tables(answer)
    yield from _others(answer, own[1:])


def _run(answer: Answer) -> Iterator[Block]:
    """Which rank is slow, why, and how the ranks compare."""
    for claim in answer.claims:
        if claim.about == "run":
            yield from (_block(answer, claim), "")
    rows = tuple(
        (
            visible(row["worker"]),
            text.time(row["mean_without_waiting_ns"]),
            text.time(row["mean_exposed_wait_ns"]),
            row["verdict"],
        )
        for row in answer.rows.get("stragglers", ())
    )
    columns = CellColumn("own time", 13), CellColumn("waiting", 13), CellColumn("verdict", 19, is_text=True)
    if rows:
        remainder = answer.sentences.get("other_ranks", "")
        yield from (NameTable("Ranks, per average step", columns, rows, remainder=remainder), "")


def _tables(answer: Answer) -> Iterator[Block]:
    """Where the time went, or the memory."""
    if "tokens" in answer.sentences:
        yield answer.sentences["tokens"]
    yield from _busy_lanes(answer)
    yield from _breakdown(answer)
    if "mfu" in answer.sentences:
        yield from (answer.sentences["mfu"], "")
    yield from _top(answer, "kernel")
    yield from _top(answer, "operator")
    yield from answer.sentences.get("peak", "").splitlines()
    yield from _memory(answer)


def _memory(answer: Answer) -> Iterator[Block]:
    """Of a memory snapshot: what was alive at the peak, and what grew."""
    for title, view, amount, count in (
        ("Alive at the peak, by line", "snapshot_alive", "alive_bytes", "blocks"),
        ("Growth from the first period to the last", "snapshot_growth", "growth_bytes", "grown_periods"),
    ):
        rows = tuple(
            (visible(row["place"]), text.memory_size(row[amount]), f"{row[count]:,}")
            for row in answer.rows.get(view, ())
        )
        if rows:
            columns = CellColumn("memory", 14), CellColumn(count.replace("grown_", ""), 10)
            yield from ("", NameTable(title, columns, rows))


def _breakdown(answer: Answer) -> Iterator[Block]:
    rows = answer.rows.get("overview", ())
    if not rows or not rows[-1]["mean_ns"]:
        return
    whole, count, noun = rows[-1], answer.steps, answer.step_noun
    unit = "The recording" if not count else f"Average of {count} {noun}s" if count > 1 else f"One {noun}"
    if answer.steps_left_out:
        of = f"of {count + answer.steps_left_out} {noun}s"
        unit = f"Average of {count} {of}" if count > 1 else f"One {of}"
    spread = f" ± {text.time(whole['stdev_ns'])}" if whole["stdev_ns"] is not None else ""
    usual = f", {text.time(answer.usual_step_ns)} without the profiler" if answer.usual_step_ns else ""
    parts = [(row["category"], row["mean_ns"], row["share_frac"] or 0.0) for row in rows[:-1] if row["mean_ns"]]
    yield NameTable(
        f"{unit}: {text.time(whole['mean_ns'])}{spread}{usual}",
        (CellColumn("", 10), CellColumn("", 9)),
        tuple((category, text.time(mean_ns), text.percent(share)) for category, mean_ns, share in parts),
        shares=tuple(share for _, _, share in parts),
        name_width=14,
        remainder=answer.sentences.get("left_out", ""),
    )
    yield ""


def _busy_lanes(answer: Answer) -> Iterator[Block]:
    rows = tuple(
        (
            visible(f"{row['process']} · {row['lane']}"),
            text.time(row["busy_ns"]),
            text.percent(row["recording_share_frac"] or 0),
            f"{row['events']:,}",
        )
        for row in answer.rows.get("lanes", ())
    )
    if rows:
        title = f"Busy time by lane: {answer.events:,} events in {text.time(answer.window_ns)}"
        yield NameTable(title, (CellColumn("", 13), CellColumn("", 9), CellColumn("", 10)), rows)


def _top(answer: Answer, kind: str) -> Iterator[Block]:
    """The same rows and numbers as on the page: per complete step."""
    top = [row for row in answer.rows.get("top", ()) if row["kind"] == kind]
    if not top:
        return
    per = f"per {answer.step_noun}" if answer.steps > 1 else "total"
    rows = (
        (
            visible(row["label"]),
            text.time(row["mean_ns"]),
            text.percent(row["share_frac"]),
            "" if row["calls"] is None else text.often(row["calls"] / max(1, answer.steps)),
        )
        for row in top
    )
    columns = CellColumn(per, 13), CellColumn("share", 9), CellColumn("calls", 10)
    yield NameTable(f"Top {kind}s by {top[0]['measure']}", columns, tuple(rows))
    yield ""


def _others(answer: Answer, claims: Sequence[Claim]) -> Iterator[Block]:
    """What to do besides, and what is fine."""
    causes = [claim for claim in claims if not claim.is_in_order]
    if causes:
        yield "Also"
    for number, claim in enumerate(causes, 1):
        yield _block(answer, claim, number)
    for claim in claims:
        if claim.is_in_order:
            yield from ("", f"{claim.title} {claim.evidence}")


def _block(answer: Answer, claim: Claim, number: int = 0) -> ClaimBlock:
    action = "" if claim.is_in_order else claim.action
    is_of_usual = claim.about == "recording" and answer.usual_step_ns is not None
    of = f" of a {answer.step_noun} without the profiler" if is_of_usual else ""
    return ClaimBlock(f"{claim.title} ({_size(claim, of)})", claim.evidence, action, number)


def _size(claim: Claim, of: str) -> str:
    confidence = "can't tell" if claim.confidence == "cannot_tell" else f"confidence {claim.confidence}"
    if claim.saving_ns is None:
        return confidence
    most, bounds = "at most", ""
    if claim.saving_low_ns is not None and claim.saving_high_ns is not None:
        most, bounds = "about", f" ({text.time_range(claim.saving_low_ns, claim.saving_high_ns)})"
    share = text.percent(claim.saving_frac or 0)
    return f"saves {most} {text.time(claim.saving_ns)}{bounds}, {share}{of}; {confidence}"


def text_lines(blocks: Iterable[Block], width: int = WIDTH) -> Iterator[str]:
    """The blocks as text.

    Args:
        blocks: The blocks.
        width: Of a line, in characters.
    """
    for block in blocks:
        if isinstance(block, ClaimBlock):
            yield from _claim_lines(block, width)
        elif isinstance(block, NameTable):
            yield from _table_lines(block, width)
        else:
            yield from _wrap(block, width) or [""]


def _claim_lines(claim: ClaimBlock, width: int) -> Iterator[str]:
    before = f"{claim.number:>2}. " if claim.number else ""
    after = " " * (len(before) or 2)
    yield from _wrap(claim.title, width, before)
    yield from _wrap(claim.evidence, width, after)
    yield from _wrap(claim.action, width, f"{after}→ ")


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
    yield from _wrap(table.remainder, width, "  ")


def _cells(columns: Sequence[CellColumn], cells: Sequence[str]) -> str:
    pairs = zip(columns, cells, strict=True)
    return "".join(f"  {cell}" if column.is_text else f"{cell:>{column.width}}" for column, cell in pairs)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _wrap(sentence: str, width: int, before: str = "") -> list[str]:
    after = " " * len(before)
    return textwrap.wrap(
        visible(sentence), width, initial_indent=before, subsequent_indent=after, break_long_words=False
    )
