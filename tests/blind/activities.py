"""What else a job does: hooks for the points of a step. Each stands for a piece of a user's program."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from . import devices as dv
from .machine import Kernel, Node
from .training import BF16, Hook, Place, copy_in, item, layer, linear, pointwise

Length = Callable[[int, int], float]  # of a rank and a step (from 0), in nanoseconds


def always(length: float) -> Length:
    """The same in each step of each rank."""
    return lambda rank, step: length


def in_steps(length: float, steps: Collection[int], usual: float = 0) -> Length:
    """So long in these steps, and as usual in the others."""
    return lambda rank, step: length if step in steps else usual


def on_rank(slow_rank: int, length: Length, usual: float = 0) -> Length:
    """So long on one rank, and as usual on the others."""
    return lambda rank, step: length(rank, step) if rank == slow_rank else usual


def only_on(slow_rank: int, hook: Hook, other: Hook | None = None) -> Hook:
    """A hook of one rank."""

    def run_there(place: Place) -> None:
        chosen = hook if place.rank == slow_rank else other
        if chosen:
            chosen(place)

    return run_there


def only_in(steps: Collection[int], hook: Hook) -> Hook:
    """A hook of some steps."""
    return lambda place: hook(place) if place.step in steps else None


def times(count: int, hook: Hook) -> Hook:
    """A hook so many times."""

    def repeat(place: Place) -> None:
        for _ in range(count):
            hook(place)

    return repeat


@dataclass(frozen=True)
class Loader:
    """A DataLoader with workers. `production`: how long a worker takes for the batch of a step.

    A loader that `is_behind` has no batch ready when the recording begins, as one that is always late.
    """

    production: Length
    workers: int = 2
    prefetch: int = 2
    is_behind: bool = True

    def __call__(self, place: Place) -> None:
        """Take the next batch; workers begin another one."""
        batches: list[Node] = place.state.setdefault("batches", [])
        takes: list[Node] = place.state.setdefault("takes", [])
        ahead = self.workers * self.prefetch
        while len(batches) < place.step + ahead:
            batches.append(place.process.add(self._batch(place, len(batches), takes, ahead)))
        with place.host.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
            place.host.wait(batches[place.step])
            place.host.spend(25_000)
        takes.append(place.host.spend(0))

    def _batch(self, place: Place, number: int, takes: list[Node], ahead: int) -> Node:
        length = self.production(place.rank, number)
        if number < self.workers:  # these were begun before the recording
            length *= (number + 1) / self.workers if self.is_behind else 0
        elif number < ahead and not self.is_behind:
            length = 0
        after = (takes[number - ahead],) if number >= ahead else ()
        return Node(("worker", place.rank, number % self.workers), "", "", int(length), after=after)


def load_in_main(frame: str, length: Length) -> Hook:
    """A DataLoader without workers: the main thread makes the batch."""

    def load(place: Place) -> None:
        host = place.host
        with (
            host.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            host.range(frame, "python_function"),
        ):
            host.spend(length(place.rank, place.step))

    return load


def python(frame: str, length: Length, inner: str = "<built-in method encode of str object>") -> Hook:
    """A Python function that computes on the host for so long."""

    def work(place: Place) -> None:
        duration = length(place.rank, place.step)
        if duration:
            with place.host.range(frame, "python_function"):
                place.host.spend(duration * 0.1)
                with place.host.range(inner, "python_function"):
                    place.host.spend(duration * 0.9)

    return work


def collect_garbage(length: Length, caller: str) -> Hook:
    """Python collects garbage, in the middle of a function."""

    def collect(place: Place) -> None:
        duration = length(place.rank, place.step)
        if duration:
            with place.host.range(caller, "python_function"):
                place.host.spend(20_000)
                with place.host.range("Python GC", "python_function"):
                    place.host.spend(duration)

    return collect


def framed(frame: str, hook: Hook) -> Hook:
    """A hook inside a Python function."""

    def call(place: Place) -> None:
        with place.host.range(frame, "python_function"):
            hook(place)

    return call


def synchronize(place: Place) -> None:
    """torch.cuda.synchronize()."""
    place.host.synchronize("cudaDeviceSynchronize")


def nonzero(place: Place) -> None:
    """A mask whose result's size the host must know."""
    with place.host.operator("aten::nonzero", [(place.job.tokens,)], ["bool"]):
        place.launch(
            Kernel(
                "void at_cuda_detail::cub::DeviceReduceSingleTileKernel<at_cuda_detail::cub::DeviceReducePolicy<int> >(bool*, int*, int)",
                4_000,
                (8, 1, 1),
            )
        )
        place.host.copy("Memcpy DtoH (Device -> Pinned)", 8, 1)
        place.host.synchronize("cudaStreamSynchronize", stream=7)
        place.launch(
            Kernel(
                "void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::DeviceSelectPolicy<int> >(bool*, long*, int)",
                6_000,
                (8, 1, 1),
            )
        )


def tiny(operator: str, symbol: str, items: int = 4096) -> Hook:
    """An operator with a kernel that is shorter than its launch."""
    return lambda place: pointwise(place, operator, symbol, items)


def copy_to_device(count_bytes: int, *, is_pinned: bool) -> Hook:
    """A batch goes to the device."""

    def copy(place: Place) -> None:
        with place.host.operator("aten::to > aten::_to_copy", [(count_bytes,)], ["unsigned char"]):
            copy_in(place, count_bytes, is_pinned=is_pinned)

    return copy


def copy_to_host(count_bytes: int) -> Hook:
    """A tensor goes to pageable memory of the host, which waits for it: `.cpu()`."""

    def copy(place: Place) -> None:
        rate = place.job.device.link_rate * 0.12
        with place.host.operator("aten::to > aten::_to_copy > aten::copy_", [(count_bytes // 2,)], [BF16]):
            place.host.copy("Memcpy DtoH (Device -> Pageable)", count_bytes, rate, is_blocking=True)

    return copy


def copy_on_device(count_bytes: int) -> Hook:
    """A tensor is made contiguous: a copy within the device's memory."""

    def copy(place: Place) -> None:
        with place.host.operator("aten::contiguous > aten::clone > aten::copy_", [(count_bytes // 2,)], [BF16]):
            place.host.copy("Memcpy DtoD (Device -> Device)", count_bytes, place.job.device.memory_rate * 0.42)

    return copy


def cast(items: int) -> Hook:
    """Weights are converted to another number format, as autocast without a cache does."""

    def convert(place: Place) -> None:
        with place.host.operator("aten::to > aten::_to_copy > aten::copy_", [(items,), (items,)], [BF16, "float"]):
            place.launch(dv.elementwise(place.job.device, dv.COPY, items * 6))

    return convert


def allocate(count: int, length: int) -> Hook:
    """The allocator's cache is full: memory is freed, which waits for the device, and taken again."""

    def allocations(place: Place) -> None:
        with place.host.operator("aten::empty", [()], [BF16]):
            for _ in range(count):
                place.host.synchronize("cudaFree")
                place.host.call("cudaMalloc", length)

    return allocations


def compile_again(length: int, number: int) -> Hook:
    """torch.compile meets a new shape and compiles a frame once more."""

    def compile_frame(place: Place) -> None:
        host = place.host
        with host.range("_compile.compile_inner (dynamo_timed)"):
            host.spend(length * 0.1)
            with host.range("backend_compile (dynamo_timed)"), host.range("inductor_compile (dynamo_timed)"):
                host.spend(length * 0.9)
        with host.range(f"Torch-Compiled Region: 0/{number + place.step}"):
            pointwise(place, "aten::add", dv.ADD, 4096)

    return compile_frame


def save_checkpoint(frame: str, count_bytes: int, writing: int) -> Hook:
    """All parameters go to the host and into a file."""

    def save(place: Place) -> None:
        with place.host.range(frame, "python_function"):
            for _ in range(4):
                copy_to_host(count_bytes // 4)(place)
            with place.host.range("torch/serialization.py(943): save", "python_function"):
                place.host.spend(writing)

    return save


def evaluate(frame: str, passes: int) -> Hook:
    """Forward passes over a validation set."""

    def run_passes(place: Place) -> None:
        with place.host.range(frame, "python_function"):
            for _ in range(passes):
                for _ in range(place.job.layers):
                    layer(place)
            item(place)

    return run_passes


def poor_product(roof_frac: float) -> Hook:
    """A product whose kernel runs far below the device's roof."""

    def multiply(place: Place) -> None:
        t, h = place.job.tokens, place.job.hidden
        with place.host.operator("aten::bmm", [(1, t, h), (1, h, h)], [BF16] * 2):
            place.launch(dv.matmul(place.job.device, t, h, h, roof_frac=roof_frac))

    return multiply


def poor_elementwise(operator: str, roof_frac: float) -> Hook:
    """A kernel that reads memory in a poor order."""

    def strided(place: Place) -> None:
        items = place.job.tokens * place.job.hidden
        with place.host.operator(operator, [(items,)] * 2, [BF16] * 2):
            place.launch(
                dv.elementwise(
                    place.job.device,
                    dv.DIRECT_COPY.replace("direct_copy_kernel_cuda", "add_strided"),
                    items * 6,
                    roof_frac=roof_frac,
                )
            )

    return strided


def optimize_on_host(length: int, count_bytes: int) -> Hook:
    """The optimizer runs on the CPU: gradients go there, parameters come back."""

    def step(place: Place) -> None:
        with place.host.range("Optimizer.step#DeepSpeedCPUAdam.step"):
            copy_to_host(count_bytes)(place)
            with place.host.operator("aten::_fused_adamw_", [[(count_bytes // 4,)]] * 4, ["TensorList"] * 4):
                place.host.spend(length)
            copy_in(place, count_bytes)

    return step


def recompute(place: Place) -> None:
    """A layer's forward pass once more, for its gradients."""
    with place.host.operator(
        "autograd::engine::evaluate_function: CheckpointFunctionBackward > CheckpointFunctionBackward"
    ):
        layer(place)


def set_up(length: int) -> Hook:
    """What only the first step does: load kernels, take memory, create handles."""

    def prepare(place: Place) -> None:
        place.host.call("cuLibraryLoadData", length * 0.6)
        for _ in range(12):
            place.host.call("cudaMalloc", length * 0.025)
        with place.host.operator("aten::cudnn_init"):
            place.host.spend(length * 0.1)

    return prepare


def product(n: int, k: int) -> Hook:
    """One more product."""
    return lambda place: linear(place, place.job.tokens, n, k)
