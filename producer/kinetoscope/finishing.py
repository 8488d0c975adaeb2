"""The training's side of the finisher: gives it jobs, hears what became of them, and never waits but in `close`.

Nothing of the run's folder is touched here, since it may be on a disk that is slow, full or gone: what is written goes
to the machine's own disk.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .finisher import finish_left_over, prune_left_over
from .interpreter import broken_pipes_as_errors, command, leave_alone
from .jobs import PROCESS, STATE, Job, Queue
from .manifest import SAVING
from .plain_files import read_json, write_json
from .scratch import make_queue_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_LOG = logging.getLogger("kinetoscope")

_MOST_STARTS = 3
_QUIET_S, _SAY_EVERY_S = 1.0, 15.0
"""How long the end waits without a word, and how often it says what it waits for."""

_PROGRAM = "from kinetoscope.finisher import main; main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))"


class Finishing:
    """One process's queue, and the finisher that works on it.

    Args:
        on_outcome: Is called on the training's thread with what became of each window.
        places: Where copies may go: what their URLs begin with.
        keep: How many traces stay, where each is to be there until `on_outcome` was called with it; -1 for all.
    """

    def __init__(
        self, on_outcome: Callable[[dict[str, Any]], None], places: Collection[str] = (), *, keep: int = -1
    ) -> None:
        self._on_outcome, self._places = on_outcome, list(places)
        self._queue: Queue | None = None
        self._finisher: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._pending: dict[int, Job] = {}
        self._told: dict[int, tuple[str, str | None]] = {}
        self._process: dict[str, Any] = {} if keep < 0 else {"heard_to": -1, "keep": keep}
        self._last_number = -1
        self._pid = os.getpid()

    @property
    def queue(self) -> Queue:
        """The queue; a new folder that only this user may read, when first asked for, and when somebody removed it.

        Raises:
            OSError: There is no place for it.
        """
        if self._queue is None:
            self._queue = Queue(make_queue_folder())
        elif self._queue.make_again():
            _LOG.warning(
                "Somebody removed %s, where recordings lie until they are traces; it is made again.", self._queue.folder
            )
            write_json(self._queue.folder / PROCESS, self._process)
            for job in self._pending.values():  # the finisher says what became of each
                self._queue.put(job)
        return self._queue

    def describe(self, facts: dict[str, Any]) -> None:
        """Tell, or correct, what is true of the whole process."""
        self._process |= facts
        write_json(self.queue.folder / PROCESS, self._process)
        self._wake()

    def put(self, job: Job) -> None:
        """Give the finisher a job."""
        self.queue.put(job)
        self._pending[job.number] = job
        self._last_number = job.number
        self._wake()

    @property
    def is_pending(self) -> bool:
        """Whether anything is to be heard of some window."""
        return bool(self._pending)

    def listen(self) -> None:
        """Hear what the finisher says, without waiting for it; costs a microsecond."""
        if self._pending and self._finisher is not None:
            self._hear()

    def _hear(self) -> None:
        finisher = self._finisher
        if finisher is None or finisher.stdout is None:
            return
        try:
            said = os.read(finisher.stdout.fileno(), 1 << 12)
        except BlockingIOError:
            return
        self._learn()
        if not said:
            self._bury(finisher)
            if self._pending:
                self._wake()

    def _learn(self) -> None:
        state = read_json(self.queue.folder / STATE)
        self._learn_from(state["windows"] if isinstance(state, dict) else [])

    def _learn_from(self, windows: list[dict[str, Any]]) -> None:
        told = [window["window"] for window in windows]
        for number in [number for number in self._pending if number < min(told, default=0)]:
            del self._pending[number]  # long pruned
        for window in windows:
            number, upload = window["window"], window.get("upload", {}).get("state")
            if window["state"] == SAVING or upload == "waiting":
                continue
            self._pending.pop(number, None)
            if self._told.get(number) != (window["state"], upload):
                self._told[number] = (window["state"], upload)
                self._on_outcome(window)

        self._say_heard()

    def _say_heard(self) -> None:
        """Say up to which window the program has heard of all: those may be pruned."""
        heard_to = min(self._pending, default=self._last_number + 1) - 1
        if self._process.get("heard_to", heard_to) != heard_to:
            self._process["heard_to"] = heard_to
            write_json(self.queue.folder / PROCESS, self._process)
            if self._finisher is not None and self._finisher.stdin is not None and not self._finisher.stdin.closed:
                with suppress(OSError):  # one that is gone has nothing to prune, and is noticed elsewhere
                    os.write(self._finisher.stdin.fileno(), b"\n")

    def _wake(self) -> None:
        """Make sure that a finisher is at work, and let it look."""
        if self._finisher is None and self._starts < _MOST_STARTS:
            self._starts += 1
            self._start()
        if self._finisher is not None and self._finisher.stdin is not None:
            try:
                with broken_pipes_as_errors():
                    os.write(self._finisher.stdin.fileno(), b"\n")
            except BlockingIOError:
                pass  # it has enough to read
            except OSError:
                self._bury(self._finisher)
                self._wake()

    def _start(self) -> None:
        try:
            with (self.queue.folder / "finisher.log").open("ab") as log:
                self._finisher = subprocess.Popen(
                    command(_PROGRAM, str(self.queue.folder), str(os.getpid()), json.dumps(self._places)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self.queue.folder,
                    start_new_session=True,
                    bufsize=0,
                )
        except (OSError, RuntimeError, ValueError) as error:  # no memory for a process, or the interpreter is ending
            _LOG.debug("The finisher couldn't be started.", exc_info=error)
            return
        for pipe in (self._finisher.stdin, self._finisher.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)

    def _bury(self, finisher: subprocess.Popen[bytes]) -> None:
        """Forget a finisher that has ended."""
        for pipe in (finisher.stdin, finisher.stdout):
            if pipe is not None:
                pipe.close()
        finisher.wait()
        self._finisher = None

    def close(self, timeout_s: float) -> int:
        """Let the finisher end when all is done; return how many windows are still being written.

        Args:
            timeout_s: How long to wait for it. It goes on alone after that.
        """
        if self._queue is None or os.getpid() != self._pid:
            return 0
        deadline = time.monotonic() + timeout_s
        self._wake()
        while (finisher := self._finisher) is not None:
            if finisher.stdin is not None and not finisher.stdin.closed:
                finisher.stdin.close()
            try:
                has_ended = self._waits_for(finisher, deadline)
            except BaseException:  # Ctrl-C: who ends the wait doesn't end the writing
                self._leave(finisher)
                raise
            if not has_ended:
                self._leave(finisher)
                return len(self._pending)
            self._learn()
            self._bury(finisher)
            if self._pending and self._queue.jobs():
                self._wake()
        if self._pending:  # no process could be started, or each one died
            self._learn_from(finish_left_over(self._queue.folder, places=self._places) or [])
        if "heard_to" in self._process:
            prune_left_over(self._queue.folder)
        if self._queue.is_empty():
            self._queue.discard()
        return len(self._pending)

    def _waits_for(self, finisher: subprocess.Popen[bytes], deadline: float) -> bool:
        """Wait for a finisher to end, and say now and then what is waited for; return whether it has ended."""
        pause_s = _QUIET_S
        while True:
            left_s = deadline - time.monotonic()
            try:
                finisher.wait(max(0.0, min(left_s, pause_s)))
            except subprocess.TimeoutExpired:
                if left_s <= pause_s:
                    return False
                _LOG.warning("%s", self._what_is_awaited(finisher.pid, left_s - pause_s))
                pause_s = _SAY_EVERY_S
            else:
                return True

    def _what_is_awaited(self, pid: int, left_s: float) -> str:
        what = _counted(len(self._pending))
        if is_stopped(pid):
            return (
                f"Process {pid}, which writes {what}, is stopped: `kill -CONT {pid}` lets it go on. "
                f"This process waits {left_s:.0f} s more at most; Ctrl-C ends the wait."
            )
        return (
            f"Waiting for {what} to be written by process {pid}, {left_s:.0f} s more at most; it goes on alone after "
            "that. Ctrl-C ends the wait, not the writing."
        )

    def _leave(self, finisher: subprocess.Popen[bytes]) -> None:
        """Let a finisher go on alone."""
        write_json(self.queue.folder / PROCESS, {**self._process, "is_alone": True})
        leave_alone(finisher)
        self._finisher = None


def _counted(traces: int) -> str:
    return "1 trace" if traces == 1 else f"{traces} traces" if traces else "the run's manifest"


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped, as by SIGSTOP or a debugger; False where the system doesn't tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] in (["T"], ["t"])  # proc(5): field 3
