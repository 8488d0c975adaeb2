"""Causes on the device: copies, precision, poor kernels, clocks, several devices and streams."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from . import activities as act
from . import devices as dv
from . import programs
from .cases import Case, healthy_ns, kind, large, small, step_name
from .machine import Kernel
from .training import Training, next_batch
from .words import EVERY_STEP


def bytes_for(job: Training, share: float, rate: float) -> int:
    """How many bytes take such a share of a step at this rate."""
    return int(healthy_ns(job) * share * rate)


@kind
def pageable_copies(chance: Random) -> Case:
    """Batches are copied from pageable memory."""
    job = large(chance)
    count = bytes_for(job, chance.uniform(0.25, 0.6), job.device.link_rate * 0.12)
    return Case(
        "pageable_copies", job.with_hook("start", act.copy_to_device(count, is_pinned=False)),
        job.with_hook("start", act.copy_to_device(count, is_pinned=True)), truth="batches are copied from pageable memory",
    )  # fmt: skip


@kind
def copies_not_hidden(chance: Random) -> Case:
    """Large pinned copies on the stream that computes."""
    job = large(chance)
    count = bytes_for(job, chance.uniform(0.25, 0.6), job.device.link_rate * 0.85)
    return Case(
        "copies_not_hidden",
        job.with_hook("start", act.copy_to_device(count, is_pinned=True)),
        job,
        truth="computation waits for large copies",
    )


@kind
def small_copies(chance: Random) -> Case:
    """Hundreds of small tensors are made on the host and copied."""
    job = large(chance, device=dv.H100, tokens=4096, hidden=2048, layers=2, steps=10)
    hook = act.times(chance.randint(250, 500), act.copy_to_device(chance.choice([64, 512, 4096]), is_pinned=False))
    return Case("small_copies", job.with_hook("start", hook), job, truth="hundreds of small copies in each step")


@kind
def copies_to_host(chance: Random) -> Case:
    """Outputs are moved to the host in each step."""
    job = large(chance)
    count = bytes_for(job, chance.uniform(0.25, 0.6), job.device.link_rate * 0.12)
    return Case(
        "copies_to_host",
        job.with_hook("forward_end", act.copy_to_host(count)),
        job,
        rest=(r"dtoh|to (the )?host|device to host|\.cpu\(\)",),
        truth="outputs are copied to the host in each step",
    )


@kind
def device_copies(chance: Random) -> Case:
    """Activations are made contiguous in each layer."""
    job = large(chance)
    count = bytes_for(job, chance.uniform(0.3, 0.6) / job.layers, job.device.memory_rate * 0.42)
    return Case(
        "device_copies",
        job.with_hook("layer", act.copy_on_device(count)),
        job,
        truth="copies within the device in each layer",
    )


@kind
def float_products(chance: Random) -> Case:
    """Matrix products in float32 without tensor cores."""
    device = chance.choice([dv.H100, dv.A100])
    job = large(chance, device=device, is_float=True, hidden=2048, tokens=4096)
    tf32 = replace(
        device,
        float_flops=device.matrix_flops / 2,
        float_gemm=device.float_gemm.replace("f32f32_f32f32", "f32f32_tf32f32"),
    )
    return Case("precision", job, replace(job, device=tf32), truth="float32 products without tensor cores")


@kind
def poor_product(chance: Random) -> Case:
    """A batched product far below the roof."""
    job = large(chance, layers=3)
    return Case(
        "poor_kernel", job.with_hook("layer", act.poor_product(chance.uniform(0.05, 0.15))), job.with_hook("layer", act.poor_product(job.roof_frac)),
        rest=(r"aten::bmm",), truth="aten::bmm runs far below its roof",
    )  # fmt: skip


@kind
def poor_elementwise(chance: Random) -> Case:
    """A kernel that reads memory in a poor order."""
    job = large(chance, layers=3)
    operator = chance.choice(["aten::add", "aten::mul"])
    factor = chance.uniform(0.01, 0.03)
    return Case(
        "poor_kernel", job.with_hook("layer", act.poor_elementwise(operator, factor)), job.with_hook("layer", act.poor_elementwise(operator, 0.88)),
        rest=(operator,), truth=f"{operator} runs far below the bandwidth",
    )  # fmt: skip


@kind
def unfused_attention(chance: Random) -> Case:
    """Attention whose scores go through memory."""
    job = large(chance, device=chance.choice([dv.H100, dv.A100]), hidden=2048, tokens=8192)
    return Case("attention", replace(job, is_attention_fused=False), job, truth="attention isn't fused")


@kind
def elementwise_chain(chance: Random) -> Case:
    """Large tensors go through memory for one operation after the other."""
    job = large(chance, tokens=8192)

    def chain(place: act.Place) -> None:
        for operator, symbol in (("aten::mul", dv.MULTIPLY), ("aten::add", dv.ADD), ("aten::gelu", dv.GELU)) * 5:
            act.pointwise(place, operator, symbol, place.job.tokens * place.job.hidden * 4)

    return Case("elementwise", job.with_hook("layer", chain), job, truth="a chain of elementwise operators")


@kind
def casts(chance: Random) -> Case:
    """Weights are converted again and again."""
    job = large(chance)
    items = bytes_for(job, chance.uniform(0.3, 0.5) / job.layers, job.device.memory_rate * 0.88) // 6
    return Case("casts", job.with_hook("layer", act.cast(items)), job, truth="weights are converted in each layer")


@kind
def recomputation(chance: Random) -> Case:
    """Activation checkpointing where memory would suffice."""
    job = large(chance)
    return Case(
        "recomputation", job.with_hook("backward_layer", act.recompute), job, truth="activations are computed again"
    )


@kind
def falling_clocks(chance: Random) -> Case:
    """The same kernels take longer from step to step."""
    steps, most = 18, chance.uniform(0.7, 1.4)
    job = large(chance, steps=steps, roof_frac=0.88)
    return Case(
        "falling_clocks", replace(job, slowdown=lambda rank, step, kernel: 1 + most * step / steps), job,
        never=(r"try other kernels",), truth="clocks fall from step to step",
    )  # fmt: skip


@kind
def two_speeds(chance: Random) -> Case:
    """A neighbor on the same device: some steps run at another speed."""
    job = large(chance, steps=16, roof_frac=0.88)
    slow, factor = set(chance.sample(range(job.steps), 7)), chance.uniform(1.5, 2.2)
    return Case(
        "two_speeds", replace(job, slowdown=lambda rank, step, kernel: factor if step in slow else 1), job, never=(EVERY_STEP,),
        truth="kernels run at two speeds",
    )  # fmt: skip


@kind
def slow_kernels_in_one_step(chance: Random) -> Case:
    """All kernels of one step take several times as long."""
    job = large(chance, steps=12, roof_frac=0.88)
    slow, factor = chance.randrange(3, 10), chance.uniform(4, 7)
    return Case(
        "single_step", replace(job, slowdown=lambda rank, step, kernel: factor if step == slow else 1), job, title=(step_name(job, slow),),
        never=(EVERY_STEP,), truth=f"kernels of step {job.first_step + slow} run slowly",
    )  # fmt: skip


@kind
def slow_kernel_kind_gets_slower(chance: Random) -> Case:
    """Only one kind of kernel takes longer from step to step: its input grows."""
    job = large(chance, steps=16)
    hook = act.poor_elementwise("aten::cat", 0.5)

    def growth(rank: int, step: int, kernel: Kernel) -> float:
        return 1 + step * rate if "add_strided" in kernel.name else 1

    rate = chance.uniform(4, 7)
    return Case(
        "single_kernel_trend", replace(job.with_hook("layer", hook), slowdown=growth), job.with_hook("layer", hook), rest=(r"aten::cat|add_strided",),
        truth="aten::cat takes longer from step to step",
    )  # fmt: skip


@kind
def devices_take_turns(chance: Random) -> Case:
    """A model on two devices, one half after the other."""
    job = small(chance, device=dv.H100, devices=2, layers=chance.choice([8, 12]), tokens=8192, hidden=4096, steps=10)
    return Case(
        "devices_take_turns", replace(job, program=programs.two_devices(take_turns=True)), replace(job, program=programs.two_devices(take_turns=False)),
        never=(r"nothing stands out",), truth="two devices take turns",
    )  # fmt: skip


@kind
def idle_second_device(chance: Random) -> Case:
    """The second device has next to nothing to do."""
    job = small(chance, device=dv.H100, devices=2, layers=chance.choice([8, 12]), tokens=8192, hidden=4096, steps=10)
    return Case(
        "idle_device", replace(job, program=programs.one_of_two_devices(uses_both=False)), replace(job, program=programs.one_of_two_devices(uses_both=True)),
        title=(r"(gpu|device)s? 1\b|1 of 2",), never=(r"nothing stands out",), truth="GPU 1 is idle",
    )  # fmt: skip


@kind
def serial_streams(chance: Random) -> Case:
    """Small kernels of two streams wait for one another."""
    job = small(chance, device=dv.H100, steps=10)
    branches = chance.randint(60, 120)
    return Case(
        "serial_streams", replace(job, program=programs.streams(are_parallel=False, branches=branches)),
        replace(job, program=programs.streams(are_parallel=True, branches=branches)), truth="two streams wait for one another, and fill an eighth of the device",
    )  # fmt: skip


@kind
def idle_device_of_four(chance: Random) -> Case:
    """One of four devices has next to nothing to do."""
    job = small(chance, device=dv.H100, devices=4, layers=chance.choice([8, 12]), tokens=8192, hidden=4096, steps=8)
    idle = chance.randrange(1, 4)
    shares = [0.0 if device == idle else 1.0 for device in range(4)]
    return Case(
        "idle_device", replace(job, program=programs.split(shares)), replace(job, program=programs.split([0.75] * 4)),
        title=(rf"(gpu|device)s? {idle}\b|1 of 4",), rest=(rf"\b{idle}\b",), never=(r"nothing stands out",), truth=f"GPU {idle} of 4 is idle",
    )  # fmt: skip


@kind
def unequal_devices(chance: Random) -> Case:
    """One of two devices has a fraction of the other's work."""
    job = small(chance, device=dv.H100, devices=2, layers=chance.choice([8, 12]), tokens=8192, hidden=4096, steps=8)
    share, idle = chance.uniform(0.2, 0.4), chance.randrange(2)
    shares = [share if device == idle else 1.0 for device in range(2)]
    return Case(
        "idle_device", replace(job, program=programs.split(shares)), replace(job, program=programs.split([(1 + share) / 2] * 2)),
        title=(rf"(gpu|device)s? {idle}\b|1 of 2",), never=(r"nothing stands out",), truth=f"GPU {idle} has {share:.0%} of the other's work",
    )  # fmt: skip


@kind
def neighbor_at_times(chance: Random) -> Case:
    """A neighbor on the same device: kernels run at another speed for a while, which begins and ends within steps."""
    job = large(chance, steps=16, roof_frac=0.88)
    factor, kernels, length = chance.uniform(1.6, 2.2), [0], chance.randint(90, 140)

    def speed(rank: int, step: int, kernel: Kernel) -> float:
        kernels[0] += 1
        return factor if kernels[0] // length % 2 else 1

    def start_count(place: act.Place) -> None:
        if place.step == 0:
            kernels[0] = 0

    return Case(
        "two_speeds", replace(job, slowdown=speed).with_hook("data", start_count, lambda place: next_batch(place, 30_000)), job,
        truth="kernels run at two speeds, for parts of steps",
    )  # fmt: skip
