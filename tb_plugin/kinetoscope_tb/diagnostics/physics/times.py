"""The times that checks compare: device rows, the calls that launched them, and the steps that count."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import gather
from ...arrays.intervals import Intervals, Ints, length_within, union, without
from ...measures.time.idle import Rows, axes, queue_numbers
from ...trace import Trace


class Times:
    """Times of a trace as arrays; those of launches are NONE where the call isn't known.

    Attributes:
        start, end: When each device row began and ended.
        launch: The row of `launches` that launched it.
        called, returned: When that call began and ended.
        steps: When the steps that count begin and end: the complete ones, or all if none is.
        tails: The times at their start, by the host's clock, that count for what was launched before.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        device, calls = trace.device_events, trace.launches
        self.start = device["start_ns"].to_numpy()
        self.end = self.start + device["dur_ns"].to_numpy()
        self.launch: Rows = device["launch"].to_numpy()
        self.call_start = calls["start_ns"].to_numpy()
        self.call_end = self.call_start + calls["dur_ns"].to_numpy()
        self.called = gather(self.call_start, self.launch)
        self.returned = gather(self.call_end, self.launch)
        self.is_linked: NDArray[np.bool_] = self.launch >= 0
        complete = trace.steps["is_complete"].to_numpy()
        is_counted = complete if complete.any() else np.ones_like(complete)
        sides = ("host_start_ns", "start_ns", "end_ns")
        host_start, start, end = (trace.steps[side].to_numpy()[is_counted] for side in sides)
        self.steps: Intervals = start, end
        self.tails: Intervals = host_start, np.maximum(start, host_start)
        self.steps_ns = int((end - start).sum())

    @cached_property
    def is_kernel(self) -> NDArray[np.bool_]:
        """Which rows are kernels."""
        return (self.trace.device_events["kind"] == "kernel").to_numpy()

    @property
    def queue(self) -> Rows:
        """A number for each pair of device and stream."""
        return queue_numbers(self.trace)

    @property
    def queues(self) -> list[Rows]:
        """The rows of each queue, in order of their start."""
        return [rows for _, _, rows in axes(self.trace, "stream")]

    @property
    def devices(self) -> list[Rows]:
        """The rows of each device, in order of their start."""
        return [rows for _, _, rows in axes(self.trace, "device")]

    @cached_property
    def busy(self) -> Intervals:
        """When any device runs anything."""
        return union(self.start, self.end)

    @cached_property
    def gaps(self) -> Ints:
        """The lengths of the times within the steps that count in which no device runs anything."""
        start, end = without(union(*self.steps), self.busy)
        return end - start

    def within_steps(self, start: Ints, end: Ints) -> int:
        """How much of the steps that count some intervals cover."""
        return int(length_within(union(start, end), *self.steps).sum())

    def within_tails(self, start: Ints, end: Ints) -> int:
        """How much some intervals cover of the times by which steps begin later than the host marked them."""
        return int(length_within(union(start, end), *self.tails).sum())

    def idle_within_steps(self, start: Ints, end: Ints) -> int:
        """How much of the steps that count some intervals cover while no device runs anything."""
        return int(length_within(without(union(start, end), self.busy), *self.steps).sum())

    def moved_by(self, offset_ns: int) -> int:
        """How much idle time changes its cause if the clocks of host and device differ by so much."""
        return int(np.minimum(self.gaps, offset_ns).sum())

    def share(self, ns: int) -> float:
        """A time as a share of the steps that count."""
        return min(ns / self.steps_ns, 1.0) if self.steps_ns else 0.0

    def first_offset(self, rows: NDArray[np.bool_]) -> int:
        """The place in the file of the first of some device rows."""
        return int(self.trace.device_events["offset"].to_numpy()[rows].min())
