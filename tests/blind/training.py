"""A training of a transformer as torch runs it: loader, forward, backward on autograd's thread, reduction, optimizer.

Without hooks it is healthy: the device computes near its roof, and all else is hidden. A cause is a hook at a point of
the step, or a field that differs.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from . import devices as dv
from .machine import Kernel, Meeting, Node, Pace, Process, Thread, run

BF16 = "c10::BFloat16"
POINTS = ("data", "start", "layer", "forward_end", "backward_layer", "optimizer", "end")
COMMUNICATION_STREAM = 20
SEQUENCE = 2048


@dataclass(frozen=True)
class Training:
    """What is trained, on what, and how.

    `slowdown`: how much longer a kernel takes than its roof allows, by rank and step; `marks_steps`: whether the loop
    calls profiler.step().
    """

    device: dv.Device = dv.H100
    ranks: int = 1
    steps: int = 12
    first_step: int = 10
    layers: int = 4
    tokens: int = 8192
    hidden: int = 4096
    roof_frac: float = 0.86
    pace: Pace = field(default_factory=Pace)
    has_stacks: bool = False
    marks_steps: bool = True
    reads_loss: bool = True
    is_float: bool = False
    is_attention_fused: bool = True
    has_fused_optimizer: bool = True
    bucket_count: int | None = None  # of the gradients' reduction; None: a bucket for each layer
    overlaps_reduction: bool = True
    bus_rate: float = 180  # bytes per nanosecond
    noise: float = 0.004
    seed: int = 0
    slowdown: Callable[[int, int, Kernel], float] | None = None
    devices: int = 1  # of each rank
    program: Hook | None = None  # of a step, instead of the training's own
    hooks: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)

    def with_hook(self, point: str, *hooks: Hook) -> Training:
        """The same training with more to do at a point of the step."""
        assert point in POINTS
        return replace(self, hooks={**self.hooks, point: (*self.hooks.get(point, ()), *hooks)})


@dataclass
class Place:
    """Where a program is: the job, the thread, the rank and the step."""

    job: Training
    process: Process
    host: Thread
    rank: int
    step: int  # from 0
    meetings: Meetings
    random: random.Random
    state: dict[str, Any] = field(default_factory=dict)  # what hooks keep from step to step

    @property
    def name(self) -> int:
        """The number of the step in the recording."""
        return self.job.first_step + self.step

    def stretched(self, kernel: Kernel) -> Kernel:
        """A kernel as it runs here: some noise, and the clocks of this rank in this step."""
        factor = 1 + self.random.uniform(-1, 1) * self.job.noise
        if self.job.slowdown:
            factor *= self.job.slowdown(self.rank, self.step, kernel)
        return replace(kernel, length=int(kernel.length * factor))

    def launch(self, kernel: Kernel, after: Iterable[Node] = (), device: int = 0, stream: int = 7) -> Node:
        """Launch a kernel as it runs here."""
        return self.host.launch(self.stretched(kernel), after=after, device=device, stream=stream)


Hook = Callable[[Place], None]


class Meetings:
    """The collectives of a job: each rank joins the next one of a group."""

    def __init__(self) -> None:
        self._meetings: dict[tuple[tuple[int, ...], str, int], Meeting] = {}
        self._joined: defaultdict[tuple[int, tuple[int, ...], str], int] = defaultdict(int)

    def join(self, part: Node, rank: int, group: tuple[int, ...], label: str, length: int) -> None:
        """Make a kernel the part of a rank."""
        number = self._joined[rank, group, label]
        self._joined[rank, group, label] += 1
        meeting = self._meetings.setdefault((group, label, number), Meeting(len(group), length))
        meeting.length = max(meeting.length, length)
        meeting.parts.append(part)
        part.meeting = meeting


def simulate(job: Training) -> list[Process]:
    """Run a training on its machine."""
    processes, meetings = [Process(rank, job.pace) for rank in range(job.ranks)], Meetings()
    for rank, process in enumerate(processes):
        chance = random.Random(f"{job.seed} {rank}")
        place = Place(job, process, process.main, rank, 0, meetings, chance)
        for step in range(job.steps):
            place.step = step
            with process.main.range(f"ProfilerStep#{place.name}") if job.marks_steps else nullcontext():
                (job.program or train_step)(place)
        process.main.synchronize("cudaDeviceSynchronize")
    run(processes)
    return processes


def step_ns(processes: list[Process], steps: int) -> float:
    """The mean step: from the start of the first to the end of all work of the last, on the slowest rank."""
    first = min(process.nodes[0].start for process in processes)
    ends = (node.end for process in processes for node in process.nodes if node.lane[0] != "worker")
    return (max(ends) - first) / steps


def call_hooks(place: Place, point: str) -> None:
    """What a cause does at a point of the step."""
    for hook in place.job.hooks.get(point, ()):
        hook(place)


def train_step(place: Place) -> None:
    """One step of the loop."""
    job, host = place.job, place.host
    if "data" in job.hooks:
        call_hooks(place, "data")
    else:
        next_batch(place, place.random.randint(28_000, 60_000))
    with host.operator("aten::to > aten::_to_copy", [(job.tokens,)], ["long int"]):
        copy_in(place, job.tokens * 8)
    call_hooks(place, "start")
    forward(place)
    backward(place)
    optimize(place)
    if job.reads_loss:
        item(place)
    call_hooks(place, "end")


def next_batch(place: Place, wait: int) -> None:
    """The loop takes a batch, and waits so long for it."""
    with place.host.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
        place.host.spend(wait)


def copy_in(place: Place, count_bytes: int, *, is_pinned: bool = True, stream: int = 7) -> Node:
    """Copy so many bytes to the device."""
    kind = "Pinned" if is_pinned else "Pageable"
    rate = place.job.device.link_rate * (0.85 if is_pinned else 0.12)
    with place.host.operator("aten::copy_", [(count_bytes,), (count_bytes,)], ["unsigned char"] * 2):
        return place.host.copy(
            f"Memcpy HtoD ({kind} -> Device)", count_bytes, rate, is_blocking=not is_pinned, stream=stream
        )


def item(place: Place) -> None:
    """Read a number from the device, and wait for it."""
    host = place.host
    with host.operator("aten::item > aten::_local_scalar_dense", [()], ["float"]):
        host.copy("Memcpy DtoH (Device -> Pageable)", 4, 1)
        host.synchronize("cudaStreamSynchronize", stream=7)


def linear(place: Place, m: int, n: int, k: int) -> None:
    """A linear layer."""
    kernel = dv.matmul(place.job.device, m, n, k, roof_frac=place.job.roof_frac, is_float=place.job.is_float)
    kind = "float" if place.job.is_float else BF16
    with place.host.operator("aten::linear", [(m, k), (n, k)], [kind] * 2):
        with place.host.operator("aten::t", [(n, k)], [kind]):
            pass
        with place.host.operator("aten::mm", [(m, k), (k, n)], [kind] * 2):
            place.launch(kernel)


def pointwise(
    place: Place, operator: str, symbol: str, items: int, *, arrays: int = 2, bytes_per_item: int = 2
) -> None:
    """An operator that reads and writes every item."""
    kernel = dv.elementwise(place.job.device, symbol, items * bytes_per_item * arrays)
    with place.host.operator(
        operator, [(items,)] * (arrays - 1), [BF16 if bytes_per_item == 2 else "float"] * (arrays - 1)
    ):
        place.launch(kernel)


def attention(place: Place) -> None:
    """Attention: fused, or softmax between two batched products whose matrix of scores goes through memory."""
    job = place.job
    heads, batch, width = job.hidden // 128, max(1, job.tokens // SEQUENCE), 128
    shape = (batch, heads, SEQUENCE, width)
    if job.is_attention_fused:
        flops = 2 * job.tokens * SEQUENCE * job.hidden
        length, grid = int(flops / job.device.matrix_flops / 0.7), (SEQUENCE // 128, batch * heads, 1)
        names = "aten::scaled_dot_product_attention > aten::_flash_attention_forward"
        with place.host.operator(names, [shape] * 3, [BF16] * 3):
            place.launch(Kernel(dv.FLASH, length, grid, (128, 1, 1), 254, 81_920))
        return
    scores = batch * heads * SEQUENCE * SEQUENCE
    product = dv.matmul(job.device, batch * heads * SEQUENCE, SEQUENCE, width, roof_frac=job.roof_frac)
    for rows, columns in (((SEQUENCE, width), (width, SEQUENCE)), ((SEQUENCE, SEQUENCE), (SEQUENCE, width))):
        with place.host.operator("aten::bmm", [(batch * heads, *rows), (batch * heads, *columns)], [BF16] * 2):
            place.launch(product)
        if columns == (width, SEQUENCE):
            pointwise(place, "aten::masked_fill", dv.MULTIPLY, scores)
            with place.host.operator("aten::softmax > aten::_softmax", [(batch, heads, SEQUENCE, SEQUENCE)], [BF16]):
                place.launch(dv.elementwise(job.device, dv.SOFTMAX, scores * 4))


def layer(place: Place) -> None:
    """A block of the transformer."""
    job = place.job
    t, h = job.tokens, job.hidden
    with place.host.operator("aten::layer_norm > aten::native_layer_norm", [(t, h)], [BF16]):
        place.launch(dv.elementwise(job.device, dv.LAYER_NORM, t * h * 4))
    linear(place, t, 3 * h, h)
    attention(place)
    linear(place, t, h, h)
    pointwise(place, "aten::add", dv.ADD, t * h, arrays=3)
    linear(place, t, 4 * h, h)
    pointwise(place, "aten::gelu", dv.GELU, t * 4 * h)
    linear(place, t, h, 4 * h)
    call_hooks(place, "layer")


def forward(place: Place) -> None:
    """All layers."""
    with place.host.range("train.py(88): forward", "python_function"):
        for _ in range(place.job.layers):
            layer(place)
        call_hooks(place, "forward_end")


def backward(place: Place) -> None:
    """All gradients, on autograd's thread, which the main thread waits for; with several ranks, their reduction."""
    job, process, main = place.job, place.process, place.host
    with main.range("train.py(92): backward", "python_function"):
        beginning = main.spend(3_000)
        place.host = process.autograd
        place.host.spend(1_000, after=[beginning])
        buckets = job.layers if job.bucket_count is None else job.bucket_count
        for number in range(job.layers):
            backward_layer(place)
            call_hooks(place, "backward_layer")
            if job.ranks > 1 and job.overlaps_reduction:
                reduce_gradients(place, number, buckets)
        if job.ranks > 1 and not job.overlaps_reduction:
            for number in range(job.layers):
                reduce_gradients(place, number, buckets)
        main.wait(place.host.spend(1_000))
        place.host = main


def backward_layer(place: Place) -> None:
    """The gradients of a layer: two products for each one of its forward pass."""
    job = place.job
    t, h = job.tokens, job.hidden
    kind = "float" if job.is_float else BF16
    for n, k in ((h, 4 * h), (4 * h, h), (h, h), (3 * h, h)):
        with place.host.operator("autograd::engine::evaluate_function: MmBackward0 > MmBackward0", [(t, n)], [kind]):
            for m, columns, inner in ((t, k, n), (n, k, t)):
                kernel = dv.matmul(job.device, m, columns, inner, roof_frac=job.roof_frac, is_float=job.is_float)
                with place.host.operator("aten::mm", [(m, inner), (inner, columns)], [kind] * 2):
                    place.launch(kernel)


def reduce_gradients(place: Place, layer_number: int, buckets: int) -> None:
    """Add the gradients of a layer of all ranks: in a bucket, in many, or with those of other layers."""
    job = place.job
    per_layer = 12 * job.hidden * job.hidden * (4 if job.is_float else 2)
    if buckets >= job.layers:
        for _ in range(buckets // job.layers):
            all_reduce(place, per_layer // (buckets // job.layers))
    elif (layer_number + 1) % (job.layers // buckets) == 0:
        all_reduce(place, per_layer * (job.layers // buckets))


def all_reduce(place: Place, count_bytes: int) -> Node:
    """Join an all-reduce of all ranks on the stream of communication, once what is computed until now has ended."""
    ranks = place.job.ranks
    length = 14_000 + 2 * (ranks - 1) / ranks * count_bytes / place.job.bus_rate
    group = tuple(range(ranks))
    return collective(
        place,
        "allreduce",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        count_bytes,
        group,
        length,
    )


def collective(
    place: Place, name: str, kernel: str, count_bytes: float, group: tuple[int, ...], length: float,
    *, stream: int = COMMUNICATION_STREAM, ready: Iterable[Node] | None = None, peer: int | None = None, label: str = "",
) -> Node:  # fmt: skip
    """Join a collective, or a transfer between two ranks; by default it waits for the compute stream."""
    host, process = place.host, place.process
    items = int(count_bytes) // 2
    facts = {
        "Collective name": name, "In msg nelems": items, "Out msg nelems": items, "Group size": len(group),
        "dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(place.job.ranks))),
    }  # fmt: skip
    if peer is not None:
        facts |= {"Rank": place.rank, ("Dst Rank" if name == "send" else "Src Rank"): peer}
    compute = process.last(("stream", 0, 7))
    ready = ([compute] if compute else []) if ready is None else ready
    with host.operator(f"c10d::{name}_", [(items,)], [BF16]):
        host.call("cudaEventRecord")
        host.call("cudaStreamWaitEvent")
        with host.operator("record_param_comms", [(items,)], [BF16], **facts):
            node = host.launch(Kernel(kernel, 1, (16, 1, 1), (512, 1, 1)), stream=stream, after=ready, **facts)
    place.meetings.join(node, place.rank, group, label or name, int(length))
    return node


def optimize(place: Place) -> None:
    """Update the parameters, once their gradients are reduced."""
    job, host = place.job, place.host
    parameters = job.layers * 12 * job.hidden * job.hidden
    last = place.process.last(("stream", 0, COMMUNICATION_STREAM))
    if last:
        host.call("cudaStreamWaitEvent")
    call_hooks(place, "optimizer")
    with host.range("Optimizer.step#AdamW.step"):
        if job.has_fused_optimizer:
            with host.operator("aten::_fused_adamw_", [[(parameters,)]] * 4, ["TensorList"] * 4):
                place.launch(dv.elementwise(job.device, dv.ADAM, parameters * 28), after=[last] if last else ())
        else:
            optimize_each(place, parameters, [last] if last else [])


def optimize_each(place: Place, parameters: int, after: list[Node]) -> None:
    """Update one parameter tensor after the other, with many small kernels."""
    tensors = 30 * place.job.layers
    operators = ("aten::mul_", "aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::add_", "aten::addcdiv_")
    for _ in range(tensors):
        for operator in operators:
            kernel = dv.elementwise(place.job.device, dv.FOREACH, parameters * 4 / tensors / 8)
            with place.host.operator(operator, [(parameters // tensors,)], ["float"]):
                place.launch(kernel, after=after)
