"""How far a training is, without a trainer: what Composer's State offers to schedules, names and callbacks.

What is here knows its profiler only by what it asks of it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..job.run_name import name_for_all
from ..progress import ProgressCounter
from ..session.batches import count_of, length
from .timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ..session.batches import Count as CountOf
    from .actions import ProfilerAction

T = TypeVar("T")


class _End:
    """What there is behind a loader's last batch."""


_END = _End()


class MarkerOfState(Protocol):
    """What a `State` does with a marker; see `Marker`."""

    def start(self) -> None:
        """Begin a range."""

    def finish(self) -> None:
        """End it."""

    def counter(self, values: Mapping[str, float], *, unit: str | None = None) -> None:
        """Say what some values are now."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...


class ProfilerOfState(Protocol):
    """What callbacks ask the profiler of their `State`; see `Profiler`."""

    @property
    def action(self) -> ProfilerAction:
        """What is done with the batch that is under way, or comes next."""

    @property
    def torch_profiler(self) -> object | None:
        """What records by torch.profiler; None if nothing does."""

    def bind_to_state(self, state: State) -> None:
        """Record the training that has this state."""

    def marker(self, name: str, *, categories: Sequence[str] = ()) -> MarkerOfState:
        """Return the marker of this name."""

    def record_chrome_json_trace_file(self, filepath: str | Path) -> None:
        """Give a trace that another profiler wrote to all trace handlers."""


class Callback:
    """Is called at a training's events; does nothing unless a subclass does.

    `logger` is there for classes that were written for Composer; without its Trainer it is None.
    """

    def init(self, state: State, logger: Any = None) -> None:
        """The training is about to begin."""

    def epoch_start(self, state: State, logger: Any = None) -> None:
        """An epoch begins."""

    def batch_start(self, state: State, logger: Any = None) -> None:
        """A batch begins; the timestamp counts those that are complete."""

    def batch_end(self, state: State, logger: Any = None) -> None:
        """A batch is complete, and counted."""

    def epoch_end(self, state: State, logger: Any = None) -> None:
        """An epoch is complete, and counted."""

    def close(self, state: State, logger: Any = None) -> None:
        """The training is over, in whatever way."""


class State:
    """Counts a training's batches and epochs, and calls the callbacks.

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
        profiler: ProfilerOfState | None = None,
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
        self.profiler: ProfilerOfState | None = None
        self._is_batch_open = False
        self._batch_marker: MarkerOfState | None = None
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
        self._call_back("init")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Say that the training is over."""
        self._end_batch()
        self._call_back("close")

    def steps(self, loader: Iterable[T], *, samples: CountOf[T] = None, tokens: CountOf[T] = None) -> Iterator[T]:
        """Return the loader's batches; one is complete when the loop comes back for the next, an epoch with the last.

        The wait for each is the marker `dataloader/train`, the batch itself `event/batch`.

        Args:
            loader: Gives the batches.
            samples: How many samples a batch holds, or a function of the batch that returns it.
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
            counts = count_of(samples, batch), count_of(tokens, batch)
            yield batch
            self.step(samples=counts[0], tokens=counts[1])
        self.epoch()

    def start_batch(self) -> None:
        """Say that a batch begins; nothing if one has begun already."""
        if not self._is_batch_open:
            self._is_batch_open = True
            if not self.timestamp.batch_in_epoch:
                self._call_back("epoch_start")
            self._call_back("batch_start")
            if self.profiler is not None:
                self._batch_marker = self.profiler.marker("event/batch")
                self._batch_marker.start()

    def step(self, *, samples: int | None = None, tokens: int | None = None) -> None:
        """Say that a batch is complete."""
        self.start_batch()
        self._end_batch()
        self._counter.end_batch(samples, tokens)
        self.last_counts = samples, tokens
        self._call_back("batch_end")

    def _end_batch(self) -> None:
        self._is_batch_open = False
        marker, self._batch_marker = self._batch_marker, None
        if marker is not None:
            marker.finish()

    def epoch(self) -> None:
        """Say that an epoch is complete; no news without a batch since the last one."""
        if self._counter.end_epoch():
            self._call_back("epoch_end")

    def _call_back(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self, None)
