"""Results by key, each computed once for all callers, with a least-recently-used limit by count, by bytes, or both."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")
Key = TypeVar("Key", bound="Hashable")


class Item(Protocol):
    """An item of a cache."""

    held_bytes: int  # the memory that its result takes

    @property
    def future(self) -> Future[Any]:
        """The result, or its exception."""


CachedItem = TypeVar("CachedItem", bound=Item)


@dataclass(eq=False)
class Pending(Generic[Result]):
    """An item that consists of its result alone."""

    future: Future[Result] = field(default_factory=Future)
    held_bytes: int = 0


class FutureCache(Generic[Key, CachedItem]):
    """Items by key; the least recently used are evicted.

    Failures are cached too, unless `is_transient` is true for the exception: then the next call tries again.

    Args:
        most: Limit of the number of items; None for none.
        capacity_bytes: Returns the limit of their memory; called whenever an item grows.
        is_transient: Whether a failed item is dropped as soon as it fails.
    """

    def __init__(
        self,
        most: int | None = None,
        capacity_bytes: Callable[[], int] | None = None,
        is_transient: Callable[[BaseException], bool] | None = None,
    ) -> None:
        self._most, self._capacity_bytes, self._is_transient = most, capacity_bytes, is_transient
        self._lock = threading.RLock()  # a future that is already done calls back while it is added
        self._items: OrderedDict[Key, CachedItem] = OrderedDict()  # the least recently used first

    def __len__(self) -> int:
        return len(self._items)

    def find(self, key: Key) -> CachedItem | None:
        """The item of this key, if there is one; doesn't count as a use."""
        with self._lock:
            return self._items.get(key)

    def get(
        self,
        key: Key,
        start: Callable[[], CachedItem],
        is_current: Callable[[CachedItem], bool] = lambda _: True,
    ) -> CachedItem:
        """The item of this key, started at the first call, and again once it is no longer current."""
        with self._lock:
            item = self._items.get(key)
            if item is None or not is_current(item):
                item = self._items[key] = start()
                if self._is_transient is not None:
                    item.future.add_done_callback(partial(self._drop_failed, key))
            if key in self._items:  # it may have failed at once
                self._items.move_to_end(key)
            while self._most is not None and len(self._items) > self._most:
                self._items.popitem(last=False)
            return item

    def drop(self, key: Key, item: CachedItem) -> None:
        """Drop an item, so that the next call starts another; does nothing if another has replaced it."""
        with self._lock:
            if self._items.get(key) is item:
                del self._items[key]

    def make_room(self, item: CachedItem) -> None:
        """Drop items that are done, other than the one that grew, until all fit the capacity."""
        if self._capacity_bytes is None:
            return
        capacity = self._capacity_bytes()
        with self._lock:
            for key in [key for key, other in self._items.items() if other is not item and other.future.done()]:
                if sum(other.held_bytes for other in self._items.values()) <= capacity:
                    break
                del self._items[key]

    def room(self) -> float:
        """How much memory may be added before items are dropped."""
        if self._capacity_bytes is None:
            return float("inf")
        with self._lock:
            return self._capacity_bytes() - sum(item.held_bytes for item in self._items.values())

    def _drop_failed(self, key: Key, future: Future[Any]) -> None:
        """Drop an item that failed; known by its key, since a future keeps its callbacks and an item its future."""
        error, item = future.exception(), self.find(key)
        is_transient = error is not None and self._is_transient is not None and self._is_transient(error)
        if is_transient and item is not None and item.future is future:
            self.drop(key, item)
