"""A made-up recording of a training on a GPU that has all that a view can show: what the views' bench repeats.

Steps with data loading, modules, forward and backward operators with shapes and arrows, kernels with launch properties
on two streams, copies, fills, collectives, memory of the device, waits, and Python calls.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.build import TraceBuilder  # the tests' own

STEPS, LAYERS = 3, 24
STEP_NS, LAYER_NS = 4_000_000, 60_000
MAIN, BACKWARD = 1, 2
COMPUTE, NETWORK = 7, 20
LAUNCH = {
    "grid": [8, 16, 1],
    "block": [256, 1, 1],
    "registers per thread": 96,
    "shared memory": 49152,
    "blocks per SM": 1.18,
    "warps per SM": 9.5,
    "est. achieved occupancy %": 38,
}
DEVICE = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_018_279_936,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
}


def shapes(layer: int) -> dict[str, object]:
    """Arguments of a product of matrices."""
    width = 256 * (1 + layer)
    return {
        "Input Dims": [[1024], [64, width], [width, 1024], [], []],
        "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"],
    }


class Training:
    """The events so far, and the numbers that the next ones get."""

    def __init__(self) -> None:
        self.trace = TraceBuilder(deviceProperties=[DEVICE], with_stack=1, record_shapes=1, profile_memory=1)
        self.correlation = self.call = self.allocated = 0
        self.device_at = 0

    def launched(
        self, name: str, at: int, dur: int, *, thread: int = MAIN, stream: int = COMPUTE, **args: object
    ) -> None:
        """A call, and the kernel that it launches."""
        self.correlation += 1
        self.trace.launch(at, 4_000, self.correlation, thread=thread)
        self.device_at = max(self.device_at, at + 10_000)
        self.trace.kernel(name, self.device_at, dur, self.correlation, stream=stream, **LAUNCH, **args)
        self.device_at += dur + 500

    def python(self, name: str, at: int, dur: int, parent: int | None, **args: object) -> int:
        """A Python call, numbered."""
        self.call += 1
        above = {} if parent is None else {"Python parent id": parent}
        self.trace.python(name, at, dur, **{"Python id": self.call, **above, **args})
        return self.call

    def memory(self, size: int, at: int, address: int, thread: int) -> None:
        """Device memory that is taken, or released if negative."""
        self.allocated += size
        totals = {"Total Allocated": self.allocated, "Total Reserved": 1 << 30}
        self.trace.memory(size, at, thread=thread, address=address, **{"Device Type": 1, "Device Id": 0, **totals})

    def forward(self, layer: int, at: int, above: int) -> None:
        """One layer's way forward."""
        module = {"Python module id": layer}
        inside = self.python(f"nn.Module: Linear_{layer}", at, LAYER_NS - 2_000, above, **module)
        self.python("torch/nn/modules/linear.py(124): forward", at + 500, LAYER_NS - 4_000, inside)
        number = {"Sequence number": layer, "Fwd thread id": 0}
        self.trace.op("aten::linear", at + 1_000, LAYER_NS - 6_000, **shapes(layer), **number)
        self.trace.op("aten::addmm", at + 3_000, LAYER_NS - 12_000, **shapes(layer), **number)
        self.memory(262_144, at + 5_000, 1 + layer, MAIN)
        self.launched(f"sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x{64 * (1 + layer % 3)}", at + 10_000, 30_000)
        self.launched("void at::native::vectorized_elementwise_kernel<4, AddFunctor>", at + 25_000, 8_000)

    def backward(self, layer: int, at: int) -> None:
        """One layer's way back."""
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        number = {"Sequence number": layer, "Fwd thread id": 1}
        self.trace.op(name, at, LAYER_NS - 2_000, thread=BACKWARD, **number)
        self.trace.op("AddmmBackward0", at + 1_000, LAYER_NS - 6_000, thread=BACKWARD, **number)
        self.trace.op("aten::mm", at + 3_000, LAYER_NS - 12_000, thread=BACKWARD, **shapes(layer))
        self.launched("nvjet_hsh_128x128_64x5_2x1_v_bz_NTN", at + 8_000, 28_000, thread=BACKWARD)
        self.launched("nvjet_hsh_64x64_64x8_1x1_h_bz_TNN", at + 20_000, 26_000, thread=BACKWARD)
        self.memory(-262_144, at + 40_000, 1 + layer, BACKWARD)
        if layer % 6 == 0:
            self.trace.op("record_param_comms", at + 48_000, 5_000, thread=BACKWARD)
            what = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1 << 20, "Group size": 8}
            self.launched(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 49_000, 90_000, thread=BACKWARD, stream=NETWORK, **what
            )

    def step(self, number: int, at: int) -> None:
        """One step."""
        self.trace.step(number, at, STEP_NS - 1_000)
        loop = self.python("train.py(10): train", at, STEP_NS - 2_000, None)
        self.trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1_000, 90_000)
        self.correlation += 1
        self.trace.op("aten::copy_", at + 100_000, 20_000).launch(
            at + 105_000, 8_000, self.correlation, name="cudaMemcpyAsync"
        )
        self.trace.memcpy(at + 110_000, 40_000, self.correlation, bytes=262_144)
        model = self.python(
            "nn.Module: Sequential_0", at + 150_000, LAYERS * LAYER_NS, loop, **{"Python module id": 99}
        )
        for layer in range(LAYERS):
            self.forward(layer, at + 150_000 + layer * LAYER_NS, model)
        turned = at + 160_000 + LAYERS * LAYER_NS
        for layer in reversed(range(LAYERS)):
            self.backward(layer, turned + (LAYERS - layer) * LAYER_NS)
        ended = turned + (LAYERS + 1) * LAYER_NS
        self.trace.annotation("Optimizer.step#AdamW.step", ended, 200_000).op(
            "aten::_foreach_add_", ended + 5_000, 90_000
        )
        self.launched("void at::native::multi_tensor_apply_kernel", ended + 10_000, 70_000)
        self.correlation += 1
        self.trace.op("aten::item", ended + 210_000, 400_000)
        self.trace.launch(ended + 220_000, 380_000, self.correlation, name="cudaStreamSynchronize")


def write_recording(path: Path) -> None:
    """Write it packed."""
    training = Training()
    for number in range(STEPS):
        training.step(number, number * STEP_NS)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(training.trace.text())
