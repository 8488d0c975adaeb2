"""A device with torch's caching allocator, as far as a recorder sees it: `torch.npu`, which no torch for CPUs has."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import torch

GIB = 1 << 30
TOTAL = 80 * GIB


class OutOfMemoryError(RuntimeError):
    """What torch raises for an allocation that fails."""


class FakeAllocator:
    """One device's allocator. Each allocation is a segment; without a history, it has no events.

    Args:
        is_initialized: Whether the program uses the device.
    """

    def __init__(self, *, is_initialized: bool = True) -> None:
        self.is_initialized, self.is_in_allocation = is_initialized, False
        self.history: list[dict[str, Any]] | None = None
        self.calls: list[tuple[str, Any]] = []
        self.segments: list[dict[str, Any]] = []
        self.observers: list[Any] = []

    def install(self) -> None:
        """Be `torch.npu`."""
        memory = SimpleNamespace(_record_memory_history=self._record, _snapshot=self._snapshot)
        torch.npu = SimpleNamespace(
            memory=memory,
            is_available=lambda: True,
            is_initialized=lambda: self.is_initialized,
            device_count=lambda: 1,
            get_device_properties=lambda _: SimpleNamespace(name="Fake 80GB", total_memory=TOTAL),
        )
        torch._C._npu_attach_out_of_memory_observer = self.observers.append
        torch._C._npu_isHistoryEnabled = lambda: self.history is not None

    @staticmethod
    def uninstall() -> None:
        """Be gone."""
        del torch.npu, torch._C._npu_attach_out_of_memory_observer, torch._C._npu_isHistoryEnabled

    def allocate(self, size: int) -> None:
        """Allocate, as long as the device has room."""
        free = TOTAL - sum(segment["total_size"] for segment in self.segments)
        if size > free:
            self._add("oom", free, size)
            self.is_in_allocation = True
            for observer in self.observers:
                observer(0, size, TOTAL, free)
            self.is_in_allocation = False
            raise OutOfMemoryError(f"out of memory: {size} bytes")
        address = 1 << 40 | sum(segment["total_size"] for segment in self.segments)
        sizes = dict.fromkeys(("total_size", "allocated_size", "active_size", "requested_size"), size)
        block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": []}
        place = {"device": 0, "address": address, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0)}
        self.segments.append({**place, **sizes, "is_expandable": False, "frames": [], "blocks": [block]})
        self._add("segment_alloc", address, size)
        self._add("alloc", address, size)

    def _add(self, action: str, address: int, size: int) -> None:
        if self.history is not None:
            frames = [{"filename": "train.py", "line": 7, "name": "step"}]
            where = {"device_free" if action == "oom" else "addr": address}
            more = {"size": size, "stream": 0, "time_us": time.time_ns() // 1000, "pool_id": (0, 0)}
            self.history.append({"action": action, **where, **more, "frames": frames})

    def _record(self, enabled: str | None, **options: Any) -> None:
        self._check()
        self.calls.append(("begin" if enabled else "end", options))
        self.history = [] if enabled else None

    def _snapshot(self) -> dict[str, Any]:
        self._check()
        self.calls.append(("snapshot", len(self.history or ())))
        traces = [list(self.history or ())]
        return {"segments": list(self.segments), "device_traces": traces, "allocator_settings": {}}

    def _check(self) -> None:
        assert not self.is_in_allocation, "the device was used in the middle of an allocation"
