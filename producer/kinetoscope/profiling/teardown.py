"""The end of a process in which torch's profiler must not be destroyed.

kineto (torch 2.13) crashes in a destructor at the end of a process whose recording isn't stopped. Once it was in use,
it has a thread that forked processes lack: there, the destructor of its `ConfigLoader` aborts, or waits for that thread
forever. `os._exit`, as in workers of multiprocessing and the DataLoader, calls no destructors.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

_libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
_is_registered = False


def skip_destructors() -> None:
    """Let this process end without destructors of C++, when Python's own end is over, with the same exit status.

    It needs `on_exit` of glibc, with which torch is built for Linux; elsewhere it does nothing.
    """
    if hasattr(_libc, "on_exit"):
        _libc.on_exit(_libc._exit, None)  # the newest function is called first, with the exit status


def flush_output() -> None:
    """Write out what C code has printed, which the end of a process does only if nothing is skipped."""
    if hasattr(_libc, "on_exit"):
        _libc.fflush(None)


def skip_destructors_when_forked() -> None:
    """Let processes that are forked from now on end so; call it before kineto is in use."""
    global _is_registered
    if not _is_registered and hasattr(os, "register_at_fork"):
        _is_registered = True
        os.register_at_fork(after_in_child=_on_fork)


def _on_fork() -> None:
    atexit.register(flush_output)
    skip_destructors()
