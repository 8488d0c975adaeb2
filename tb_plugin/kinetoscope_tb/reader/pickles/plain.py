"""A small pickle of plain values → the same objects of Python, such as a dump of torch's flight recorder."""

from __future__ import annotations

import struct
from typing import Any

from .machine import NAME_BITS, Kind, Machine, PickleError

MOST_BYTES = 1 << 28
MOST_VALUES = 1 << 24

_WIDE: dict[int, str] = {Kind.SIGNED: "<q", Kind.UNSIGNED: "<Q", Kind.FLOAT: "<d"}


def plain_value(data: bytes) -> Any:
    """The value that a pickle holds.

    Values that the pickle shares are shared; no value holds itself, and none is nested over 64 deep.

    Raises:
        PickleError: It isn't a pickle of plain values, has no end, or is too large.
    """
    if len(data) > MOST_BYTES:
        raise PickleError(f"it has more than {MOST_BYTES >> 20} MiB")
    machine = Machine()
    machine.feed(data)
    if not machine.is_over:
        raise PickleError(f"it ends too early (at byte {machine.read_bytes})")
    return _Objects(machine).value(machine.root)


class _Objects:
    """Builds objects, each container once."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._texts, self._wide = machine, machine.texts(), machine.wide
        self._built: dict[int, Any] = {}
        self._count = 0

    def value(self, word: int) -> Any:
        """The object of a word.

        Raises:
            PickleError: It has no value, or there are too many.
        """
        kind, value = word & 15, word >> NAME_BITS
        if kind == Kind.TEXT:
            return self._texts[value]
        if kind in (Kind.INTEGER, Kind.BOOL):
            return value if kind == Kind.INTEGER else bool(value)
        if kind in (Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT):
            return struct.unpack(_WIDE[kind], self._wide[value].tobytes())[0]
        if kind == Kind.NONE:
            return None
        if kind not in (Kind.LIST, Kind.DICT, Kind.TUPLE):
            raise PickleError("it holds no value")
        if value not in self._built:
            self._built[value] = self._container(kind, word)
        return self._built[value]

    def _container(self, kind: int, word: int) -> Any:
        words = self._machine.items(word).tolist()
        self._count += 1 + len(words)
        if self._count > MOST_VALUES:
            raise PickleError(f"it has more than {MOST_VALUES} values")
        values = [self.value(item) for item in words]
        if kind == Kind.DICT:
            try:
                return dict(zip(values[::2], values[1::2], strict=True))
            except TypeError as error:
                raise PickleError("a key of a dict holds a list or a dict") from error
        return tuple(values) if kind == Kind.TUPLE else values
