"""What a loop over batches needs to know about its loader."""

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
    """How many batches there will be, if the loader knows."""
    try:
        return len(loader)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return None


def wait_name(iterator: Iterator[object]) -> str | None:
    """The name for the wait for a batch, in the form of torch's DataLoader; None for its iterators, which do it."""
    torch_iterator = getattr(dataloader, "_BaseDataLoaderIter", None)
    if torch_iterator is not None and isinstance(iterator, torch_iterator):
        return None
    return f"enumerate(DataLoader)#{plain_name(type(iterator).__name__)}.__next__"


def count_of(count: Count[T], batch: T) -> int | None:
    """How many samples or tokens a batch holds: the same for all, what a function of it says, or unknown."""
    return count(batch) if callable(count) else count
