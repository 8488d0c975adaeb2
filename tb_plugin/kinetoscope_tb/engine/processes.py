"""Jobs in processes of their own: they take neither Python's lock nor Polars' threads from this process.

A process starts with the first job that needs it, does one job at a time, and ends after some idle time. It ends with
this process too, however that ends: then its input ends. It runs the given functions alone, not the program's main
module as multiprocessing does, which may be anyone's notebook or script.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import subprocess
import sys
import threading
from concurrent.futures import BrokenExecutor
from typing import IO, TYPE_CHECKING, Any, TypeVar

from .workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

Result = TypeVar("Result")

IDLE_S = 60.0
_LENGTH_BYTES = 8
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; from kinetoscope_tb.engine.processes import work; work(int(sys.argv[1]))"
)


class Processes:
    """An executor of a few processes, which is never shut down.

    Args:
        most: Limit of their number.
        niceness: How much lower their priority is than that of this process.
    """

    def __init__(self, most: int, niceness: int = 0) -> None:
        self._niceness = niceness
        self._threads = Workers(most)  # each waits for one process
        self._lock = threading.Lock()
        self._idle: list[_Process] = []

    def submit(self, job: Callable[[str], Result], path: str, /) -> Future[Result]:
        """The future of a job; `BrokenExecutor` if its process is killed."""
        return self._threads.submit(self._run, job, path)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Do nothing: the processes are reused."""

    def _run(self, job: Callable[[str], Result], path: str) -> Result:
        request = pickle.dumps((job, path))
        with self._lock:
            idle = [process for process in self._idle if process.is_alive]
            process = idle.pop() if idle else None
            self._idle = idle
        answer = None if process is None else process.answer(request)
        if process is None or answer is None:  # an idle one may have ended in this moment
            try:
                process = _Process(self._niceness)
            except OSError:  # the machine starts no more processes
                return job(path)
            answer = process.answer(request)
        if answer is None:
            raise BrokenExecutor("the process ended")
        with self._lock:
            self._idle.append(process)
        is_result, value = pickle.loads(answer)  # noqa: S301  from our own process
        if not is_result:
            raise value
        return value  # type: ignore[no-any-return]


class _Process:
    """One process."""

    def __init__(self, niceness: int) -> None:
        command = [sys.executable, "-c", _PROGRAM, str(niceness), *(entry for entry in sys.path if entry)]
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        atexit.register(self._end)

    @property
    def is_alive(self) -> bool:
        """Whether it hasn't ended."""
        return self._process.poll() is None

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request; None if the process ended before."""
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            return None
        try:
            _send(requests, request)
            answer = _receive_message(answers)
        except OSError:
            answer = None
        if answer is None:
            self._end()
        return answer

    def _end(self) -> None:
        atexit.unregister(self._end)
        self._process.kill()
        self._process.communicate()


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH_BYTES, "little") + message)
    stream.flush()


def _receive_message(stream: IO[bytes]) -> bytes | None:
    """The next message; None if the stream ended."""
    length = int.from_bytes(head := stream.read(_LENGTH_BYTES), "little")
    message = stream.read(length)
    return message if len(head) == _LENGTH_BYTES and len(message) == length else None


def work(niceness: int) -> None:
    """Run jobs from the standard input, until it ends or none came for a while; the program of each process."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    if hasattr(os, "nice"):  # not on Windows
        os.nice(niceness)
    requests: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    while True:
        try:
            request = requests.get(timeout=IDLE_S)
        except queue.Empty:
            return
        _send(answers, _outcome(request))


def _receive(requests: queue.Queue[bytes]) -> None:
    """Receive requests; when the other process ends, so does this one, in the middle of its job."""
    while (request := _receive_message(sys.stdin.buffer)) is not None:
        requests.put(request)
    os._exit(0)


def _outcome(request: bytes) -> bytes:
    """Whether a job has a result, and the result or the exception."""
    try:
        job, path = pickle.loads(request)  # noqa: S301  from our own process
        outcome: tuple[bool, Any] = True, job(path)
    except Exception as error:  # noqa: BLE001  raised where the result is used
        outcome = False, error
    try:
        return pickle.dumps(outcome)
    except Exception as error:  # noqa: BLE001  an exception of a library that can't be sent
        return pickle.dumps((False, RuntimeError(f"{type(outcome[1]).__name__}: {outcome[1]} ({error})")))
