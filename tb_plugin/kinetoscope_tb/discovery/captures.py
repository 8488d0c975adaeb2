"""Captures next to a trace: recordings of how the graphs were made that the trace replays.

vLLM and others write them into a folder `capture_traces` next to the trace, SGLang into `graph_capture_profile`, others
next to it with *capture* in the name.
Or another span of the same worker recorded them: one of the server's start. A memory snapshot has the trace of its span
next to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from kinetoscope.naming import parse_snapshot, snapshot_name

from ..filesystem import Entry, folders, is_url, last_part
from ..names.regex import regex
from .filename_patterns import is_candidate, name_parts
from .listing import CAPTURES

BEGINS_CAPTURE = "StreamBeginCapture"
"""Part of the name of the call that begins the capture of a graph, of CUDA and HIP."""
MOST, MOST_BYTES = 64, 1 << 29
DETAILS = "execution_details.json"  # names each capture's size; no trace
_NOTES = regex(r"py_stacks|kernel_annotations")
_SPEAKING = regex(r"capture|py_stacks|kernel_annotations", re.IGNORECASE)
_RANK = regex(r"(?:rank|TP|worker)[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class CapturePlaces:
    """Files that may say what the graphs of a trace launch, or traces of the time of a memory snapshot.

    Args:
        likely: Those that the user chose, else those next to the trace.
        spans: Other spans of the same worker, which are searched if no likely file fits.
        are_chosen: Whether the user chose.
    """

    likely: tuple[Entry, ...] = ()
    spans: tuple[Entry, ...] = ()
    are_chosen: bool = False

    def __bool__(self) -> bool:
        return bool(self.likely or self.spans)

    def stamps(self, traces_used: Sequence[str]) -> Mapping[str, Any]:
        """What changes when a search would come to something else; `traces_used` are the files that it came to."""
        spans = [span for span in self.spans if not traces_used or span.path in traces_used]
        return {entry.path: entry.stamp for entry in (*self.likely, *spans)}


def holds_node_notes(name: str) -> bool:
    """Whether a file of this name has notes about the nodes of graphs: torch 2.15's side-car files, as JSON."""
    return bool(_NOTES.search(name)) and is_candidate(name)


def captures_beside(path: str, rank: int | None = None) -> tuple[Entry, ...]:
    """The captures and notes next to a trace: those of its rank, if their names say it; at most MOST, of MOST_BYTES.

    Args:
        path: The trace.
        rank: Its rank, if its name doesn't say it.
    """
    parent, name = path[: -len(last_part(path))], last_part(path)
    own_folders = [] if "capture" in name.lower() else [f"{parent}{folder}" for folder in CAPTURES]
    entries = [entry for folder in own_folders for entry in _entries(folder, re.compile(""))]
    if not is_url(path):
        entries += [entry for entry in _entries(parent or ".", _SPEAKING) if entry.name != name]
    own = _rank(name) if _rank(name) is not None else rank
    ranks = {_rank(entry.name) for entry in entries}
    if ranks - {None}:
        chosen_rank = own if own in ranks else min(number for number in ranks if number is not None)
        entries = [entry for entry in entries if _rank(entry.name) in (chosen_rank, None)]
    size = accumulate(entry.bytes or 0 for entry in entries)
    return tuple(
        entry for entry, until in zip(entries[:MOST], size, strict=False) if until <= MOST_BYTES or entry is entries[0]
    )


def spans_beside(path: str) -> tuple[Entry, ...]:
    """The other recordings of the same worker in the folder of a local trace, the smallest first."""
    name = last_part(path)
    if is_url(path):
        return ()
    own = name_parts(name)
    entries = (entry for entry in _entries(path[: -len(name)] or ".", re.compile("")) if entry.name != name)
    same = [
        entry
        for entry in entries
        if name_parts(entry.name).worker == own.worker and name_parts(entry.name).span != own.span
    ]
    return tuple(sorted(same, key=lambda entry: (entry.bytes or 0, entry.name)))


def traces_beside(path: str) -> tuple[Entry, ...]:
    """The traces of the same worker and span in the folder of a local memory snapshot that our recorder named."""
    name = last_part(path)
    parts = parse_snapshot(name)
    if is_url(path) or parts is None:
        return ()
    entries = _entries(path[: -len(name)] or ".", re.compile(re.escape(parts[0])))
    return tuple(entry for entry in entries if snapshot_name(entry.name) == snapshot_name(parts[0]))


def _entries(folder: str, speaks: re.Pattern[str]) -> list[Entry]:
    """The files that lie directly in a folder and whose names match."""
    files_in_folder = next(
        folders(folder, lambda name: is_candidate(name) and bool(speaks.search(name)) and name != DETAILS), None
    )
    return [] if files_in_folder is None or files_in_folder.name else list(files_in_folder.entries)


def _rank(name: str) -> int | None:
    match = _RANK.search(name)
    return int(match[1]) if match else None
