"""Which tracks a trace has: threads and streams, each with its kinds of slices apart.

Annotations have their own track because they overlap others in part; Python calls because they nest deeply. Streams
come before threads; the threads with the most calls come first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...measures.recording.device_properties import Devices
from ...measures.recording.vendor import device_noun
from ...trace import Trace
from .model import Part, Track

PARTS: tuple[Part, ...] = ("annotations", "calls", "work", "projected", "waits", "other", "python")

_STREAM = re.compile(r"(?:stream )?(-?\d+)", re.IGNORECASE)
_NAMED_DEVICE = re.compile(r"[A-Za-z]+ \d+")


@dataclass(frozen=True)
class Axes:
    """Threads and streams as one list.

    Args:
        tracks: One per axis, without part, rows and slices yet.
        of_thread: The axis of each row of the trace's threads; a stream's, if the thread is one.
        of_stream: The axis of each (device, stream).
    """

    tracks: list[Track]
    of_thread: NDArray[np.int32]
    of_stream: dict[tuple[int, int], int]


def axes(trace: Trace) -> Axes:
    """The axes of a trace, in no order."""
    streams = sorted(
        {
            (int(device), int(stream))
            for frame in (trace.device_events, trace.syncs)
            for device, stream in frame.select("device", "stream").unique().iter_rows()
        }
    )
    of_stream = {key: axis for axis, key in enumerate(streams)}
    devices, noun = Devices.of(trace.meta), device_noun(trace)
    tracks = [_of_stream(devices, noun, *key) for key in streams]
    of_thread = np.empty(trace.threads.height, np.int32)
    for row, (pid, tid, process, name) in enumerate(trace.threads.iter_rows()):
        axis = next((of_stream[key] for key in _streams_called(pid, tid, name) if key in of_stream), None)
        of_thread[row] = len(tracks) if axis is None else axis
        if axis is None:
            tracks.append(_of_thread(row, pid, tid, process, name))
        else:
            label = process if process and _NAMED_DEVICE.fullmatch(process) else tracks[axis].process
            tracks[axis] = replace(tracks[axis], process=label, pid=pid, tid=tid, thread=row)
    return Axes(tracks, of_thread, of_stream)


def _streams_called(pid: str, tid: str, name: str | None) -> list[tuple[int, int]]:
    """The streams that a thread may be: kineto writes a device as a process, and a stream as a thread of it."""
    if not re.fullmatch(r"\d{1,6}", pid, re.ASCII):
        return []
    numbers = [match[1] for text in (name, tid) if text and (match := _STREAM.fullmatch(text.strip()))]
    return [(int(pid), int(number)) for number in numbers if len(number) < 19]


def _of_stream(devices: Devices, noun: str, device: int, stream: int) -> Track:
    name = devices.facts(device).name
    process = "Device not known" if device < 0 else f"{noun} {device}" + (f" · {name}" if name else "")
    label = f"stream {stream}" if stream >= 0 else "all streams"
    return Track(process, label, "work", device, stream, None, None, None, 0, 0, 0)


_OF_PROFILER = {"-1": "overhead of the profiler", "Spans": "spans of the profiler", "Traces": "marks of the profiler"}
"""What kineto writes under process numbers that are none."""


def _of_thread(row: int, pid: str, tid: str, process: str | None, name: str | None) -> Track:
    label = f"process {pid}" + (f" · {process}" if process and process != pid else "") if pid else "recording"
    if process is None:
        label = _OF_PROFILER.get(pid, label)
    title = name or (f"thread {tid}" if tid else "marks")
    return Track(label, title, "calls", None, None, pid, tid, row, 0, 0, 0)


def order(tracks: list[Track], sizes: NDArray[np.int64]) -> list[int]:
    """The indexes of the tracks in drawing order; `sizes` is the number of slices of each.

    Tracks are grouped by process: devices first, then the process with the most slices on a thread; then by thread.
    Annotations projected onto a stream, such as steps, are around those that torch wrote there, and above them.
    """
    with_annotations = {(track.device, track.stream) for track in tracks if track.part == "annotations"}
    by_process: dict[str, int] = {}
    by_axis: dict[tuple[str, str], int] = {}
    for track, size in zip(tracks, sizes, strict=True):
        axis = (track.process, track.name)
        by_axis[axis] = by_axis.get(axis, 0) + int(size)
        by_process[track.process] = max(by_process.get(track.process, 0), by_axis[axis])

    def rank(number: int) -> tuple[object, ...]:
        track = tracks[number]
        if track.stream is not None and track.device is not None:
            is_around = track.part == "projected" and (track.device, track.stream) in with_annotations
            return (0, track.device, track.process, track.stream, not is_around, PARTS.index(track.part))
        axis = by_axis[track.process, track.name]
        return (1, -by_process[track.process], track.process, -axis, track.name, PARTS.index(track.part))

    return sorted(range(len(tracks)), key=rank)
