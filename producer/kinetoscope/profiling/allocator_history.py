"""torch's caching allocator of a kind of device, as far as it can record what it does.

The functions are private in torch (torch/cuda/memory.py; XPU from 2.13; NPU's package has the same), so each is looked
up when it is needed. ROCm's are CUDA's. Errors are torch's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from .memory_history import MemoryHistory

_KINDS = ("cuda", "xpu", "npu")

_observers: dict[str, Any] = {}
"""What is called for failed allocations, by kind of device: torch can't detach an observer, so it gets only one."""


def recording_allocator() -> AllocatorHistory | None:
    """Return the allocator of this machine's devices that can record; None if there is none."""
    for kind in _KINDS:
        device = getattr(torch, kind, None)
        memory = getattr(device, "memory", None)
        can_record = hasattr(memory, "_record_memory_history") and hasattr(memory, "_snapshot")
        if device is not None and can_record and device.is_available():
            return AllocatorHistory(kind, device)
    return None


class AllocatorHistory:
    """The allocator of one kind of device.

    Args:
        kind: `cuda`, `xpu` or `npu`.
        device: torch's module of it, such as `torch.cuda`.
    """

    def __init__(self, kind: str, device: Any) -> None:
        self._kind, self._device = kind, device

    @property
    def is_ready(self) -> bool:
        """Whether the program uses the devices: before that, any call would initialize them, which is its decision."""
        return bool(self._device.is_initialized())

    @property
    def is_recording(self) -> bool:
        """Whether the history is on; False if this torch can't tell."""
        is_enabled = getattr(torch._C, f"_{self._kind}_isHistoryEnabled", None)
        return is_enabled is not None and bool(is_enabled())

    def begin(self, history: MemoryHistory) -> None:
        """Start to record."""
        self._device.memory._record_memory_history("all", stacks=history.stacks, max_entries=history.max_entries)

    def end(self) -> None:
        """Stop recording, and forget what was recorded."""
        self._device.memory._record_memory_history(None)

    def snapshot(self) -> dict[str, Any]:
        """Return what the allocator has, and its history."""
        return dict(self._device.memory._snapshot())

    def devices(self) -> list[dict[str, Any]]:
        """Return the devices, in the form of `deviceProperties` in a trace."""
        properties = map(self._device.get_device_properties, range(self._device.device_count()))
        return [
            {"id": number, "name": str(device.name), "totalGlobalMem": int(device.total_memory)}
            for number, device in enumerate(properties)
        ]

    def observe_failures(self, observer: Callable[[int, int, int, int], None] | None) -> None:
        """Call a function for each allocation that fails; None for none any more.

        torch calls it in the middle of the allocation, on whichever thread, and then raises its OutOfMemoryError. So it
        must neither raise nor use the device.

        Args:
            observer: Called with the device, the bytes that were asked for, the most that there may be, and the bytes
                that the device has free.
        """
        attach = getattr(torch._C, f"_{self._kind}_attach_out_of_memory_observer", None)
        if attach is not None and observer is not None and self._kind not in _observers:
            kind = self._kind

            def call(device: int, request: int, total: int, free: int) -> None:
                current = _observers[kind]
                if current is not None:
                    current(device, request, total, free)

            attach(call)
        if observer is not None or self._kind in _observers:
            _observers[self._kind] = observer
