"""For Composer's Trainer: a replacement of its profiler, or a `Tracer`.

    Trainer(…, callbacks=[TracerCallback("runs", schedule=cyclic(wait=5, active=3))])
    Trainer(…, callbacks=[ProfilerCallback(Profiler(cyclic_schedule(), JSONTraceHandler()))])

`Profiler` and the others are those of `kinetoscope.composer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from composer.core import Callback

from ..composer import Count, Profiler, State, Timestamp
from .loop import Loop

if TYPE_CHECKING:
    import os


class TracerCallback(Callback):  # type: ignore[misc]
    """Records trainings with a Tracer.

    Args:
        logdir: As for `Tracer`; by default `runs`.
        options: The other arguments of `Tracer`.

    Raises:
        UsageError: Arguments that can't work.
    """

    def __init__(self, logdir: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._loop = Loop(logdir, options)
        self._before = (0, 0)

    @property
    def tracer(self) -> Any:
        """The Tracer of the current or last training; None before the first."""
        return self._loop.tracer

    def fit_start(self, state: Any, logger: Any) -> None:
        """Begin."""
        self._before = _counts(state)
        progress = timestamp_of(state.timestamp).progress
        self._loop.begin("runs", run=state.run_name, progress=progress)

    def batch_end(self, state: Any, logger: Any) -> None:
        """Count a batch."""
        before, self._before = self._before, _counts(state)
        self._loop.step(samples=self._before[0] - before[0], tokens=self._before[1] - before[1])

    def epoch_end(self, state: Any, logger: Any) -> None:
        """Count an epoch."""
        self._loop.epoch()

    def fit_end(self, state: Any, logger: Any) -> None:
        """End."""
        self._loop.end()

    def close(self, state: Any, logger: Any) -> None:
        """End if the training failed."""
        self._loop.end()


class ProfilerCallback(Callback):  # type: ignore[misc]
    """Drives a `kinetoscope.composer.Profiler` from Composer's Trainer.

    Args:
        profiler: The profiler.
        remote: The base of remote file names without a scheme; see `kinetoscope.composer.State`.
    """

    def __init__(self, profiler: Profiler, *, remote: str | None = None) -> None:
        self._profiler, self._remote = profiler, remote
        self._state: State | None = None
        self._before = (0, 0)

    def fit_start(self, state: Any, logger: Any) -> None:
        """Begin."""
        if self._state is None:
            self._before = _counts(state)
            self._state = State(
                state.run_name,
                profiler=self._profiler,
                dataloader_len=_length(state),
                timestamp=timestamp_of(state.timestamp),
                remote=self._remote,
            )
            self._state.__enter__()

    def batch_start(self, state: Any, logger: Any) -> None:
        """Begin a batch."""
        if self._state is not None:
            self._state.dataloader_len = _length(state)
            self._state.start_batch()

    def batch_end(self, state: Any, logger: Any) -> None:
        """Count a batch."""
        if self._state is not None:
            before, self._before = self._before, _counts(state)
            self._state.step(samples=self._before[0] - before[0], tokens=self._before[1] - before[1])

    def epoch_end(self, state: Any, logger: Any) -> None:
        """Count an epoch."""
        if self._state is not None:
            self._state.epoch()

    def close(self, state: Any, logger: Any) -> None:
        """End."""
        state, self._state = self._state, None
        if state is not None:
            state.close()


def timestamp_of(timestamp: Any) -> Timestamp:
    """Return Composer's timestamp as ours."""
    counts = ("epoch", "batch", "batch_in_epoch", "sample", "sample_in_epoch", "token", "token_in_epoch")
    clocks = ("total_wct", "epoch_wct", "batch_wct")
    counts_by_name: dict[str, Any] = {name: Count(int(getattr(timestamp, name))) for name in counts}
    return Timestamp(**counts_by_name, **{name: getattr(timestamp, name) for name in clocks})


def _counts(state: Any) -> tuple[int, int]:
    return int(state.timestamp.sample), int(state.timestamp.token)


def _length(state: Any) -> int | None:
    return None if state.dataloader_len is None else int(state.dataloader_len)
