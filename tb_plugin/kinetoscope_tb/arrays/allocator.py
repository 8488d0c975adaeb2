"""The C library's allocator: what was freed goes back to the system.

glibc keeps what is free below something in use, in an arena for every few threads, and a thread can't use what another
arena has free. After thirty traces that is several times what the server holds (malloc_trim(3), M_ARENA_MAX in
mallopt(3)). Other C libraries have no such calls.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_M_ARENA_MAX = -8  # malloc.h


def share_one_arena() -> None:
    """Have all threads that begin from now on allocate from the arenas that exist, usually one."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def release_free_memory() -> None:
    """Give free memory back to the system. Takes milliseconds, without the interpreter's lock."""
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


@cache
def _function(name: str) -> Callable[..., Any] | None:
    """A function of the C library, if it has it."""
    try:
        function: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # TypeError: on Windows a library needs a name
        return None
    return function
