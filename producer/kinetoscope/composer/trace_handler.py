"""What listens to a training, and what writes down its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .state import State, Timestamp


class Callback:
    """Is told of a training's events; does nothing unless a subclass does.

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


class TraceHandler(Callback):
    """Writes down what a `Profiler` records. Each method may be called on any thread."""

    def process_duration_event(
        self, name: str, categories: Sequence[str], is_start: bool, timestamp: Timestamp, wall_clock_time_ns: int
    ) -> None:
        """A marker begins or ends.

        Args:
            name: Of the marker.
            categories: Of the marker.
            is_start: Whether it begins.
            timestamp: How far the training is.
            wall_clock_time_ns: Unix time.
        """

    def process_instant_event(
        self, name: str, categories: Sequence[str], timestamp: Timestamp, wall_clock_time_ns: int
    ) -> None:
        """Something happens."""

    def process_counter_event(
        self,
        name: str,
        categories: Sequence[str],
        timestamp: Timestamp,
        wall_clock_time_ns: int,
        values: Mapping[str, float],
    ) -> None:
        """Some values are known."""

    def process_chrome_json_trace_file(self, filepath: Path) -> None:
        """Another profiler has written a trace in Chrome's JSON format."""
