"""What writes down the events of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .state import Callback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .timestamp import Timestamp


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
        """Another profiler has written a trace in Chrome's JSON format; it may delete the file afterward."""
