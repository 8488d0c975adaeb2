"""The bounds of all checks, in one place; figures of traces are those of 53 public traces with GPU events.

A bound is where a clean recording can't be, not where it usually isn't: each lies at least twice as far out as the
worst of those traces that nothing contradicts.
"""

from __future__ import annotations

JITTER_NS = 1_000
"""Resolution of old traces (µs), and what kineto's conversion of device clocks moves single rows by."""

CLOCK_ERROR_NS = 10_000
"""Error of one comparison between host and device: CUPTI and ROCm convert clocks by interpolation between readings that
take microseconds each. Worst: a synchronous copy ends 4 µs after its call returned (torch 1.8)."""

OVERLAP_NS = 10_000
"""By how much a kernel must outlast a later one of its stream to cover it. Worst: 0 ns; dependent launches overlap, but
end in order."""

USUAL_OVERLAPS = 0.1
"""Of the kernels: beyond it they overlap since they were launched so (programmatic dependent launch: 90 %)."""

LEAST_EXCESS = 0.01
"""Of the time in which any kernel runs: overlaps that add less to the sum of kernels change no share."""

MOST_EXCESS = 0.5
"""The same for dependent launches: a kernel's prologue overlaps with the end of one other. Worst: 0.13."""

SYSTEMATIC = 0.1
"""Of the compared rows or waits: that many break a bound by an offset of clocks, not by single wrong times."""

FEW_ROWS = 20
"""Fewer rows than that say nothing of all."""

DRIFT_ROWS = 16
"""So many launches into an idle device: the shortest delays among them are the hardware's, and always the same. The
third shortest is compared, so that single wrong times aren't taken for a drift."""

DRIFT_NS = 120_000
"""By how much that may differ within a recording. Worst: 15 µs on GPUs, 56 µs on an MTIA."""

LATENCY_NS = 1_000_000
"""An idle device begins earlier than that with what is launched. Worst median: 31 µs on GPUs, 282 µs on an MTIA."""

CUT_NS = 1_000_000
"""If the first row of a device begins that much after its launch returned, the device was running something else."""

SHORTEST_NS = 100
"""Median of kernels, of calls that launch them, or of operators: an empty kernel takes 1 µs, a launch 2 µs, and an
operator under the profiler half a microsecond. Least: 270 ns."""

SHORTEST_KERNEL_NS = 400
"""The fastest quarter of kernels, in recordings with finer times than microseconds: an empty kernel takes 0.7 µs or
more. Least: 1.2 µs."""

LONGEST_NS = 200_000
"""Median of operators that only make a view of a tensor, and the fastest twentieth of calls that launch kernels: such
an operator changes a few integers on the host. Worst: 49 µs for half of the views."""

OVERLAPPING = 0.5
"""Of the calls of a thread that last until the next one has begun: calls follow each other. Worst: 0.11."""

COPY_BYTES = 1 << 20
"""Smaller copies say nothing of bandwidth."""

HOST_BYTES_PER_NS = 1_000
"""Bandwidth between host and device: 900 GB/s in both directions over NVLink-C2C, the fastest that is built."""

DEVICE_BYTES_PER_NS = 20_000
"""Bandwidth within a device: 8 TB/s on a B300; a copy counts once."""

NOTICEABLE = 0.03
"""Of the steps: less changes no verdict, so what is missing or wrong for less is a note."""

PYTHON_CALL_NS = 150
"""What recording a Python call costs: 28 ns without, 180 ns with `with_stack` (torch 2.8 with Python 3.11 on this
project's machine); slower machines need more."""
