"""Jobs that ran on a device of which nothing was recorded: how a recording of the host alone shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ...arrays.gather import map_categories
from ...names.calls import launches_graph, launches_kernel
from ...names.regex import regex
from ...trace import Trace
from ...trace.results import once_per_recording
from ..recording.contents import has_work
from .vendor import HUAWEI, INTEL, vendor_terms

_CPU = 0  # c10's number of that type of device
_DEVICE_OPERATOR = regex(  # ATen's operators with kernels for one kind of device alone (native_functions.yaml)
    r"aten::(?:_?cudnn_\w+|_?miopen_\w+|_thnn_fused_\w+|_mps_\w+|mps_\w+|_cslt_sparse_mm\w*"
    r"|_?(?:scaled_dot_product_)?(?:flash|efficient|cudnn)_attention_(?:forward|backward)"
    r"|_scaled_dot_product_(?:flash|efficient|cudnn)_attention(?:_backward)?)$"
    r"|triton_(?:poi|red|per|tem)_\w+|(?:nccl|rccl|xccl|hccl):|flash_attn\w*::|c10d_npu::|npu::"
)
_ASKS_ON_ANY = "aten::cudnn_is_acceptable"  # an RNN asks on every device whether cuDNN could run it
_CPU_OPERATOR = regex(r"mkldnn|onednn|_for_cpu\b|slow_conv|^cpp_fused")
_DEVICE_BACKEND = regex(r"\b(?:nccl|rccl|hccl|xccl|cncl)\b")


@dataclass(frozen=True)
class UnrecordedDevice:
    """A device of which the recording has no work.

    Args:
        name: What the file calls it; empty if it doesn't.
        evidence: How it is known, as the beginning of a sentence.
        activity: What records it.
        was_used: Whether the job ran on it; else the file only names it, and nothing shows that the job ran on the CPU.
    """

    name: str
    evidence: str
    activity: str
    was_used: bool


@once_per_recording
def unrecorded_device(trace: Trace) -> UnrecordedDevice | None:
    """The device that the job ran on, if nothing that it did was recorded; None if there was none, or its work is here.

    A machine with a GPU names it in the recordings of trainings on the CPU, too: operators that only a CPU has tell.
    """
    if trace.device_events.height or trace.meta.foreign_writer is not None or not has_work(trace):
        return None
    name = device_names(trace)
    evidence = _of_calls(trace) or _of_operators(trace) or _of_memory(trace) or _of_backend(trace)
    if evidence:
        return UnrecordedDevice(name, evidence, _activity(trace), was_used=True)
    if not name or runs_on_cpu(trace):
        return None
    return UnrecordedDevice(name, f"The file names {name}", _activity(trace), was_used=False)


def _activity(trace: Trace) -> str:
    """The activity of torch.profiler, or of its vendor's, that records such a device."""
    names = trace.host_events["name"].unique().cast(pl.String).drop_nulls()
    terms, backend = vendor_terms(trace), str(trace.meta.distributed_info.get("backend") or "")
    if terms is HUAWEI or "hccl" in backend or names.str.contains(r"^(?:npu::|c10d_npu::|hccl:)").any():
        return "torch_npu.profiler.ProfilerActivity.NPU"
    is_intel = terms is INTEL or "xccl" in backend or names.str.contains("^xccl:").any()
    return "ProfilerActivity.XPU" if is_intel else "ProfilerActivity.CUDA"


def device_names(trace: Trace) -> str:
    """The devices in the metadata, each kind once."""
    return ", ".join(sorted({str(device.get("name") or "") for device in trace.meta.devices} - {""}))


def runs_on_cpu(trace: Trace) -> bool:
    """Whether operators ran that only a CPU has, or memory of the CPU alone was allocated."""
    names = trace.host_events["name"].unique().cast(pl.String).drop_nulls()
    return bool(names.str.contains(_CPU_OPERATOR.pattern).any()) or trace.memory.height > 0


def _of_calls(trace: Trace) -> str:
    calls = trace.launches["name"]
    is_launch = map_categories(calls, lambda name: launches_kernel(name) or launches_graph(name))
    return f"`{calls[int(np.argmax(is_launch))]}` was called" if is_launch.any() else ""


def _of_operators(trace: Trace) -> str:
    names = trace.host_events["name"].unique(maintain_order=True).cast(pl.String).drop_nulls()
    operators = names.filter(names.str.contains(f"^(?:{_DEVICE_OPERATOR.pattern})") & (names != _ASKS_ON_ANY))
    more = f" and {operators.len() - 1} other" + ("s" if operators.len() > 2 else "") if operators.len() > 1 else ""
    return f"`{operators[0]}`{more} ran, which CPUs don't have" if operators.len() else ""


def _of_memory(trace: Trace) -> str:
    on_device = (trace.memory["device_type"] > _CPU).any()
    return "Memory of a device was allocated" if on_device else ""


def _of_backend(trace: Trace) -> str:
    backend = str(trace.meta.distributed_info.get("backend") or "")
    is_of_device = _DEVICE_BACKEND.search(backend) and not ("cpu:" in backend and runs_on_cpu(trace))
    return f"The ranks communicate by {backend}" if is_of_device else ""
