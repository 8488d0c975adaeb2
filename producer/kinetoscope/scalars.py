"""Curves for TensorBoard's Scalars tab: each step's time and throughput, and each window's breakdown.

They lie in the run's folder, beside its traces, so that the run has one name in both tabs. The training's thread only
notes numbers; another process (`scalar_writer`) makes an event file of them, since TensorBoard's own writer would hold
the interpreter for some 50 µs a step. Only rank 0 writes: the events of two files in one folder would hide each other.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .identity import place_from
from .interpreter import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from .identity import Place

_LOG = logging.getLogger("kinetoscope")

EVERY_S = 2.0
"""How often the other process hears of new steps."""

_MOST_EARLY = 100_000
"""Steps that are kept until it is known which rank this is."""

SWITCH = "KINETOSCOPE_SCALARS"
"""The environment variable that is `off` where no curves are wanted."""

OURS = ".kinetoscope"
"""How the names of our event files end."""

Step = tuple[str, int, int, int, int | None, int | None]
"""A note: `step`, when it was completed in Unix ns, how many were, ns that it took, samples and tokens if counted."""

_NOTES_A_LINE = 100
"""How many are encoded at once: that takes half the time, but holds the interpreter."""


def is_wanted() -> bool:
    """Whether the environment lets curves be written."""
    return os.environ.get(SWITCH, "").lower() not in ("off", "0", "false", "no")


def obstacle(folder: Path) -> str:
    """Why no curves can be written into this folder; empty if they can."""
    if find_spec("tensorboard") is None:
        return "TensorBoard isn't installed here"
    with suppress(OSError):
        # Of two event files in one folder, TensorBoard may show only the newer one.
        if any("tfevents" in file.name and not file.name.endswith(OURS) for file in folder.iterdir()):
            return f"another program writes its own into {folder}"
    return ""


class Scalars:
    """The training's end of the curves of one run. Nothing in it raises or waits, but for `close`.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes: deque[tuple[Any, ...]] = deque()
        self._more = threading.Event()
        self._is_closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._pass_on, name="kinetoscope-scalars", daemon=True)
        self._thread.start()

    def step(self, note: Step) -> None:
        """Note a step."""
        if not self._is_closed:
            self._notes.append(note)

    def window(self, path: str | os.PathLike[str], steps_completed: int) -> None:
        """Note that a window is being saved as `path`."""
        if self._is_closed:
            return
        self._notes.append(("window", time.time_ns(), steps_completed, os.fspath(path)))

    def close(self, timeout: float = 10.0) -> None:
        """Pass on what was noted last; wait for that at most so many seconds. The other process ends by itself."""
        self._is_closed = True
        self._more.set()
        self._thread.join(timeout)
        if self._process is not None:
            # It goes on with the last window's breakdown and needs nobody: this one must not complain of it at exit.
            with suppress(OSError):
                self._process.poll()
            self._process.returncode = self._process.returncode or 0

    def _pass_on(self) -> None:
        """Hand over what was noted, every now and then: the work of the thread."""
        try:
            while not self._is_closed:
                self._more.wait(EVERY_S)
                self._hand_over()
            self._hand_over()
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
        except OSError as error:
            _LOG.warning("The curves of steps can't be written any more: %s.", error)

    def _hand_over(self) -> None:
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        if not notes:
            return
        if self._process is None:
            problem = obstacle(self._folder)
            if problem:
                _LOG.info("No curves of steps for TensorBoard: %s.", problem)
                self._is_closed = True
                return
            self._process = _started(self._folder)
        if self._process.stdin is not None:
            self._process.stdin.writelines(_lines(notes))
            self._process.stdin.flush()


class Curves:
    """The curves of one Tracer: none unless this process turns out to be rank 0 of its job. Nothing in it raises.

    Args:
        settled: Tells this process's place and its run's folder, or None while they may still change; `is_late` says
            that a process which isn't in a group yet never will be.
        is_on: Whether curves are wanted at all.
    """

    def __init__(self, settled: Callable[..., tuple[Place, Path] | None], *, is_on: bool) -> None:
        self._settled = settled
        self._is_on = is_on and is_wanted()
        self._early: list[Step] = []
        self._scalars: Scalars | None = None

    def step(self, completed: int, dur_ns: int, samples: int | None, tokens: int | None) -> None:
        """Note the step that has just been completed; `completed` counts it."""
        if not self._is_on:
            return
        note = ("step", time.time_ns(), completed, dur_ns, samples, tokens)
        if self._scalars is None:
            self._early.append(note)
            self._begin()
        else:
            self._scalars.step(note)

    def window(self, path: Path, steps_completed: int) -> None:
        """Note a window that was saved."""
        if self._scalars is not None:
            self._scalars.window(path, steps_completed)

    def close(self) -> None:
        """Pass on what was noted last."""
        if self._is_on and self._early:
            self._begin(is_late=True)
        self._is_on = False
        if self._scalars is not None:
            self._scalars.close()

    def _begin(self, *, is_late: bool = False) -> None:
        """Begin, if it is known by now where."""
        settled = self._settled(is_late=is_late or place_from(os.environ).world_size == 1)
        if settled is None:
            self._is_on = len(self._early) < _MOST_EARLY
            return
        place, folder = settled
        early, self._early = self._early, []
        if place.global_rank:
            self._is_on = False
            return
        self._scalars = Scalars(folder)
        for note in early:
            self._scalars.step(note)


def _lines(notes: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    for start in range(0, len(notes), _NOTES_A_LINE):
        yield json.dumps(notes[start : start + _NOTES_A_LINE]).encode() + b"\n"


def _started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that writes, in a session of its own: Ctrl-C is for the training alone."""
    return subprocess.Popen(
        command("from kinetoscope.scalar_writer import main; main()", os.fspath(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
