"""When a worker computes and when it communicates, be it on devices or on the host alone."""

from __future__ import annotations

from ..intervals import Intervals
from ..kernel_names import is_communication_range
from ..trace import Trace
from ..trace.breakdown import intervals_of
from ..trace.lookup import by_name


def computing(trace: Trace) -> Intervals:
    """When it computes: kernels that don't communicate; without any device work, operators that don't.

    Annotations and Python don't count: a training step lies inside some of them from begin to end, waiting included.
    """
    device, host = trace.device_events, trace.host_events
    if device.height:
        return intervals_of(device, (device["kind"] == "kernel").to_numpy() & ~device["is_communication"].to_numpy())
    is_op = (host["kind"] == "operator").to_numpy()
    return intervals_of(host, is_op & ~by_name(host["name"], is_communication_range).astype(bool))


def transferring(trace: Trace) -> Intervals:
    """When it communicates with other ranks: device rows; without any device work, the host's ranges."""
    device, host = trace.device_events, trace.host_events
    if device.height:
        return intervals_of(device, device["is_communication"].to_numpy())
    return intervals_of(host, by_name(host["name"], is_communication_range).astype(bool))
