"""The C library's allocator: what was freed goes back to the system.

glibc keeps what is free below something in use, in an arena for every few threads, and a thread can't use what another
arena has free. After thirty traces that is several times what the server holds (malloc_trim(3), M_ARENA_MAX in
mallopt(3)). Other C libraries have no such calls.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike, NDArray

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


def own_pages(shape: tuple[int, ...], dtype: DTypeLike, *, huge: bool = False) -> NDArray[Any]:
    """An array of zeros outside of the allocator's heap, which a large free block in it would leave fragmented.

    Args:
        shape: At least one value.
        dtype: Their type.
        huge: Whether most of it will be used from its beginning, so that huge pages pay (madvise(2); Linux only).
    """
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # not Windows
    pages = mmap.mmap(-1, int(np.prod(shape)) * np.dtype(dtype).itemsize, **private)
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.ndarray(shape, dtype, pages)


@cache
def _function(name: str) -> Callable[..., Any] | None:
    """A function of the C library, if it has it."""
    try:
        function: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # TypeError: on Windows a library needs a name
        return None
    return function
