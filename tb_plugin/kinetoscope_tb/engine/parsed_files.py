"""What small files of a run have, each parsed once until it changes, since a page asks about them every few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..filesystem import entry_at
from .future_cache import FutureCache, Pending

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_FILES = 1 << 14

Value = TypeVar("Value")


@dataclass(eq=False)
class _Parsed(Pending[Any]):
    """What a file has.

    Args:
        stamp: The file's, when it was parsed.
    """

    stamp: Any = None


class ParsedFiles:
    """The values of files by their paths; those that were used last stay."""

    def __init__(self) -> None:
        self._cache: FutureCache[str, _Parsed] = FutureCache(MOST_FILES)

    def __call__(self, path: str, parse: Callable[[], Value]) -> Value:
        """The value of a file, parsed at the first call and again once the file has changed.

        Args:
            path: The file.
            parse: Parses it; always the same for a path. What it raises is raised until the file changes.
        """
        entry = entry_at(path)
        stamp = None if entry is None else entry.stamp
        item = self._cache.get(path, lambda: _item_of(parse, stamp), lambda item: bool(item.stamp == stamp))
        value: Value = item.future.result()
        return value


def _item_of(parse: Callable[[], object], stamp: object) -> _Parsed:
    item = _Parsed(stamp=stamp)
    try:
        item.future.set_result(parse())
    except Exception as error:  # noqa: BLE001  each caller gets it
        item.future.set_exception(error)
    return item
