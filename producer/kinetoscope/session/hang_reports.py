"""What a rank is in while a step lasts far too long, written next to the traces for `kinetoscope why`.

`{run}/hang/rank{r}.{step}.json` is a dump of torch's flight recorder with one more key, `kinetoscope_hang`: the call
stacks of all threads and the kernel's states of them, open markers, the current step, and what was saved last. A step
that is only slow, such as one with a checkpoint, leaves such a file too: what it means is for the reader, who has those
of all ranks.

All of it is read on the background thread, without a signal and without torch's profiler.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..atomic_write import replace_file
from ..errors import UsageError
from ..path_below import PathBelow
from ..signals.call_stacks import CallTimes, call_stack, frames_by_tid, message, thread_frame
from ..signals.flight_recorder import flight_recorder_dump
from ..signals.thread_states import thread_states

if TYPE_CHECKING:
    from collections.abc import Callable

    from .recording import Recording

_LOG = logging.getLogger("kinetoscope")

FOLDER = "hang"
KEY = "kinetoscope_hang"
USUAL_S = 30.0
_TIMES_USUAL = 20
_LOOK_S = 1.0
_MOST_FILES = 8
_MOST_THREADS = 64
_MOST_MARKERS = 64
_LONGEST_TEXT = 300


class HangReports:
    """Writes one file for each step that lasts too long; of many, the newest eight of this process stay.

    Args:
        recording: The recording.
        usual_ns: Returns the usual duration of a step; None in the first step, which may compile and load anything.
    """

    def __init__(self, recording: Recording, usual_ns: Callable[[], int | None]) -> None:
        self._recording, self._usual_ns = recording, usual_ns
        self._after_s: float | None = USUAL_S
        self._call_times = CallTimes()
        self._reported_step: int | None = None
        self._files: deque[PathBelow] = deque()

    def set_limit(self, after_s: float | None) -> None:
        """Report steps that last longer, and longer than twenty usual steps; None for none.

        Raises:
            UsageError: Not a positive number of seconds.
        """
        if after_s is not None and after_s <= 0:
            raise UsageError(f"hang_after_s={after_s!r}: how many seconds a step may take, such as {USUAL_S:.0f}.")
        self._after_s = after_s

    @property
    def is_on(self) -> bool:
        """Whether anything is reported."""
        return self._after_s is not None

    def check(self) -> None:
        """Look at the training's thread if its step lasts, and write a report if it lasts too long.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        elapsed_s = self._elapsed_s()
        usual_ns = self._usual_ns() if elapsed_s >= _LOOK_S else None
        if self._after_s is None or usual_ns is None:
            return
        self._look()
        if elapsed_s > max(self._after_s, _TIMES_USUAL * usual_ns / 1e9):
            self.write("step")

    def write(self, reason: str) -> None:
        """Write a report, unless there is one of this step.

        Args:
            reason: `step`, or the signal to which the process doesn't react.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        rank_and_folder = self._recording.trace_writer.known_rank_and_folder
        step = self._recording.counter.current_step()[0]
        if not self.is_on or rank_and_folder is None or self._reported_step == step:
            return
        self._reported_step = step
        rank, folder = rank_and_folder[0], PathBelow(rank_and_folder[1], FOLDER)
        self._look()
        facts = {"rank": rank.global_rank, "world_size": rank.world_size, "reason": reason, **self._facts()}
        folder.make()
        file = folder / f"rank{rank.global_rank}.{step}.json"
        replace_file(file, with_key(flight_recorder_dump(), KEY, facts))
        _LOG.info("Step %d has lasted %.0f s: %s says where it is.", step, facts["step"]["seconds"], file)
        self._files.append(file)
        if len(self._files) > _MOST_FILES:
            self._files.popleft().unlink()

    def _look(self) -> None:
        self._call_times.update(call_stack(thread_frame(self._training_thread)))

    @property
    def _training_thread(self) -> int | None:
        ids = self._recording.owner.ids
        return None if ids is None else ids[1]

    def _elapsed_s(self) -> float:
        return (time.monotonic_ns() - self._recording.counter.current_step()[1]) / 1e9

    def _facts(self) -> dict[str, Any]:
        recording, now_ns, elapsed_s = self._recording, time.time_ns(), self._elapsed_s()
        usual_ns, saved_traces = self._usual_ns(), recording.trace_writer.saved
        ranges = recording.annotations.log.open_ranges()[:_MOST_MARKERS]
        return {
            "version": __version__,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "written_ns": now_ns,
            "step": {
                "number": recording.counter.current_step()[0],
                "seconds": round(elapsed_s, 1),
                "usual_s": None if usual_ns is None else usual_ns / 1e9,
            },
            "last_saved": saved_traces[-1].name if saved_traces else None,
            "markers": [
                {"name": event.name[:_LONGEST_TEXT], "seconds": round((now_ns - event.start_ns) / 1e9, 1)}
                for event in ranges
            ],
            "stack": self._call_times.lines(),
            "message": message(thread_frame(self._training_thread)),
            "threads": thread_facts(),
        }


def thread_facts() -> list[dict[str, Any]]:
    """Return the name, kernel's state and Python stack of each thread, those with a stack first."""
    frames, states = frames_by_tid(), thread_states()
    tids = sorted({*frames, *states}, key=lambda tid: (tid not in frames, tid))[:_MOST_THREADS]
    return [_thread(tid, states.get(tid, {}), *frames.get(tid, (None, None))) for tid in tids]


def _thread(tid: int, state: dict[str, Any], name: str | None, frame: Any) -> dict[str, Any]:
    stack = [list(call) for call in call_stack(frame)]
    return {"tid": tid, **state, **({} if name is None else {"name": name[:_LONGEST_TEXT]}), "stack": stack}


def with_key(text: bytes, key: str, value: Any) -> bytes:
    """Return a JSON object as text with one more key at its end."""
    body = text.rstrip()[:-1].rstrip()
    comma = b"" if body == b"{" else b","
    return body + comma + json.dumps({key: value}, default=str).encode("ascii")[1:]
