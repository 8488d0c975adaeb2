"""Traces under test: generated ones with simple numbers, the samples, and real ones."""

from __future__ import annotations

from pathlib import Path

from support.build import TraceBuilder
from support.machine import US, Machine
from support.real_traces import FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]

GPU = {
    "id": 0,
    "name": "Made GPU",
    "totalGlobalMem": 34_084_028_416,
    "computeMajor": 8,
    "computeMinor": 0,
    "numSms": 108,
}
LAUNCH = {"blocks per SM": 0.5, "est. achieved occupancy %": 40, "grid": [54, 1, 1], "block": [128, 1, 1]}
OPERATORS = (
    ("aten::relu", "void at::native::vectorized_elementwise_kernel<4, at::native::relu_functor<float>>(int, float*)"),
    ("aten::addmm", "ampere_sgemm_32x32_sliced1x4_tn"),
    ("<img src=x onerror=alert(1)>", "void <script>alert(1)</script>(int)"),
)


def training(steps: int = 4, *, device: bool = True) -> str:
    """A trace of a training whose numbers are easy to check: step n has kernels of 10 n, 20 n and 30 n µs."""
    builder = TraceBuilder(**({"deviceProperties": [GPU]} if device else {}))
    for step in range(1, steps + 1):
        start = step * 1_000_000
        builder.step(step, start, 900_000)
        for i, (op, kernel) in enumerate(OPERATORS, 1):
            at, correlation = start + i * 100_000, step * 100 + i
            shape = [[32, 8 * step], [8]]
            builder.op(op, at, 50_000, **{"Input Dims": shape, "Input type": ["float", "float"]})
            if device:
                builder.launch(at + 1000, 5000, correlation)
                builder.kernel(kernel, at + 10_000, i * step * 10_000, correlation, **LAUNCH)
    return builder.text()


def labels(check_us: int) -> str:
    """A trace of five steps on the host, in which a function of the program checks labels for so long."""
    builder = TraceBuilder()
    for step in range(5):
        start = step * 40_000_000
        builder.step(step, start, 10_000_000 + check_us * US).op("aten::mm", start, 9_000_000)
        builder.python("data.py(44): check_labels", start + 9_500_000, check_us * US)
    return builder.text()


def lossy() -> str:
    """A trace of 250 launches into an idle device, the first 100 of which have no GPU event."""
    machine = Machine()
    machine.steps(lambda _: [(machine.kernel(40 * US), machine.work(60 * US)) for _ in range(50)])
    lost = [event for event in machine.builder.events if event["cat"] == "kernel"][:100]
    machine.builder.events = [event for event in machine.builder.events if event not in lost]
    return machine.builder.text()


def backwards() -> str:
    """A trace with an event that ends before it starts; health has its byte offset."""
    args = {
        "External id": 2**63 - 1,
        "Input Dims": [[32, 8], [8]],
        "Call stack": "train.py(7): step\n<img src=x onerror=alert(1)>",
        "Concrete Inputs": {f"input {i}": list(range(12)) for i in range(3)},
        "empty": "",
    }
    name = (
        "void <script>alert(1)</script>(at::native::vectorized_elementwise_kernel<4, at::native::relu_functor<float>>)"
    )
    return TraceBuilder().op("aten::add", 1000, 500).op(name, 2000, -5, **args).text()


def launches_only() -> str:
    """A trace of a program that calls the runtime, without any work of a device."""
    return TraceBuilder().op("aten::add", 1000, 50_000).launch(2000, 5000, 1).text()


def modules() -> str:
    """A trace with a Net that calls a Linear and a ReLU, from a Python program; the Linear launches a kernel of 60 µs."""
    builder = TraceBuilder().python("train.py(9): main", 0, 500_000)
    builder.module("Net_0", 10_000, 300_000).module("Linear_0", 20_000, 100_000).module("ReLU_0", 150_000, 100_000)
    builder.op("aten::linear", 30_000, 80_000).op("aten::relu", 160_000, 50_000)
    builder.launch(40_000, 5_000, 1).kernel("gemm", 100_000, 60_000, 1)
    return builder.launch(170_000, 5_000, 2).kernel("relu", 260_000, 40_000, 2).text()


def deep() -> str:
    """A trace of two threads: the first has operators 80 deep, the second one operator below them, late."""
    builder = TraceBuilder()
    for depth in range(80):
        builder.op(f"aten::level_{depth}", depth * 1000, 2_000_000 - depth * 2000)
    return builder.op("aten::far_below", 1_900_000, 5_000, thread=2).text()


def chain() -> str:
    """A trace in which main calls outer, that calls inner, and that calls two functions."""
    builder = TraceBuilder()
    for line, name in enumerate(("main", "outer", "inner")):
        builder.python(f"train.py({line}): {name}", 0, 500_000)
    return builder.python("train.py(7): load", 0, 300_000).python("train.py(8): step", 300_000, 150_000).text()


def matmuls() -> str:
    """A trace of two matmuls of different sizes and of another operator on an H100."""
    builder = TraceBuilder(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}])
    for number, (side, dur) in enumerate(((4096, 200_000), (64, 100_000))):
        shapes = {"Input Dims": [[side, side]] * 2, "Input type": ["c10::BFloat16"] * 2}
        builder.op("aten::mm", 100_000 * number, 50_000, **shapes).launch(100_000 * number + 10, 5, number + 1)
        builder.kernel("nvjet_tst_192x192", 1_000_000 * (number + 1), dur, number + 1)
    builder.op("aten::relu", 300_000, 50_000).launch(300_010, 5, 3)
    return builder.kernel("relu", 3_000_000, 70_000, 3).text()


def without_flops() -> str:
    """A trace of a matmul and of an elementwise operator with recorded shapes on an H100."""
    builder = TraceBuilder(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}])
    for number, (op, shapes, dur) in enumerate(
        (("aten::mm", [[4096, 4096]] * 2, 200_000), ("aten::relu", [[4096, 4096]], 70_000))
    ):
        types = ["c10::BFloat16"] * len(shapes)
        builder.op(op, 100_000 * number, 50_000, **{"Input Dims": shapes, "Input type": types})
        builder.launch(100_000 * number + 10, 5, number + 1).kernel(op, 1_000_000 * (number + 1), dur, number + 1)
    return builder.text()


def ranges() -> str:
    """A trace of two named ranges; in the longer one the device works for 300 µs and waits for 100 µs in between."""
    builder = TraceBuilder().annotation("forward", 0, 900_000).annotation("loss", 1_000_000, 50_000)
    for number, (at, dur) in enumerate(((100_000, 100_000), (300_000, 200_000)), 1):
        builder.launch(10_000 * number, 5_000, number).kernel("gemm", at, dur, number)
    return builder.text()


def layers() -> str:
    """A trace of a model of six equal blocks."""
    builder = TraceBuilder().module("Model_0", 0, 1_000_000)
    for number in range(6):
        builder.module(f"Block_{number}", 100_000 * number + 10_000, 90_000, number=number)
    return builder.text()


def collectives(start: int) -> str:
    """A trace of a rank with two collectives of 40 µs, the first beginning at `start`, the second 0.2 ms later."""
    builder = TraceBuilder(deviceProperties=[GPU]).step(1, 0, 1_000_000)
    for i in range(2):
        at = start + i * 200_000
        builder.launch(at - 20_000, 5000, i + 1).kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, 40_000, i + 1)
    return builder.text()


def many_gaps() -> str:
    """A trace with 5,201 kernels, 10 µs from one to the next: the gap after each is 1 ns longer than the one before."""
    builder = TraceBuilder(deviceProperties=[GPU])
    for i in range(5_201):
        builder.kernel("gemm", 10_000 * i, 9_000 - i)
    return builder.text()


def memory() -> str:
    """A trace of 1 ms whose GPU has 1 GiB: 256 MiB from before, 512 MiB more from 0.2 to 0.6 ms, then no room for 1 GiB."""
    builder = TraceBuilder(deviceProperties=[{**GPU, "totalGlobalMem": 1 << 30}]).window(0, 1_000_000)
    mib, reserved = 1 << 20, 800 << 20

    def device(allocated: int) -> dict[str, int]:
        return {"Device Type": 1, "Device Id": 0, "Total Allocated": allocated, "Total Reserved": reserved}

    builder.op("aten::mm", 100_000, 300_000).memory(512 * mib, 200_000, **device(768 * mib))
    builder.op("aten::relu", 550_000, 100_000).memory(-512 * mib, 600_000, **device(256 * mib))
    builder.op("aten::bmm", 700_000, 100_000).out_of_memory(1 << 30, 750_000, **device(256 * mib))
    builder.kernel("gemm", 300_000, 100_000, **LAUNCH)
    return builder.memory(64, 300_000, address=2).memory(-64, 310_000, address=2).text()


def write(logdir: Path, path: str, text: str) -> None:
    (logdir / path).parent.mkdir(parents=True, exist_ok=True)
    (logdir / path).write_text(text)


def sources() -> list[Path]:
    """Folders of traces that others made: our own samples, and real traces."""
    real = FOLDER / "runs"
    parents = (REPOSITORY / "samples", real)
    return [path for parent in parents if parent.is_dir() for path in sorted(parent.iterdir()) if path.is_dir()]
