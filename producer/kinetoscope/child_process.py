"""Child processes of the recorder, with the same Python and the same module search path as this process."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HAS_PIPES_WITHOUT_WAITING = os.name == "posix"
"""Whether a pipe can be read only if something is in it; Windows has neither that nor `select` of pipes."""

_SAME_MODULES = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_command(statement: str, *arguments: str) -> list[str]:
    """Return the command that runs a Python statement with `sys.argv[1:]`.

    Neither the environment nor the working directory affects imports: a training's folder may have a `queue.py`.
    """
    path = json.dumps([str(Path(__file__).parents[1]), *(entry for entry in sys.path if entry)])
    return [sys.executable, "-I", "-S", "-c", _SAME_MODULES + statement, path, *arguments]


def lower_priority() -> None:
    """Let the training, whose cores this process shares, go first."""
    with suppress(OSError, AttributeError):  # AttributeError: not on Windows
        os.nice(10)


@contextmanager
def broken_pipes_as_errors() -> Iterator[None]:
    """Make a write to a process that has ended raise, even if SIGPIPE would end the program, as started from a shell.

    The kernel sends the signal to the writing thread: it is blocked there and then discarded.
    """
    if not hasattr(signal, "sigtimedwait"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        yield
    finally:
        if signal.SIGPIPE not in before:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


detached_processes: list[subprocess.Popen[bytes]] = []
"""Detached processes that aren't known to have ended."""


def detach(process: subprocess.Popen[bytes]) -> None:
    """Let a process outlive this one, without a ResourceWarning about it."""
    if process.stdout is not None:
        process.stdout.close()  # no one reads it any more
    if not detached_processes:
        atexit.register(_forget_detached)
    detached_processes[:] = [*(other for other in detached_processes if other.poll() is None), process]


def _forget_detached() -> None:
    for process in detached_processes:
        if process.poll() is None:
            process.returncode = 0
