"""Which runtime calls wait for a device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...names.calls import synchronizes
from ...names.device_work import copies_to_host
from ...trace import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import device_ends


@once_per_recording
def waits_for_devices(trace: Trace) -> NDArray[np.bool_]:
    """Of each runtime call, whether it waits for a device: it synchronizes, or returns after its own copy.

    A copy of pageable memory to the host is over before its call returns.
    """
    calls, device = trace.launches, trace.device_events
    launch, end_ns = device["launch"].to_numpy(), device_ends(trace)
    call_end_ns = (calls["start_ns"] + calls["dur_ns"]).to_numpy()
    is_copy = (device["kind"] == "memcpy").to_numpy() & map_categories(device["name"], copies_to_host)
    waits: NDArray[np.bool_] = map_categories(calls["name"], synchronizes).astype(bool)
    waits[launch[is_copy & (launch != NONE) & (end_ns <= gather(call_end_ns, launch))]] = True
    return waits
