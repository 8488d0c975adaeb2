"""A training on a GPU in which no view is empty: what the samples, recorded without a GPU, can't show.

Three steps of 2 ms. Each copies a batch, multiplies on stream 7, reduces on stream 20 next to it, replays a captured
graph, holds memory and waits for the device; the second loads data for longer, and the third has a slow kernel.
"""

from __future__ import annotations

from .build import TraceBuilder

STEP_NS = 2_000_000
STEPS = 3
GRAPH_ID = 5
GPU = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 80 << 30,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
    "warpSize": 32,
}
MATRIX = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def gpu_sample() -> TraceBuilder:
    """The recording: a capture, then the steps."""
    trace = TraceBuilder(deviceProperties=[GPU], distributedInfo={"rank": 0, "world_size": 2, "backend": "nccl"})
    trace.window(0, 500_000 + STEPS * STEP_NS)
    _capture(trace, 50_000)
    for number in range(1, STEPS + 1):
        _step(trace, number, 500_000 + (number - 1) * STEP_NS)
    return trace


def _capture(trace: TraceBuilder, at: int) -> None:
    """Launches between the begin and the end of a capture, which run nothing."""
    trace.module("Head_0", at, 200_000, number=1)
    trace.launch(at + 10_000, 2_000, 1, name="cudaStreamBeginCapture_v10000")
    for nth, name in enumerate(("aten::softmax", "aten::mul")):
        trace.op(name, at + 30_000 + 50_000 * nth, 40_000, **{"Input Dims": [[64, 1024]]})
        trace.launch(at + 40_000 + 50_000 * nth, 4_000, 2 + nth)
    trace.launch(at + 180_000, 2_000, 4, name="cudaStreamEndCapture_v10000")


def _step(trace: TraceBuilder, number: int, at: int) -> None:
    """One step; correlations and External ids count from 100 times its number."""
    first = 100 * number
    loading = 400_000 if number == 2 else 100_000
    trace.step(number, at, STEP_NS).python("train.py(10): train", at + 1_000, STEP_NS - 2_000)
    trace.annotation("execute_context_0(0)_generation_4(4)", at + 2_000, STEP_NS - 4_000)
    trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 5_000, loading)
    _forward(trace, number, at + loading + 10_000, slow=number == STEPS)
    _reduction(trace, first, at + loading + 600_000)
    _replay(trace, first, at + loading + 800_000)
    trace.annotation("Optimizer.step#SGD.step", at + 1_500_000, 200_000)
    trace.op("aten::item", at + 1_710_000, 230_000)
    trace.launch(at + 1_720_000, 200_000, first + 90, name="cudaDeviceSynchronize")
    for nth in range(2):
        counter = {"ph": "C", "pid": "GPU 0 Counters"}
        trace.event("", "Power (W)", at + 900_000 * nth, None, **counter, **{"": 250.5 + 100 * nth + number})
        trace.event("", "SM Clock (MHz)", at + 900_000 * nth, None, **counter, **{"": 1980 - 15 * number})


def _forward(trace: TraceBuilder, number: int, at: int, *, slow: bool) -> None:
    """A copy and two multiplications of a module on stream 7, and the memory that they take; the step gives 2 MiB back."""
    first = 100 * number
    trace.module("Linear_0", at, 500_000, number=0).python("model.py(20): forward", at + 5_000, 490_000)
    trace.op("aten::copy_", at + 10_000, 40_000, **{"External id": first + 1})
    trace.launch(at + 20_000, 20_000, first + 1, name="cudaMemcpyAsync")
    trace.memcpy(at + 30_000, 50_000, first + 1, bytes=1 << 20, **{"External id": first + 1})
    for nth, length in ((0, 150_000), (1, 600_000 if slow else 150_000)):
        begin, correlation = at + 100_000 + 120_000 * nth, first + 2 + nth
        ids = {"External id": correlation}
        trace.op("aten::mm", begin, 100_000, **MATRIX, **ids, **{"Sequence number": first + nth})
        trace.launch(begin + 20_000, 10_000, correlation)
        _memory(trace, 2, begin + 10_000, address=first + nth, total=2 * number + 2 * nth)
        occupancy = {"blocks per SM": 0.48, "est. achieved occupancy %": 12, "grid": [8, 8, 1], "block": [256, 1, 1]}
        trace.kernel(GEMM, at + 150_000 + 180_000 * nth, length, correlation, **ids, **occupancy)
    _memory(trace, -2, at + 480_000, address=first, total=2 * number)


def _memory(trace: TraceBuilder, size: int, at: int, *, address: int, total: int) -> None:
    """An allocation or, if negative, a release on the device, and what is allocated after it; sizes in MiB."""
    totals = {"Total Allocated": total << 20, "Total Reserved": 64 << 20}
    trace.memory(size * 2**20, at, address=address, **{"Device Type": 1, "Device Id": 0}, **totals)


def _reduction(trace: TraceBuilder, first: int, at: int) -> None:
    """An all-reduce on stream 20, partly under the multiplications."""
    sizes = {"In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "Group size": 2, "dtype": "Float"}
    group = {"Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": first}
    trace.op("c10d::allreduce_", at - 10_000, 60_000).op("record_param_comms", at, 40_000, **group, **sizes)
    trace.launch(at + 10_000, 10_000, first + 10)
    trace.kernel(ALL_REDUCE, at + 20_000, 300_000, first + 10, stream=20, **group, **sizes)


def _replay(trace: TraceBuilder, first: int, at: int) -> None:
    """A launch of the captured graph: the kernels of its two nodes, one of them marked."""
    trace.launch(at, 15_000, first + 20, name="cudaGraphLaunch_v10000")
    for node, kernel in enumerate(("softmax_warp_forward", "vectorized_elementwise_kernel")):
        numbers = {"graph id": GRAPH_ID, "graph node id": GRAPH_ID << 32 | node}
        trace.kernel(kernel, at + 300_000 + 45_000 * node, 40_000, first + 20, **numbers)
    trace.marked("head")
