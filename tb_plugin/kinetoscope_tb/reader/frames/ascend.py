"""torch_npu's own traces: the kind of a row follows from its process name, because only host rows have a category.

Sources: torch_npu/profiler/analysis/prof_common_func/_trace_event_manager.py in Ascend/pytorch at 734edcde, and CANN's
names of tasks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...names.regex import regex
from ..scan.kinds import Kind
from ..scan.rows import SortedEvents
from ..scan.tokens import Texts, distinct_codes
from .uncategorized import move_rows, processes_of

_HARDWARE = "Ascend Hardware"
_CALLS = "CANN"
_COLLECTIVES = ("Communication", "HCCL")
_DEVICE_BITS = 31
"""The lowest bits of the pid of such a process are the device's number."""

_NUMBER = regex(r"[0-9]{1,18}")
_OF_COLLECTIVES = ("AicpuKernel", "AivKernel")  # msprof's overlap_analysis_assembler.cpp: not computation
_WAITS = ("EVENT_", "NOTIFY_", "STREAM_WAIT")


def sort_ascend_rows(events: SortedEvents, texts: Texts) -> None:
    """Move the rows of devices and of CANN to their frames; other rows without a category are no longer unknown."""
    others = events.frames["others"]
    process = processes_of(events.frames["names"], texts)
    if _HARDWARE not in process.values():
        return
    bare = np.flatnonzero((others["category"] < 0) & (others["kind"] == Kind.UNKNOWN))
    kind = np.full(others["kind"].size, Kind.OTHER, np.int8)
    kind[bare] = _kinds(others["name"][bare], others["pid"][bare], process, texts)
    others.put("kind", bare, np.full(bare.size, Kind.OTHER))
    rows = np.flatnonzero(kind != Kind.OTHER)
    move_rows(events, rows, kind[rows], texts)
    _move_calls_to_threads(events, texts, process)
    device = events.frames["device_events"]
    without_number = np.flatnonzero(device["device"] < 0)
    device.put("device", without_number, _devices(device["pid"][without_number], texts))


def _move_calls_to_threads(events: SortedEvents, texts: Texts, process: dict[int, str]) -> None:
    """Put CANN's calls on the threads that made them: their tid is that of the thread in the program's process."""
    launches, host = events.frames["launches"], events.frames["host_events"]
    rows = np.flatnonzero(np.isin(launches["pid"], [code for code, name in process.items() if name == _CALLS]))
    pairs = set(zip(host["pid"].tolist(), host["tid"].tolist(), strict=True))
    pid_of = {texts[tid]: pid for pid, tid in sorted(pairs, reverse=True)}
    tids = launches["tid"][rows]
    pids = np.full(len(texts) + 1, NONE, np.int64)
    for tid in distinct_codes(tids, len(texts)):
        pids[tid] = pid_of.get(texts[tid], NONE)
    is_known = pids[tids] >= 0
    launches.put("pid", rows[is_known], pids[tids][is_known])


def _kinds(
    name: NDArray[np.signedinteger], pid: NDArray[np.signedinteger], process: dict[int, str], texts: Texts
) -> NDArray[np.int8]:
    of_device = {code: _kind_of_task(texts[code] or "") for code in distinct_codes(name, len(texts))}
    kind = np.full(name.size, Kind.OTHER, np.int8)
    for code, title in process.items():
        rows = np.flatnonzero(pid == code)
        if title == _CALLS:
            kind[rows] = Kind.RUNTIME
        elif title == _HARDWARE:
            kind[rows] = [of_device[n] for n in name[rows].tolist()]
        elif title in _COLLECTIVES:
            is_whole = [(texts[n] or "").startswith("hcom_") for n in name[rows].tolist()]
            kind[rows] = np.where(is_whole, Kind.KERNEL, Kind.OTHER)
    return kind


def _kind_of_task(name: str) -> Kind:
    upper = name.upper()
    if upper.startswith(_WAITS) or name.endswith(_OF_COLLECTIVES):
        return Kind.OTHER
    if upper.startswith("MEMCPY"):
        return Kind.MEMCPY
    return Kind.MEMSET if upper.startswith("MEMSET") else Kind.KERNEL


def _devices(pid: NDArray[np.signedinteger], texts: Texts) -> NDArray[np.int64]:
    number = {code: texts[code] or "" for code in distinct_codes(pid, len(texts))}
    devices = {code: int(text) & _DEVICE_BITS if _NUMBER.fullmatch(text) else 0 for code, text in number.items()}
    return np.array([devices[code] for code in pid.tolist()], np.int64)
