"""Helpers for loops over batches: the loader's length and name, and counts per batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from torch.utils.data import dataloader

from ..profiling.profiler_ranges import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
Count = int | Callable[[T], int] | None


def length(loader: Iterable[object]) -> int | None:
    """Return how many batches there will be; None if the loader doesn't know."""
    try:
        return len(loader)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return None


def wait_name(iterator: Iterator[object]) -> str | None:
    """Return the name for the wait for a batch, in the form of torch's DataLoader; None for its own iterators."""
    torch_iterator = getattr(dataloader, "_BaseDataLoaderIter", None)
    if torch_iterator is not None and isinstance(iterator, torch_iterator):
        return None
    return f"enumerate(DataLoader)#{plain_name(type(iterator).__name__)}.__next__"


def count_of(count: Count[T], batch: T) -> int | None:
    """How many samples or tokens a batch has: a constant, a function of the batch, or None if unknown."""
    return count(batch) if callable(count) else count
