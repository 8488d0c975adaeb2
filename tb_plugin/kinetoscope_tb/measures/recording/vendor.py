"""The vendor's words for parts of the devices in a trace."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ...names.regex import regex
from ...trace import Trace
from .device_properties import Devices


@dataclass(frozen=True)
class VendorTerms:
    """What a vendor calls things.

    Args:
        vendor: Its name; empty if the trace doesn't show it.
        matrix_units: The units that multiply matrices.
        multiprocessors: The units that run blocks of threads.
        memory_calls: Calls that take device memory and give it back.
        graphs: Launches that are recorded once and replayed.
        device: What people call one of its devices in front of a number.
    """

    vendor: str
    matrix_units: str
    multiprocessors: str
    memory_calls: tuple[str, str]
    graphs: str
    device: str = "GPU"


NVIDIA = VendorTerms("NVIDIA", "tensor cores", "multiprocessors", ("cudaMalloc", "cudaFree"), "CUDA graphs")
AMD = VendorTerms("AMD", "matrix cores", "compute units", ("hipMalloc", "hipFree"), "HIP graphs")
INTEL = VendorTerms("Intel", "XMX engines", "Xe cores", ("urUSMDeviceAlloc", "urUSMFree"), "SYCL graphs")
HUAWEI = VendorTerms("Huawei", "cube units", "AI Cores", ("aclrtMalloc", "aclrtFree"), "NPU graphs", device="NPU")
UNKNOWN = VendorTerms(
    "",
    "tensor or matrix cores",
    "multiprocessors",
    ("device allocation", "device free"),
    "device graphs",
    device="Device",
)

_BY_DEVICE = (
    (AMD, regex(r"AMD|Radeon|Instinct|\bMI[1-3]\d\d")),
    (HUAWEI, regex(r"Ascend")),
    (INTEL, regex(r"Intel|\bArc\b|Data Center GPU")),
    (NVIDIA, regex(r"NVIDIA|Tesla|GeForce|Quadro|TITAN|\b(?:[ABHV]\d{2,3}|GB\d{2,3}|RTX|GTX)\b")),
)
_BY_CALL = (
    (AMD, regex(r"\bhip[A-Z]")),
    (NVIDIA, regex(r"\bcu(?:da)?[A-Z]")),
    (HUAWEI, regex(r"\bacl(?:rt|nn|op)?[A-Z]|\b(?:AscendCL|Node|Model|Runtime)@")),
    (INTEL, regex(r"\b(?:ur|ze)[A-Z]")),
)
_BY_KERNEL = (  # where neither devices nor calls were recorded
    (AMD, regex(r"Cijk_|gfx(?:9|1[0-2])\d|\bck(?:_tile)?::")),
    (NVIDIA, regex(r"\bcutlass|cublas|cudnn|nvjet|\bsm\d{2,3}_")),
)


def vendor_terms(trace: Trace) -> VendorTerms:
    """The words of the vendor of the devices that were used: by their names, else by calls, else by kernels."""
    devices = Devices.of(trace.meta)
    indices = trace.device_events["device"].unique().sort().to_list()
    device_names = [devices.facts(device).name or "" for device in indices]
    for names, rules in (
        (device_names, _BY_DEVICE),
        (_distinct(trace.launches), _BY_CALL),
        (_distinct(trace.device_events), _BY_KERNEL),
    ):
        terms = next((terms for terms, pattern in rules if any(map(pattern.search, names))), None)
        if terms is not None:
            return terms
    return UNKNOWN


def device_noun(trace: Trace) -> str:
    """What people call its devices in front of a number: GPU, NPU, or Device if their vendor isn't known."""
    return vendor_terms(trace).device


def _distinct(frame: pl.DataFrame) -> list[str]:
    return frame["name"].unique().cast(pl.String).drop_nulls().to_list()
