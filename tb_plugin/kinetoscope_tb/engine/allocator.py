"""The C library's allocator: what was freed goes back to the system when the server has nothing to do.

glibc keeps what is free below something in use, in an arena for every few threads. After thirty traces that is
several times what the server holds (malloc_trim(3), M_ARENA_MAX in mallopt(3)). Other C libraries have no such call.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def release_free_memory() -> None:
    """Give free memory back to the system. Takes milliseconds, without the interpreter's lock."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    try:
        trim: Callable[[int], Any] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # TypeError: on Windows a library needs a name
        return None
    return trim
