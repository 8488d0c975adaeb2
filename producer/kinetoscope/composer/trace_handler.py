"""The interface of classes that write the events of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .state import Callback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .timestamp import Timestamp


class TraceHandler(Callback):
    """Writes the events that a `Profiler` records. Each method may be called on any thread."""

    def process_duration_event(
        self, name: str, categories: Sequence[str], is_start: bool, timestamp: Timestamp, wall_clock_time_ns: int
    ) -> None:
        """Called when a marker begins or ends.

        Args:
            name: The name of the marker.
            categories: Its categories.
            is_start: Whether it begins.
            timestamp: The training's progress.
            wall_clock_time_ns: Unix time.
        """

    def process_instant_event(
        self, name: str, categories: Sequence[str], timestamp: Timestamp, wall_clock_time_ns: int
    ) -> None:
        """Called at an instant."""

    def process_counter_event(
        self,
        name: str,
        categories: Sequence[str],
        timestamp: Timestamp,
        wall_clock_time_ns: int,
        values: Mapping[str, float],
    ) -> None:
        """Called with the values of a counter."""

    def process_chrome_json_trace_file(self, filepath: Path) -> None:
        """Called when another profiler has written a Chrome JSON trace, which it may delete afterward."""
