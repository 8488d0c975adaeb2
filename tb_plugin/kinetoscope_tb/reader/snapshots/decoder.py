"""Words of a snapshot's pickle → arrays of numbers, and rows of texts and stacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ..pickles.machine import NAME_BITS, Kind, Machine, Words

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

_NS_PER_US = 1000
_LATEST_US = 2**62 // _NS_PER_US
_LARGEST = 1 << 52  # bytes
_LAST_DEVICE = (1 << 15) - 1
_MOST_SETTINGS = 256
_CONTAINERS = (Kind.LIST, Kind.TUPLE)


class Decoder:
    """Decodes words of a machine that has read a snapshot.

    Args:
        machine: The machine.

    Attributes:
        texts: All texts of the snapshot.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine, self._wide = machine, machine.wide
        self.texts = pl.Series(machine.texts(), dtype=pl.String)
        self._pools: dict[str, int] = {}

    @property
    def pools(self) -> pl.Series:
        """The texts of `pool_rows`."""
        return pl.Series(list(self._pools), dtype=pl.String)

    def numbers(self, words: Words) -> Ints:
        """The integers; NONE where there is none."""
        kind, value = words & 15, words >> NAME_BITS
        numbers = np.where((kind == Kind.INTEGER) | (kind == Kind.BOOL), value, NONE)
        is_wide = (kind == Kind.SIGNED) | (kind == Kind.UNSIGNED)
        if is_wide.any():
            numbers[is_wide] = self._wide[value[is_wide]]
        return numbers

    def sizes(self, words: Words) -> Ints:
        """Sizes in bytes; NONE where there is none, or where no memory is so large."""
        numbers = self.numbers(words)
        return np.where((numbers < 0) | (numbers > _LARGEST), NONE, numbers)

    def devices(self, words: Words) -> Ints:
        """Indices of devices; NONE where there is none, or where no device is so far."""
        numbers = self.numbers(words)
        return np.where((numbers < 0) | (numbers > _LAST_DEVICE), NONE, numbers)

    def times(self, words: Words) -> Ints:
        """Unix times in ns; NONE where there is none."""
        numbers = self.numbers(words)
        return np.where((numbers <= 0) | (numbers > _LATEST_US), NONE, numbers * _NS_PER_US)

    def text_rows(self, words: Words) -> Rows:
        """The rows of `texts`; NONE where there is none."""
        return np.where((words & 15) == Kind.TEXT, words >> NAME_BITS, NONE).astype(np.int32)

    def stack_rows(self, words: Words) -> Rows:
        """The numbers of stacks; NONE where there is none."""
        return np.where((words & 15) == Kind.STACK, words >> NAME_BITS, NONE).astype(np.int32)

    def pool_rows(self, words: Words) -> Rows:
        """The rows of `pools`, texts of pairs of integers such as `0, 1`; NONE where there is none."""
        distinct, rows = np.unique(words, return_inverse=True)
        codes = [self._pool_row(word) for word in distinct.tolist()]
        return np.array(codes, np.int32)[rows]

    def _pool_row(self, word: int) -> int:
        if word & 15 not in _CONTAINERS:
            return NONE
        text = ", ".join(map(str, self.numbers(self.items(word)[:2]).tolist()))
        return self._pools.setdefault(text, len(self._pools))

    def items(self, word: int) -> Words:
        """The words in a list or a tuple; none of anything else."""
        return self._machine.items(word) if word & 15 in _CONTAINERS else np.empty(0, np.int64)

    def pairs(self, word: int) -> dict[str, int]:
        """The first values of a dict by the keys that are texts."""
        if word & 15 != Kind.DICT:
            return {}
        items = self._machine.items(word)[: 2 * _MOST_SETTINGS].tolist()
        pairs = zip(items[::2], items[1::2], strict=True)
        return {self.texts[key >> NAME_BITS]: value for key, value in pairs if key & 15 == Kind.TEXT}

    def plain(self, word: int, depth: int = 0) -> Any:
        """A small value as JSON has it; None for what is larger or deeper than settings are."""
        kind = word & 15
        if kind == Kind.TEXT:
            return self.texts[word >> NAME_BITS]
        if kind == Kind.BOOL:
            return bool(word >> NAME_BITS)
        if kind == Kind.FLOAT:
            number = float(self._wide[word >> NAME_BITS : (word >> NAME_BITS) + 1].view(np.float64)[0])
            return number if np.isfinite(number) else None
        if kind in (Kind.INTEGER, Kind.SIGNED):
            return int(self.numbers(np.array([word]))[0])
        if kind not in (Kind.DICT, Kind.LIST) or depth > 2:
            return None
        if kind == Kind.LIST:
            return [self.plain(item, depth + 1) for item in self.items(word)[:_MOST_SETTINGS].tolist()]
        return {key: self.plain(value, depth + 1) for key, value in self.pairs(word).items()}
