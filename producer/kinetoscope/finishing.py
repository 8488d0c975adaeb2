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
from typing import TYPE_CHECKING, Any

from .finisher import finish_left_over
from .interpreter import command, leave_alone
from .jobs import PROCESS, STATE, Job, Queue
from .manifest import SAVING
from .plain_files import read_json, write_json
from .scratch import make_queue_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_LOG = logging.getLogger("kinetoscope")

_MOST_STARTS = 3
_PROGRAM = "from kinetoscope.finisher import main; main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))"


class Finishing:
    """One process's queue, and the finisher that works on it.

    Args:
        on_outcome: Is called on the training's thread with what became of each window.
        places: Where copies may go: what their URLs begin with.
    """

    def __init__(self, on_outcome: Callable[[dict[str, Any]], None], places: Collection[str] = ()) -> None:
        self._on_outcome, self._places = on_outcome, list(places)
        self._queue: Queue | None = None
        self._finisher: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._pending: set[int] = set()
        self._told: dict[int, tuple[str, str | None]] = {}
        self._process: dict[str, Any] = {}
        self._pid = os.getpid()

    @property
    def queue(self) -> Queue:
        """The queue; a new folder that only this user may read, when first asked for."""
        if self._queue is None:
            self._queue = Queue(make_queue_folder())
        return self._queue

    def describe(self, facts: dict[str, Any]) -> None:
        """Tell, or correct, what is true of the whole process."""
        self._process |= facts
        write_json(self.queue.folder / PROCESS, self._process)
        self._wake()

    def put(self, job: Job) -> None:
        """Give the finisher a job."""
        self.queue.put(job)
        self._pending.add(job.number)
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
        self._learn_from((read_json(self.queue.folder / STATE) or {}).get("windows", []))

    def _learn_from(self, windows: list[dict[str, Any]]) -> None:
        told = [window["window"] for window in windows]
        self._pending = {number for number in self._pending if number >= min(told, default=0)}  # else long pruned
        for window in windows:
            number, upload = window["window"], window.get("upload", {}).get("state")
            if window["state"] == SAVING or upload == "waiting":
                continue
            self._pending.discard(number)
            if self._told.get(number) != (window["state"], upload):
                self._told[number] = (window["state"], upload)
                self._on_outcome(window)

    def _wake(self) -> None:
        """Make sure that a finisher is at work, and let it look."""
        if self._finisher is None and self._starts < _MOST_STARTS:
            self._starts += 1
            self._start()
        if self._finisher is not None and self._finisher.stdin is not None:
            try:
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
                finisher.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                write_json(self._queue.folder / PROCESS, {**self._process, "is_alone": True})
                leave_alone(finisher)
                self._finisher = None
                return len(self._pending)
            self._learn()
            self._bury(finisher)
            if self._pending and self._queue.jobs():
                self._wake()
        if self._pending:  # no process could be started, or each one died
            self._learn_from(finish_left_over(self._queue.folder, places=self._places) or [])
        if self._queue.is_empty():
            self._queue.discard()
        return len(self._pending)
