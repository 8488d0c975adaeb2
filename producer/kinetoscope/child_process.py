"""Processes of our own next to the training: the same Python and the same modules as here, and no others."""

from __future__ import annotations

import atexit
import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAME_MODULES = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_command(statement: str, *arguments: str) -> list[str]:
    """Return what starts Python with a statement and `sys.argv[1:]`.

    Neither the environment nor the working folder decides what is imported: a training's folder may hold a `queue.py`.
    """
    path = json.dumps([str(Path(__file__).parents[1]), *(entry for entry in sys.path if entry)])
    return [sys.executable, "-I", "-S", "-c", _SAME_MODULES + statement, path, *arguments]


@contextmanager
def broken_pipes_as_errors() -> Iterator[None]:
    """Let a write to a process that is gone raise, also where the program lets SIGPIPE end it, as a shell does.

    The system gives the signal to the thread that writes: it is held back there, and taken away.
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


detached: list[subprocess.Popen[bytes]] = []
"""Processes that were left alone, as far as nobody knows that they have ended."""


def detach(process: subprocess.Popen[bytes]) -> None:
    """Let a process end by itself, whenever that is; where Python warns of resources, it doesn't of this one."""
    if process.stdout is not None:
        process.stdout.close()  # nobody reads it any more
    if not detached:
        atexit.register(_forget_detached)
    detached[:] = [*(other for other in detached if other.poll() is None), process]


def _forget_detached() -> None:
    for process in detached:
        if process.poll() is None:
            process.returncode = 0
