"""Devices as their driver describes them in the trace's deviceProperties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...trace.meta import Meta

_FEWEST_THREADS = 1024  # that a multiprocessor holds; a smaller number is something else


@dataclass(frozen=True)
class DeviceFacts:
    """What the trace says of one device; None where it says nothing."""

    index: int
    name: str | None = None
    memory_bytes: int | None = None
    compute_capability: str | None = None
    multiprocessors: int | None = None
    threads_per_sm: int | None = None
    registers_per_sm: int | None = None
    shared_memory_per_sm_bytes: int | None = None
    warp_size: int | None = None


@dataclass(frozen=True)
class Devices:
    """All devices that a trace says something of.

    Args:
        listed: The facts by index, of two of one index the first.
        alike: What is true of each, if all that are listed are alike.
    """

    listed: Mapping[int, DeviceFacts]
    alike: DeviceFacts | None

    @classmethod
    def of(cls, meta: Meta) -> Devices:
        """Return the devices of the trace with this metadata."""
        listed = [_facts(device) for device in meta.devices if _number(device.get("id")) is not None]
        is_one_kind = len({(facts.name, facts.multiprocessors) for facts in listed}) == 1
        return cls({facts.index: facts for facts in reversed(listed)}, listed[0] if is_one_kind else None)

    def facts(self, index: int) -> DeviceFacts:
        """What is said of the device with this index in the device rows.

        ROCm may number devices otherwise in its rows than in its properties: where the index isn't listed, and all
        devices that are listed are alike, it is one of them.
        """
        if index in self.listed:
            return self.listed[index]
        return DeviceFacts(index) if self.alike is None else replace(self.alike, index=index)


def _facts(device: Mapping[str, Any]) -> DeviceFacts:
    """The exporter in Python (torch 2.13) writes the number of multiprocessors where their threads belong."""
    threads = _number(device.get("maxThreadsPerMultiprocessor"))
    multiprocessors = _number(device.get("numSms"))
    if threads is not None and threads < _FEWEST_THREADS:
        multiprocessors, threads = multiprocessors or threads, None
    major, minor = (_number(device.get(key)) for key in ("computeMajor", "computeMinor"))
    return DeviceFacts(
        index=int(device["id"]),
        name=str(device["name"]) if device.get("name") else None,
        memory_bytes=_number(device.get("totalGlobalMem")),
        compute_capability=f"{major}.{minor}" if major is not None and minor is not None else None,
        multiprocessors=multiprocessors,
        threads_per_sm=threads,
        registers_per_sm=_number(device.get("regsPerMultiprocessor")),
        shared_memory_per_sm_bytes=_number(
            device.get("sharedMemPerMultiprocessor", device.get("maxSharedMemoryPerMultiProcessor"))
        ),
        warp_size=_number(device.get("warpSize")),
    )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
