"""When a worker computes and when it communicates, on devices or on the host alone."""

from __future__ import annotations

from ..arrays.intervals import Intervals
from ..measures.time.breakdown import intervals_of
from ..measures.time.exposure import computing_on_host
from ..trace import Trace


def computing(trace: Trace) -> Intervals:
    """When it computes: kernels that don't communicate; without any device work, operators (measures/time/exposure)."""
    device = trace.device_events
    if device.height:
        return intervals_of(device, (device["kind"] == "kernel").to_numpy() & ~device["is_communication"].to_numpy())
    return computing_on_host(trace)


def transferring(trace: Trace) -> Intervals:
    """When it communicates with other ranks: device rows; without any device work, the host's ranges."""
    device, host = trace.device_events, trace.host_events
    if device.height:
        return intervals_of(device, device["is_communication"].to_numpy())
    return intervals_of(host, host["is_communication"].to_numpy())
