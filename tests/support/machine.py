"""A host and its device, simulated: what a program does becomes the trace that it would leave.

The host runs ahead of the device, as CUDA's does: a kernel begins when it was launched and all kernels before it are done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kinetoscope_tb.trace import Trace
from support.build import TraceBuilder

US, MS = 1_000, 1_000_000

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 80 << 30, "computeMajor": 8, "computeMinor": 0}
V100 = {"id": 0, "name": "Tesla V100-SXM2-32GB", "totalGlobalMem": 32 << 30, "computeMajor": 7, "computeMinor": 0}
P100 = {"id": 0, "name": "Tesla P100-PCIE-16GB", "totalGlobalMem": 16 << 30, "computeMajor": 6, "computeMinor": 0}

ON_TENSOR_CORES = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
LAUNCH_NS = 5 * US
START_NS = 4 * US  # from the call to the kernel's start on an idle device


class Machine:
    """A thread that launches, with autograd's, and one device with one stream; times in nanoseconds."""

    def __init__(self, device: dict[str, Any] | None = A100, **top: Any) -> None:
        self.builder = TraceBuilder(**({"deviceProperties": [device]} if device else {}), **top)
        self.now = 0
        self.free = 0  # when the device has done all that was launched
        self.calls = 0
        self.thread = 1

    def work(self, dur: int) -> None:
        """The host does something that leaves no trace."""
        self.now += dur

    def op(self, name: str, body: Callable[[], None], **args: Any) -> None:
        """The host is in an operator."""
        start = self.now
        body()
        self.builder.op(name, start, self.now - start, thread=self.thread, **args)

    def backward(self, body: Callable[[], None]) -> None:
        """Autograd's thread does something, and the main thread waits for it."""
        self.work(30 * US)
        self.thread = 2
        self.op("autograd::engine::evaluate_function: MmBackward0", body)
        self.thread = 1
        self.work(10 * US)

    def annotation(self, name: str, body: Callable[[], None]) -> None:
        """The host is in an annotated range."""
        start = self.now
        body()
        self.builder.annotation(name, start, self.now - start)

    def function(self, name: str, body: Callable[[], None]) -> None:
        """The host is in a Python function, of which stacks are recorded."""
        start = self.now
        body()
        self.builder.python(name, start, self.now - start)

    def kernel(
        self, dur: int, name: str = ON_TENSOR_CORES, op: str = "aten::mm", host: int = 10 * US, **args: Any
    ) -> None:
        """An operator, or without its name no operator, that takes the host so long and launches a kernel that takes
        the device so long.
        """
        keys = {"types": "Input type", "shapes": "Input Dims", "values": "Concrete Inputs"}
        kinds = {key: args.pop(name) for name, key in keys.items() if name in args}

        def launch() -> None:
            self._launched(dur, "kernel", name, host, **{"blocks per SM": 4.0, **args})

        if op:
            self.op(op, launch, **kinds)
        else:
            launch()

    def copy(self, dur: int, name: str = "Memcpy HtoD (Pageable -> Device)", **args: Any) -> None:
        """A copy that is launched like a kernel."""
        launch = "cudaMemcpyAsync"
        self.op("aten::copy_", lambda: self._launched(dur, "gpu_memcpy", name, 10 * US, launch, bytes=1 << 20, **args))

    def fill(self, dur: int) -> None:
        """Memory of the device is set to zero."""
        self.op("aten::zero_", lambda: self._launched(dur, "gpu_memset", "Memset (Device)", 10 * US, "cudaMemsetAsync"))

    def _launched(
        self, dur: int, kind: str, name: str, host: int, launch: str = "cudaLaunchKernel", **args: Any
    ) -> None:
        self.work(max(0, host - LAUNCH_NS))
        self.calls += 1
        self.builder.launch(self.now, LAUNCH_NS, self.calls, name=launch, thread=self.thread)
        start = max(self.now + START_NS, self.free + US)
        self.builder.device(kind, name, start, dur, self.calls, **args)
        self.now, self.free = self.now + LAUNCH_NS, start + dur

    def call(self, name: str, dur: int) -> None:
        """A runtime call that launches nothing."""
        self.builder.launch(self.now, dur, 0, name=name)
        self.now += dur

    def wait(self, name: str = "cudaStreamSynchronize", op: str = "aten::_local_scalar_dense") -> None:
        """The host waits until the device has done all."""
        self.op(op, lambda: self.call(name, max(self.free - self.now, 0) + 2 * US))

    def load(self, dur: int, loader: str = "_SingleProcessDataLoaderIter") -> None:
        """The host waits for a batch."""
        self.annotation(f"enumerate(DataLoader)#{loader}.__next__", lambda: self.work(dur))

    def steps(self, body: Callable[[int], None], count: int = 5, *, allocations: int = 0) -> Trace:
        """The trace of so many steps that each do `body(number)`, while another thread allocates."""
        for number in range(count):
            start = self.now
            body(number)
            self.builder.step(number, start, self.now - start)
            self.builder.allocations(allocations, start, self.now - start)
        return self.builder.build()
