"""Begin and end events → durations.

Perfetto's rule: an end closes the latest open begin of its track, in order of time. Torch 2.15 writes, group by group,
all begins and then all ends in the same order, so there the i-th end of a track closes its i-th begin; by time and
depth, a slice that ends in the ns in which the next one begins would swallow that. Its sequences set a flag on begins
and none on ends, which no writer that follows Perfetto's rules does. Where such a group is damaged, time decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...trace.model import Diagnostic
from ..frames.begin_end import close_by_time, note_unpaired
from ..frames.plausible_times import plausible_times
from ..scan.columns import narrow
from ..scan.rows import ENDLESS, LAYOUTS, LONGEST_NS, OPEN, SortedEvents
from ..scan.tokens import Texts

OFFSET, SEQUENCE, GROUP, TRACK, TIME = range(5)


@dataclass
class Slices:
    """All begins and ends of a file, as columns in the order of the file."""

    begins: list[NDArray[np.int64]] = field(default_factory=list)
    ends: list[NDArray[np.int64]] = field(default_factory=list)

    def close(self, events: SortedEvents, sequences: NDArray[np.int64], damage: NDArray[np.int64]) -> list[Diagnostic]:
        """Set the duration of each begin event.

        Args:
            events: Where they are.
            sequences: The sequences whose ends are in the order of their begins.
            damage: Offsets of damaged places, ascending.
        """
        begins, ends = _concatenate(self.begins), _concatenate(self.ends)
        self.begins, self.ends = [], []
        dur = np.full(begins.shape[1], NONE, np.int64)
        is_used = np.zeros(ends.shape[1], bool)
        _close_in_order(begins, ends, sequences, damage, dur, is_used)
        _close_by_time(begins, ends, dur, is_used)
        plausible = plausible_times(events, Texts(events.tokens), ends[TIME])
        both, dur = np.concatenate([begins, ends], axis=1), np.append(dur, np.where(is_used, 0, NONE))
        is_end = np.arange(dur.size) >= begins.shape[1]
        diagnostics = note_unpaired(both[TRACK], both[OFFSET], is_end, plausible.excludes(both[TIME]), dur)
        dur[dur > LONGEST_NS] = ENDLESS
        dur[dur == NONE] = OPEN
        _set_durations(events, begins[OFFSET], dur)
        return diagnostics


def _concatenate(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts, axis=1) if parts else np.empty((5, 0), np.int64)


def _close_in_order(
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    sequences: NDArray[np.int64],
    damage: NDArray[np.int64],
    dur: NDArray[np.int64],
    is_used: NDArray[np.bool_],
) -> None:
    """Close the i-th begin of a track in a group with its i-th end, if there are as many of both and none is early."""
    ours, theirs = (np.flatnonzero(np.isin(rows[SEQUENCE], sequences)) for rows in (begins, ends))
    if not damage.size and _same_order(begins, ours, ends, theirs):
        durations = ends[TIME, theirs] - begins[TIME, ours]
        if (durations >= 0).all():
            dur[ours], is_used[theirs] = durations, True
            return
    ours, theirs = _by_track(begins, ours), _by_track(ends, theirs)
    if not ours.size or not theirs.size:
        return
    first = _first_of_track(begins, ours)
    sizes = np.diff(np.append(first, ours.size))
    keys = begins[SEQUENCE : TRACK + 1, ours[first]]
    last = _first_of_track(ends, theirs)
    end_sizes = np.diff(np.append(last, theirs.size))
    end_keys = ends[SEQUENCE : TRACK + 1, theirs[last]]
    tracks = zip(end_keys.T.tolist(), last.tolist(), end_sizes.tolist(), strict=True)
    ends_of_track = {tuple(key): (at, size) for key, at, size in tracks}
    for key, at, size in zip(keys.T.tolist(), first.tolist(), sizes.tolist(), strict=True):
        start, count = ends_of_track.get(tuple(key), (0, 0))
        if count != size:
            continue
        b, e = ours[at : at + size], theirs[start : start + size]
        durations = ends[TIME, e] - begins[TIME, b]
        is_whole = np.ptp(np.searchsorted(damage, [begins[OFFSET, b[0]], ends[OFFSET, e[-1]]])) == 0
        if (durations >= 0).all() and is_whole:
            dur[b], is_used[e] = durations, True


def _same_order(
    begins: NDArray[np.int64], ours: NDArray[np.int64], ends: NDArray[np.int64], theirs: NDArray[np.int64]
) -> bool:
    """Whether the i-th end is of the same sequence, group and track as the i-th begin: so they are in torch's files."""
    if ours.size != theirs.size:
        return False
    return all(np.array_equal(begins[column, ours], ends[column, theirs]) for column in (SEQUENCE, GROUP, TRACK))


def _by_track(rows: NDArray[np.int64], selection: NDArray[np.int64]) -> NDArray[np.int64]:
    """The chosen rows by sequence, group and track, then in the order of the file."""
    order = np.lexsort([rows[column, selection] for column in (OFFSET, TRACK, GROUP, SEQUENCE)])
    sorted_rows: NDArray[np.int64] = selection[order]
    return sorted_rows


def _first_of_track(rows: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    keys = rows[SEQUENCE : TRACK + 1, order]
    changes = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def _close_by_time(
    begins: NDArray[np.int64], ends: NDArray[np.int64], dur: NDArray[np.int64], is_used: NDArray[np.bool_]
) -> None:
    b, e = np.flatnonzero(dur == NONE), np.flatnonzero(~is_used)
    if not b.size or not e.size:
        return
    both = np.concatenate([begins[:, b], ends[:, e]], axis=1)
    is_end = np.arange(both.shape[1]) >= b.size
    durations = close_by_time(both[TRACK], both[TIME], both[OFFSET], is_end)
    dur[b], is_used[e] = durations[: b.size], durations[b.size :] != NONE


def _set_durations(events: SortedEvents, offsets: NDArray[np.int64], dur: NDArray[np.int64]) -> None:
    if not offsets.size:
        return
    for name, layout in LAYOUTS.items():
        rows = events.frames[name]
        if not layout.is_timed or not rows["offset"].size:
            continue
        at = rows["offset"].astype(np.int64)
        index = np.minimum(np.searchsorted(offsets, at), offsets.size - 1)
        ours = np.flatnonzero((offsets[index] == at) & (rows["dur"] == NONE))
        rows.put("dur", ours, narrow(dur[index[ours]]).astype(np.int64))
