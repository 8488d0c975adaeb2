"""Notes from the recorder's `run.json`: which traces of a run are missing, partial or lost, and why.

The file is as untrusted as a trace: entries that don't follow docs/run-json.md are ignored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from kinetoscope.output.manifest import ENDED, KEPT, KILLED, LOST, MISSING, PARTIAL, SAVED

from ..errors import TraceError
from ..filesystem import Entry, stored_bytes

MOST_BYTES = 32 << 20
MOST_NOTES = 200  # of one run; more would not help anyone
MOST_TEXT = 500
MOST_CACHED = 1 << 12  # manifests

_WORDS: dict[str, tuple[str, str]] = {  # state of a window on a rank: level and text
    MISSING: ("loss", "no trace"),
    LOST: ("loss", "the recording is lost"),
    KEPT: ("loss", "not written yet, `kinetoscope recover` tries again"),
    PARTIAL: ("warning", "ended early"),
}
_GONE = "run.json lists the trace as saved, but the file is missing"


@dataclass(frozen=True)
class Note:
    """A note about a run.

    Args:
        rule: Its kind.
        level: As in Trace health.
        text: A sentence.
        span: The span that it concerns; empty for the whole run.
        ranks: How many ranks it concerns.
    """

    rule: str
    level: Literal["loss", "warning", "note"]
    text: str
    span: str
    ranks: int


@dataclass(frozen=True)
class Manifest:
    """The content of one `run.json`.

    Args:
        notes: Notes about the run.
        saved: Span, rank and path below the run's folder of each trace that should be there.
        missing: Span, rank and reason of each trace that a process didn't report although it ended in order.
    """

    notes: tuple[Note, ...]
    saved: tuple[tuple[int, int, str], ...]
    missing: tuple[tuple[int, int, str], ...] = ()

    def notes_with_lost_files(
        self, is_there: Callable[[str], bool], has_trace: Callable[[int, int], bool]
    ) -> tuple[Note, ...]:
        """The notes, plus those for each span with missing traces.

        Args:
            is_there: Returns whether a path below the run's folder exists.
            has_trace: Returns whether the run has a trace of a span and a rank, whatever its process reported.
        """
        ranks_of_span: dict[int, list[int]] = defaultdict(list)
        for span, rank, file in self.saved:
            if not is_there(file):
                ranks_of_span[span].append(rank)
        lost_files = [
            Note("rank_gone", "loss", _sentence(f"Span {span}: {_rank_text(ranks)}", _GONE), str(span), len(ranks))
            for span, ranks in ranks_of_span.items()
        ]
        absent: dict[tuple[int, str], list[int]] = defaultdict(list)
        for span, rank, text in self.missing:
            if not has_trace(span, rank):
                absent[span, text].append(rank)
        never = [
            Note(f"rank_{MISSING}", "loss", _sentence(f"Span {span}: {_rank_text(ranks)}", text), str(span), len(ranks))
            for (span, text), ranks in absent.items()
        ]
        return (*lost_files, *never, *self.notes)[:MOST_NOTES]


class Manifests:
    """The manifests of the logdirs, each read once until its file changes."""

    def __init__(self) -> None:
        self._cached: dict[str, tuple[Any, Manifest | None]] = {}

    def manifest(self, entry: Entry) -> Manifest | None:
        """The manifest in a file; None if it isn't one."""
        stamp, manifest = self._cached.get(entry.path, (None, None))
        if entry.path not in self._cached or stamp != entry.stamp:
            manifest = _read(entry)
            if len(self._cached) >= MOST_CACHED:
                self._cached.clear()
            self._cached[entry.path] = (entry.stamp, manifest)
        return manifest


def _read(entry: Entry) -> Manifest | None:
    content = None if entry.bytes is not None and entry.bytes > MOST_BYTES else content_of(entry.path)
    if content is None:
        return None
    notes = [*_of_run(content)]
    files: list[tuple[int, int, str]] = []
    missing: list[tuple[int, int, str]] = []
    finishers = {str(rank.get("rank")) for rank in dicts(content.get("ranks")) if rank.get("state") == ENDED}
    for window in dicts(content.get("windows")):
        notes += _of_window(window, finishers)
        files += _saved_in(window)
        missing += _missing_in(window, finishers)
    notes += _of_snapshots(content)
    return Manifest(tuple(notes[:MOST_NOTES]), tuple(files), tuple(missing))


def content_of(path: str) -> dict[str, Any] | None:
    """The object in a manifest; None if it isn't one."""
    try:
        content = json.loads(stored_bytes(path, 0, MOST_BYTES))
    except (TraceError, OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("schema"), int) or "traceEvents" in content:
        return None
    return content


def _of_snapshots(content: dict[str, Any]) -> Iterator[Note]:
    """Notes about memory snapshots that weren't written."""
    alike: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    for snapshot in dicts(content.get("snapshots")):
        state, span, rank = snapshot.get("state"), snapshot.get("span"), snapshot.get("rank")
        if state in (LOST, KEPT) and _is_number(span) and _is_number(rank):
            statement = next(text for _, _, text in _statements(snapshot))
            alike[span, state, statement].append(rank)
    for (span, state, statement), ranks in alike.items():
        text = _sentence(f"Memory snapshot of span {span}: {_rank_text(ranks)}", statement)
        yield Note(f"snapshot_{state}", "loss", text, "", len(ranks))


def _saved_in(window: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Span, rank and file of each trace of a window that was saved and not deleted on purpose."""
    span, ranks = window.get("span"), window.get("ranks")
    if not _is_number(span) or not isinstance(ranks, dict):
        return
    for rank, outcome in ranks.items():
        if _is_rank(rank) and isinstance(outcome, dict) and outcome.get("state") in (SAVED, PARTIAL):
            file = outcome.get("file")
            if not outcome.get("pruned") and isinstance(file, str) and _lies_below(file):
                yield span, int(rank), file


def _missing_in(window: dict[str, Any], finishers: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Span, rank and reason of each trace of a window that a process didn't report although it ended in order.

    A trace of a process that was killed says nothing against its note: `kinetoscope recover` may have made it.
    """
    span, ranks = window.get("span"), window.get("ranks")
    if not _is_number(span) or not isinstance(ranks, dict):
        return
    for rank, outcome in ranks.items():
        if _is_rank(rank) and rank in finishers and isinstance(outcome, dict) and outcome.get("state") == MISSING:
            yield from ((span, int(rank), text) for state, _, text in _statements(outcome) if state == MISSING)


def _lies_below(file: str) -> bool:
    """Whether a path can be one below the run's folder."""
    parts = file.split("/")
    return file.isprintable() and "\\" not in file and not any(part in ("", ".", "..") for part in parts)


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _is_number(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer of reasonable size."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _of_run(content: dict[str, Any]) -> Iterator[Note]:
    """Notes about processes that don't belong to one window."""
    by_problem: dict[tuple[str, str, bool], list[int]] = defaultdict(list)
    ranks_of: dict[str, list[int]] = defaultdict(list)
    doubts: dict[str, list[int]] = defaultdict(list)
    for rank in dicts(content.get("ranks")):
        number, problem, state = rank.get("rank"), rank.get("problem"), rank.get("state")
        if not _is_number(number):
            continue
        if isinstance(problem, str) and isinstance(state, str):
            is_loss = state == KILLED and _is_number(rank.get("recording_since_step"))
            by_problem[state, problem, is_loss].append(number)
        if isinstance(rank.get("doubt"), str):
            doubts[rank["doubt"]].append(number)
        for left in dicts(rank.get("left_out")):
            if _is_number(left.get("step")) and isinstance(left.get("problem"), str):
                text = f"no window from step {left['step']} on: {left['problem']}"
                ranks_of[text].append(number)
    for text, ranks in ranks_of.items():
        yield Note("window_left_out", "loss", _sentence(_rank_text(ranks), text), "", len(ranks))
    for text, ranks in doubts.items():
        yield Note("job_in_doubt", "note", _sentence(_rank_text(ranks), text), "", len(ranks))
    for (state, problem, is_loss), ranks in by_problem.items():
        rule, level = ("rank_killed", "loss" if is_loss else "warning") if state == KILLED else ("rank_problem", "note")
        yield Note(rule, level, _sentence(_rank_text(ranks), problem), "", len(ranks))  # type: ignore[arg-type]


def _of_window(window: dict[str, Any], finishers: Collection[str]) -> Iterator[Note]:
    span, ranks = window.get("span"), window.get("ranks")
    if not _is_number(span) or not isinstance(ranks, dict):
        return
    alike: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for rank, outcome in ranks.items():
        if _is_rank(rank) and isinstance(outcome, dict):
            for state, level, problem in _statements(outcome):
                if state != MISSING or rank not in finishers:  # else the listing knows whether there is a trace
                    alike[state, level, problem].append(int(rank))
    for (state, level, problem), numbers in alike.items():
        text = _sentence(f"Span {span}: {_rank_text(numbers)}", problem)
        yield Note(f"rank_{state}", level, text, str(span), len(numbers))  # type: ignore[arg-type]


def _statements(outcome: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """State, level and text of the notes about a window on one rank."""
    state, problem = outcome.get("state"), outcome.get("problem")
    why = problem if isinstance(problem, str) else outcome.get("reason")
    why = why if isinstance(why, str) else "for an unknown reason"
    if isinstance(state, str) and state in _WORDS:
        level, words = _WORDS[state]
        yield state, level, f"{words}: {why}"
    elif state == SAVED and isinstance(problem, str):
        yield "repaired", "warning", problem
    upload = outcome.get("upload")
    if isinstance(upload, dict) and upload.get("state") == "failed":
        yield "not_copied", "note", f"not copied: {upload.get('problem')}"


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a list; none if it is no list."""
    yield from (item for item in (value if isinstance(value, list) else []) if isinstance(item, dict))


def _sentence(who: str, statement: str) -> str:
    text = f"{who}: {statement}"[:MOST_TEXT]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _rank_text(ranks: Iterable[int]) -> str:
    """Ranks as text, with ranges: `ranks 0-3, 7`."""
    ranges: list[list[int]] = []
    for rank in sorted(ranks):
        if ranges and ranges[-1][1] == rank - 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    text = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in ranges)
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'rank' if is_one else 'ranks'} {text}"
