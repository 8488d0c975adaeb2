"""Properties of devices from the trace's deviceProperties, as the driver reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...trace.meta import Meta
from ...trace.model import Trace

_FEWEST_THREADS = 1024  # of any multiprocessor; a smaller number is something else


@dataclass(frozen=True)
class DeviceFacts:
    """Properties of one device; None where the trace has none."""

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
    """The devices in a trace's metadata.

    Args:
        by_index: Facts by index; the first of several with the same index.
        alike: The common facts, if all listed devices are of one kind.
    """

    by_index: Mapping[int, DeviceFacts]
    alike: DeviceFacts | None

    @classmethod
    def of(cls, meta: Meta) -> Devices:
        """Return the devices of the trace with this metadata."""
        devices = [_facts(device) for device in meta.devices if _number(device.get("id")) is not None]
        is_one_kind = len({(facts.name, facts.multiprocessors) for facts in devices}) == 1
        return cls({facts.index: facts for facts in reversed(devices)}, devices[0] if is_one_kind else None)

    def facts(self, index: int) -> DeviceFacts:
        """Facts about the device with this index in the device rows.

        ROCm may number devices differently in rows and in properties: if the index isn't listed, and all listed devices
        are of one kind, it is one of them.
        """
        if index in self.by_index:
            return self.by_index[index]
        return DeviceFacts(index) if self.alike is None else replace(self.alike, index=index)


def name_devices(trace: Trace, name: str) -> Trace:
    """The trace as if its metadata called every device by this name, as its driver would."""
    entries = trace.meta.devices or [{"id": index} for index in trace.device_events["device"].unique().sort()]
    devices = [{**device, "name": name} for device in entries]
    return replace(trace, meta=replace(trace.meta, top={**trace.meta.top, "deviceProperties": devices}))


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
