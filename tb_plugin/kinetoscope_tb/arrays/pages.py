"""Arrays outside of the allocator's heap."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def own_pages(shape: tuple[int, ...], dtype: DTypeLike, *, huge: bool = False) -> NDArray[Any]:
    """An array of zeros outside of the allocator's heap, where a large block that is freed leaves a hole.

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
