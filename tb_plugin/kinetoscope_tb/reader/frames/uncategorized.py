"""Rows without a category that a device ran, by the process and the thread that their writer draws them on.

Kernels and copies that are known by their name alone (names/device_work.py) are device rows from the start. Here come
the other rows of their lanes, and lanes whose names say that a device works there.

Sources: tsl/profiler/convert/trace_container.cc and xplane_schema.cc of XLA and TensorFlow (`/device:GPU:0`,
`Stream #13(Compute)`, `XLA Ops`), bin/tblextr.py of ROCm's rocprofiler (`GPU0`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...names.regex import regex
from ..scan.kinds import Kind
from ..scan.rows import LAYOUTS, Rows, SortedEvents
from ..scan.tokens import Texts, distinct_codes

_DEVICE_PROCESS = regex(r"(?:.*/)?device:(?:GPU|TPU|XPU|CUSTOM):(\d{1,6})\b|\d* ?GPU ?(\d{1,6})$")
_DEVICE_OF_XLA = regex(r"(?:.*/)?device:(?:GPU|TPU|XPU|CUSTOM):\d+(?: |$)")
_ONE_STREAM = regex(r".*/device:GPU:\d+/stream:\d+ Compute|\d* ?GPU ?\d+$")  # as a process
_STREAM, _TPU_CORE = regex(r"Stream #\d+"), "XLA Ops"  # as a thread; of a GPU, XLA Ops are its streams once more
_MARKER = regex(r'"?<barrier packet>|Marker')
_MOSTLY = 0.5  # of a lane's rows: then the rest is device work with names of its own, such as Triton kernels


def sort_uncategorized_rows(events: SortedEvents, texts: Texts) -> None:
    """Move rows of devices from the unknown ones to the device's, and number their devices."""
    processes, threads = _labels(events.frames["names"], texts)
    device_of_pid = _devices(processes)
    others, device = events.frames["others"], events.frames["device_events"]
    bare = np.flatnonzero((others["category"] < 0) & (others["kind"] == Kind.UNKNOWN) & (others["dur"] != NONE))
    if bare.size:
        lanes, lane_of, counts = np.unique(_lanes(others, texts)[bare], return_inverse=True, return_counts=True)
        device_lanes, known_counts = np.unique(_lanes(device, texts), return_counts=True)
        known_of = dict(zip(device_lanes.tolist(), known_counts.tolist(), strict=True))
        is_of_device = [
            _is_named_for_device(processes.get(pid - 1, ""), threads.get((pid - 1, tid - 1), ""))
            or known_of.get(lane, 0) > _MOSTLY * (known_of.get(lane, 0) + count)
            for lane, count in zip(lanes.tolist(), counts.tolist(), strict=True)
            for pid, tid in [divmod(lane, len(texts) + 1)]
        ]
        names = others["name"][bare]
        markers = [code for code in distinct_codes(names, len(texts)) if _MARKER.match(texts[code] or "")]
        rows = bare[np.array(is_of_device)[lane_of] & np.isin(names, markers, invert=True)]
        move_rows(events, rows, np.full(rows.size, Kind.KERNEL), texts)
    _number_devices(device, device_of_pid)


def move_rows(events: SortedEvents, rows: NDArray[np.integer], kinds: NDArray[np.int8], texts: Texts) -> None:
    """Move rows of `others` to the launches or the device's rows, by their kinds.

    Of their arguments only the type of task is known.
    """
    others = events.frames["others"]
    codes = np.append(np.arange(len(texts)), NONE)
    for name in ("launches", "device_events"):
        layout = LAYOUTS[name]
        is_of = (kinds >= layout.first) & (kinds <= layout.last)
        selection = rows[is_of]
        columns = {column: others[column][selection] for column in (*layout.codes, "ts", "dur", "offset", "length")}
        columns |= {column: np.full(selection.size, NONE, np.int8) for column in layout.args}
        columns |= {column: others[column][selection] for column in layout.args if column in others}
        columns["kind"] = kinds[is_of].astype(np.int8)
        events.frames[name].append(columns, codes)
    is_left = np.ones(others["kind"].size, bool)
    is_left[rows] = False
    others.keep(is_left)


def processes_of(names: Rows, texts: Texts) -> dict[int, str]:
    """Pid's code → name of the process."""
    return _labels(names, texts)[0]


def _labels(names: Rows, texts: Texts) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    """(pid's code → name of the process, codes of pid and tid → name of the thread)."""
    processes, threads = {}, {}
    columns = (names[column].tolist() for column in ("name", "pid", "tid", "label"))
    for name, pid, tid, label in zip(*columns, strict=True):
        if label >= 0 and texts[name] == "process_name":
            processes[pid] = (texts[label] or "").strip()
        elif label >= 0 and texts[name] == "thread_name":
            threads[pid, tid] = (texts[label] or "").strip()
    return processes, threads


def _devices(processes: dict[int, str]) -> dict[int, int]:
    """Pid's code → number of the device that the process stands for."""
    matches = ((pid, _DEVICE_PROCESS.match(name)) for pid, name in processes.items())
    return {pid: int(hit[1] or hit[2]) for pid, hit in matches if hit}


def _is_named_for_device(process: str, thread: str) -> bool:
    if _ONE_STREAM.match(process):
        return True
    is_work = bool(_STREAM.match(thread)) or (thread == _TPU_CORE and "device:TPU:" in process)
    return is_work and bool(_DEVICE_OF_XLA.match(process))


def _lanes(rows: Rows, texts: Texts) -> NDArray[np.int64]:
    """One number for the codes of each row's process and thread, of which either may be missing."""
    lanes: NDArray[np.int64] = (rows["pid"].astype(np.int64) + 1) * (len(texts) + 1) + rows["tid"] + 1
    return lanes


def _number_devices(device: Rows, device_of_pid: dict[int, int]) -> None:
    """Give rows without a device the one that their process stands for."""
    for pid, number in device_of_pid.items():
        rows = np.flatnonzero((device["pid"] == pid) & (device["device"] < 0))
        device.put("device", rows, np.full(rows.size, number))
