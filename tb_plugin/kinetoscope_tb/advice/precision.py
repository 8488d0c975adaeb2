"""Matrix work in full precision on devices that have units for less; nothing is said where it isn't known."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.intervals import length_within
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
    r"sgemm|scudnn|gemm|fprop|dgrad|wgrad|winograd|implicit_convolve|convolve_common|conv\w*_kernel|fmha", re.IGNORECASE
)
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw", re.IGNORECASE)
_TENSOR_CORES, _TF32 = (7, 0), (8, 0)  # compute capability of Volta and of Ampere
_WITHOUT = re.compile(r"GTX 16|MX4|MX5|AMD|Radeon|Intel")  # Turing without tensor cores; other numbers than NVIDIA's


def mixed_precision(facts: Facts) -> Iterator[Advice | Cleared | Unknown]:
    """Products and convolutions of float tensors that run outside tensor cores, on NVIDIA devices that have them."""
    if facts.kernels.is_empty():
        return
    capability = _capability(facts)
    if capability is None:
        yield Unknown("whether the device has tensor cores", "its properties weren't recorded")
        return
    if capability < _TENSOR_CORES:
        return
    kernels = facts.kernels
    total = int(kernels["dur_ns"].sum())
    unknown = int(kernels.filter(pl.col("tensor_cores") == "unknown")["dur_ns"].sum())
    if unknown > _MOST_UNKNOWN * total:
        part = text.percent(unknown / total)
        yield Unknown("whether tensor cores are used", f"{part} of the kernel time is in kernels not known by name")
        return
    rows = kernels.filter(pl.Series(_in_float(facts, kernels)))
    running = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    lengths = (running * (1 - 1 / FASTER)).astype(np.int64)
    saving = facts.mean(lengths)
    if not facts.is_worth(lengths):
        yield Cleared("precision", f"{facts.percent(facts.mean(running))} in float products without tensor cores")
        return
    has_tf32 = capability >= _TF32
    used = float(kernels.filter(pl.col("tensor_cores") == "yes")["dur_ns"].sum()) / max(total, 1)
    yield Advice(
        "mixed_precision",
        f"Float products and convolutions without tensor cores take {facts.percent(facts.mean(running))} of "
        f"{facts.every}.",
        f"{100 * rows['dur_ns'].sum() / max(total, 1):.0f} % of kernel time is in them, {100 * used:.0f} % uses tensor "
        f"cores; the device has them (compute capability {capability[0]}.{capability[1]}). The saving assumes that "
        f"they become {FASTER:.0f} times as fast, which few models reach.",
        "`torch.set_float32_matmul_precision('high')` (TF32) and `torch.backends.cudnn.allow_tf32 = True`, or "
        "`torch.autocast('cuda', torch.bfloat16)`."
        if has_tf32
        else "Train in mixed precision: `torch.autocast('cuda', torch.float16)` with a `GradScaler`.",
        saving,
        "medium",
        "kernels_by_op",
        "re:gemm|cudnn|conv",
    )


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


def _capability(facts: Facts) -> tuple[int, int] | None:
    """The least compute capability of the devices used; (0, 0) for those of other vendors, None if it isn't known."""
    known = {d.get("id"): d for d in facts.trace.meta.devices}
    found = []
    for device in facts.kernels["device"].unique():
        of = known.get(device, {})
        major, minor, name = of.get("computeMajor"), of.get("computeMinor"), str(of.get("name") or "")
        if _WITHOUT.search(name):
            found.append((0, 0))
        elif isinstance(major, int) and isinstance(minor, int):
            found.append((major, minor))
        else:
            return None
    return min(found, default=None)


def _in_float(facts: Facts, kernels: pl.DataFrame) -> NDArray[np.bool_]:
    """Which kernels multiply matrices of floats outside tensor cores, launched by an operator that could use them."""
    host = facts.trace.host_events
    could = map_categories(host["name"], is_matrix_op)
    op = kernels["op"].to_numpy()
    named = map_categories(kernels["name"], lambda name: bool(_MATRIX_KERNEL.search(name)) and not _LAYOUT.search(name))
    types = map_categories(host["input_types"], _is_float, missing=True)
    is_float = gather(types, op, missing=False)
    no_tensor_cores = (kernels["tensor_cores"] == "no").to_numpy()
    wanted: NDArray[np.bool_] = named & no_tensor_cores & is_float & gather(could, op, missing=False)
    return wanted


def _is_float(types: str) -> bool:
    """Whether a list of input types, as the file spells it, holds 32-bit floats and no shorter ones."""
    found = set(re.findall(r'"([^"]+)"', types))
    return "float" in found and not found & {"c10::Half", "c10::BFloat16", "half", "bfloat16"}
