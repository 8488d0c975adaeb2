"""Peak performance of devices: dense operations per second by number format, and memory bandwidth.

The numbers are the vendors', at boost clock and without structured sparsity; a device at its power limit never reaches
them. Devices are looked up by the name that the driver reports. The number of multiprocessors must fit too, since a
partition of a device (MIG, a partition of an MI300X) has the name of the whole. Devices that aren't in the table have
no known peak.

Where a vendor published what its own matmul library reaches, that is the roof for matrices instead of the peak: on an
MI300X the two differ by a factor of two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from .regex import regex

TABLE_VERSION = 2

_GIB = 2**30
_FORMATS = ("fp64", "fp64_matrix", "fp32", "fp32_matrix", "fp16", "bf16", "fp8", "int8")
"""`_matrix`: on tensor or matrix cores; for fp32 on NVIDIA and Intel that is TF32. The last four always run there."""


@dataclass(frozen=True)
class DevicePeaks:
    """The peaks of one device.

    Args:
        name: Pattern of the full name, without the vendor's name.
        multiprocessors: How many it has; None: not checked.
        bandwidth: Bytes per second of its memory.
        flop_per_s: Peak by number format; missing formats are unknown or emulated.
        source: The vendor's document.
        largest_memory: In bytes, if one name stands for several sizes that differ in bandwidth.
        achievable: Operations per second that the vendor measured with its own library, by number format.
    """

    name: str
    multiprocessors: int | None
    bandwidth: float
    flop_per_s: Mapping[str, float]
    source: str
    largest_memory: int | None = None
    achievable: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_tf32(self) -> bool:
        """Whether its matrix units run floats as TF32; AMD's run them in full precision."""
        return not re.match(r"MI\d|gfx", self.name)

    def roof(self, number_format: str) -> float | None:
        """The highest rate to expect in a format: what the vendor measured, else the peak; None if neither is known."""
        return self.achievable.get(number_format, self.flop_per_s.get(number_format))


def _row(
    name: str,
    multiprocessors: int | None,
    gb_per_s: float,
    tera: str,
    source: str,
    largest_gib: int | None = None,
    achievable: Mapping[str, float] = MappingProxyType({}),
) -> DevicePeaks:
    """`tera`: 10^12 operations per second for each of _FORMATS, "-" where the vendor gives none."""
    cells = zip(_FORMATS, tera.split(), strict=True)
    peaks = {key: float(round(float(text) * 1e12)) for key, text in cells if text != "-"}
    largest = None if largest_gib is None else largest_gib * _GIB
    bandwidth = float(round(gb_per_s * 1e9))
    return DevicePeaks(name, multiprocessors, bandwidth, peaks, source, largest, achievable)


_A100 = "9.7 19.5 19.5 156 312 312 - 624"
_H100 = "33.5 66.9 66.9 494.7 989.4 989.4 1978.9 1978.9"
_MI300X = "81.7 163.4 163.4 163.4 1307.4 1307.4 2614.9 2614.9"
_MI300X_MEASURED = {"fp16": 654e12, "bf16": 708e12, "fp8": 1273e12}
"""AMD's "max-achievable FLOPs" of hipBLASLt, in "Measuring Max-Achievable FLOPs, Part 2"
(rocm.blogs.amd.com/software-tools-optimization/measuring-max-achievable-flops-part2). NVIDIA
publishes no such number."""

PEAKS = (
    # name, multiprocessors, GB/s, then fp64 fp64_matrix fp32 fp32_matrix fp16 bf16 fp8 int8 in 10^12/s
    _row(r"P100-SXM2-16GB", 56, 732, "5.3 - 10.6 - 21.2 - - -", "NVIDIA Tesla P100 datasheet"),
    _row(r"P100-PCIE-16GB", 56, 732, "4.7 - 9.3 - 18.7 - - -", "NVIDIA Tesla P100 datasheet"),
    _row(r"GP100", 56, 717, "5.2 - 10.3 - 20.7 - - -", "NVIDIA Quadro GP100 datasheet"),
    _row(r"V100-(?:SXM[23]|DGXS)-\d+GB", 80, 900, "7.8 - 15.7 - 125 - - -", "NVIDIA V100 and DGX Station datasheets"),
    _row(r"V100-PCIE-\d+GB", 80, 900, "7.0 - 14.0 - 112 - - -", "NVIDIA V100 datasheet"),
    _row(r"V100S-PCIE-32GB", 80, 1134, "8.2 - 16.4 - 130 - - -", "NVIDIA V100 datasheet"),
    _row(r"T4", 40, 320, "- - 8.1 - 65 - - 130", "NVIDIA T4 datasheet"),
    _row(r"A100-(?:SXM4|PCIE|PCIe)-40GB", 108, 1555, _A100, "NVIDIA A100 datasheet, 40 GB"),
    _row(r"A100-PG509-\d+", 108, 1555, _A100, "NVIDIA A100 datasheet, 40 GB: PG509 is its SXM board", largest_gib=41),
    _row(r"A[18]00 80GB PCIe", 108, 1935, _A100, "NVIDIA A100 and A800 datasheets, PCIe 80 GB"),
    _row(r"A[18]00-SXM\d?-80GB", 108, 2039, _A100, "NVIDIA A100 and A800 datasheets, SXM 80 GB"),
    _row(r"A30", 56, 933, "5.2 10.3 10.3 82 165 165 - 330", "NVIDIA A30 datasheet"),
    _row(r"A40", 84, 696, "- - 37.4 74.8 149.7 149.7 - 299.3", "NVIDIA A40 datasheet"),
    _row(r"A10", 72, 600, "- - 31.2 62.5 125 125 - 250", "NVIDIA A10 datasheet"),
    _row(r"A2", 10, 200, "- - 4.5 9 18 18 - 36", "NVIDIA A2 datasheet"),
    _row(r"RTX A6000", 84, 768, "- - 38.7 77.4 154.8 154.8 - 309.7", "NVIDIA RTX A6000 datasheet, GA102 whitepaper"),
    _row(r"RTX A5000", 64, 768, "- - 27.8 55.6 111.1 111.1 - 222.2", "NVIDIA RTX A5000 datasheet, GA102 whitepaper"),
    _row(r"H[18]00 PCIe", 114, 2039, "25.6 51.2 51.2 378 756 756 1513 1513", "NVIDIA H100 datasheet, PCIe"),
    _row(r"H100 80GB HBM3", 132, 3352, _H100, "NVIDIA H100 architecture whitepaper, SXM5"),
    _row(r"H100 NVL", 132, 3938, "30 60 60 417.5 835.5 835.5 1670.5 1670.5", "NVIDIA H100 datasheet, NVL"),
    _row(r"H800", 132, 3352, "1 1 66.9 494.7 989.4 989.4 1978.9 1978.9", "NVIDIA H800 datasheet, SXM"),
    _row(r"H20", 78, 4000, "1 1 44 74 148 148 296 296", "NVIDIA H20 datasheet"),
    _row(r"H200", 132, 4800, _H100, "NVIDIA H200 datasheet, SXM"),
    _row(r"H200 NVL", 132, 4800, "30 60 60 417.5 835.5 835.5 1670.5 1670.5", "NVIDIA H200 datasheet, NVL"),
    _row(r"GH200 480GB", 132, 4000, _H100, "NVIDIA GH200 datasheet, HBM3"),
    _row(r"GH200 144G HBM3e", 132, 4900, _H100, "NVIDIA GH200 datasheet, HBM3e"),
    _row(r"L4", 58, 300, "- - 30.3 60 121 121 242.5 242.5", "NVIDIA L4 datasheet"),
    _row(r"L40", 142, 864, "- - 90.5 90.5 181 181 362 362", "NVIDIA L40 datasheet"),
    _row(r"L40S", 142, 864, "- - 91.6 183 362 362 733 733", "NVIDIA L40S datasheet"),
    _row(r"B200", 148, 8000, "37 37 75 1100 2250 2250 4500 4500", "NVIDIA Blackwell technical brief, HGX B200"),
    _row(r"GB200", None, 8000, "40 40 80 1250 2500 2500 5000 5000", "NVIDIA Blackwell technical brief, GB200"),
    _row(r"B300 SXM6 AC", 148, 8000, "1.25 1.25 75 1125 2250 2250 4500 -", "NVIDIA HGX B300 specifications"),
    _row(r"GB300", None, 8000, "1.3 1.3 80 1250 2500 2500 5000 -", "NVIDIA GB300 NVL72 specifications"),
    # GeForce runs matrix products that accumulate in fp32, as PyTorch's do, at half rate
    _row(r"GeForce RTX 2080 Ti", 68, 616, "- - 13.4 - 53.8 - - 215.2", "NVIDIA Turing whitepaper"),
    _row(r"GeForce RTX 3080", 68, 760, "- - 29.8 29.8 59.5 59.5 - 238", "NVIDIA GA102 whitepaper", largest_gib=10),
    _row(r"GeForce RTX 3090", 82, 936, "- - 35.6 35.6 71 71 - 284", "NVIDIA GA102 whitepaper"),
    _row(r"GeForce RTX 4080", 76, 716.8, "- - 48.7 48.7 97.5 97.5 194.9 389.9", "NVIDIA Ada whitepaper"),
    _row(r"GeForce RTX 4090", 128, 1008, "- - 82.6 82.6 165.2 165.2 330.3 660.6", "NVIDIA Ada whitepaper"),
    _row(r"RTX 6000 Ada Generation", 142, 960, "- - 91.1 182.1 364.2 364.2 728.5 728.5", "NVIDIA Ada whitepaper"),
    _row(r"GeForce RTX 5080", 84, 960, "- - 56.3 56.3 112.6 112.6 225.1 450.2", "NVIDIA RTX Blackwell whitepaper"),
    _row(r"GeForce RTX 5090", 170, 1792, "- - 104.8 104.8 209.5 209.5 419 838", "NVIDIA RTX Blackwell whitepaper"),
    _row(r"MI100", 120, 1228.8, "11.5 - 23.1 46.1 184.6 92.3 - 184.6", "AMD Instinct MI100 brochure"),
    _row(r"MI210", 104, 1638.4, "22.6 45.3 22.6 45.3 181 181 - 181", "AMD Instinct MI210 brochure"),
    # one of the two dies of a package is one device
    _row(r"MI250", 104, 1638.4, "22.6 45.3 22.6 45.3 181 181 - 181", "AMD Instinct MI250 brochure, half a package"),
    _row(r"MI250X.*", 110, 1638.4, "23.9 47.9 23.9 47.9 191.5 191.5 - 191.5", "AMD MI250X brochure, half a package"),
    _row(r"MI300A", 228, 5300, "61.3 122.6 122.6 122.6 980.6 980.6 1961.2 1961.2", "AMD Instinct MI300A datasheet"),
    _row(r"MI300X(?: VF)?", 304, 5300, _MI300X, "AMD Instinct MI300X datasheet", achievable=_MI300X_MEASURED),
    _row(r"MI325X(?: VF)?", 304, 6000, _MI300X, "AMD Instinct MI325X datasheet"),
    _row(r"MI350X(?: VF)?", 256, 8000, "72.1 72.1 144.2 144.2 2306.9 2306.9 4613.8 4613.8", "AMD MI350X datasheet"),
    _row(r"MI355X(?: VF)?", 256, 8000, "78.6 78.6 157.3 157.3 2516.6 2516.6 5033.2 5033.2", "AMD MI355X datasheet"),
    # PyTorch's device is one stack of the package, with half of the memory, unless the driver joins them
    _row(
        r"Data Center GPU Max 1550", None, 1638.4, "26.2 - 26.2 209.7 419.4 419.4 - 838.9",
        "Intel Data Center GPU Max technical overview, one stack", largest_gib=64,
    ),
    _row(
        r"Data Center GPU Max 1550", None, 3276.8, "52.4 - 52.4 419.4 838.9 838.9 - 1677.7",
        "Intel Data Center GPU Max technical overview", largest_gib=128,
    ),
)  # fmt: skip
"""The first row that fits a device is used."""

_MAKER = regex(r"^(?:NVIDIA|Tesla|Quadro|AMD|Instinct|Intel\(R\)|\s)+")


def device_peaks(name: str, multiprocessors: int | None = None, memory: int | None = None) -> DevicePeaks | None:
    """Return the peaks of a device by the name that its driver reports, or None.

    Args:
        name: As in the trace's deviceProperties.
        multiprocessors: Number of NVIDIA's SMs or AMD's CUs; None if the trace doesn't say.
        memory: Bytes of its memory, likewise.
    """
    bare = _MAKER.sub("", name).strip()
    return next((row for row in PEAKS if _fits(row, bare, multiprocessors, memory)), None)


_PRODUCTS = {
    "gfx908": ("MI100",),
    "gfx90a": ("MI210", "MI250", "MI250X"),
    "gfx942": ("MI300A", "MI300X", "MI325X"),
    "gfx950": ("MI350X", "MI355X"),
    "sm100": ("B200", "GB200"),
    "sm103": ("B300 SXM6 AC", "GB300"),
}
"""Devices of the table by what compilers call their instruction set."""

_NEAR = 0.7
"""Products of an architecture share a roof, that of the slowest, if it has at least this part of the fastest one's
rates: an MI300A has 75 % of an MI300X. What is below half of that is below half of any product's roof. Hopper (sm90)
has no roof: an H20 multiplies matrices at 15 % of an H100's rate. MI308X, for which no datasheet is public, is left out
of gfx942."""


@lru_cache(16)
def architecture_peaks(architecture: str) -> DevicePeaks | None:
    """Return the lowest rates among the products of an architecture; None if it is unknown, or they differ too much."""
    rows = [row for name in _PRODUCTS.get(architecture, ()) if (row := device_peaks(name))]
    bandwidths = [row.bandwidth for row in rows]
    if not rows or min(bandwidths) < _NEAR * max(bandwidths):
        return None
    lowest: dict[str, float] = {}
    for key in set.intersection(*(set(row.flop_per_s) for row in rows)):
        rates = [row.flop_per_s[key] for row in rows]
        if min(rates) >= _NEAR * max(rates):
            lowest[key] = min(*rates, *(row.achievable.get(key, max(rates)) for row in rows))
    fewest = min((row.multiprocessors for row in rows if row.multiprocessors), default=None)
    return DevicePeaks(architecture, fewest, min(bandwidths), lowest, "the slowest of its products")


_IN_NAMES = regex(r"(?:gfx|_ISA)(?P<gfx>9[0-9a-f]{2})(?![0-9a-f])|nvjet_(?P<sm>sm1\d\d)_")
"""Kernels that run on no other architecture: code objects of AMD, Tensile's kernels, cuBLAS's since Blackwell. Others
with an older architecture's name (sm80, volta) run on newer devices too, and show nothing."""


def architecture_of(kernel: str) -> str | None:
    """The only architecture that a kernel of this name runs on, such as gfx942; None if the name doesn't tell."""
    match = _IN_NAMES.search(kernel)
    if not match:
        return None
    return match["sm"] or f"gfx{match['gfx']}"


def _fits(row: DevicePeaks, name: str, multiprocessors: int | None, memory: int | None) -> bool:
    if not re.fullmatch(row.name, name):
        return False
    if None not in (row.multiprocessors, multiprocessors) and row.multiprocessors != multiprocessors:
        return False
    return row.largest_memory is None or (memory is not None and memory <= row.largest_memory)
