"""A training's progress under Composer's names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any

from ..progress import Progress


class Count(int):
    """An integer that also has `.value`, as Composer's Time has."""

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


_NONE = Count(0)
_counts_of = attrgetter("epoch", "batch", "batch_in_epoch", "sample", "sample_in_epoch", "token", "token_in_epoch")
_seconds_of = attrgetter("total_wct", "epoch_wct", "batch_wct")


@dataclass(frozen=True)
class Timestamp:
    """How much of a training is complete."""

    epoch: Count = _NONE
    batch: Count = _NONE
    batch_in_epoch: Count = _NONE
    sample: Count = _NONE
    sample_in_epoch: Count = _NONE
    token: Count = _NONE
    token_in_epoch: Count = _NONE
    total_wct: timedelta = timedelta()
    epoch_wct: timedelta = timedelta()
    batch_wct: timedelta = timedelta()

    @classmethod
    def of(cls, progress: Progress) -> Timestamp:
        """Return a training's progress under Composer's names."""
        times = (timedelta(seconds=seconds) for seconds in _seconds_of(progress))
        values: tuple[Any, ...] = (*map(Count, _counts_of(progress)), *times)
        return cls(*values)

    @property
    def progress(self) -> Progress:
        """The same as our `Progress`."""
        values: dict[str, Any] = {
            name: value.total_seconds() if isinstance(value, timedelta) else int(value)
            for name, value in vars(self).items()
        }
        return Progress(**values)
