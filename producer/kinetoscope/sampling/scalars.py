"""Curves for TensorBoard's Scalars tab: each step's time and throughput, and each window's breakdown.

They are in the run's folder, next to its traces, so that the run has one name in both tabs. The training's thread only
records numbers; another process (`scalar_writer`) writes them into an event file, since TensorBoard's own writer would
hold the GIL for about 50 µs per step. Rank 0 writes; with `scalars="all"` the other ranks do too, into their own
folders, `{run}/rank3`: two event files in one folder would hide each other.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
import time
from collections import deque
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..child_process import broken_pipes_as_errors, detach, python_command
from ..errors import UsageError
from ..job.rank_info import rank_info_from
from ..naming import worker_of_rank
from ..path_below import PathBelow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ..job.rank_info import RankInfo
    from ..progress import Step

_LOG = logging.getLogger("kinetoscope")

EVERY_S = 2.0
"""How often new steps are sent to the other process."""

_MOST_NOTES = 100_000
"""How many notes are buffered until the rank is known, or while the other process doesn't read."""

SWITCH = "KINETOSCOPE_SCALARS"
"""The environment variable that turns curves off."""

ALL = "all"
"""The value with which each rank writes curves."""

OURS = ".kinetoscope"
"""The suffix of our event files' names."""

_PROGRAM = (  # importing TensorBoard takes a second of a core
    "from kinetoscope.child_process import lower_priority; lower_priority(); "
    "from kinetoscope.sampling.scalar_writer import main; main()"
)

_NOTES_A_LINE = 100
"""How many notes are encoded at once: more take less time per note, but hold the GIL longer."""


def is_enabled() -> bool:
    """Whether the environment allows curves."""
    return os.environ.get(SWITCH, "").lower() not in ("off", "0", "false", "no")


def folder_problem(folder: PathBelow) -> str:
    """Return why no curves can be written into this folder; empty if they can."""
    if find_spec("tensorboard") is None:
        return "TensorBoard isn't installed"
    # Of two event files in one folder, TensorBoard may show only the newer one.
    if any(not file.name.endswith(OURS) for file in folder.children("*tfevents*")):
        return f"another program writes its own into {folder}"
    return ""


class CurveSender:
    """Sends one run's steps and windows to the process that writes its curves. Nothing raises; only `close` waits.

    Args:
        folder: The run's folder, or one below it.
        notes: The buffer of notes about steps and windows.
    """

    def __init__(self, folder: PathBelow, notes: deque[tuple[Any, ...]]) -> None:
        self._folder, self._notes = folder, notes
        self._more = threading.Event()
        self.is_closed = False
        """Whether nothing more is written."""
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._send_loop, name="kinetoscope-scalars", daemon=True)
        self._thread.start()

    def window(self, path: str | os.PathLike[str], steps_completed: int) -> None:
        """Add a note that a window is being saved as `path`."""
        self._notes.append(("window", time.time_ns(), steps_completed, os.fspath(path)))

    def close(self, timeout: float = 10.0) -> None:
        """Send the last notes, waiting at most `timeout` seconds. The other process ends by itself."""
        self.is_closed = True
        self._more.set()
        self._thread.join(timeout)
        if self._process is not None:
            detach(self._process)  # it continues with the last window's breakdown

    def _send_loop(self) -> None:
        """Send the notes periodically; the target of the thread."""
        try:
            while not self.is_closed:
                self._more.wait(EVERY_S)
                self._send()
            self._send()
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
        except OSError as error:
            _LOG.warning("The curves of steps can no longer be written: %s.", error)

    def _send(self) -> None:
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        if not notes:
            return
        if self._process is None:
            problem = folder_problem(self._folder)
            if problem:
                _LOG.info("No curves of steps for TensorBoard: %s.", problem)
                self.is_closed = True
                return
            self._process = _start_process(self._folder)
        if self._process.stdin is not None:
            with broken_pipes_as_errors():
                self._process.stdin.writelines(_lines(notes))
                self._process.stdin.flush()


class Curves:
    """The curves of one Tracer, if this process turns out to be a rank that writes them. Nothing in it raises.

    Args:
        scalars: Whether rank 0 writes curves; `all` if every rank does.

    Raises:
        UsageError: Another value.
    """

    def __init__(self, *, scalars: bool | str) -> None:
        if scalars not in (True, False, ALL):
            raise UsageError(f"scalars={scalars!r}: use True for rank 0, {ALL!r} for all ranks, or False for none.")
        self._all_ranks, self._has_windows = scalars == ALL, False
        self._notes: deque[tuple[Any, ...]] = deque(maxlen=_MOST_NOTES)
        self._record_step = self._notes.append
        self._sender: CurveSender | None = None
        self._is_on = bool(scalars) and is_enabled()
        self._rank_and_folder: Callable[..., tuple[RankInfo, Path] | None] | None = None
        self._step_consumers: list[Callable[[Step], None]] = []

    def attach(
        self,
        rank_and_folder: Callable[..., tuple[RankInfo, Path] | None],
        step_consumers: list[Callable[[Step], None]],
    ) -> None:
        """Record the steps from now on.

        Args:
            rank_and_folder: Returns this process's rank and its run's folder, or None while they may still change;
                `is_late` assumes that a process without a group will never be in one.
            step_consumers: The functions that get each complete step; the curves' one is among them while they last.
        """
        self._rank_and_folder = rank_and_folder
        if self._is_on:
            self._step_consumers = step_consumers
            step_consumers.append(self._record_step)

    def poll(self) -> None:
        """Start once rank and folder are known, and stop if nothing can be written; to be called periodically."""
        if self._is_on and self._sender is None:
            self._begin(is_late=rank_info_from(os.environ).world_size == 1)
        if self._is_on and self._sender is not None and self._sender.is_closed:
            self._end()

    def window(self, path: Path, steps_completed: int) -> None:
        """Add a note about a saved window. Only rank 0's breakdown is written: each takes the viewer seconds."""
        if self._is_on and self._sender is not None and self._has_windows:
            self._sender.window(path, steps_completed)

    def close(self) -> None:
        """Send the last notes."""
        if self._is_on and self._sender is None and self._notes:
            self._begin(is_late=True)
        self._end()
        if self._sender is not None:
            self._sender.close()

    def _begin(self, *, is_late: bool) -> None:
        rank_and_folder = None if self._rank_and_folder is None else self._rank_and_folder(is_late=is_late)
        if rank_and_folder is None:
            return
        rank_info, folder = rank_and_folder
        rank, self._has_windows = rank_info.global_rank, not rank_info.global_rank
        if rank and not self._all_ranks:
            self._end()
        else:
            names = [worker_of_rank(rank)] if rank else []
            self._sender = CurveSender(PathBelow(folder, *names), self._notes)

    def _end(self) -> None:
        if self._is_on:
            self._is_on = False
            self._step_consumers.remove(self._record_step)


def _lines(notes: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    for start in range(0, len(notes), _NOTES_A_LINE):
        yield json.dumps(notes[start : start + _NOTES_A_LINE]).encode() + b"\n"


def _start_process(folder: PathBelow) -> subprocess.Popen[bytes]:
    """Start the process that writes, in its own session, so that Ctrl-C ends only the training."""
    return subprocess.Popen(
        python_command(_PROGRAM, os.fspath(folder.root), *folder.names),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
