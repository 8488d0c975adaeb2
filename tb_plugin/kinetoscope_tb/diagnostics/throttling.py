"""Clocks of GPUs that fell while kernels ran, as far as samples prove it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..measures.recording.hardware_counters import HardwareCounter, hardware_counters
from ..measures.recording.throttling import LOW, Throttling, is_sm_clock, throttling
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..trace import Diagnostic, Trace

_NOTICEABLE = 0.01  # of the time in which kernels ran
_CAUSES = {"Power": "power", "Temperature": "temperature"}


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """One for each device whose clock fell."""
    by_device: defaultdict[int, list[HardwareCounter]] = defaultdict(list)
    for counter in hardware_counters(trace):
        by_device[counter.device].append(counter)
    for device, counters in sorted(by_device.items()):
        rows = trace.device_events
        kernels = intervals_of(rows, ((rows["kind"] == "kernel") & (rows["device"] == device)).to_numpy())
        for clock in filter(is_sm_clock, counters):
            slow = throttling(clock, kernels)
            if slow and slow.share >= _NOTICEABLE:
                yield Diagnostic("clock_throttled", slow.start.size, _words(device, slow, counters), level="note")


def _words(device: int, slow: Throttling, counters: Sequence[HardwareCounter]) -> str:
    means = [(counter, counter.mean(slow.start, slow.end)) for counter in counters if counter.name in _CAUSES]
    known = [f"{_CAUSES[one.name]} {mean:,.0f} {one.unit}" for one, mean in means if mean is not None]
    then = f" Then, on average: {text.listed(known)}." if known else ""
    clocks = f"from {slow.highest_mhz:,.0f} to {slow.lowest_mhz:,.0f} MHz"
    low = f"{100 * LOW:.0f} % of its earlier value for {text.time(slow.length_ns)}"
    kernels = f"{text.time(slow.kernel_ns)} of kernel time ({text.percent(slow.share)})"
    return (
        f"The SM clock of device {device} fell {clocks} while kernels ran. It was below {low}, first at "
        f"{text.time(int(slow.start[0]))}; {kernels} fell there.{then} A limit of power or heat, or a setting, lowers "
        "the clock: `nvidia-smi -q -d PERFORMANCE` names it during a run. Compare kernel times only between "
        "recordings with equal clocks."
    )
