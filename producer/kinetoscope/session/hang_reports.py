"""What a rank is in while a step lasts far too long, written next to the traces for `kinetoscope why`.

`{run}/hang/rank{r}.{step}.json` is a dump of torch's flight recorder with one more key, `kinetoscope_hang`: the call
stacks of all threads and the kernel's states of them, open markers, the current step, and what was saved last. A step
that is only slow, such as one with a checkpoint, leaves such a file too: what it means is for the reader, who has those
of all ranks. It is read on the background thread, without a signal and without torch's profiler.

`{run}/hang/rank{r}.end.json` is the same of a rank that ends badly, if it has issued collectives: where ranks called
different ones, that of the rank that crashes isn't the only witness.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..atomic_write import replace_file
from ..path_below import PathBelow
from ..signals.call_stacks import CallTimes, call_stack, frames_by_tid, message, thread_frame
from ..signals.flight_recorder import flight_recorder_dump, group_ranks
from ..signals.thread_states import thread_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..signals.hang_detector import Excess
    from .recording import Recording

_LOG = logging.getLogger("kinetoscope")

FOLDER = "hang"
KEY = "kinetoscope_hang"
END = "end"
"""The reason of a report by a rank that ends badly."""
_MOST_FILES = 8
_MOST_NEWS_LINES = 40
_MOST_THREADS = 64
_MOST_MARKERS = 64
_LONGEST_TEXT = 300


class HangReports:
    """Writes a file for each step that lasts too long, and news in the journal; the newest eight files stay.

    Args:
        recording: The recording.
        usual_ns: Returns the usual duration of a step; None in the first one.
        note: Adds a piece of news to the journal.
        save_minutes: Writes the last minutes of this rank.
    """

    def __init__(
        self,
        recording: Recording,
        usual_ns: Callable[[], int | None],
        note: Callable[[str, object], None],
        save_minutes: Callable[[], None],
    ) -> None:
        self._recording, self._usual_ns, self._note, self._save_minutes = recording, usual_ns, note, save_minutes
        self._call_times = CallTimes()
        self._watched_step: int | None = None
        self._files: dict[int, PathBelow] = {}  # by step, the oldest first

    def watch(self) -> None:
        """Compare the training's stack with the last one of this step: for how long is it at each line?"""
        step = self._recording.counter.current_step()[0]
        if step != self._watched_step:
            self._watched_step, self._call_times = step, CallTimes()
        self._call_times.update(call_stack(thread_frame(self._training_thread)))

    def write(self, reason: str, excess: Excess | None = None) -> None:
        """Write a report; it replaces an earlier one of this step.

        Args:
            reason: `step`, or the signal to which the process doesn't react.
            excess: How the step exceeds its limit; None for a signal.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        step, start_ns = self._recording.counter.current_step()
        elapsed_s, lines = (time.monotonic_ns() - start_ns) / 1e9, self._call_times.lines()
        calls = [f"{function.rpartition('.')[2]} ({file}:{line})" for file, line, function, _ in lines]
        self._note("hanging", {"step": step, "seconds": round(elapsed_s), "stack": calls[:_MOST_NEWS_LINES]})
        facts = {**self._facts(step, start_ns), "stack": lines}
        if excess is not None:
            facts["step"] |= {"limit_s": excess.limit_s, "previous_check_s": excess.previous_check_s}
        if (file := self._replace_file(str(step), reason, flight_recorder_dump(), facts)) is None:
            return
        _LOG.info("Step %d has lasted %.0f s: %s says where it is.", step, elapsed_s, file)
        self._files[step] = file
        if len(self._files) > _MOST_FILES:
            self._files.pop(min(self._files)).unlink()
        self._save_minutes()

    def write_end(self, calls: Iterable[Sequence[Any]]) -> None:
        """Write the collectives of a rank that ends badly; do nothing if it has none.

        Args:
            calls: Where the program was, or where the exception was raised, the innermost first.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        step, start_ns = self._recording.counter.current_step()
        if b'"entries"' in (dump := flight_recorder_dump()):
            facts = self._facts(step, start_ns)
            self._replace_file(END, END, dump, {**facts, "stack": [[*call, 0.0] for call in calls]})

    def _replace_file(self, name: str, reason: str, dump: bytes, facts: dict[str, Any]) -> PathBelow | None:
        """Write a report; return its file, or None if the run isn't known."""
        if (rank_and_folder := self._recording.trace_writer.known_rank_and_folder) is None:
            return None
        rank, folder = rank_and_folder[0], PathBelow(rank_and_folder[1], FOLDER)
        facts = {"rank": rank.global_rank, "world_size": rank.world_size, "reason": reason, **facts}
        folder.make()
        file = folder / f"rank{rank.global_rank}.{name}.json"
        replace_file(file, with_key(dump, KEY, facts))
        return file

    @property
    def _training_thread(self) -> int | None:
        ids = self._recording.owner.ids
        return None if ids is None else ids[1]

    def _facts(self, step: int, start_ns: int) -> dict[str, Any]:
        recording, now_ns, usual_ns = self._recording, time.time_ns(), self._usual_ns()
        elapsed_ns = time.monotonic_ns() - start_ns
        saved_traces, ranges = recording.trace_writer.saved, recording.annotations.log.open_ranges()[:_MOST_MARKERS]
        return {
            "version": __version__,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "written_ns": now_ns,
            "step": {
                "number": step,
                "start_ns": now_ns - elapsed_ns,
                "seconds": round(elapsed_ns / 1e9, 1),
                "usual_s": None if usual_ns is None else usual_ns / 1e9,
            },
            "last_saved": saved_traces[-1].name if saved_traces else None,
            "markers": [
                {"name": event.name[:_LONGEST_TEXT], "seconds": round((now_ns - event.start_ns) / 1e9, 1)}
                for event in ranges
            ],
            "groups": group_ranks(),
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
