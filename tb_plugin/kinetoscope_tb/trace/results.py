"""What was computed of an object, such as a trace: each result once for all who ask, its size counted as it enters."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from weakref import ref

import numpy as np
import polars as pl

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class Owner(Protocol):
    """What results belong to: a `Trace`, or what several rules of advice need to know of one."""

    @property
    def results(self) -> Results:
        """What was computed from it."""


class RecordingOwner(Owner, Protocol):
    """A `Trace`, and what was recorded of it."""

    @property
    def recording(self) -> Any:
        """It, before captures were known."""


Subject = TypeVar("Subject", bound=Owner)
RecordingSubject = TypeVar("RecordingSubject", bound=RecordingOwner)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Concatenate

    Key = tuple[Hashable, ...]
    Submit = Callable[[Callable[[], object]], object]
    OfTrace = Callable[Concatenate[Subject, Arguments], Value]


_MOST_ITEMS = 1000  # of a list or a mapping; longer ones hold numbers and texts, not arrays
_DEEPEST = 8
_NO_MEMORY = (str, bytes, int, float, type(None))


@dataclass
class HeldArrays:
    """The arrays and frames that a value holds.

    Attributes:
        sizes: The bytes of each, by its `id`; of a view the array that it is a view of.
        incomplete: Objects whose cached properties aren't all there, and how many values each has so far.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    incomplete: list[tuple[Any, int]] = field(default_factory=list)

    @classmethod
    def of(cls, *values: Any) -> HeldArrays:
        """What values hold, together. It is done in one call, since every answer of a server is counted."""
        arrays, ids = cls(), set[int]()
        parts = [(value, 0) for value in values]
        for value, depth in parts:  # grows meanwhile
            if isinstance(value, _NO_MEMORY) or id(value) in ids:
                continue
            ids.add(id(value))
            if isinstance(value, np.ndarray):
                owner = value
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                if owner.base is None:  # else it is mapped from a file, or belongs to a frame
                    arrays.sizes[id(owner)] = owner.nbytes
            elif isinstance(value, (pl.DataFrame, pl.Series)):
                arrays.sizes[id(value)] = int(value.estimated_size())
            elif depth == _DEEPEST:
                continue
            elif isinstance(value, Mapping):
                parts += [(part, depth + 1) for part in list(value.values())[:_MOST_ITEMS]]
            elif isinstance(value, (list, tuple)):
                parts += [(part, depth + 1) for part in value[:_MOST_ITEMS]]
            elif hasattr(type(value), "__dataclass_fields__") and hasattr(value, "__dict__"):
                parts += [(part, depth + 1) for part in vars(value).values()]
                kind: Any = type(value)
                if not _cached_properties(kind) <= vars(value).keys():
                    arrays.incomplete.append((value, len(vars(value))))
        return arrays

    def with_cached_properties(self) -> HeldArrays | None:
        """The same, with the cached properties that are there by now; None: nothing was added."""
        if all(len(vars(value)) == count for value, count in self.incomplete):
            return None
        more = HeldArrays.of(*(value for value, _ in self.incomplete))
        return HeldArrays(self.sizes | more.sizes, more.incomplete)


@lru_cache(1000)
def _cached_properties(kind: Any) -> set[str]:
    return {name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, cached_property)}


def bytes_of(values: Iterable[Any], apart_from: Iterable[Any] = ()) -> int:
    """Bytes of the arrays and frames in some values, without those that other values hold too."""
    others = HeldArrays.of(*apart_from).sizes
    return sum(size for array, size in HeldArrays.of(*values).sizes.items() if array not in others)


@dataclass(eq=False)
class _Item:
    """A result, or the computation that a thread still has to begin."""

    compute: Callable[[], Any] | None
    future: Future[Any] = field(default_factory=Future)
    arrays: HeldArrays = field(default_factory=HeldArrays)


class Results:
    """The results about one object, which go with it. They don't refer to it, so that it is freed when it is dropped.

    Args:
        subject: The object: the first argument of each function.
    """

    def __init__(self, subject: object) -> None:
        self._subject = ref(subject)
        self._lock = threading.Lock()
        self._items: OrderedDict[Key, _Item] = OrderedDict()  # the least recently used first
        self._holders: Counter[int] | None = None  # how many results hold each array; the object counts as one
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """The memory of all results that are there: each array once, without those of the object itself."""
        return self._held_bytes

    def get(
        self,
        function: Callable[..., Any],
        *arguments: Hashable,
        compute: Callable[[], Any] | None = None,
        submit: Submit | None = None,
        most: int | None = None,
    ) -> Future[Any]:
        """The result of a function of the object and of hashable arguments, computed at the first call.

        The first of two threads computes it: the one that needs it now, or the one that it was submitted to.

        Args:
            function: The function; with the arguments it is the key of the result.
            arguments: Its further arguments.
            compute: How to get the result where the function isn't called with these alone.
            submit: Hands the computation to another thread: then the future may not be done, and an error stays the
                result. Without it this thread computes, or waits for the one that does, and an error isn't cached.
            most: How many results of the function are cached; None for all.
        """
        function = getattr(function, "__wrapped__", function)
        key = (function, *arguments)
        with self._lock:
            item, is_new = self._items.get(key), False
            if item is None:
                is_new = True
                item = self._items[key] = _Item(compute or partial(function, self._subject(), *arguments))
                if most is not None:
                    self._drop_least_recent(function, most)
            self._items.move_to_end(key)
        if submit is None:
            if self._compute(key, item) and item.future.exception() is not None:
                self._drop(key, item)
            item.future.exception()  # waits
        elif is_new:
            submit(partial(self._compute, key, item))
        return item.future

    def put(self, function: Callable[..., Any], value: object) -> None:
        """Take a result of a function without further arguments that is known already, in place of another one."""
        key, item = (getattr(function, "__wrapped__", function),), _Item(None)
        with self._lock:
            self._release(self._items.get(key))
            self._items[key] = item
            self._count(item, HeldArrays.of(value))
        item.future.set_result(value)

    def _compute(self, key: Key, item: _Item) -> bool:
        """Compute a result unless another thread has begun; return whether it was this one."""
        with self._lock:
            compute, item.compute = item.compute, None
        if compute is None:
            return False
        try:
            value = compute()
        except BaseException as error:  # noqa: BLE001  # raised where the result is used
            item.future.set_exception(error)
            return True
        arrays = HeldArrays.of(value)
        with self._lock:
            if self._items.get(key) is item:
                self._count(item, arrays)
            self._count_cached_properties()
        item.future.set_result(value)
        return True

    def _drop_least_recent(self, function: Hashable, most: int) -> None:
        alike = [key for key in self._items if key[0] == function]
        for key in alike[: max(0, len(alike) - most)]:
            self._release(self._items.pop(key))

    def _drop(self, key: Key, item: _Item) -> None:
        with self._lock:
            if self._items.get(key) is item:
                del self._items[key]

    def _count(self, item: _Item, arrays: HeldArrays) -> None:
        if self._holders is None:
            self._holders = Counter(HeldArrays.of(self._subject()).sizes.keys())
        for array, size in arrays.sizes.items():
            if array not in item.arrays.sizes:
                self._held_bytes += 0 if self._holders[array] else size
                self._holders[array] += 1
        item.arrays = arrays

    def _count_cached_properties(self) -> None:
        """Count the cached properties that results have computed since they entered."""
        for item in self._items.values():
            if item.arrays.incomplete and (arrays := item.arrays.with_cached_properties()) is not None:
                self._count(item, arrays)

    def _release(self, item: _Item | None) -> None:
        if item is None or self._holders is None:
            return
        for array, size in item.arrays.sizes.items():
            self._holders[array] -= 1
            self._held_bytes -= 0 if self._holders[array] else size
        item.arrays = HeldArrays()


def once_per_trace(compute: OfTrace[Subject, Arguments, Value]) -> OfTrace[Subject, Arguments, Value]:
    """Decorate a function of a trace, or of another owner of results, and of hashable arguments.

    Results must not refer to their owner.
    """

    @wraps(compute)
    def result(trace: Subject, /, *arguments: Arguments.args, **keywords: Arguments.kwargs) -> Value:
        call = partial(compute, trace, *arguments, **keywords) if keywords else None
        value: Value = trace.results.get(compute, *arguments, *keywords.items(), compute=call).result()
        return value

    return result


def once_per_recording(
    compute: OfTrace[RecordingSubject, Arguments, Value],
) -> OfTrace[RecordingSubject, Arguments, Value]:
    """The same for a function of what was recorded alone: it is computed before captures are known, and not again."""
    of_trace = once_per_trace(compute)

    @wraps(compute)
    def result(trace: RecordingSubject, /, *arguments: Arguments.args, **keywords: Arguments.kwargs) -> Value:
        return of_trace(trace.recording, *arguments, **keywords)

    return result
