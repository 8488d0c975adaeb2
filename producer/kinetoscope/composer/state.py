"""How far a training is, without a trainer: what Composer's State tells schedules, names and callbacks."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ..batches import counted, length
from ..identity import name_for_all
from ..progress import Progress, ProgressCounter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from ..batches import Count as CountOf
    from .marker import Marker
    from .profiler import Profiler
    from .trace_handler import Callback

T = TypeVar("T")


class _End:
    """What there is behind a loader's last batch."""


_END = _End()


class Count(int):
    """A whole number that also answers to `.value`, as Composer's Time does."""

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


_NONE = Count(0)


@dataclass(frozen=True)
class Timestamp:
    """What of a training is complete."""

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
        """Return a training's progress as Composer words it."""
        told: dict[str, Any] = progress.to_json()
        worded: dict[str, Any] = {
            name: timedelta(seconds=value) if name.endswith("_wct") else Count(value) for name, value in told.items()
        }
        return cls(**worded)

    @property
    def progress(self) -> Progress:
        """The same in the words of the rest of this package."""
        told: dict[str, Any] = {
            name: value.total_seconds() if isinstance(value, timedelta) else int(value)
            for name, value in vars(self).items()
        }
        return Progress(**told)


class State:
    """Counts a training's batches and epochs, and tells callbacks of them.

        with State("my-run", profiler=profiler) as state:
            for epoch in range(2):
                for batch in state.steps(loader):
                    ...

    In a loop of one's own, `step()` says that a batch is complete, and `epoch()` that an epoch is.

    Args:
        run_name: Of the training; by default what the launcher calls the job, else the time.
        profiler: Is bound to this state.
        callbacks: More of what wants to know, such as a `TorchProfiler` of its own.
        dataloader_len: Batches of an epoch, where they are known; `steps` finds out by itself.
        timestamp: Where a resumed training goes on.
        remote: What remote file names without a scheme are relative to, such as `s3://bucket`; None for no uploads.
    """

    def __init__(
        self,
        run_name: str | None = None,
        *,
        profiler: Profiler | None = None,
        callbacks: Sequence[Callback] = (),
        dataloader_len: int | None = None,
        timestamp: Timestamp | None = None,
        remote: str | None = None,
    ) -> None:
        self._run_name = run_name
        self._counter = ProgressCounter(timestamp.progress if timestamp else None)
        self.start = self.timestamp
        """What was complete when this began to count."""
        self.callbacks: list[Callback] = list(callbacks)
        self.dataloader_len = dataloader_len
        self.remote = remote
        self.last_counts: tuple[int | None, int | None] = (None, None)
        """Samples and tokens of the last batch."""
        self.profiler: Profiler | None = None
        self._is_batch_open = False
        self._batch_marker: Marker | None = None
        if profiler is not None:
            profiler.bind_to_state(self)

    @property
    def run_name(self) -> str:
        """The run's name; asking for it settles it."""
        if self._run_name is None:
            self._run_name = name_for_all()
        return self._run_name

    @property
    def timestamp(self) -> Timestamp:
        """What is complete."""
        return Timestamp.of(self._counter.progress)

    @property
    def resumption_batch_idx(self) -> int:
        """The batch of this epoch at which the training was resumed; 0 in all epochs but that one."""
        return int(self.start.batch_in_epoch) if self.timestamp.epoch == self.start.epoch else 0

    def __enter__(self) -> Self:
        self._counter.begin()
        self._tell("init")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Say that the training is over."""
        self._end_batch()
        self._tell("close")

    def steps(self, loader: Iterable[T], *, samples: CountOf[T] = None, tokens: CountOf[T] = None) -> Iterator[T]:
        """Return the loader's batches; one is complete when the loop comes back for the next, an epoch with the last.

        The wait for each is the marker `dataloader/train`, the batch itself `event/batch`.

        Args:
            loader: Gives the batches.
            samples: How many samples a batch holds, or what tells it of one.
            tokens: The same for tokens.
        """
        expected = length(loader)
        if self.dataloader_len is None and expected is not None:
            self.dataloader_len = expected
        batches = iter(loader)
        while True:
            with nullcontext() if self.profiler is None else self.profiler.marker("dataloader/train"):
                batch = next(batches, _END)
            if isinstance(batch, _End):
                break
            self.start_batch()
            counts = counted(samples, batch), counted(tokens, batch)
            yield batch
            self.step(samples=counts[0], tokens=counts[1])
        self.epoch()

    def start_batch(self) -> None:
        """Say that a batch begins; nothing if one has begun already."""
        if not self._is_batch_open:
            self._is_batch_open = True
            if not self.timestamp.batch_in_epoch:
                self._tell("epoch_start")
            self._tell("batch_start")
            if self.profiler is not None:
                self._batch_marker = self.profiler.marker("event/batch")
                self._batch_marker.start()

    def step(self, *, samples: int | None = None, tokens: int | None = None) -> None:
        """Say that a batch is complete."""
        self.start_batch()
        self._end_batch()
        self._counter.end_batch(samples, tokens)
        self.last_counts = samples, tokens
        self._tell("batch_end")

    def _end_batch(self) -> None:
        self._is_batch_open = False
        marker, self._batch_marker = self._batch_marker, None
        if marker is not None:
            marker.finish()

    def epoch(self) -> None:
        """Say that an epoch is complete; no news without a batch since the last one."""
        if self._counter.end_epoch():
            self._tell("epoch_end")

    def _tell(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self, None)
