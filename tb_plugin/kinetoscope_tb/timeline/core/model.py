"""The timeline of a trace: every slice that it can draw, on tracks cut into lanes.

A *slice* is anything with a time: an operator, a call, a kernel, a wait; an instant is a slice that lasts 0 ns. A
*track* is one kind of slices of one thread or stream. A *row* is one lane of a track; its slices don't overlap. Slices
are numbered by row, then by start, so a number identifies where a slice is drawn; the same file always gets the same
ones.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...arrays.intervals import length_within, union
from ...names.python_frames import function_name
from .pyramid import Pyramid

Part = Literal["annotations", "projected", "calls", "work", "waits", "python", "other"]

CATEGORIES = (
    "Kernel",
    "Communication",
    "Memcpy",
    "Memset",
    "Step",
    "DataLoader",
    "Annotation",
    "Operator",
    "Runtime",
    "Module",
    "Python",
    "Wait",
    "Other",
)

_ACTIVITY_BINS = 512

FRAMES = ("host_events", "launches", "device_events", "python_calls", "syncs", "others")
"""The frames of a trace whose rows become slices. Records of memory become counters, ends of arrows become arrows."""


@dataclass(frozen=True)
class Track:
    """Some slices of one thread or stream, in lanes.

    Args:
        process: Display name of the device or process it is drawn under.
        name: Display name of the thread or stream.
        part: Which of its slices: annotations; calls (operators, and calls to the runtime and the driver); python
            (functions and modules); work (kernels, copies, fills); projected (GPU spans of annotations, computed here);
            waits (of streams); or other.
        device, stream: For a stream; None for a thread.
        pid, tid: For a thread, as written in the file; None for a stream that isn't listed as a thread.
        thread: Its row in the trace's threads; None for a stream that isn't listed as a thread.
        first_row: The row that is its first lane.
        lanes: How many rows it has.
        slices: How many slices.
    """

    process: str
    name: str
    part: Part
    device: int | None
    stream: int | None
    pid: str | None
    tid: str | None
    thread: int | None
    first_row: int
    lanes: int
    slices: int


@dataclass(frozen=True)
class Labels:
    """What slices are called: one entry for each pair of name and category.

    Args:
        texts: The names.
        categories: Index into CATEGORIES of each.
    """

    texts: list[str]
    categories: NDArray[np.uint8]

    @cached_property
    def shown_texts(self) -> list[str]:
        """The names as they are shown: frames of Python stacks in words."""
        return [function_name(name) for name in self.texts]


@dataclass(frozen=True)
class Timeline:
    """Slices with their tracks and levels of detail. Times are ns since the trace's origin.

    Args:
        window: Start and end of all that is drawn.
        tracks: In the order in which they are drawn.
        labels: The texts and categories of the slices' labels.
        pyramid: Rows of slices, `label` being an index into `labels`.
        parent: Of each slice: the one right around it on its track, or -1.
        event: Of each slice: its row in the concatenation of all frames of FRAMES; a projected one has its
            annotation's.
        frame_first: Where each frame begins there, and the number of all rows at the end.
    """

    window: tuple[int, int]
    tracks: tuple[Track, ...]
    labels: Labels
    pyramid: Pyramid
    parent: NDArray[np.int32]
    event: NDArray[np.uint32]
    frame_first: tuple[int, ...]

    @property
    def start_ns(self) -> NDArray[np.int64]:
        """When each slice begins."""
        return self.pyramid.rows.start_ns

    @property
    def dur_ns(self) -> NDArray[np.int64]:
        """How long each slice lasts."""
        return self.pyramid.rows.dur_ns

    @property
    def label(self) -> NDArray[np.uint32]:
        """What each slice is called: an index into `labels`."""
        return self.pyramid.rows.label

    @property
    def size(self) -> int:
        """How many slices there are."""
        return int(self.start_ns.size)

    @cached_property
    def slice_of_event(self) -> NDArray[np.int32]:
        """The slice of each row of all frames, or -1 where a row is no slice."""
        slices = np.full(self.frame_first[-1], -1, np.int32)
        slices[self.event[self.is_recorded]] = np.flatnonzero(self.is_recorded).astype(np.int32)
        return slices

    @cached_property
    def is_recorded(self) -> NDArray[np.bool_]:
        """Whether each slice is a row of the recording, and not projected."""
        mask = np.ones(self.size, bool)
        for number, track in enumerate(self.tracks):
            mask[self.slices_on(number)] = track.part != "projected"
        return mask

    def slices_of(self, frame: str, rows: NDArray[np.integer]) -> NDArray[np.int32]:
        """The slices of some rows of a frame; -1 for a row that is no slice, and for a negative row."""
        first = self.frame_first[FRAMES.index(frame)]
        return gather(self.slice_of_event, np.where(rows >= 0, rows + first, NONE).astype(np.int32)).astype(np.int32)

    def source_of(self, number: int) -> tuple[str, int]:
        """The frame and the row of a slice."""
        event = int(self.event[number])
        frame = bisect_right(self.frame_first, event) - 1
        return FRAMES[frame], event - self.frame_first[frame]

    def row_of(self, number: int) -> int:
        """The row that a slice is in."""
        return int(np.searchsorted(self.pyramid.rows.first, number, "right")) - 1

    def track_of(self, number: int) -> int:
        """The track that a slice is on: an index into `tracks`."""
        return bisect_right([track.first_row for track in self.tracks], self.row_of(number)) - 1

    def slices_on(self, track: int) -> slice:
        """The numbers of the slices on a track."""
        first = self.pyramid.rows.first
        rows = self.tracks[track]
        return slice(int(first[rows.first_row]), int(first[rows.first_row + rows.lanes]))


def activity(timeline: Timeline) -> dict[str, list[float] | None]:
    """The busy share of all devices, and of all threads together, in each of 512 equal parts of the window.

    The strip above the timeline draws them. None if the trace has no such track.
    """
    work, calls = ([i for i, track in enumerate(timeline.tracks) if track.part == part] for part in ("work", "calls"))
    return {"device": _busy(timeline, work), "host": _busy(timeline, calls)}


def _busy(timeline: Timeline, tracks: list[int]) -> list[float] | None:
    if not tracks:
        return None
    start = np.concatenate([timeline.start_ns[timeline.slices_on(track)] for track in tracks])
    dur = np.concatenate([timeline.dur_ns[timeline.slices_on(track)] for track in tracks])
    first, last = timeline.window
    edges = first + (last - first) * np.arange(_ACTIVITY_BINS + 1, dtype=np.int64) // _ACTIVITY_BINS
    lasts = np.maximum(np.diff(edges), 1)
    shares = length_within(union(start, start + dur), edges[:-1], edges[1:]) / lasts
    return [round(share, 4) for share in shares.tolist()]
