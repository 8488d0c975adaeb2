"""Causes between ranks: late ranks, exposed communication, slow links, bubbles, uneven experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from . import activities as act
from . import devices as dv
from . import programs
from .cases import Case, healthy_ns, kind, large, place_name, some_steps
from .machine import Kernel
from .training import Training, collective, next_batch
from .words import EVERY_STEP

NO_NOTHING = r"no rank is slower|nothing stands out"


def ranks_job(chance: Random, **fields: object) -> Training:
    """A healthy data-parallel job: its reduction is hidden behind the backward pass."""
    sizes: dict[str, object] = {
        "ranks": chance.choice([2, 4]),
        "layers": 3,
        "steps": 9,
        "hidden": 2048,
        "tokens": 8192,
        "bus_rate": 250,
    }
    return large(chance, **{**sizes, **fields})


def straggler(
    chance: Random,
    hook: Callable[[act.Length], act.Hook],
    length: act.Length,
    job: Training,
    rest: tuple[str, ...],
    *,
    some: bool = False,
    point: str = "forward_end",
) -> Case:
    """A job in which one rank is late."""
    rank = chance.randrange(job.ranks)
    hooked = job.with_hook(point, hook(act.on_rank(rank, length)))
    return Case(
        "straggler", hooked, job, title=(rf"\brank {rank}\b",), rest=rest, never=(NO_NOTHING, *((EVERY_STEP,) if some else ())),
        truth=f"rank {rank} of {job.ranks} is late{' in some steps' if some else ' in each step'}",
    )  # fmt: skip


@kind
def straggler_by_loader(chance: Random) -> Case:
    """A rank's loader is slow in each step."""
    job = ranks_job(chance)
    usual = healthy_ns(job)
    rank, length = chance.randrange(job.ranks), usual * chance.uniform(1.25, 1.9) * 2
    loader = act.Loader(act.on_rank(rank, act.always(length), usual * 0.3))
    return Case(
        "straggler", job.with_hook("data", loader), job, title=(rf"\brank {rank}\b",), rest=(r"data|load",), never=(NO_NOTHING,),
        truth=f"rank {rank} of {job.ranks} loads its data late in each step",
    )  # fmt: skip


@kind
def straggler_by_loader_in_some_steps(chance: Random) -> Case:
    """A rank's loader is slow in some steps."""
    job = ranks_job(chance, steps=12)
    usual, rank = healthy_ns(job), chance.randrange(job.ranks)
    steps = some_steps(chance, job, 0.3)

    def load(place: act.Place) -> None:
        late = place.rank == rank and place.step in steps
        next_batch(place, int(usual * factor) if late else 40_000)

    factor = chance.uniform(0.8, 2)
    return Case(
        "straggler", job.with_hook("data", load), job, title=(rf"\brank {rank}\b",), rest=(r"data|load",), never=(NO_NOTHING, EVERY_STEP),
        truth=f"rank {rank} of {job.ranks} loads its data late in {len(steps)} of {job.steps} steps",
    )  # fmt: skip


@kind
def straggler_by_python(chance: Random) -> Case:
    """A rank runs a Python function that the others don't."""
    job = ranks_job(chance, has_stacks=True)
    frame = f"train.py({chance.randint(50, 90)}): write_summary"
    length = act.always(healthy_ns(job) * chance.uniform(0.3, 0.9))
    return straggler(
        chance, lambda on: act.python(frame, on), length, job, (place_name(frame) + r"|python|host",), point="end"
    )


@kind
def straggler_by_garbage(chance: Random) -> Case:
    """A rank collects garbage in some steps."""
    job = ranks_job(chance, has_stacks=True, steps=12)
    length = act.in_steps(healthy_ns(job) * chance.uniform(0.8, 2), some_steps(chance, job, 0.3))
    return straggler(
        chance,
        lambda on: act.collect_garbage(on, "train.py(133): train_step"),
        length,
        job,
        (r"garbage|\bgc\b",),
        some=True,
    )


@kind
def straggler_by_clocks(chance: Random) -> Case:
    """A rank's device runs at lower clocks."""
    job = ranks_job(chance)
    rank, factor = chance.randrange(job.ranks), chance.uniform(1.25, 1.8)
    return Case(
        "straggler", replace(job, slowdown=lambda on, step, kernel: factor if on == rank else 1), job, title=(rf"\brank {rank}\b",),
        rest=(r"kernel|comput|clock|slower",), never=(NO_NOTHING,), truth=f"the device of rank {rank} of {job.ranks} is slower",
    )  # fmt: skip


@kind
def straggler_by_more_work(chance: Random) -> Case:
    """A rank has more to compute, such as a longer sequence."""
    job = ranks_job(chance)
    rank = chance.randrange(job.ranks)
    more = act.only_on(rank, act.times(chance.randint(4, 8), act.product(4 * job.hidden, job.hidden)))
    return Case(
        "straggler", job.with_hook("layer", more), job, title=(rf"\brank {rank}\b",), rest=(r"kernel|comput|work",), never=(NO_NOTHING,),
        truth=f"rank {rank} of {job.ranks} has more to compute",
    )  # fmt: skip


@kind
def two_stragglers(chance: Random) -> Case:
    """Two of four ranks load slowly."""
    job = ranks_job(chance, ranks=4)
    usual, late = healthy_ns(job), sorted(chance.sample(range(4), 2))
    factor = chance.uniform(1.3, 1.9) * 2
    loader = act.Loader(lambda rank, step: usual * (factor if rank in late else 0.3))
    return Case(
        "straggler", job.with_hook("data", loader), job, title=(rf"\branks? .*({late[0]}|{late[1]})\b",), rest=(r"data|load", *(rf"\branks?\b[^.]*\b{rank}\b" for rank in late)), never=(NO_NOTHING,),
        truth=f"ranks {late[0]} and {late[1]} of 4 load their data late",
    )  # fmt: skip


@kind
def exposed_reduction(chance: Random) -> Case:
    """Gradients are reduced after the backward pass, not during it."""
    job = ranks_job(chance, bus_rate=chance.uniform(40, 90))
    return Case(
        "communication",
        replace(job, overlaps_reduction=False),
        replace(job, bus_rate=5_000),
        truth="the all-reduce isn't hidden",
    )


@kind
def slow_network(chance: Random) -> Case:
    """The reduction takes longer than the backward pass that could hide it."""
    job = ranks_job(chance)
    return Case(
        "communication",
        replace(job, bus_rate=chance.uniform(8, 20)),
        job,
        truth="the all-reduce is longer than what hides it",
    )


@kind
def small_collectives(chance: Random) -> Case:
    """Each small gradient has its own all-reduce."""
    job = ranks_job(chance, hidden=1024, tokens=2048, layers=3, steps=6)
    return Case(
        "small_collectives",
        replace(job, bucket_count=job.layers * chance.randint(40, 50)),
        job,
        truth="an all-reduce for each small gradient",
    )


@kind
def pipeline_bubble(chance: Random) -> Case:
    """Too few microbatches for the stages."""
    ranks = chance.choice([2, 4])
    job = large(chance, ranks=ranks, layers=1, tokens=8192, hidden=3072, steps=6)
    few, factor = ranks, 4
    many = replace(job, tokens=job.tokens // factor, program=programs.pipeline(few * factor, lambda link: 100))
    return Case(
        "bubble",
        replace(job, program=programs.pipeline(few, lambda link: 100)),
        many,
        truth=f"a bubble: {ranks} stages, {few} microbatches",
    )


@kind
def slow_link(chance: Random) -> Case:
    """One of the links of a pipeline has a fraction of the others' rate."""
    job = large(chance, ranks=4, layers=1, tokens=8192, hidden=2048, steps=6)
    slow, rate = chance.randrange(3), chance.uniform(1.2, 2.5)

    def rates(link: int) -> float:
        return rate if link == slow else 100

    return Case(
        "slow_link", replace(job, program=programs.pipeline(6, rates)), replace(job, program=programs.pipeline(6, lambda link: 100)),
        rest=(rf"\b{slow}\b.*\b{slow + 1}\b|\b{slow + 1}\b.*\b{slow}\b",), truth=f"the link between ranks {slow} and {slow + 1} is slow",
    )  # fmt: skip


@kind
def uneven_experts(chance: Random) -> Case:
    """One rank's experts get most tokens."""
    job = large(chance, ranks=4, layers=3, tokens=4096, hidden=3072, steps=8, bus_rate=200)
    rank, share = chance.randrange(4), chance.uniform(2, 2.8)
    rest = (4 - share) / 3
    return Case(
        "imbalance", replace(job, program=programs.experts(lambda on: share if on == rank else rest)), replace(job, program=programs.experts(lambda on: 1)),
        rest=(rf"\brank {rank}\b",), never=(NO_NOTHING,), truth=f"experts of rank {rank} get {share:.1f} times the mean load",
    )  # fmt: skip


@kind
def checkpoint_on_one_rank(chance: Random) -> Case:
    """One rank writes a checkpoint in one step; the others wait for it in the next reduction."""
    job = ranks_job(chance, has_stacks=True, steps=12)
    frame, step = f"ckpt.py({chance.randint(10, 90)}): save_checkpoint", chance.randrange(2, 10)
    save = act.save_checkpoint(frame, 200_000_000, int(healthy_ns(job) * chance.uniform(4, 9)))
    return Case(
        "straggler", job.with_hook("end", act.only_in([step], act.only_on(0, save))), job, title=(r"\brank 0\b",),
        rest=(place_name(frame) + r"|checkpoint",), never=(NO_NOTHING, EVERY_STEP), truth=f"rank 0 of {job.ranks} writes a checkpoint in step {job.first_step + step}",
    )  # fmt: skip


@kind
def straggler_by_clocks_in_some_steps(chance: Random) -> Case:
    """A rank's device is throttled in some steps."""
    job = ranks_job(chance, steps=12)
    rank, factor, steps = chance.randrange(job.ranks), chance.uniform(1.5, 2.2), some_steps(chance, job, 0.3)
    return Case(
        "straggler", replace(job, slowdown=lambda on, step, kernel: factor if on == rank and step in steps else 1), job,
        title=(rf"\brank {rank}\b",), rest=(r"kernel|comput|clock|slower",), never=(NO_NOTHING, EVERY_STEP),
        truth=f"the device of rank {rank} of {job.ranks} is slower in {len(steps)} of {job.steps} steps",
    )  # fmt: skip


@kind
def straggler_by_launches(chance: Random) -> Case:
    """A rank's host is slow, such as on a busy core: its launches can't keep its device busy."""
    job = ranks_job(chance, hidden=1536, tokens=2048, steps=8)
    rank = chance.randrange(job.ranks)
    loop = act.times(chance.randint(300, 500), act.tiny("aten::mul", dv.MULTIPLY))
    return Case(
        "straggler", job.with_hook("forward_end", act.only_on(rank, loop)), job, title=(rf"\brank {rank}\b",),
        rest=(r"aten::mul|launch|host|more kernels",), never=(NO_NOTHING,), truth=f"rank {rank} of {job.ranks} launches hundreds of tiny kernels",
    )  # fmt: skip


@kind
def gathers_not_hidden(chance: Random) -> Case:
    """Sharded parameters are gathered when they are needed, not before."""
    job = ranks_job(chance, bus_rate=chance.uniform(60, 120))
    return Case(
        "communication", replace(job, program=programs.sharded(prefetches=False)), replace(job, program=programs.sharded(prefetches=True)),
        rest=(r"all[-_ ]?gather",), truth="each layer waits for its all-gather",
    )  # fmt: skip


@kind
def small_broadcasts(chance: Random) -> Case:
    """Each buffer of the model is broadcast before each step."""
    job = ranks_job(chance, hidden=1024, tokens=2048, steps=6)
    count = chance.randint(100, 160)

    def send_buffers(place: act.Place) -> None:
        name = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        for _ in range(count):
            last = collective(place, "broadcast", name, 4096, tuple(range(place.job.ranks)), 16_000)
        place.host.call("cudaStreamWaitEvent")
        place.launch(Kernel(dv.COPY, 3_000, (64, 1, 1)), after=[last])

    return Case(
        "small_collectives", job.with_hook("start", send_buffers), job, rest=(r"broadcast",), truth="a broadcast for each small buffer",
    )  # fmt: skip


@kind
def all_ranks_wait_for_data(chance: Random) -> Case:
    """The loaders of all ranks are too slow, alike."""
    job = ranks_job(chance)
    length = healthy_ns(job) * chance.uniform(1.3, 2) * 2
    loader = act.Loader(act.always(length))
    return Case("loader", job.with_hook("data", loader), job, truth="each rank waits for its loader in each step")


@kind
def function_on_all_ranks(chance: Random) -> Case:
    """All ranks run a Python function in each step."""
    job = ranks_job(chance, has_stacks=True)
    frame = f"ema.py({chance.randint(20, 200)}): update_average"
    work = act.python(frame, act.always(healthy_ns(job) * chance.uniform(0.4, 1)))
    return Case(
        "host_function", job.with_hook("end", work), job, rest=(place_name(frame),), truth=f"{frame} on each rank"
    )


@kind
def straggler_by_copies(chance: Random) -> Case:
    """A rank's batches come through a slower link."""
    job = ranks_job(chance)
    rank = chance.randrange(job.ranks)
    count = int(healthy_ns(job) * chance.uniform(0.4, 0.8) * job.device.link_rate * 0.85)
    copy = act.only_on(rank, act.copy_to_device(count, is_pinned=True))
    return Case(
        "straggler", job.with_hook("start", copy), job, title=(rf"\brank {rank}\b",), rest=(r"cop(y|ies)",), never=(NO_NOTHING,),
        truth=f"rank {rank} of {job.ranks} copies more in each step",
    )  # fmt: skip


@kind
def straggler_by_reads(chance: Random) -> Case:
    """Rank 0 reads metrics from its device and writes them in each step."""
    job = ranks_job(chance, has_stacks=True)
    frame = f"trainer.py({chance.randint(20, 300)}): log_metrics"
    write = act.python("json/encoder.py(183): encode", act.always(healthy_ns(job) * chance.uniform(0.3, 0.8)))

    def log(place: act.Place) -> None:
        act.times(8, act.item)(place)
        write(place)

    return Case(
        "straggler", job.with_hook("end", act.only_on(0, act.framed(frame, log))), job, title=(r"\brank 0\b",),
        rest=(place_name(frame) + r"|host",), never=(NO_NOTHING,), truth=f"rank 0 of {job.ranks} runs {frame} in each step",
    )  # fmt: skip


@kind
def uneven_stages(chance: Random) -> Case:
    """One stage of a pipeline has twice the layers of the others."""
    ranks = 4
    job = large(chance, ranks=ranks, layers=1, tokens=4096, hidden=3072, steps=6)
    slow, factor = chance.randrange(ranks), chance.uniform(1.8, 2.4)
    program = programs.pipeline(16, lambda link: 100)
    return Case(
        "bubble", replace(job, program=program, slowdown=lambda on, step, kernel: factor if on == slow else 1), replace(job, program=program),
        rest=(rf"\b(rank|stage) {slow}\b",), truth=f"stage {slow} of {ranks} computes {factor:.1f} times as long as the others",
    )  # fmt: skip
