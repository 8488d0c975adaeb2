"""Columns of words of a pickle: each block in the smallest integers that hold its range, until it is decoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.allocator import release_free_memory
from ...arrays.constants import repeat_value
from ..pickles.machine import Words

_MANY = 1 << 20  # rows whose blocks are worth giving back to the system
_NARROW = tuple(map(np.dtype, ("u1", "u2", "u4", "u8")))


class WordColumn:
    """One field of many records, as words."""

    def __init__(self) -> None:
        self._blocks = deque[
            tuple[int, int, NDArray[Any] | None]
        ]()  # the least word, rows, and what is above it in each
        self.size = 0

    def append(self, words: Words) -> None:
        """Append a block of words."""
        least, span = int(words.min()), int(words.max()) - int(words.min())
        dtype = next(dtype for dtype in _NARROW if span <= np.iinfo(dtype).max)
        self._blocks.append((least, words.size, (words - least).astype(dtype) if span else None))
        self.size += words.size

    def _taken_blocks(self) -> Iterator[Words]:
        while self._blocks:
            least, count, above = self._blocks.popleft()
            yield np.full(count, least) if above is None else above.astype(np.int64) + least

    def decode(self, convert: Callable[[Words], NDArray[Any]]) -> NDArray[Any]:
        """`convert(words)`, a value for each word; stored once if all words are equal. The words are freed."""
        words = {least if above is None else None for least, _, above in self._blocks}
        if len(words) == 1 and None not in words:
            self._blocks.clear()
            return repeat_value(convert(np.array(list(words), np.int64)), self.size)
        values = np.empty(self.size, convert(np.empty(0, np.int64)).dtype)
        at = 0
        for block in self._taken_blocks():
            values[at : at + block.size] = convert(block)
            at += block.size
        if self.size >= _MANY:
            release_free_memory()
        return values

    def words(self) -> Words:
        """The words themselves; they are freed."""
        return self.decode(lambda words: words)
