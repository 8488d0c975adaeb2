"""Groups of kernels, limits of devices and what replaces attention, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..measures.calls.kernel_work import Group
from ..measures.calls.roofline import Limits
from ..measures.calls.unfused_attention import UnfusedAttention
from ..names import text

DOUBLES_FASTER = 2.0
"""Times as fast as float64 is float32 at least: half the bytes, and twice as many numbers in a vector register."""
IN_FLOAT = (
    "Compute in float32: `model.float()`, and convert what NumPy and Python hand over, which is float64 "
    "(`torch.as_tensor(x, dtype=torch.float32)`)."
)
_NAMED = 3  # groups in a sentence
_TENSORS = 2  # shapes of a group
_LONGEST_NAME = 60


def largest_groups(groups: Sequence[Group], steps: int) -> str:
    """The groups that take most time, each with its inputs, calls per step, their time and share of the roof."""
    by_time = sorted(groups, key=lambda group: -group.time_ns)
    return "; ".join(_in_words(group, steps) for group in by_time[:_NAMED])


def _in_words(group: Group, steps: int) -> str:
    who = f"`{group.name}`" if group.name else f"`{group.kernel[:_LONGEST_NAME]}`"
    inputs = f" of {shapes}" if (shapes := inputs_of(group)) else ""
    fraction = group.roof_frac
    roof = "" if fraction is None else f" at {text.percent(min(fraction, 1.0))} of the roof"
    return f"{who}{inputs}, {text.times(group.calls / steps, 'call')} of {text.time(group.call_ns)}{roof}"


def has_doubles(types: str) -> bool:
    """Whether an operator's first input that is a tensor is of float64; `types` is a list as torch writes it."""
    try:
        names = json.loads(types)
    except (ValueError, RecursionError):
        return False
    tensors = [name for name in names if name not in ("", "Scalar", "ScalarList")] if isinstance(names, list) else []
    return bool(tensors) and tensors[0] == "double"


def inputs_of(group: Group) -> str:
    """The shapes of the first tensors: (256, 512) × (512, 8); empty if they weren't recorded."""
    try:
        entries = json.loads(group.shapes or "[]")
    except (ValueError, RecursionError):
        return ""
    flat = [item for entry in entries for item in (entry if _is_nested(entry) else [entry])]
    tensors = [item for item in flat if isinstance(item, list) and item]
    if group.name == "aten::copy_":
        return f"({', '.join(map(str, tensors[0]))}){_conversion(group)}" if tensors else ""
    if group.name.startswith(("aten::addmm", "aten::baddbmm")):
        tensors = tensors[1:]  # the bias comes first
    return " × ".join(f"({', '.join(map(str, sizes))})" for sizes in tensors[:_TENSORS])


def _conversion(group: Group) -> str:
    """From which number format to which one a copy converts; empty if it doesn't."""
    try:
        to, source = (str(name).removeprefix("c10::") for name in json.loads(group.types or "[]")[:2])
    except (ValueError, RecursionError):
        return ""
    return "" if to == source else f" from {source} to {to}"


def _is_nested(entry: object) -> bool:
    return isinstance(entry, list) and any(isinstance(item, list) for item in entry)


def limit_in_words(group: Group, limits: Mapping[int, Limits]) -> str:
    """The limit of a group, and the device that has it: 708 TFLOP/s in bf16 on an AMD Instinct MI300X."""
    device = limits[group.device]
    if device.peaks is None:
        return device.reason
    if group.bound_by == "compute" and group.flop_per_s:
        rate = f"{text.digits(group.flop_per_s / 1e12)} TFLOP/s in {group.number_format}"
    else:
        rate = f"{text.digits(device.peaks.bandwidth / 1e12)} TB/s"
    if device.is_named:
        return f"{rate} on {device.name}"
    return f"{rate} on the slowest {device.name} product; kernel names show that architecture"


def use_fused(attention: UnfusedAttention, *, has_device: bool) -> str:
    """What to write instead of attention in separate operators.

    What the fused kernel of the CPU refuses: aten/src/ATen/native/transformers/sdp_utils_cpp.cpp.
    """
    of_cpu = "" if has_device else " Its fused kernel for the CPU takes no dropout (`dropout_p=0.0`)."
    if attention.is_fallback and not has_device:
        return f"`scaled_dot_product_attention` ran its fallback in separate operators.{of_cpu}"
    if attention.is_fallback:
        return (
            "`scaled_dot_product_attention` ran its fallback in separate operators: use float16 or bfloat16, a head "
            "dimension up to 256, and a mask that its fused kernels take (`torch.nn.attention.sdpa_kernel` says why "
            "not)."
        )
    return (
        "Use `torch.nn.functional.scaled_dot_product_attention` (Transformers: `attn_implementation='sdpa'`; "
        "`nn.MultiheadAttention`: `need_weights=False`), which never writes the scores; masks and biases go in as "
        f"`attn_mask`, or use FlexAttention.{of_cpu}"
    )
