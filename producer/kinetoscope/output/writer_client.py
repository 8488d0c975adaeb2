"""The training's side of the writer process: sends it jobs, receives their outcomes, and waits only in `close`.

This module doesn't touch the run's folder, which may be on a disk that is slow, full or gone: it writes only to the
machine's own disk.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_json
from ..child_process import HAS_PIPES_WITHOUT_WAITING, broken_pipes_as_errors, detach, python_command
from ..process_id import is_stopped
from ..untrusted_files import read_json
from .manifest import SAVING
from .scratch import make_spool_folder
from .spool import PROCESS, STATE, Job, Spool
from .writer_process import finish_spool, prune_spool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_LOG = logging.getLogger("kinetoscope")

_MAX_STARTS = 3
_QUIET_S, _LOG_EVERY_S = 1.0, 15.0
"""How long the end waits before its first message, and how often it repeats the message."""

_PROGRAM = (
    "from kinetoscope.output.writer_process import main; main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))"
)


class WriterClient:
    """One process's spool, and the writer process that works on it.

    Args:
        on_outcome: Called on the training's thread with the outcome of each window.
        url_prefixes: The allowed prefixes of the URLs of copies.
        keep: How many traces stay if each must exist until `on_outcome` was called with it; -1 for all.
    """

    def __init__(
        self, on_outcome: Callable[[dict[str, Any]], None], url_prefixes: Collection[str] = (), *, keep: int = -1
    ) -> None:
        self._on_outcome, self._url_prefixes = on_outcome, list(url_prefixes)
        self._spool: Spool | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._pending: dict[int, Job] = {}
        self._reported: dict[int, tuple[str, str | None]] = {}
        self._facts: dict[str, Any] = {} if keep < 0 else {"heard_to": -1, "keep": keep}
        self._last_number = -1
        self.ring: int | None = None
        """The descriptor of the ring of this process's last minutes; None for none."""
        self._pid = os.getpid()

    @property
    def spool(self) -> Spool:
        """The spool: a folder that only this user may read, created on first use, and again if it was removed.

        Raises:
            OSError: It can't be created.
        """
        if self._spool is None:
            self._spool = Spool(make_spool_folder())
        elif self._spool.recreate():
            _LOG.warning(
                "%s, the folder for unfinished recordings, was removed; it is created again.", self._spool.folder
            )
            write_json(self._spool.folder / PROCESS, self._facts)
            for job in self._pending.values():  # the writer process reports each outcome
                self._spool.put(job)
        return self._spool

    def describe(self, facts: dict[str, Any]) -> None:
        """Set or update the facts about the whole process."""
        self._facts |= facts
        write_json(self.spool.folder / PROCESS, self._facts)
        self._wake()

    def put(self, job: Job) -> None:
        """Send the writer process a job."""
        self.spool.put(job)
        self.expect(job)

    def expect(self, job: Job) -> None:
        """Expect the outcome of a job that is in the spool, unless it is known already."""
        if job.number not in self._reported:
            self._pending[job.number] = job
        self._last_number = max(self._last_number, job.number)
        self._wake()

    @property
    def is_pending(self) -> bool:
        """Whether the outcome of some window is still open."""
        return bool(self._pending)

    def poll(self) -> None:
        """Receive outcomes from the writer process without waiting; costs a microsecond."""
        if self._pending and self._process is not None:
            self._read_news()

    def _read_news(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        try:
            data = os.read(process.stdout.fileno(), 1 << 12)
        except BlockingIOError:
            return
        self._read_state()
        if not data:
            self._reap(process)
            if self._pending:
                self._wake()

    def _read_state(self) -> None:
        state = read_json(self.spool.folder / STATE)
        self._apply_news(state["windows"] if isinstance(state, dict) else [])

    def _apply_news(self, windows: list[dict[str, Any]]) -> None:
        numbers = [window["window"] for window in windows]
        for number in [number for number in self._pending if number < min(numbers, default=0)]:
            del self._pending[number]  # long pruned
        for window in windows:
            number, upload = window["window"], window.get("upload", {}).get("state")
            if window["state"] == SAVING or upload == "waiting":
                continue
            self._pending.pop(number, None)
            if self._reported.get(number) != (window["state"], upload):
                self._reported[number] = (window["state"], upload)
                self._on_outcome(window)

        self._acknowledge()

    def _acknowledge(self) -> None:
        """Report up to which window the program knows all outcomes: those traces may be pruned."""
        heard_to = min(self._pending, default=self._last_number + 1) - 1
        if self._facts.get("heard_to", heard_to) != heard_to:
            self._facts["heard_to"] = heard_to
            write_json(self.spool.folder / PROCESS, self._facts)
            if self._process is not None and self._process.stdin is not None and not self._process.stdin.closed:
                with suppress(OSError):  # a process that has ended prunes nothing, and is detected elsewhere
                    os.write(self._process.stdin.fileno(), b"\n")

    def _wake(self) -> None:
        """Start a writer process if none is running, and wake it."""
        if self._process is None and self._starts < _MAX_STARTS:
            self._starts += 1
            self._start()
        if self._process is not None and self._process.stdin is not None:
            try:
                with broken_pipes_as_errors():
                    os.write(self._process.stdin.fileno(), b"\n")
            except BlockingIOError:
                pass  # the pipe is full: it has enough to read
            except OSError:
                self._reap(self._process)
                self._wake()

    def _start(self) -> None:
        if not HAS_PIPES_WITHOUT_WAITING:
            return  # `close` writes the traces
        try:
            with (self.spool.folder / "writer.log").open("ab") as log:
                self._process = subprocess.Popen(
                    python_command(_PROGRAM, str(self.spool.folder), str(os.getpid()), json.dumps(self._url_prefixes)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self.spool.folder,
                    start_new_session=True,
                    pass_fds=() if self.ring is None else (self.ring,),
                    bufsize=0,
                )
        except (OSError, RuntimeError, ValueError) as error:  # no memory for a process, or the interpreter is ending
            _LOG.debug("The writer process couldn't be started.", exc_info=error)
            return
        _forks.register(self)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self._facts |= {"writer": self._process.pid, "ring": self.ring}
        with suppress(OSError):  # only `kinetoscope status` needs it
            write_json(self.spool.folder / PROCESS, self._facts)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        """Reap a writer process that has ended."""
        self.close_pipes()
        process.wait()
        self._process = None

    def close_pipes(self) -> None:
        """Close this process's ends of the pipes to the writer process."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()

    def close(self, timeout_s: float) -> int:
        """Let the writer process end when all jobs are done; return how many windows are still being written.

        Args:
            timeout_s: How long to wait for it. After that it continues alone.
        """
        if self._spool is None or os.getpid() != self._pid:
            return 0
        deadline = time.monotonic() + timeout_s
        self._wake()
        while (process := self._process) is not None:
            is_alone = timeout_s <= 0
            if is_alone:  # before it learns of the end: it may end at once, and cleans up only if it knows
                self._leave_alone()
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.close()
            try:
                has_ended = self._wait_for_exit(process, deadline)
            except BaseException:  # Ctrl-C ends the wait, not the writing
                self._detach(process)
                raise
            if not has_ended:
                self._detach(process, knows=is_alone)
                return len(self._pending)
            self._read_state()
            self._reap(process)
            if self._pending and self._spool.jobs():
                self._wake()
        if self._pending:  # no process could be started, or all died
            self._apply_news(finish_spool(self._spool.folder, url_prefixes=self._url_prefixes) or [])
        if "heard_to" in self._facts:
            prune_spool(self._spool.folder)
        if self._spool.is_empty():
            self._spool.discard()
        return len(self._pending)

    def _wait_for_exit(self, process: subprocess.Popen[bytes], deadline: float) -> bool:
        """Wait for a writer process to end, with a message now and then; return whether it has ended."""
        pause_s = _QUIET_S
        while True:
            left_s = deadline - time.monotonic()
            try:
                process.wait(max(0.0, min(left_s, pause_s)))
            except subprocess.TimeoutExpired:
                if left_s <= pause_s:
                    return False
                _LOG.warning("%s", self._waiting_message(process.pid, left_s - pause_s))
                pause_s = _LOG_EVERY_S
            else:
                return True

    def _waiting_message(self, pid: int, left_s: float) -> str:
        what = _trace_count(len(self._pending))
        if is_stopped(pid):
            return (
                f"Process {pid}, which writes {what}, is stopped: `kill -CONT {pid}` continues it. "
                f"This process waits {left_s:.0f} s more at most; Ctrl-C ends the wait."
            )
        return (
            f"Waiting for {what} to be written by process {pid}, {left_s:.0f} s more at most; then it continues "
            "alone. Ctrl-C ends the wait, not the writing."
        )

    def _detach(self, process: subprocess.Popen[bytes], *, knows: bool = False) -> None:
        """Detach a writer process.

        Args:
            process: The process.
            knows: Whether it knows that it is alone: then it may have cleaned up already.
        """
        if not knows:
            self._leave_alone()
        detach(process)
        self._process = None

    def _leave_alone(self) -> None:
        """Tell the writer process that nobody waits for it."""
        write_json(self.spool.folder / PROCESS, {**self._facts, "is_alone": True})


def _trace_count(traces: int) -> str:
    return "1 trace" if traces == 1 else f"{traces} traces" if traces else "the run's manifest"


class _Forks:
    """Closes the pipes in forked processes, such as workers of a DataLoader.

    The end of its pipe tells the writer process that the training is done, so it would wait for them.
    """

    def __init__(self) -> None:
        self._clients: weakref.WeakSet[WriterClient] = weakref.WeakSet()
        self._is_registered = False

    def register(self, client: WriterClient) -> None:
        """Do that at each fork from now on; Python can't take that back."""
        self._clients.add(client)
        if not self._is_registered and hasattr(os, "register_at_fork"):
            self._is_registered = True
            os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        for client in self._clients:
            client.close_pipes()


_forks = _Forks()
