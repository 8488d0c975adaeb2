"""Matmuls in full precision on devices with units for lower precision: NVIDIA's tensor cores, AMD's matrix cores.

There is no advice without enough data. On CDNA, float matmuls run on matrix cores too, at an eighth of the rate of
bfloat16 (MI300X: 163 and 1307 TFLOP/s), so all of them count; on NVIDIA, only those outside tensor cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather_column, map_categories
from ..arrays.intervals import Ints, length_within
from ..measures.recording.device_properties import Devices
from ..measures.recording.vendor import AMD, NVIDIA
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..names.kernel_labels import kernel_label
from ..names.tensor_cores import is_matrix_op
from ..trace.results import once_per_trace
from .facts import Facts
from .model import Advice, Candidate, ClearedTopic, OpenQuestion

FASTER = 3.0
"""Upper bound on the speedup of whole models by mixed precision (NVIDIA measured 1.5 to 5.5 on V100 and 1.3 to 2.5 on
A100; pytorch.org/blog/accelerating-training-on-nvidia-gpus-with-pytorch-automatic-mixed-precision)."""

_NEARLY_ALL = 0.99  # of the kernel time
_MOST_UNKNOWN = 0.2  # of the kernel time: with more, too little is known
_MATRIX_KERNEL = re.compile(
    r"Cijk_|gemm|matmul|scudnn|fprop|dgrad|wgrad|winograd|implicit_convolve|convolve_common|conv\w*_kernel|fmha",
    re.IGNORECASE,
)
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw", re.IGNORECASE)
_BETWEEN_FORMATS = re.compile(r"\s+|(?<=\d)x(?=[a-z])")  # bf16xbf16xmxfp4
_FLOAT, _OTHER_FORMATS = frozenset({"fp32"}), frozenset({"fp16", "bf16", "fp64", "fp8", "int8", "tf32", "mxfp4"})
_VOLTA, _AMPERE = (7, 0), (8, 0)  # compute capabilities: the first with tensor cores, the first with TF32
_SINCE_AMPERE = frozenset({"tf32", "bf16"})  # what NVIDIA's tensor cores run since then
_USED = "kernels use them"
_WITHOUT = re.compile(r"GTX 16|MX4|MX5|Intel")  # Turing without tensor cores; other numbers than NVIDIA's
_AMD = re.compile(r"AMD|Radeon|Instinct")
_CDNA = re.compile(r"\bMI[1-3]\d\d")
_CDNA_3 = (9, 4)  # gfx940 and later; gfx900 to gfx90a all say 9.0, and the first of them have no matrix cores


@dataclass(frozen=True)
class _Units:
    """The matrix units of a device.

    Args:
        name: The vendor's name for them; empty: it has none.
        evidence: How it is known that the device has them.
        has_tf32: Whether they run floats at lower precision if the program allows it.
        is_slow_in_float: Whether they run floats at full precision, at a fraction of the rate.
    """

    name: str
    evidence: str = ""
    has_tf32: bool = False
    is_slow_in_float: bool = False


_NONE = _Units("")


def slow_floats(facts: Facts) -> NDArray[np.bool_]:
    """Of each kernel, whether it multiplies float matrices that lower precision would speed up."""
    units = _matrix_units(facts)
    if units is None or not units.name:
        return np.zeros(facts.kernels.height, bool)
    return _in_float(facts, units)[0]


def mixed_precision(facts: Facts, is_free: NDArray[np.bool_]) -> Iterator[Advice | ClearedTopic | OpenQuestion]:
    """Matmuls and convolutions of float tensors that don't run at the device's full rate.

    Only kernels that `is_free` selects count; other advice has the rest.
    """
    units = _matrix_units(facts)
    if units is None:
        yield _of_unknown_device(facts)
        return
    if not units.name:
        return
    kernels = facts.kernels
    total = int(kernels["dur_ns"].sum())
    unknown_ns = int(kernels["dur_ns"].filter(kernels["tensor_cores"] == "unknown").sum())
    if unknown_ns > _MOST_UNKNOWN * total:
        part = text.percent(unknown_ns / total)
        yield OpenQuestion(
            f"whether {units.name} are used", f"{part} of the kernel time is in kernels with unknown names"
        )
        return
    in_float, is_untyped = _in_float(facts, units)
    untyped_ns = int(kernels["dur_ns"].filter(pl.Series(is_untyped)).sum())
    if untyped_ns > _MOST_UNKNOWN * total:
        part = text.percent(untyped_ns / total)
        yield OpenQuestion("the precision of matmuls", f"{part} of the kernel time is in matmuls of unknown inputs")
        return
    rows = kernels.select("start_ns", "dur_ns").filter(pl.Series(in_float & is_free))
    lengths = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    outside = "" if units.is_slow_in_float else f" without {units.name}"
    matmuls = f"{facts.percent(facts.mean(lengths))} in float matmuls{outside}"
    if not facts.is_worth((lengths * (1 - 1 / FASTER)).astype(np.int64)):
        share = 1 - max(unknown_ns, untyped_ns) / max(total, 1)
        of_rated = (
            f" (of the {text.percent(share)} of the kernel time that can be rated)" if share < _NEARLY_ALL else ""
        )
        yield ClearedTopic("precision", f"{matmuls}{of_rated}")
        return
    yield _slow_matmuls(facts, units, in_float & is_free, lengths)


def _of_unknown_device(facts: Facts) -> OpenQuestion:
    """That it isn't known whether a device has matrix units; and that no kernel uses any, where names tell that."""
    tensor_cores, dur_ns = facts.kernels["tensor_cores"], facts.kernels["dur_ns"]
    are_unused = int(dur_ns.filter(tensor_cores == "no").sum()) >= _NEARLY_ALL * int(dur_ns.sum())
    topic = f"whether the device has {facts.terms.matrix_units}" + (", which no kernel uses" if are_unused else "")
    return OpenQuestion(topic, "the trace doesn't identify the device")


def _slow_matmuls(facts: Facts, units: _Units, is_chosen: NDArray[np.bool_], lengths: Ints) -> Advice:
    """Advice for these kernels, which are `running` for that long per step."""
    rows = facts.kernels.filter(pl.Series(is_chosen))
    total = int(facts.kernels["dur_ns"].sum())
    matmuls = "Float matmuls and convolutions" + ("" if units.is_slow_in_float else f" without {units.name}")
    used_share = float(facts.kernels["dur_ns"].filter(facts.kernels["tensor_cores"] == "yes").sum()) / max(total, 1)
    faster = "run lower precision several times as fast" if units.is_slow_in_float else "has them"
    return Advice(
        "mixed_precision",
        f"{matmuls} take {facts.of_steps(lengths)}.",
        f"{100 * rows['dur_ns'].sum() / max(total, 1):.0f} % of kernel time is in them, {100 * used_share:.0f} % uses "
        f"{units.name}; {'these' if units.is_slow_in_float else 'the device'} {faster} ({units.evidence}). "
        f"The saving assumes a {FASTER:.0f}× speedup, which few models reach.",
        _remedy(units, is_training=facts.is_training),
        None,
        "medium",
        "kernels_by_op",
        "re:gemm|cudnn|conv|Cijk",
        facts.mean(lengths),
        Candidate(
            "the extra time of full precision",
            rows=facts.kernel_rows[is_chosen],
            less=1 - 1 / FASTER,
        ),
    )


def _remedy(units: _Units, *, is_training: bool) -> str:
    if units.has_tf32:
        return (
            "`torch.set_float32_matmul_precision('high')` (TF32) and `torch.backends.cudnn.allow_tf32 = True`, or "
            "`torch.autocast('cuda', torch.bfloat16)`."
        )
    if units.is_slow_in_float:
        return "Compute in bfloat16: `torch.autocast('cuda', torch.bfloat16)`, or load the model in it."
    scaler = " with a `GradScaler`" if is_training else ""
    return f"Compute in mixed precision: `torch.autocast('cuda', torch.float16)`{scaler}."


@once_per_trace
def image_layouts(facts: Facts) -> NDArray[np.bool_]:
    """Of each kernel, whether it only changes the memory layout of images."""
    return map_categories(facts.kernels["name"], lambda name: bool(_LAYOUT.search(name)))


def channels_last(facts: Facts, is_free: NDArray[np.bool_]) -> Iterator[Advice]:
    """Kernels that only change the memory layout of images for tensor or matrix cores, of those `is_free` selects."""
    is_chosen = image_layouts(facts) & is_free
    rows = facts.kernels.select("start_ns", "dur_ns").filter(pl.Series(is_chosen, dtype=pl.Boolean))
    lengths = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    if rows.is_empty() or not facts.is_worth(lengths):
        return
    size = facts.mean(lengths)
    yield Advice(
        "channels_last",
        f"Changing the memory layout of images takes {facts.of_steps(lengths)}.",
        f"{text.often(rows.height / facts.count)} kernels {facts.per} do nothing else, for {text.time(size)}"
        f"{facts.recurs(lengths)}: convolutions on {facts.terms.matrix_units} need channels last, but the tensors have "
        "them first.",
        "`model.to(memory_format=torch.channels_last)`, and the same for the images.",
        None,
        "high",
        "kernels",
        "re:nchw|nhwc",
        size,
        Candidate("changes of the memory layout", rows=facts.kernel_rows[is_chosen]),
    )


@once_per_trace
def _matrix_units(facts: Facts) -> _Units | None:
    """The weakest matrix units among the devices that ran kernels; None if those of any device are unknown."""
    devices = Devices.of(facts.trace.meta)
    runs_hip = bool(facts.trace.launches["name"].unique().cast(pl.String).str.starts_with("hip").any())
    units_of_devices: list[_Units] = []
    is_on_units = facts.kernels["tensor_cores"] == "yes"
    for device in facts.kernels["device"].unique(maintain_order=True):
        properties = devices.facts(int(device))
        capability = _numbers(properties.compute_capability)
        name = properties.name or ""
        on_units = (
            facts.kernels["name"].filter(is_on_units & (facts.kernels["device"] == device)).unique().cast(pl.String)
        )
        if _AMD.search(name) or runs_hip:
            units = _of_amd(name, capability, uses_them=not on_units.is_empty())
        elif _WITHOUT.search(name):
            units = _NONE
        elif capability is None and not on_units.is_empty():
            has_tf32 = any(_is_labelled(_SINCE_AMPERE, kernel) for kernel in on_units)
            units = _Units(facts.terms.matrix_units, _USED, has_tf32=has_tf32)
        else:
            units = _of_nvidia(capability)
        if units is None:
            return None
        units_of_devices.append(units)
    return min(units_of_devices, key=lambda units: (bool(units.name), units.has_tf32), default=None)


def _numbers(capability: str | None) -> tuple[int, int] | None:
    if capability is None:
        return None
    major, minor = capability.split(".")
    return int(major), int(minor)


def _of_nvidia(capability: tuple[int, int] | None) -> _Units | None:
    if capability is None:
        return None
    evidence = f"compute capability {capability[0]}.{capability[1]}"
    return _Units(NVIDIA.matrix_units, evidence, has_tf32=capability >= _AMPERE) if capability >= _VOLTA else _NONE


def _of_amd(name: str, capability: tuple[int, int] | None, *, uses_them: bool) -> _Units | None:
    """CDNA has matrix cores: known from its name, its capability, or a kernel that uses them by name.

    None for RDNA, and for devices that may be older than CDNA.
    """
    if capability is not None and capability[0] > _CDNA_3[0]:
        return _NONE
    if _CDNA.search(name) or (capability is not None and capability >= _CDNA_3):
        return _Units(AMD.matrix_units, name if _CDNA.search(name) else "CDNA", is_slow_in_float=True)
    return _Units(AMD.matrix_units, _USED, is_slow_in_float=True) if uses_them else None


def _multiplies_matrices(kernel: str) -> bool:
    return bool(_MATRIX_KERNEL.search(kernel)) and not _LAYOUT.search(kernel)


@once_per_trace
def _in_float(facts: Facts, units: _Units) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(kernels that multiply float matrices at a low rate, kernels that may do so: with unknown input types).

    The input types of a matmul decide, then the kernel's own name, whichever operator launched it: compiled code and
    custom operators have names of their own. Without either, a matmul outside tensor cores counts as float; on units
    that run floats it is unknown.
    """
    host, kernels, without_types = facts.trace.all_host_events, facts.kernels, not units.is_slow_in_float
    has_matrix_name = map_categories(kernels["name"], _multiplies_matrices)
    op = kernels["op"].to_numpy()
    could = map_categories(gather_column(host["name"], op), is_matrix_op)
    types = gather_column(host["input_types"], op)
    is_float = map_categories(types, _is_float, missing=without_types) & (op != NONE)
    has_types = types.is_not_null().to_numpy()
    is_slow = has_matrix_name & ((kernels["tensor_cores"] == "no").to_numpy() | units.is_slow_in_float)
    floats, others = (
        map_categories(kernels["name"], partial(_is_labelled, formats)) for formats in (_FLOAT, _OTHER_FORMATS)
    )
    by_kernel = floats | (~others & could & is_float)
    is_unknown = ~(floats | others) & ~(could & (has_types | without_types))
    return is_slow & np.where(could & has_types, is_float, by_kernel), is_slow & is_unknown


def _is_labelled(formats: frozenset[str], kernel: str) -> bool:
    """Whether a kernel's label has one of these number formats, be it among those of several operands."""
    return not formats.isdisjoint(_BETWEEN_FORMATS.split(kernel_label(kernel)))


def _is_float(types: str) -> bool:
    """Whether a list of input types, as in the file, has 32-bit floats and no shorter ones."""
    dtypes = set(re.findall(r'"([^"]+)"', types))
    return "float" in dtypes and not dtypes & {"c10::Half", "c10::BFloat16", "half", "bfloat16"}
