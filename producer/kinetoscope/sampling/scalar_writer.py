"""The process that writes a run's curves; its arguments are the run's folder and the name of a folder below it, if any.

It reads notes from standard input. A line is a JSON array of notes. A step is `["s", number, start_ns, end_ns, dur_ns,
samples, tokens]`, a `progress.Step`; a window is `["window", unix_ns, batch, path]`. The process ends when there are no
more notes and the last window's trace exists or the wait for it has timed out. It never imports torch; TensorBoard's
own code writes the records.
"""

from __future__ import annotations

import json
import os
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from ..child_process import python_command
from ..path_below import PathBelow
from .scalars import OURS

WAITS_FOR_TRACE_S = 300.0
POLLS_EVERY_S = 0.5

_DESCRIPTIONS = {
    "steps/duration_s": "Wall time of each step on this rank, from the end of one to the end of the next, in seconds.",
    "steps/samples_per_s": "Samples of this rank's batch / wall time of the step.",
    "steps/tokens_per_s": "Tokens of this rank's batch / wall time of the step.",
    "windows/step_s": "Mean length of the complete steps of each recorded window, in seconds.",
}
_PART = "Mean time per recorded step in this category, in seconds; the categories add up to windows/step_s."


class EventFile:
    """A growing event file of TensorBoard. Its first record is a header; the first one of each tag has its description.

    If the folder has older files, of a training that resumes from a checkpoint, TensorBoard discards their points from
    this file's first step on: those steps were lost and repeated.

    Args:
        folder: The folder of the file.
        step: The step of the first point.

    Raises:
        OSError: The file can't be created.
    """

    def __init__(self, folder: PathBelow, step: int = 0) -> None:
        folder.make()
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}{OURS}"
        with folder.open_folder() as open_folder:
            descriptor = open_folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self._file: IO[bytes] = os.fdopen(descriptor, "wb")
        self._records, self._event, self._summary = RecordWriter(self._file), event_pb2.Event, summary_pb2.Summary
        self._described: set[str] = set()
        session_start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        for fields in ({"file_version": "brain.Event:2"}, {"step": step, "session_log": session_start}):
            self._records.write(event_pb2.Event(wall_time=time.time(), **fields).SerializeToString())

    def write(self, wall_time: float, step: int, values: dict[str, float]) -> None:
        """Add a point to each of the curves."""
        summary = self._summary()
        for tag, value in values.items():
            point = summary.value.add(tag=tag, simple_value=value)
            if tag not in self._described:
                self._described.add(tag)
                point.metadata.plugin_data.plugin_name = "scalars"
                point.metadata.summary_description = _DESCRIPTIONS.get(tag, _PART)
        event = self._event(wall_time=wall_time, step=step, summary=summary)
        self._records.write(event.SerializeToString())

    def flush(self) -> None:
        """Flush the file, so that readers see its points."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def step_values(duration_s: float, samples: int | None, tokens: int | None) -> dict[str, float]:
    """Return the points of one step, with throughputs if the program counts samples or tokens."""
    values = {"steps/duration_s": duration_s}
    if duration_s > 0:
        values |= {"steps/samples_per_s": samples / duration_s} if samples else {}
        values |= {"steps/tokens_per_s": tokens / duration_s} if tokens else {}
    return values


def breakdown(path: str) -> dict[str, float]:
    """Return the breakdown of a trace's average step, as the viewer computes it; empty if it can't."""
    statement = "from kinetoscope_tb.cli import main; main()"
    try:
        answer = subprocess.run(
            python_command(statement, "view", "overview", path, "--format", "json"),
            capture_output=True,
            timeout=600,
            check=True,
        )
        values = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return window_values(values)


def window_values(answer: dict[str, Any]) -> dict[str, float]:
    """Return the points of one window, from the view's answer."""
    data = answer.get("data", {})
    means = zip(data.get("category", ()), data.get("mean_ns", ()), strict=True)
    return {f"windows/{_tag(category)}_s": mean / 1e9 for category, mean in means if mean is not None}


def _tag(category: str) -> str:
    return re.sub(r"\W+", "_", category.strip()).lower()


class NoteQueue:
    """The incoming notes, read by a thread, so that the process can look for windows meanwhile."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._notes: queue.Queue[list[Any] | None] = queue.Queue()
        self._stream = stream
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stream:
            with suppress(ValueError):
                for note in json.loads(line):
                    self._notes.put(note)
        self._notes.put(None)

    def next(self, timeout: float) -> list[Any] | None:
        """Return the next note; an empty one if none came in time, None if there will be no more."""
        try:
            note = self._notes.get(timeout=timeout)
        except queue.Empty:
            return []
        if note is None:
            self._notes.put(None)
        return note


class CurveWriter:
    """Writes notes as points. The file is created with the first point."""

    def __init__(self, folder: PathBelow) -> None:
        self._folder = folder
        self._file: EventFile | None = None
        self._windows: list[tuple[float, int, str, float]] = []

    @property
    def waits(self) -> bool:
        """Whether some window's trace doesn't exist yet."""
        return bool(self._windows)

    def add(self, note: list[Any]) -> None:
        """Handle a note."""
        kind, *rest = note
        if kind == "s":
            number, _, end_ns, dur_ns, samples, tokens = rest
            self._write(end_ns / 1e9, number + 1, step_values(dur_ns / 1e9, samples, tokens))
        elif kind == "window":
            unix_ns, batch, path = rest
            self._windows.append((unix_ns / 1e9, batch, path, time.monotonic() + WAITS_FOR_TRACE_S))

    def poll(self) -> None:
        """Write the windows whose traces have appeared; drop those that have timed out."""
        for window in list(self._windows):
            unix_s, batch, path, until = window
            is_there = Path(path).exists()
            if is_there or time.monotonic() > until:
                self._windows.remove(window)
            if is_there:
                self._write(unix_s, batch, breakdown(path))
        self.flush()

    def _write(self, unix_s: float, batch: int, values: dict[str, float]) -> None:
        if not values:
            return
        if self._file is None:
            self._file = EventFile(self._folder, batch)
        self._file.write(unix_s, batch, values)

    def flush(self) -> None:
        """Flush the file, so that readers see its points."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def write(folder: PathBelow, stream: IO[bytes]) -> None:
    """Write until the notes end."""
    notes, curves = NoteQueue(stream), CurveWriter(folder)
    while (note := notes.next(POLLS_EVERY_S)) is not None or curves.waits:
        if note:
            curves.add(note)
        else:
            curves.poll()
            if note is None:
                time.sleep(POLLS_EVERY_S)
    curves.close()


def main() -> None:
    """Run the process."""
    write(PathBelow(Path(sys.argv[1]), *sys.argv[2:]), sys.stdin.buffer)
