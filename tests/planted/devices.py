"""What devices can do, by their data sheets, and how long operators take at a share of that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Device:
    """A GPU as `deviceProperties` names it; TFLOP/s dense in bfloat16 and float32, TB/s of memory."""

    name: str
    major: int
    minor: int
    processors: int
    memory: int
    matrix_tflops: float
    float_tflops: float
    memory_tb_s: float
    sm: str

    def properties(self) -> dict[str, Any]:
        """As Kineto writes them."""
        return {
            "id": 0, "name": self.name, "totalGlobalMem": self.memory, "computeMajor": self.major,
            "computeMinor": self.minor, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
            "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": self.processors,
        }  # fmt: skip

    def matrix_ns(self, flops: float, share: float) -> int:
        """Duration of so many operations in bfloat16 at a share of the peak."""
        return round(flops / (self.matrix_tflops * share) / 1e3)

    def memory_ns(self, moved: float, share: float) -> int:
        """Duration of moving so many bytes at a share of the bandwidth."""
        return round(moved / (self.memory_tb_s * share) / 1e3)


A100 = Device("NVIDIA A100-SXM4-80GB", 8, 0, 108, 85_031_714_816, 312, 19.5, 2.039, "sm80")
H100 = Device("NVIDIA H100 80GB HBM3", 9, 0, 132, 85_018_279_936, 989, 67, 3.35, "sm90")
DEVICES = (A100, H100)


def matmul_flops(m: int, n: int, k: int, batch: int = 1) -> float:
    """Operations of a (batched) matmul."""
    return 2.0 * m * n * k * batch


def attention_flops(batch: int, heads: int, length: int, size: int) -> float:
    """Operations of the forward pass of attention that isn't causal."""
    return 4.0 * batch * heads * length * length * size


def convolution_flops(data: tuple[int, int, int, int], weight: tuple[int, int, int, int]) -> float:
    """Operations of a convolution with stride 1 that keeps the picture's size."""
    n, _, height, width = data
    return 2.0 * n * height * width * math.prod(weight)
