"""Other jobs than a data-parallel training: stages, experts, two devices, two streams, and a server that decodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import devices as dv
from .machine import Kernel, Node
from .training import (
    BF16,
    Hook,
    Place,
    backward_layer,
    call_hooks,
    collective,
    copy_in,
    item,
    layer,
    next_batch,
    optimize,
    pointwise,
)  # fmt: skip

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
FORWARD_STREAM, BACKWARD_STREAM = 21, 22
PEER_RATE = 45  # bytes per nanosecond between two devices of a process


def pipeline(microbatches: int, rates: Callable[[int], float]) -> Hook:
    """GPipe: every stage runs all forward passes, then all backward ones. `rates`: of the link behind each stage."""

    def step(place: Place) -> None:
        next_batch(place, 30_000)
        copy_in(place, place.job.tokens * 8)
        for _ in range(microbatches):
            receive(place, place.rank - 1, FORWARD_STREAM, rates)
            stage(place, lambda: layer(place), microbatches)
            send(place, place.rank + 1, FORWARD_STREAM, rates)
        for _ in range(microbatches):
            receive(place, place.rank + 1, BACKWARD_STREAM, rates)
            stage(place, lambda: backward_layer(place), microbatches)
            send(place, place.rank - 1, BACKWARD_STREAM, rates)
        optimize(place)
        item(place)

    return step


def stage(place: Place, work: Callable[[], None], microbatches: int) -> None:
    """The layers of this stage for one microbatch, once its input has come."""
    arrival = place.state.pop("arrival", None)
    if arrival:
        place.host.call("cudaStreamWaitEvent")
        place.launch(Kernel(dv.COPY, 3_000, (64, 1, 1)), after=[arrival])
    for _ in range(place.job.layers):
        work()


def send(place: Place, peer: int, stream: int, rates: Callable[[int], float]) -> None:
    """Send activations or gradients to a neighbor, if there is one."""
    if 0 <= peer < place.job.ranks:
        transfer(place, "send", peer, stream, rates)


def receive(place: Place, peer: int, stream: int, rates: Callable[[int], float]) -> None:
    """Receive from a neighbor, if there is one; what follows waits for it."""
    if 0 <= peer < place.job.ranks:
        place.state["arrival"] = transfer(place, "recv", peer, stream, rates)


def transfer(place: Place, name: str, peer: int, stream: int, rates: Callable[[int], float]) -> Node:
    """One side of a transfer between neighbors."""
    count_bytes = place.job.tokens * place.job.hidden * 2
    lower = min(place.rank, peer)
    direction = stream + 10 * (lower == place.rank)  # a communicator for each pair of neighbors
    ready = None if name == "send" else ()
    length = 9_000 + count_bytes / rates(lower)
    return collective(
        place,
        name,
        SEND_RECV,
        count_bytes,
        (lower, lower + 1),
        length,
        stream=direction,
        ready=ready,
        peer=peer,
        label=f"transfer {stream}",
    )


def two_devices(*, take_turns: bool) -> Hook:
    """A model on two devices: one half of the layers on each, one after the other; or both work on half of the batch."""

    def step(place: Place) -> None:
        next_batch(place, 30_000)
        copy_in(place, place.job.tokens * 8)
        half = place.job.layers // 2
        passes = [(0, half, 1), (1, half, 1), (1, half, 2), (0, half, 2)]
        if not take_turns:
            passes = [(0, half, 1), (1, half, 1), (0, half, 2), (1, half, 2)]
        before: Node | None = None
        for device, layers, factor in passes:
            with place.host.range(
                "train.py(61): forward" if factor == 1 else "train.py(70): backward", "python_function"
            ):
                last = block(place, device, layers, factor, before if take_turns else None)
            if take_turns:
                before = place.host.copy(
                    "Memcpy PtoP (Device -> Device)",
                    place.job.tokens * place.job.hidden * 2,
                    PEER_RATE,
                    device=device,
                    stream=14,
                    after=[last],
                )
        item(place)

    return step


def block(place: Place, device: int, layers: int, factor: int, before: Node | None) -> Node:
    """Products of some layers on a device, `factor` for each one of the forward pass."""
    t, h = place.job.tokens, place.job.hidden
    kernel = dv.matmul(place.job.device, t, h, h, roof_frac=place.job.roof_frac)
    last = None
    for number in range(layers * 4 * factor):
        with place.host.operator("aten::mm", [(t, h), (h, h)], [BF16] * 2):
            last = place.launch(kernel, device=device, after=[before] if before and number == 0 else ())
    assert last
    return last


def one_of_two_devices(*, uses_both: bool) -> Hook:
    """All work on the first device; the second gets a small copy in each step, or half of the work."""

    def step(place: Place) -> None:
        next_batch(place, 30_000)
        copy_in(place, place.job.tokens * 8)
        layers = place.job.layers // 2 if uses_both else place.job.layers
        block(place, 0, layers, 3, None)
        if uses_both:
            block(place, 1, layers, 3, None)
        else:
            place.launch(Kernel(dv.FILL, 2_000, (16, 1, 1)), device=1)
        item(place)

    return step


def split(shares: Sequence[float]) -> Hook:
    """Independent work on several devices: each has a share of the layers."""

    def step(place: Place) -> None:
        next_batch(place, 30_000)
        copy_in(place, place.job.tokens * 8)
        place.launch(Kernel(dv.FILL, 2_000, (16, 1, 1)))
        for device, share in enumerate(shares):
            place.launch(Kernel(dv.FILL, 2_000, (16, 1, 1)), device=device)
            if layers := round(place.job.layers * share):
                block(place, device, layers, 3, None)
        for device in range(len(shares)):
            place.host.synchronize("cudaStreamSynchronize", device=device, stream=7)

    return step


def experts(shares: Callable[[int], float]) -> Hook:
    """A mixture of experts: tokens go to the ranks of their experts and come back. `shares`: of the mean load of a rank."""

    def step(place: Place) -> None:
        job = place.job
        next_batch(place, 30_000)
        copy_in(place, job.tokens * 8)
        for _ in range(job.layers):
            layer(place)
            exchange(place)
            load = int(job.tokens * shares(place.rank))
            for n, k in ((4 * job.hidden, job.hidden), (job.hidden, 4 * job.hidden)):
                kernel = dv.matmul(job.device, load, n, k, roof_frac=job.roof_frac)
                with place.host.operator("aten::_grouped_mm", [(load, k), (8, k, n)], [BF16] * 2):
                    place.launch(kernel)
            exchange(place)
        item(place)

    return step


def exchange(place: Place) -> None:
    """All ranks exchange their tokens, and wait for that."""
    count_bytes = place.job.tokens * place.job.hidden * 2
    length = 16_000 + count_bytes / place.job.bus_rate
    group = tuple(range(place.job.ranks))
    node = collective(place, "all_to_allv", SEND_RECV, count_bytes, group, length)
    place.host.call("cudaStreamWaitEvent")
    place.launch(Kernel(dv.COPY, 3_000, (64, 1, 1)), after=[node])


def streams(*, are_parallel: bool, branches: int) -> Hook:
    """Two branches of small kernels, each of which fills an eighth of the device: on one stream, or on two."""

    def step(place: Place) -> None:
        next_batch(place, 30_000)
        copy_in(place, place.job.tokens * 8)
        blocks = place.job.device.multiprocessors // 8
        before: Node | None = None
        for _ in range(branches):
            for stream in (7, 24):
                after = [before] if before and not are_parallel else []
                place.host.call("cudaStreamWaitEvent")
                with place.host.operator("aten::_thnn_fused_lstm_cell", [(64, 2048), (64, 2048)], [BF16] * 2):
                    kernel = Kernel(
                        "void at::native::lstm_cell_forward<c10::BFloat16, float, int, 1>", 60_000, (blocks, 1, 1)
                    )
                    before = place.launch(kernel, after=after, stream=stream)
        item(place)

    return step


def decode(*, has_graphs: bool) -> Hook:
    """A server's iteration: one token for each request. Kernels only read the weights, and are shorter than launches."""

    def step(place: Place) -> None:
        host, job = place.host, place.job
        with host.range("engine.py(210): execute_model", "python_function"):
            if has_graphs:
                graph = host.call("cudaGraphLaunch", 40_000)
                for kernel in decode_kernels(place):
                    host.process.queue(graph_node(place, kernel, graph))
            else:
                for _ in range(job.layers):
                    for operator in ("aten::linear", "aten::mul", "aten::add", "aten::linear"):
                        pointwise(place, operator, dv.MULTIPLY, job.hidden * 64)
        item(place)
        call_hooks(place, "end")

    return step


def decode_kernels(place: Place) -> list[Kernel]:
    """The kernels of an iteration."""
    items = place.job.hidden * 64
    return [dv.elementwise(place.job.device, dv.MULTIPLY, items * 4)] * (4 * place.job.layers)


def graph_node(place: Place, kernel: Kernel, graph: Node) -> Node:
    """A kernel that a graph launches."""
    args = {
        "device": 0,
        "context": 1,
        "stream": 7,
        "correlation": graph.args["correlation"],
        "grid": list(kernel.grid),
        "block": list(kernel.block),
    }
    return Node(("stream", 0, 7), kernel.name, "kernel", kernel.length, args, launch=graph)


def sharded(*, prefetches: bool) -> Hook:
    """Sharded parameters: each layer's are gathered before it, or while the layer before it is computed."""

    def gather(place: Place) -> Node:
        job = place.job
        count_bytes = 24 * job.hidden * job.hidden
        length = 14_000 + count_bytes * (job.ranks - 1) / job.ranks / job.bus_rate
        name = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        with place.host.range("FSDP::all_gather"):
            return collective(
                place,
                "_allgather_base",
                name,
                count_bytes,
                tuple(range(job.ranks)),
                length,
                ready=() if prefetches else None,
            )

    def step(place: Place) -> None:
        job = place.job
        next_batch(place, 30_000)
        copy_in(place, job.tokens * 8)
        for work in (layer, backward_layer):
            for _ in range(job.layers):
                parameters = gather(place)
                place.host.call("cudaStreamWaitEvent")
                place.launch(Kernel(dv.COPY, 3_000, (64, 1, 1)), after=[parameters])
                work(place)
        optimize(place)
        item(place)

    return step
