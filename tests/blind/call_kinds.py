"""Causes that are calls of a library: pinned memory, mapped memory, reads of norms, zeros, operators of the host."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from . import activities as act
from . import devices as dv
from .cases import Case, healthy_ns, kind, large, place_name, small, some_steps
from .machine import Pace
from .training import BF16, Hook, Place, copy_in, layer, pointwise, train_step
from .words import EVERY_STEP


def pin(length: int) -> Hook:
    """A batch is pinned in the loop: memory of the host is taken and given back."""

    def pin_batch(place: Place) -> None:
        with place.host.operator("aten::pin_memory > aten::_pin_memory", [(place.job.tokens, 512)], ["float"]):
            place.host.call("cudaHostAlloc", length)
            place.host.spend(length * 0.1)
        place.host.call("cudaFreeHost", length * 0.3)

    return pin_batch


@kind
def pinning_in_loop(chance: Random) -> Case:
    """Each batch is pinned by the main thread."""
    job = large(chance)
    hook = pin(int(healthy_ns(job) * chance.uniform(0.3, 0.8)))
    return Case(
        "pinning", job.with_hook("start", hook), job, rest=(r"cudaHostAlloc|pin_memory",), truth="each batch is pinned in the loop",
    )  # fmt: skip


@kind
def mapped_memory(chance: Random) -> Case:
    """Memory is mapped and unmapped in each layer: expandable segments are on, and the device's memory is full."""
    job = small(chance, layers=4)
    length = chance.randint(150_000, 400_000)

    def remap(place: Place) -> None:
        with place.host.operator("aten::empty", [()], [BF16]):
            place.host.synchronize("cudaDeviceSynchronize")
            for name in ("cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess"):
                place.host.call(name, length // 4)

    return Case(
        "allocation", job.with_hook("layer", remap), job, wrong_remedies=(r"expandable_segments:True",),
        truth="memory is mapped in each layer, with expandable segments",
    )  # fmt: skip


@kind
def allocator_retries(chance: Random) -> Case:
    """In some steps, the allocator finds no free block, frees all it has, and takes memory again."""
    job = large(chance, steps=12)
    steps = some_steps(chance, job, 0.25)
    length = int(healthy_ns(job) * chance.uniform(0.08, 0.2))

    def retry(place: Place) -> None:
        with place.host.operator("aten::empty", [()], [BF16]):
            place.host.call("cudaMalloc", 90_000)
            for _ in range(8):
                place.host.synchronize("cudaFree")
            for _ in range(8):
                place.host.call("cudaMalloc", length)

    return Case(
        "allocation", job.with_hook("forward_end", act.only_in(steps, retry)), job, never=(EVERY_STEP,),
        truth=f"the allocator retries in {len(steps)} of {job.steps} steps",
    )  # fmt: skip


@kind
def norms_read_one_by_one(chance: Random) -> Case:
    """Gradients are clipped with `.item()` for each parameter, in a helper of the trainer."""
    job = small(chance, device=dv.H100, layers=3, steps=8, has_stacks=True, hidden=1536)
    frame, count = f"utils/clip.py({chance.randint(10, 90)}): global_norm", chance.randint(120, 250)
    norm = act.tiny("aten::linalg_vector_norm", dv.REDUCE, 60_000)

    def read(place: Place) -> None:
        for _ in range(count):
            norm(place)
            act.item(place)

    return Case(
        "synchronize", job.with_hook("optimizer", act.framed(frame, read)), job.with_hook("optimizer", act.times(count, norm)),
        rest=(place_name(frame) + r"|aten::item|_local_scalar_dense",), truth=f"a read for each parameter in {frame}",
    )  # fmt: skip


@kind
def gradients_zeroed(chance: Random) -> Case:
    """Large buffers are set to zero in each layer, by the device's own call."""
    job = large(chance)
    length = int(healthy_ns(job) * chance.uniform(0.25, 0.5) / job.layers)

    def zero(place: Place) -> None:
        with place.host.operator("aten::zeros > aten::zero_", [(place.job.tokens, place.job.hidden)], [BF16]):
            call = place.host.call("cudaMemsetAsync")
            args = {"bytes": int(length * place.job.device.memory_rate * 0.8)}
            place.host._enqueue(call, "Memset (Device)", "gpu_memset", length, 0, 7, (), args)

    return Case(
        "memsets", job.with_hook("layer", zero), job, truth="large buffers are set to zero in each layer"
    )  # fmt: skip


@kind
def operator_on_host(chance: Random) -> Case:
    """An operator runs on the CPU, on tensors that weren't moved to the device."""
    job = large(chance)
    operator = chance.choice(["aten::sort", "aten::_unique2", "aten::index_select"])
    length = healthy_ns(job) * chance.uniform(0.4, 1.2)

    def compute(place: Place) -> None:
        with place.host.operator(operator, [(place.job.tokens, 4096)], ["float"]):
            place.host.spend(length)

    return Case(
        "host_function", job.with_hook("start", compute), job, rest=(rf"{operator}\b",), truth=f"{operator} runs on the CPU",
    )  # fmt: skip


@kind
def host_loop_of_operators(chance: Random) -> Case:
    """A loop over the items of a tensor on the CPU: thousands of operators that launch nothing."""
    job = large(chance, device=dv.H100, steps=6, layers=2, hidden=2048, tokens=4096)
    operator, count = chance.choice(["aten::select", "aten::slice", "aten::unbind"]), chance.randint(2_500, 4_000)

    def loop(place: Place) -> None:
        for _ in range(count):
            with place.host.operator(operator, [(place.job.tokens,)], ["long int"]):
                pass

    return Case(
        "host_function", job.with_hook("start", loop), job, rest=(rf"{operator}\b",), truth=f"a loop of {operator} on the CPU",
    )  # fmt: skip


@kind
def function_gets_slower_behind_device(chance: Random) -> Case:
    """A Python function whose list grows: hidden at first, then longer than the device's work."""
    job = large(chance, has_stacks=True, steps=18, reads_loss=False)
    frame, usual = f"buffer.py({chance.randint(20, 200)}): append_history", healthy_ns(job)
    slope = chance.uniform(0.16, 0.22)
    return Case(
        "host_function", job.with_hook("end", act.python(frame, lambda rank, step: usual * slope * step)), job,
        rest=(place_name(frame), r"grow|longer|slower|trend|increas|from step"), never=(EVERY_STEP,), truth=f"{frame} takes longer from step to step, hidden at first",
    )  # fmt: skip


@kind
def inputs_of_some_steps_are_longer(chance: Random) -> Case:
    """Batches are padded to their longest sample: some steps compute several times as much."""
    job = large(chance, steps=16, tokens=4096)
    steps, factor = some_steps(chance, job, 0.2), chance.choice([4, 6])

    def step(place: Place) -> None:
        place.job = replace(job, tokens=job.tokens * factor) if place.step in steps else job
        train_step(place)

    return Case(
        "longer_inputs", replace(job, program=step), job, never=(EVERY_STEP,),
        truth=f"{len(steps)} of {job.steps} steps have longer inputs",
    )  # fmt: skip


@kind
def recomputation_in_hooks(chance: Random) -> Case:
    """Activation checkpointing without reentrance: layers run again in a hook of autograd."""
    job = large(chance, has_stacks=True)

    def again(place: Place) -> None:
        with (
            place.host.range("torch/utils/checkpoint.py(1124): unpack_hook", "python_function"),
            place.host.range("torch/utils/checkpoint.py(1492): recompute_fn", "python_function"),
        ):
            layer(place)

    return Case(
        "recomputation", job.with_hook("backward_layer", again), job, truth="activations are computed again in a hook"
    )


@kind
def copies_awaited_on_own_stream(chance: Random) -> Case:
    """Batches are copied on a stream of their own, from pinned memory, but each is needed at once."""
    job = large(chance)
    count = int(healthy_ns(job) * chance.uniform(0.3, 0.6) * job.device.link_rate * 0.85)

    def fetch(place: Place) -> None:
        with place.host.operator("aten::to > aten::_to_copy", [(count,)], ["unsigned char"]):
            copy = copy_in(place, count, stream=30)
        place.host.call("cudaStreamWaitEvent")
        kernel = dv.elementwise(place.job.device, dv.COPY, 4096)
        with place.host.operator("aten::add", [(2048,)], [BF16]):
            place.launch(kernel, after=[copy])

    return Case(
        "copies_not_hidden", job.with_hook("start", fetch), job, wrong_remedies=(r"from pinned memory",),
        truth="each step waits for its own copy, on another stream",
    )  # fmt: skip


@kind
def compiled_at_each_length(chance: Random) -> Case:
    """Each step has inputs of a new length, and compiles."""
    job = large(chance, steps=9)
    again = act.compile_again(int(healthy_ns(job) * chance.uniform(2, 4)), 1)
    return Case("recompilation", job.with_hook("start", again), job, truth="each step compiles again")


@kind
def short_kernels_behind_long(chance: Random) -> Case:
    """A loop of short kernels on the device's memory: each reads little, and they take a large part of the device's time."""
    job = large(chance, device=dv.H100, steps=8, tokens=4096, hidden=2048, layers=2, pace=Pace(300, 700, 300))
    loop = act.times(chance.randint(700, 1_000), lambda place: pointwise(place, "aten::where", dv.MULTIPLY, 2_000_000))
    return Case(
        "elementwise", job.with_hook("forward_end", loop), job, rest=(r"aten::where|where",), truth="hundreds of elementwise aten::where, one after the other",
    )  # fmt: skip


@kind
def function_in_backward(chance: Random) -> Case:
    """A hook on gradients computes on the host, on autograd's thread."""
    job = large(chance, has_stacks=True)
    frame = f"hooks.py({chance.randint(20, 200)}): record_gradient"
    length = healthy_ns(job) * chance.uniform(0.5, 1.2) / job.layers
    read_and_work = [act.item, act.python(frame, act.always(length))]

    def hook(place: Place) -> None:
        for work in read_and_work:
            work(place)

    return Case(
        "host_function", job.with_hook("backward_layer", hook), job, rest=(place_name(frame),), truth=f"{frame} in the backward pass",
    )  # fmt: skip


@kind
def workers_start_in_one_step(chance: Random) -> Case:
    """An epoch begins within the recording: the loader starts its workers again."""
    job = large(chance, has_stacks=True, steps=14)
    step, usual = chance.randrange(3, 12), healthy_ns(job)
    length = act.in_steps(usual * chance.uniform(6, 12), [step])

    def start(place: Place) -> None:
        duration = length(place.rank, place.step)
        if duration:
            with (
                place.host.range("torch/utils/data/dataloader.py(491): __iter__", "python_function"),
                place.host.range("torch/utils/data/dataloader.py(427): _get_iterator", "python_function"),
                place.host.range("torch/utils/data/dataloader.py(1118): __init__", "python_function"),
                place.host.range("multiprocessing/process.py(110): start", "python_function"),
            ):
                place.host.spend(duration)

    return Case(
        "loader", job.with_hook("start", start), job, rest=(r"worker|dataloader\.py",), never=(EVERY_STEP,),
        truth=f"step {job.first_step + step} starts the loader's workers",
    )  # fmt: skip


@kind
def unaligned_products(chance: Random) -> Case:
    """A product whose sizes are no multiples of 8: the library has only a slow kernel for it."""
    job = large(chance, layers=3)
    odd, kernel = 50_257, "ampere_bf16_s16816gemm_bf16_64x64_ldg1_f2f_tn_align1"

    def multiply(roof_frac: float) -> Hook:
        def head(place: Place) -> None:
            t, h = place.job.tokens // 4, place.job.hidden
            with place.host.operator("aten::mm", [(t, h), (h, odd)], [BF16] * 2):
                place.launch(replace(dv.matmul(place.job.device, t, odd, h, roof_frac=roof_frac), name=kernel))

        return head

    slow = chance.uniform(0.1, 0.25)
    return Case(
        "poor_kernel", job.with_hook("forward_end", multiply(slow)), job.with_hook("forward_end", multiply(0.85)),
        rest=(r"50257|aten::mm",), truth="a product with 50257 columns runs far below its roof",
    )  # fmt: skip
