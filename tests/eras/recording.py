"""The one recording that every writer writes: three training steps of one rank, in no writer's spelling.

Times are whole microseconds since the recording began, so that torch up to 2.3 can write them too. All steps are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

MAIN, BACKWARD = 4242, 4243  # threads; the process has the number of its main thread
STREAM, COLLECTIVES = 7, 20  # streams
BEGAN_US = 1_700_000_123_456_789  # Unix time
STEPS, STEP_US = (1, 2, 3), 1000
LENGTH_US = STEP_US * len(STEPS) + 200
RECTANGLE, SQUARE = "[[4, 8], [4, 8], []]", "[[8, 8], [8, 8], []]"


@dataclass(frozen=True)
class Row:
    """One event.

    Args:
        kind: What it is: op, annotation, runtime, kernel, memcpy, memset, memory, python, sync, overhead, gpu_annotation.
        at, dur: When, in microseconds.
        thread: Of host rows.
        stream: Of device rows.
        op: Name of the operator of the same step that launched it, if one did.
        nth: Number of an operator, or of a launch and its device rows (their correlation).
        args: What else is known of it.
    """

    kind: str
    name: str
    at: int
    dur: int
    thread: int = MAIN
    stream: int = STREAM
    op: str = ""
    nth: int = 0
    step: int = 0
    args: dict[str, Any] = field(default_factory=dict)


def op(name: str, at: int, dur: int, shapes: str = "[]", *, thread: int = MAIN, sequence: int = -1) -> Row:
    args = {"shapes": shapes} | ({"sequence": sequence} if sequence >= 0 else {})
    return Row("op", name, at, dur, thread, args=args)


def launch(name: str, at: int, dur: int, nth: int, by: str = "", *, thread: int = MAIN) -> Row:
    return Row("runtime", name, at, dur, thread, op=by, nth=nth)


def kernel(name: str, at: int, dur: int, nth: int, by: str = "", *, stream: int = STREAM, **args: Any) -> Row:
    usual = {"grid": [2, 1, 1], "block": [128, 1, 1], "registers": 32, "shared": 0, "blocks": 0.5, "occupancy": 25}
    return Row("kernel", name, at, dur, stream=stream, op=by, nth=nth, args=usual | args)


def memory(at: int, size: int, *, on_device: bool = False, thread: int = MAIN) -> Row:
    args = {"bytes": size, "on_device": on_device, "address": 0x7F00_0000_1000 + on_device}
    return Row("memory", "[memory]", at, 0, thread, args=args)


COLLECTIVE = {
    "Collective name": "allreduce",
    "In msg nelems": 144,
    "Out msg nelems": 144,
    "Group size": 2,
    "dtype": "Float",
    "In split size": "[]",
    "Out split size": "[]",
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1]",
    "Global rank start": 0,
    "Global rank stride": 1,
    "Rank": 0,
    "Seq": 1,
}
GEMM = "ampere_sgemm_32x32_sliced1x4_tn"
FUSED = "triton_poi_fused_relu_0"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
APPLY = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def _forward(k: int) -> Iterator[Row]:
    yield Row("annotation", f"ProfilerStep#{k}", 0, 990)
    yield Row("python", "train.py(10): step", 5, 980, args={"id": 2 * k})
    yield Row("annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 40)
    yield op("aten::to", 55, 40, SQUARE)
    yield op("aten::copy_", 60, 30, SQUARE)
    yield memory(62, 256)
    yield launch("cudaMemcpyAsync", 65, 15, 1, "aten::copy_")
    yield Row("memcpy", "Memcpy HtoD (Pageable -> Device)", 70, 20, op="aten::copy_", nth=1, args={"bytes": 256})
    yield memory(97, -256)
    yield Row("python", "nn.Module: Linear_0", 98, 104, args={"id": 2 * k + 1, "parent": 2 * k, "module": 0})
    yield op("aten::linear", 100, 100, "[[4, 8], [16, 8], [16]]", sequence=10 * k)
    yield op("aten::t", 105, 10, "[[16, 8]]")
    yield op("aten::addmm", 120, 60, "[[16], [4, 8], [8, 16], [], []]", sequence=10 * k)
    yield memory(122, 512, on_device=True)
    yield launch("cudaLaunchKernel", 130, 20, 2, "aten::addmm")
    yield kernel(GEMM, 160, 100, 2, "aten::addmm", registers=80, shared=16384, limiter="REGS")
    yield op("aten::copy_", 210, 20, RECTANGLE)
    yield op("GraphReplay", 295, 40)
    yield launch("cudaGraphLaunch", 300, 30, 3, "GraphReplay")
    yield kernel(FUSED, 320, 40, 3, "GraphReplay", node=1)
    yield kernel(FUSED, 365, 45, 3, "GraphReplay", node=2)
    yield Row("memset", "Memset (Device)", 412, 3, op="GraphReplay", nth=3, args={"bytes": 64, "node": 3})
    yield launch("cudaLaunchKernel", 350, 10, 4)
    yield kernel("custom_kernel(float*)", 440, 10, 4)


def _backward(k: int) -> Iterator[Row]:
    shapes = "[[4, 16]]"
    yield op("autograd::engine::evaluate_function: AddmmBackward0", 500, 130, shapes, thread=BACKWARD, sequence=10 * k)
    yield op("AddmmBackward0", 505, 120, shapes, thread=BACKWARD, sequence=10 * k)
    yield op("aten::mm", 510, 50, "[[16, 4], [4, 8]]", thread=BACKWARD)
    yield launch("cudaLaunchKernel", 520, 15, 5, "aten::mm", thread=BACKWARD)
    yield kernel(GEMM, 540, 80, 5, "aten::mm", registers=80, shared=16384, limiter="REGS")
    yield op("aten::zero_", 570, 40, "[[16, 8]]", thread=BACKWARD)
    yield launch("cudaMemsetAsync", 580, 10, 6, "aten::zero_", thread=BACKWARD)
    yield Row("memset", "Memset (Device)", 630, 5, op="aten::zero_", nth=6, args={"bytes": 512})
    yield op("c10d::allreduce_", 640, 50, "[[], [], [], [], []]", thread=BACKWARD)
    collective = op("record_param_comms", 645, 35, "[[144], [], [], [], [], [], [], []]", thread=BACKWARD)
    yield replace(collective, args=collective.args | {"collective": COLLECTIVE})
    yield launch("cudaLaunchKernelExC", 655, 15, 7, "record_param_comms", thread=BACKWARD)
    sizes = {"block": [288, 1, 1], "registers": 96, "blocks": 0.25, "occupancy": 10, "collective": COLLECTIVE}
    yield kernel(ALL_REDUCE, 680, 120, 7, "record_param_comms", stream=COLLECTIVES, **sizes)


def _rest(k: int) -> Iterator[Row]:
    yield Row("overhead", "Buffer Flush", 700, 2)
    yield launch("cudaStreamSynchronize", 820, 100, 8)
    yield Row("sync", "Stream Sync", 825, 90, nth=8)
    yield memory(922, -512, on_device=True)
    yield Row("annotation", "Optimizer.step#SGD.step", 930, 50)
    yield op("aten::add_", 935, 30, "[[16, 8], [16, 8], []]")
    yield launch("cudaLaunchKernel", 940, 20, 9, "aten::add_")
    yield kernel(APPLY, 965, 30, 9, "aten::add_", occupancy=75, limiter="WARPS")
    yield Row("gpu_annotation", f"ProfilerStep#{k}", 69, 927)


def recording() -> list[Row]:
    """All rows; operators and launches are numbered in the order of time."""
    rows = []
    for k in STEPS:
        for row in (*_forward(k), *_backward(k), *_rest(k)):
            at = row.at + 100 + STEP_US * (k - 1)
            rows.append(replace(row, at=at, nth=row.nth + 100 * k if row.nth else 0, step=k))
    numbered = (replace(row, nth=501 + i) if row.kind in ("op", "annotation") else row for i, row in enumerate(rows))
    return list(numbered)


def op_numbers(rows: list[Row]) -> dict[tuple[int, str], int]:
    """(step, name) → number of the operator; of several with one name the first."""
    numbers: dict[tuple[int, str], int] = {}
    for row in rows:
        if row.kind == "op":
            numbers.setdefault((row.step, row.name), row.nth)
    return numbers
