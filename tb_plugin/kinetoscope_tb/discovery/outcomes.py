"""What the recorder says of a run beside its traces: `run.json`, which names what is missing, partial or lost, and why.

The file is as untrusted as a trace: what isn't of the form that docs/run-json.md describes is passed over.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kinetoscope.manifest import KEPT, KILLED, LOST, MISSING, PARTIAL, SAVED

from ..errors import TraceError
from ..storage import Entry, stored_bytes

MOST_BYTES = 32 << 20
MOST_NOTES = 200  # of one run; whoever loses more needs no more of them
MOST_TEXT = 500
MOST_KNOWN = 1 << 12  # manifests that are remembered

_WORDS: dict[str, tuple[str, str]] = {  # state of a window on a rank: level, and what is said of it
    MISSING: ("loss", "no trace"),
    LOST: ("loss", "the recording is lost"),
    KEPT: ("loss", "not written yet, `kinetoscope recover` tries again"),
    PARTIAL: ("warning", "ended early"),
}


@dataclass(frozen=True)
class Note:
    """Something to know of a run.

    Args:
        rule: What kind of thing.
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


class Manifests:
    """The manifests of the logdirs, each read once while its file stays as it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, tuple[Note, ...] | None]] = {}

    def notes(self, entry: Entry) -> tuple[Note, ...] | None:
        """What a file says; None if it is no manifest."""
        stamp, notes = self._known.get(entry.path, (None, None))
        if entry.path not in self._known or stamp != entry.stamp:
            notes = _read(entry)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[entry.path] = (entry.stamp, notes)
        return notes


def _read(entry: Entry) -> tuple[Note, ...] | None:
    if entry.bytes is not None and entry.bytes > MOST_BYTES:
        return None
    try:
        told = json.loads(stored_bytes(entry.path, 0, MOST_BYTES))
    except (TraceError, OSError, ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("schema"), int) or "traceEvents" in told:
        return None
    notes = [*_of_run(told)]
    for window in _dicts(told.get("windows")):
        notes += _of_window(window)
    return tuple(notes[:MOST_NOTES])


def _of_run(told: dict[str, Any]) -> Iterator[Note]:
    """What became of processes, beside their windows."""
    by_problem: dict[tuple[str, str], list[int]] = defaultdict(list)
    missed: dict[str, list[int]] = defaultdict(list)
    for rank in _dicts(told.get("ranks")):
        number, problem, state = rank.get("rank"), rank.get("problem"), rank.get("state")
        if isinstance(number, int) and isinstance(problem, str) and isinstance(state, str):
            by_problem[state, problem].append(number)
        if isinstance(number, int):
            for left in _dicts(rank.get("left_out")):
                if isinstance(left.get("step"), int) and isinstance(left.get("problem"), str):
                    missed[f"no window from step {left['step']} on: {left['problem']}"].append(number)
    for said, ranks in missed.items():
        yield Note("window_left_out", "loss", _sentence(_named(ranks), said), "", len(ranks))
    for (state, problem), ranks in by_problem.items():
        is_killed = state == KILLED
        rule, level = ("rank_killed", "warning") if is_killed else ("rank_problem", "note")
        yield Note(rule, level, _sentence(_named(ranks), problem), "", len(ranks))  # type: ignore[arg-type]


def _of_window(window: dict[str, Any]) -> Iterator[Note]:
    span, ranks = window.get("span"), window.get("ranks")
    if not isinstance(span, int) or not isinstance(ranks, dict):
        return
    alike: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for rank, outcome in ranks.items():
        if rank.isascii() and rank.isdigit() and len(rank) < 10 and isinstance(outcome, dict):
            for state, level, said in _said(outcome):
                alike[state, level, said].append(int(rank))
    for (state, level, said), numbers in alike.items():
        text = _sentence(f"Span {span}: {_named(numbers)}", said)
        yield Note(f"rank_{state}", level, text, str(span), len(numbers))  # type: ignore[arg-type]


def _said(outcome: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """State, level and words of what is to be said of a window on one rank."""
    state, problem = outcome.get("state"), outcome.get("problem")
    why = problem if isinstance(problem, str) else outcome.get("reason")
    why = why if isinstance(why, str) else "nobody knows why"
    if isinstance(state, str) and state in _WORDS:
        level, words = _WORDS[state]
        yield state, level, f"{words}: {why}"
    elif state == SAVED and isinstance(problem, str):
        yield "repaired", "warning", problem
    upload = outcome.get("upload")
    if isinstance(upload, dict) and upload.get("state") == "failed":
        yield "not_copied", "note", f"not copied: {upload.get('problem')}"


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    yield from (item for item in (value if isinstance(value, list) else []) if isinstance(item, dict))


def _sentence(who: str, said: str) -> str:
    text = f"{who}: {said}"[:MOST_TEXT]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _named(ranks: Iterable[int]) -> str:
    """Ranks in words, neighbours together: `ranks 0-3, 7`."""
    stretches: list[list[int]] = []
    for rank in sorted(ranks):
        if stretches and stretches[-1][1] == rank - 1:
            stretches[-1][1] = rank
        else:
            stretches.append([rank, rank])
    shown = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in stretches)
    is_one = len(stretches) == 1 and stretches[0][0] == stretches[0][1]
    return f"{'rank' if is_one else 'ranks'} {shown}"
