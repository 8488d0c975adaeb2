"""Composer's JSONTraceHandler: markers and the events of other profilers, as one Chrome JSON file per rank.

The training's thread only collects events. Another process (`writer_process`) writes the files: a rank's file when its
window is complete and torch's trace of it exists, if there is one; the machine's file when the last of its ranks is
ready. So no rank waits for another. A trace that the program deletes meanwhile stays under a hidden name until it is in
its window; a rank's file is removed only after it is in the machine's file.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import queue
import re
import shutil
import subprocess
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...child_process import python_command
from ...job.rank_info import RankInfo, current_rank_info, local_world_size
from ...output.name_template import format_name
from ..actions import ACTIVE, ProfilerAction
from ..folders import claim_folder, name_values, remote_name, run_values, warn_of_unknown_variables
from ..trace_handler import TraceHandler
from .node_file import discard_node_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..state import State
    from ..timestamp import Timestamp

_LOG = logging.getLogger("kinetoscope")

_HEAD_BYTES = 1 << 16
_MAX_EVENTS = 1 << 20
_PATIENCE_S = 120  # for files that are still being written at the end of a training
_COMPLETED = re.compile(rb'"kinetoscope":\s*\{.*?"steps_completed":\s*(\d+)', re.DOTALL)


@dataclass
class _Window:
    """What was recorded from the first batch that isn't skipped to the one that saves."""

    events: list[dict[str, Any]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    dropped: int = 0
    batch: int = 0
    job: dict[str, Any] = field(default_factory=dict)


class JSONTraceHandler(TraceHandler):
    """Writes `{folder}/{filename}` per rank and window, and the machine's ranks together in `merged_trace_filename`.

    The variables of the names are those of `TorchProfiler`.

    Args:
        folder: The folder of the files.
        filename: The name of a rank's file.
        remote_file_name: The name of its remote copy; see `TorchProfiler`.
        merged_trace_filename: The name of the machine's file, which grows with each window; None for none. It has
            folder variables only: two machines may share a disk, so the default one has the machine's number.
        merged_trace_remote_file_name: The name of its remote copy.
        overwrite: Whether older files may be in the folder.
        num_traces_to_keep: How many of a rank's files stay; -1 for all. The machine's file stays, and has the events
            of those that were removed.
    """

    def __init__(
        self,
        folder: str = "{run_name}/traces",
        filename: str = "ep{epoch}-ba{batch}-rank{rank}.json",
        remote_file_name: str | None = "{run_name}/traces/ep{epoch}-ba{batch}-rank{rank}.json",
        merged_trace_filename: str | None = "node{node_rank}.json",
        merged_trace_remote_file_name: str | None = "{run_name}/traces/node{node_rank}.json",
        *,
        overwrite: bool = False,
        num_traces_to_keep: int = -1,
    ) -> None:
        warn_of_unknown_variables(
            folder, filename, remote_file_name, merged_trace_filename, merged_trace_remote_file_name
        )
        self.folder, self.filename, self.remote_file_name = folder, filename, remote_file_name
        self.merged_trace_filename = merged_trace_filename
        self.merged_trace_remote_file_name = merged_trace_remote_file_name
        self.overwrite, self.num_traces_to_keep = overwrite, num_traces_to_keep
        self.saved_traces: list[tuple[Timestamp, list[Path]]] = []
        """When each window was saved, and the files of all ranks; each file exists only on its rank's machine."""
        self._lock = threading.Lock()
        self._window: _Window | None = None
        self._waiting: list[_Window] = []
        """Complete windows whose trace by torch is still being written."""
        self._sources: list[str] = []
        """Traces without a window so far."""
        self._temporary: set[str] = set()
        """Those of the traces that are hard links or copies of ours, to delete after use."""
        self._surplus: list[str] = []
        """Files of windows beyond `num_traces_to_keep` that can't be removed yet."""
        self._action = ProfilerAction.SKIP
        self._target = Path()
        self._rank_info = RankInfo()
        self._jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._writer: threading.Thread | None = None

    # The training

    def init(self, state: State, logger: Any = None) -> None:
        """Claim the folder.

        Raises:
            FileExistsError: It has files, and `overwrite` is False.
        """
        self._target = claim_folder(self.folder, state, overwrite=self.overwrite)
        self._rank_info = current_rank_info()
        if self.overwrite and self.merged_trace_filename is not None:
            discard_node_file(self._target, _name_of(self.merged_trace_filename, run_values(state)))

    def batch_start(self, state: State, logger: Any = None) -> None:
        """Begin a window if something is recorded and none is open."""
        profiler = state.profiler
        self._action = ProfilerAction.SKIP if profiler is None else profiler.action
        if self._action is not ProfilerAction.SKIP and self._window is None:
            self._window = _Window()

    def batch_end(self, state: State, logger: Any = None) -> None:
        """End the window if this batch was its last."""
        profiler = state.profiler
        was, now = self._action, ProfilerAction.SKIP if profiler is None else profiler.action
        if was is ProfilerAction.ACTIVE_AND_SAVE or (was in ACTIVE and now not in ACTIVE):
            self._save(state)
        elif now is ProfilerAction.SKIP:
            self._window = None

    def epoch_end(self, state: State, logger: Any = None) -> None:
        """End the window with the epoch."""
        if self._window is not None and self._action in ACTIVE:
            self._save(state)
        self._window = None

    def close(self, state: State, logger: Any = None) -> None:
        """Save the open window, and wait for the files, up to a limit."""
        if self._window is not None and self._action in ACTIVE:
            self._save(state)
        self._window = None
        while self._waiting:  # torch's traces of them were lost
            self._write(self._waiting.pop(0))
        if self._writer is not None:
            self._jobs.put(None)
            self._writer.join(_PATIENCE_S)
            if self._writer.is_alive():
                _LOG.warning("Not all files in %s could be written in %d s.", self._target, _PATIENCE_S)
            self._writer = None
        _delete(self._temporary)  # of no window
        self._temporary.clear()

    # Events

    def process_duration_event(
        self, name: str, categories: Sequence[str], is_start: bool, timestamp: Timestamp, wall_clock_time_ns: int
    ) -> None:
        """Record the begin or end of a marker."""
        self._note("B" if is_start else "E", name, categories, timestamp, wall_clock_time_ns)

    def process_instant_event(
        self, name: str, categories: Sequence[str], timestamp: Timestamp, wall_clock_time_ns: int
    ) -> None:
        """Record an instant."""
        self._note("i", name, categories, timestamp, wall_clock_time_ns, s="p")

    def process_counter_event(
        self,
        name: str,
        categories: Sequence[str],
        timestamp: Timestamp,
        wall_clock_time_ns: int,
        values: Mapping[str, float],
    ) -> None:
        """Record the values of a counter."""
        self._note("C", name, categories, timestamp, wall_clock_time_ns, args=dict(values))

    def process_chrome_json_trace_file(self, filepath: Path) -> None:
        """Add another profiler's events to the window that they belong to, or else to the open one."""
        batch = _completed_in(filepath)
        for window in self._waiting:
            if window.batch == batch:
                window.sources.append(self._link_source(filepath))
                self._waiting.remove(window)
                self._write(window)
                return
        self._sources.append(self._link_source(filepath))

    def _link_source(self, path: Path) -> str:
        """Return a hard link or copy of a file, which survives its deletion; the file itself if neither is possible."""
        other = self._target / f".{path.name}.source-{uuid.uuid4().hex}"
        with suppress(OSError):
            try:
                os.link(path, other)
            except OSError:  # another disk, or no hard links
                shutil.copyfile(path, other)
            self._temporary.add(os.fspath(other))
            return os.fspath(other)
        other.unlink(missing_ok=True)
        return os.fspath(path)

    def _note(
        self, phase: str, name: str, categories: Sequence[str], timestamp: Timestamp, unix_ns: int, **more: Any
    ) -> None:
        window = self._window
        if window is None:
            return
        args = {"epoch": int(timestamp.epoch), "batch": int(timestamp.batch)}
        event = {
            "ph": phase,
            "name": name,
            "cat": ",".join(categories),
            "tid": threading.get_native_id(),
            "ns": unix_ns,
            **more,
        }
        if phase != "C":
            event["args"] = args
        with self._lock:
            if len(window.events) < _MAX_EVENTS:
                window.events.append(event)
            else:
                window.dropped += 1

    # Files

    def _save(self, state: State) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        stamp = state.timestamp
        values, window.batch = name_values(state, stamp), int(stamp.batch)
        window.sources += self._sources
        self._sources = []
        paths = [self._target / self._name({**values, "rank": rank}) for rank in range(self._rank_info.world_size)]
        self.saved_traces.append((stamp, paths))
        surplus = max(0, len(self.saved_traces) - self.num_traces_to_keep) if self.num_traces_to_keep >= 0 else 0
        own_files = (files[self._rank_info.global_rank] for _, files in self.saved_traces[:surplus])
        self._surplus += [path.relative_to(self._target).as_posix() for path in own_files]
        del self.saved_traces[:surplus]
        first, count = self._rank_info.global_rank - (self._rank_info.local_rank or 0), local_world_size() or 1
        window.job = {
            "folder": os.fspath(self._target),
            "file": self._name(values),
            "rank": self._rank_info.global_rank,
            "pid": os.getpid(),
            "files_of_node": [self._name({**values, "rank": rank}) for rank in range(first, first + count)],
            "merged": None if self.merged_trace_filename is None else _name_of(self.merged_trace_filename, values),
            "remote": _url(remote_name(self.remote_file_name, state), values),
            "merged_remote": _url(remote_name(self.merged_trace_remote_file_name, state), values),
            "overwrite": self.overwrite,
        }
        if window.dropped:
            _LOG.warning("%d marker events were left out of %s.", window.dropped, window.job["file"])
        profiler = state.profiler
        if profiler is not None and profiler.torch_profiler is not None and self._action in ACTIVE:
            self._waiting.append(window)
        else:
            self._write(window)

    def _name(self, values: Mapping[str, Any]) -> str:
        return _name_of(self.filename, values)

    def _write(self, window: _Window) -> None:
        """Queue the window's file for writing, after those of earlier windows."""
        waiting_files = {other.job["file"] for other in self._waiting if other is not window}
        remove = [file for file in self._surplus if file not in waiting_files]
        self._surplus = [file for file in self._surplus if file in waiting_files]
        temporary = self._temporary.intersection(window.sources)
        self._temporary -= temporary
        files = {"sources": window.sources, "temporary": sorted(temporary), "remove": remove}
        self._jobs.put({**window.job, "events": window.events, **files})
        if self._writer is None:
            self._writer = threading.Thread(
                target=_run_jobs, args=(self._jobs,), name="kinetoscope-json-traces", daemon=True
            )
            self._writer.start()


def _run_jobs(jobs: queue.Queue[dict[str, Any] | None]) -> None:
    """Run each job in its own process until None arrives; the target of a thread."""
    while (job := jobs.get()) is not None:
        try:
            subprocess.run(
                python_command("from kinetoscope.composer.json_traces.writer_process import main; main()"),
                input=json.dumps(job, default=str).encode(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            _LOG.warning("%s wasn't written: %s", job["file"], error)
            _delete(job["temporary"])


def _delete(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):  # they are hidden, and nothing else uses them
            Path(path).unlink()


def _name_of(template: str, values: Mapping[str, Any]) -> str:
    return format_name(template, values).lstrip("/")


def _url(template: str | None, values: Mapping[str, Any]) -> str | None:
    return format_name(template, values) if template is not None and "://" in template else None


def _completed_in(path: Path) -> int | None:
    """Return how many steps were complete when our recorder saved this trace."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_packed else path.open("rb") as text:
            match = _COMPLETED.search(text.read(_HEAD_BYTES))
    except (OSError, EOFError):
        return None
    return int(match[1]) if match else None
