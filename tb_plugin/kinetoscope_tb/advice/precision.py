"""Matrix work in full precision on devices that have units for less: tensor cores of NVIDIA, matrix cores of AMD.

Nothing is said where it isn't known. On CDNA, float products run on matrix cores too, at an eighth of the rate of
bfloat16 (MI300X: 163 and 1307 TFLOP/s), so all of them count there; on NVIDIA's devices only what runs outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.intervals import Ints, length_within
from ..measures.recording.device_properties import Devices
from ..measures.time.breakdown import intervals_of
from ..names.tensor_cores import is_matrix_op
from . import text
from .facts import Facts
from .model import Advice, Cleared, Unknown

FASTER = 3.0
"""The most that whole models gain from mixed precision (NVIDIA's own figures say 1.5 to 5.5 on V100 and 1.3 to 2.5 on
A100; pytorch.org/blog/accelerating-training-on-nvidia-gpus-with-pytorch-automatic-mixed-precision)."""

_MOST_UNKNOWN = 0.2  # of the kernel time: with more, what runs is not known well enough
_MATRIX_KERNEL = re.compile(
    r"Cijk_|gemm|matmul|scudnn|fprop|dgrad|wgrad|winograd|implicit_convolve|convolve_common|conv\w*_kernel|fmha",
    re.IGNORECASE,
)
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw", re.IGNORECASE)
_VOLTA, _AMPERE = (7, 0), (8, 0)  # compute capabilities: the first with tensor cores, the first with TF32
_WITHOUT = re.compile(r"GTX 16|MX4|MX5|Intel")  # Turing without tensor cores; other numbers than NVIDIA's
_AMD = re.compile(r"AMD|Radeon|Instinct")
_CDNA = re.compile(r"\bMI[1-3]\d\d")
_CDNA_3 = (9, 4)  # gfx940 and later; gfx900 to gfx90a all say 9.0, and the first of them have no matrix cores


@dataclass(frozen=True)
class _Units:
    """The units of a device that multiply matrices.

    Args:
        name: What its maker calls them; empty: it has none.
        evidence: What tells that it has them.
        has_tf32: Whether they take floats, at less precision, where the program allows it.
        is_slow_in_float: Whether they take floats as they are, at a fraction of the rate.
    """

    name: str
    evidence: str = ""
    has_tf32: bool = False
    is_slow_in_float: bool = False


_NONE = _Units("")


def mixed_precision(facts: Facts) -> Iterator[Advice | Cleared | Unknown]:
    """Products and convolutions of float tensors that don't run as fast as the device multiplies matrices."""
    if facts.kernels.is_empty():
        return
    units = _matrix_units(facts)
    if units is None:
        yield Unknown("whether the device has tensor or matrix cores", "the recording doesn't say which device it is")
        return
    if not units.name:
        return
    kernels = facts.kernels
    total = int(kernels["dur_ns"].sum())
    unknown = int(kernels.filter(pl.col("tensor_cores") == "unknown")["dur_ns"].sum())
    if unknown > _MOST_UNKNOWN * total:
        part = text.percent(unknown / total)
        yield Unknown(f"whether {units.name} are used", f"{part} of the kernel time is in kernels not known by name")
        return
    in_float, untyped = _in_float(facts, kernels, units)
    hidden = int(kernels.filter(pl.Series(untyped))["dur_ns"].sum())
    if hidden > _MOST_UNKNOWN * total:
        part = text.percent(hidden / total)
        yield Unknown("in which precision products run", f"{part} of the kernel time is in products of unknown inputs")
        return
    rows = kernels.filter(pl.Series(in_float))
    running = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    lengths = (running * (1 - 1 / FASTER)).astype(np.int64)
    if not facts.is_worth(lengths):
        outside = "" if units.is_slow_in_float else f" without {units.name}"
        yield Cleared("precision", f"{facts.percent(facts.mean(running))} in float products{outside}")
        return
    yield _slow_products(facts, units, rows, lengths)


def _slow_products(facts: Facts, units: _Units, rows: pl.DataFrame, lengths: Ints) -> Advice:
    """What to say of these kernels, which `lengths` per step could be saved of."""
    total = int(facts.kernels["dur_ns"].sum())
    running = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    products = "Float products and convolutions" + ("" if units.is_slow_in_float else f" without {units.name}")
    used = float(facts.kernels.filter(pl.col("tensor_cores") == "yes")["dur_ns"].sum()) / max(total, 1)
    faster = "multiply shorter numbers several times as fast" if units.is_slow_in_float else "has them"
    return Advice(
        "mixed_precision",
        f"{products} take {facts.percent(facts.mean(running))} of {facts.every}.",
        f"{100 * rows['dur_ns'].sum() / max(total, 1):.0f} % of kernel time is in them, {100 * used:.0f} % uses "
        f"{units.name}; {'these' if units.is_slow_in_float else 'the device'} {faster} ({units.evidence}). "
        f"The saving assumes that they become {FASTER:.0f} times as fast, which few models reach.",
        _remedy(units, is_training=facts.is_training),
        facts.mean(lengths),
        "medium",
        "kernels_by_op",
        "re:gemm|cudnn|conv|Cijk",
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


def channels_last(facts: Facts) -> Iterator[Advice]:
    """Kernels that only turn the layout of images for tensor cores."""
    kernels = facts.kernels
    rows = kernels.filter(
        pl.Series(map_categories(kernels["name"], lambda name: bool(_LAYOUT.search(name)), missing=False))
    )
    lengths = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    if rows.is_empty() or not facts.is_worth(lengths):
        return
    saving = facts.mean(lengths)
    yield Advice(
        "channels_last",
        f"Turning images from one memory layout to another takes {facts.percent(saving)} of {facts.every}.",
        f"{text.digits(rows.height / facts.count)} kernels {facts.per} do nothing else, for {text.time(saving)}"
        f"{facts.recurs(lengths)}: convolutions on tensor cores want channels last, the tensors have them first.",
        "`model.to(memory_format=torch.channels_last)`, and the same for the images.",
        saving,
        "high",
        "kernels",
        "re:nchw|nhwc",
    )


def _matrix_units(facts: Facts) -> _Units | None:
    """What all devices that ran kernels have to multiply matrices; None if it isn't known of each."""
    devices = Devices.of(facts.trace.meta)
    runs_hip = bool(facts.trace.launches["name"].unique().cast(pl.String).str.starts_with("hip").any())
    found: list[_Units] = []
    for (device,), kernels in facts.kernels.group_by("device"):
        properties = devices.facts(int(device))
        capability = _numbers(properties.compute_capability)
        name = properties.name or ""
        if _AMD.search(name) or runs_hip:
            units = _of_amd(name, capability, uses_them=bool((kernels["tensor_cores"] == "yes").any()))
        elif _WITHOUT.search(name):
            units = _NONE
        else:
            units = _of_nvidia(capability)
        if units is None:
            return None
        found.append(units)
    return min(found, key=lambda units: (bool(units.name), units.has_tf32), default=None)


def _numbers(capability: str | None) -> tuple[int, int] | None:
    if capability is None:
        return None
    major, minor = capability.split(".")
    return int(major), int(minor)


def _of_nvidia(capability: tuple[int, int] | None) -> _Units | None:
    if capability is None:
        return None
    said = f"compute capability {capability[0]}.{capability[1]}"
    return _Units("tensor cores", said, has_tf32=capability >= _AMPERE) if capability >= _VOLTA else _NONE


def _of_amd(name: str, capability: tuple[int, int] | None, *, uses_them: bool) -> _Units | None:
    """CDNA has matrix cores. Its name tells it, or its number, or else a kernel that says of itself that it uses them.

    Of RDNA, and of what may be older than CDNA, nothing is said.
    """
    if capability is not None and capability[0] > _CDNA_3[0]:
        return _NONE
    if _CDNA.search(name) or (capability is not None and capability >= _CDNA_3):
        return _Units("matrix cores", name if _CDNA.search(name) else "CDNA", is_slow_in_float=True)
    return _Units("matrix cores", "kernels use them", is_slow_in_float=True) if uses_them else None


def _multiplies_matrices(kernel: str) -> bool:
    return bool(_MATRIX_KERNEL.search(kernel)) and not _LAYOUT.search(kernel)


def _in_float(facts: Facts, kernels: pl.DataFrame, units: _Units) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which kernels multiply matrices of floats at a low rate, and which may: of these no input types are known.

    A product outside tensor cores is one of floats where no types were recorded; on units that take floats it isn't.
    """
    host = facts.trace.host_events
    op = kernels["op"].to_numpy()
    could = gather(map_categories(host["name"], is_matrix_op), op, missing=False)
    named = map_categories(kernels["name"], _multiplies_matrices)
    is_float = gather(
        map_categories(host["input_types"], _is_float, missing=not units.is_slow_in_float), op, missing=False
    )
    is_typed = gather(host["input_types"].is_not_null().to_numpy() | (not units.is_slow_in_float), op, missing=False)
    is_slow = named & ((kernels["tensor_cores"] == "no").to_numpy() | units.is_slow_in_float)
    return is_slow & could & is_float, is_slow & ~is_typed


def _is_float(types: str) -> bool:
    """Whether a list of input types, as the file spells it, holds 32-bit floats and no shorter ones."""
    found = set(re.findall(r'"([^"]+)"', types))
    return "float" in found and not found & {"c10::Half", "c10::BFloat16", "half", "bfloat16"}
