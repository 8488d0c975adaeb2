"""A training's progress without a trainer: the part of Composer's State that schedules, names and callbacks use.

This module knows the profiler only by the protocols below.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..job.run_name import name_for_all
from ..progress import Progress, ProgressCounter
from ..session.step_loop import count_of, length
from .timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ..session.step_loop import Count as CountOf
    from .actions import ProfilerAction

T = TypeVar("T")


class _End:
    """Marks the end of a loader."""


_END = _End()


class MarkerOfState(Protocol):
    """The part of `Marker` that a `State` uses."""

    def start(self) -> None:
        """Begin a range."""

    def finish(self) -> None:
        """End it."""

    def counter(self, values: Mapping[str, float], *, unit: str | None = None) -> None:
        """Record the current values."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...


class ProfilerOfState(Protocol):
    """The part of `Profiler` that callbacks use."""

    @property
    def action(self) -> ProfilerAction:
        """The action of the current batch, or of the next one."""

    @property
    def torch_profiler(self) -> object | None:
        """The recorder of torch's trace; None without one."""

    def bind_to_state(self, state: State) -> None:
        """Record the training of this state."""

    def marker(self, name: str, *, categories: Sequence[str] = ()) -> MarkerOfState:
        """Return the marker of this name."""

    def record_chrome_json_trace_file(self, filepath: str | Path) -> None:
        """Pass a trace of another profiler on to all trace handlers."""


class Callback:
    """Methods that are called at a training's events; the base class does nothing.

    `logger` exists for classes that were written for Composer; without its Trainer it is None.
    """

    def init(self, state: State, logger: Any = None) -> None:
        """Called before the training begins."""

    def epoch_start(self, state: State, logger: Any = None) -> None:
        """Called when an epoch begins."""

    def batch_start(self, state: State, logger: Any = None) -> None:
        """Called when a batch begins; the timestamp counts complete batches."""

    def batch_end(self, state: State, logger: Any = None) -> None:
        """Called when a batch is complete and counted."""

    def epoch_end(self, state: State, logger: Any = None) -> None:
        """Called when an epoch is complete and counted."""

    def close(self, state: State, logger: Any = None) -> None:
        """Called when the training has ended, also by an error."""


class State:
    """Counts a training's batches and epochs, and calls the callbacks.

        with State("my-run", profiler=profiler) as state:
            for epoch in range(2):
                for batch in state.steps(loader):
                    ...

    In your own loop, call `step()` after each batch and `epoch()` after each epoch.

    Args:
        run_name: The name of the run; by default the launcher's name of the job, else the time.
        profiler: Is bound to this state.
        callbacks: More callbacks, such as a separate `TorchProfiler`.
        dataloader_len: Batches per epoch, if known; `steps` determines it by itself.
        timestamp: Where a resumed training continues.
        remote: The base of remote file names without a scheme, such as `s3://bucket`; None for no uploads.
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
        self._timestamp_cache: tuple[Progress, Timestamp] | None = None
        self.start = self.timestamp
        """The progress at the start."""
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
        """The run's name; the first access fixes it."""
        if self._run_name is None:
            self._run_name = name_for_all()
        return self._run_name

    @property
    def timestamp(self) -> Timestamp:
        """The progress so far. Every marker asks for it, and it changes once a batch."""
        progress, cache = self._counter.progress, self._timestamp_cache
        if cache is None or cache[0] is not progress:
            cache = self._timestamp_cache = (progress, Timestamp.of(progress))
        return cache[1]

    @property
    def resumption_batch_idx(self) -> int:
        """The batch of this epoch at which the training resumed; 0 in all other epochs."""
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
        """End the training."""
        self._end_batch()
        self._call_back("close")

    def steps(self, loader: Iterable[T], *, samples: CountOf[T] = None, tokens: CountOf[T] = None) -> Iterator[T]:
        """Yield the loader's batches; a batch is complete when the loop requests the next one, an epoch with the last.

        The wait for each is the marker `dataloader/train`, the batch itself `event/batch`.

        Args:
            loader: The batches.
            samples: How many samples a batch has, or a function of the batch that returns it.
            tokens: The same for tokens.
        """
        batch_count = length(loader)
        if self.dataloader_len is None and batch_count is not None:
            self.dataloader_len = batch_count
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
        """Begin a batch, unless one is open."""
        if not self._is_batch_open:
            self._is_batch_open = True
            if not self.timestamp.batch_in_epoch:
                self._call_back("epoch_start")
            self._call_back("batch_start")
            if self.profiler is not None:
                self._batch_marker = self.profiler.marker("event/batch")
                self._batch_marker.start()

    def step(self, *, samples: int | None = None, tokens: int | None = None) -> None:
        """End the batch."""
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
        """End the epoch; does nothing if no batch was complete since the last one."""
        if self._counter.end_epoch():
            self._call_back("epoch_end")

    def _call_back(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self, None)
