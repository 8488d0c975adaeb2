"""Causes on the host: loaders, Python functions, synchronization, launches, allocation, compilation."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from . import activities as act
from . import devices as dv
from .cases import (
    Case,
    healthy_ns,
    kind,
    large,
    one_step,
    place_name,
    small,
    some_steps,
    step_name,
)  # fmt: skip
from .machine import Pace
from .programs import decode
from .training import Training
from .words import EVERY_STEP

FUNCTIONS = [
    "augment.py(31): random_crop", "tokenize.py(112): encode_batch", "metrics.py(57): log_metrics",
    "src/callbacks.py(204): on_batch_end", "losses.py(18): match_targets", "buffer.py(77): push_transition",
]  # fmt: skip
MS = 1_000_000


def with_loader(job: Training, length: act.Length, *, is_behind: bool = True, workers: int = 2) -> Training:
    """A job whose batches take a worker so long."""
    return job.with_hook("data", act.Loader(length, workers=workers, is_behind=is_behind))


@kind
def loader_exposed(chance: Random) -> Case:
    """Workers are slower than the device in each step."""
    job = large(chance)
    length = healthy_ns(job) * chance.uniform(1.3, 3) * 2
    return Case("loader", with_loader(job, act.always(length)), job, truth="each step waits for the loader")


@kind
def loader_partly_hidden(chance: Random) -> Case:
    """The host is ahead of the device, so a part of the wait is hidden behind it."""
    job = large(chance, reads_loss=False, hidden=3072)
    length = healthy_ns(job) * chance.uniform(1.2, 1.7) * 2
    return Case(
        "loader", with_loader(job, act.always(length)), job, truth="each step waits for the loader, partly hidden"
    )


@kind
def loader_every_nth_step(chance: Random) -> Case:
    """Each few steps, a shard is opened."""
    job = large(chance, steps=16)
    period = chance.choice([3, 4, 5])
    usual = healthy_ns(job)
    steps = range(2, job.steps, period)
    stall = act.in_steps(usual * chance.uniform(2.5, 5) + usual * 4, steps, usual * 0.4)
    return Case(
        "loader", with_loader(job, stall, is_behind=False, workers=1), job, never=(EVERY_STEP,),
        truth=f"{len(steps)} of {job.steps} steps wait for the loader",
    )  # fmt: skip


@kind
def loader_one_step(chance: Random) -> Case:
    """A single batch comes late."""
    job = large(chance, steps=chance.choice([16, 20]))
    usual, step = healthy_ns(job), one_step(chance, large(chance, steps=14))
    stall = act.in_steps(usual * chance.uniform(9, 14), [step], usual * 0.4)
    return Case(
        "loader", with_loader(job, stall, is_behind=False, workers=1), job, rest=(step_name(job, step) + r"|\b1 of \d+ steps|one (of \d+ )?steps?",),
        never=(EVERY_STEP,), truth=f"step {job.first_step + step} alone waits for the loader",
    )  # fmt: skip


@kind
def loader_gets_slower(chance: Random) -> Case:
    """A loader that takes longer from step to step."""
    job = large(chance, steps=16)
    usual, slope = healthy_ns(job), chance.uniform(0.12, 0.2)
    return Case(
        "loader", with_loader(job, lambda rank, step: usual * (0.8 + slope * step), workers=1), job,
        rest=(r"grow|longer|slower|trend|increas|from step|in \d+ of \d+ steps",), truth="the loader gets slower from step to step",
    )  # fmt: skip


@kind
def loader_without_workers(chance: Random) -> Case:
    """The main thread loads, in a function of the dataset."""
    job = large(chance, has_stacks=True)
    frame = f"data/dataset.py({chance.randint(20, 90)}): __getitem__"
    length = act.always(healthy_ns(job) * chance.uniform(0.4, 1.5))
    return Case(
        "loader", job.with_hook("data", act.load_in_main(frame, length)), job, truth="the main thread loads data"
    )


def _reading(chance: Random, read: act.Hook, truth: str, *, frame: str = "", rest: tuple[str, ...] = ()) -> Case:
    """A loop over the samples of a batch, each of which the host waits for; without the waits, the loop is hidden."""
    job = small(chance, steps=8, layers=3, has_stacks=bool(frame), device=dv.H100)
    operator = act.tiny("aten::mean", dv.REDUCE)
    count = chance.randint(120, 250)

    def loop(place: act.Place) -> None:
        for _ in range(count):
            operator(place)
            read(place)

    def unread(place: act.Place) -> None:
        act.times(count, operator)(place)

    hooks = [act.framed(frame, hook) if frame else hook for hook in (loop, unread)]
    return Case(
        "synchronize",
        job.with_hook("forward_end", hooks[0]),
        job.with_hook("forward_end", hooks[1]),
        rest=rest,
        truth=truth,
    )


@kind
def item_in_loop(chance: Random) -> Case:
    """A number is read from the device for each sample."""
    return _reading(chance, act.item, ".item() for each sample")


@kind
def item_in_loop_with_stacks(chance: Random) -> Case:
    """The same in a function whose name is recorded."""
    frame = f"metrics.py({chance.randint(20, 400)}): update_accuracy"
    return _reading(chance, act.item, f".item() in {frame}", frame=frame, rest=(place_name(frame) + r"|aten::item",))


@kind
def synchronize_in_loop(chance: Random) -> Case:
    """torch.cuda.synchronize() in a loop, as for timing."""
    return _reading(
        chance,
        act.synchronize,
        "torch.cuda.synchronize() in a loop",
        rest=(r"cudaDeviceSynchronize|torch\.cuda\.synchronize",),
    )


@kind
def nonzero_in_loop(chance: Random) -> Case:
    """A boolean mask for each sample, whose size the host waits for."""
    return _reading(chance, act.nonzero, "aten::nonzero waits for each sample", rest=(r"nonzero",))


@kind
def launch_bound_model(chance: Random) -> Case:
    """Kernels shorter than their launches, everywhere."""
    slow = Pace(6_000, 7_500, 2_500)
    job = small(chance, tokens=256, hidden=512, layers=6, pace=slow, steps=10)
    return Case(
        "launch_bound", job, replace(job, pace=Pace(300, 400, 100)), truth="all kernels are shorter than their launches"
    )


@kind
def tiny_kernels_in_loop(chance: Random) -> Case:
    """A loop over tiny tensors in each step."""
    job = large(chance, device=dv.H100, steps=8, tokens=4096, hidden=2048, layers=2)
    operator, symbol = chance.choice(
        [("aten::mul", dv.MULTIPLY), ("aten::roll", dv.DIRECT_COPY), ("aten::add", dv.ADD)]
    )
    loop = act.times(chance.randint(700, 1_000), act.tiny(operator, symbol))
    return Case(
        "launch_bound",
        job.with_hook("forward_end", loop),
        job,
        rest=(rf"{operator}\b",),
        truth=f"a loop of tiny {operator}",
    )


@kind
def optimizer_loop(chance: Random) -> Case:
    """An optimizer that updates one tensor after the other."""
    job = small(chance, device=dv.H100, tokens=1024, hidden=1024, layers=4, steps=8)
    return Case(
        "launch_bound", replace(job, has_fused_optimizer=False), job, rest=(r"optimizer|adamw?|foreach|fused=",),
        truth="Optimizer.step launches one small kernel after the other",
    )  # fmt: skip


@kind
def decode_without_graphs(chance: Random) -> Case:
    """A server decodes, launching each kernel."""
    job = small(chance, hidden=4096, layers=chance.randint(12, 24), steps=20, pace=Pace(4_000, 5_500, 2_000))
    return Case(
        "launch_bound",
        replace(job, program=decode(has_graphs=False)),
        replace(job, program=decode(has_graphs=True)),
        truth="decoding without graphs is launch-bound",
    )


def _function_case(
    chance: Random,
    length: act.Length,
    job: Training,
    never: tuple[str, ...] = (),
    rest: tuple[str, ...] = (),
    truth: str = "",
) -> Case:
    frame = chance.choice(FUNCTIONS)
    point = chance.choice(["start", "forward_end", "end"])
    return Case(
        "host_function", job.with_hook(point, act.python(frame, length)), job, rest=(place_name(frame), *rest), never=never,
        truth=f"{frame} {truth}",
    )  # fmt: skip


@kind
def python_function(chance: Random) -> Case:
    """A Python function in each step."""
    job = large(chance, has_stacks=True)
    return _function_case(chance, act.always(healthy_ns(job) * chance.uniform(0.5, 1.5)), job, truth="in each step")


@kind
def python_function_partly_hidden(chance: Random) -> Case:
    """The same, with a host that is ahead of the device."""
    job = large(chance, has_stacks=True, reads_loss=False)
    return _function_case(
        chance, act.always(healthy_ns(job) * chance.uniform(1.15, 1.6)), job, truth="in each step, partly hidden"
    )


@kind
def python_function_gets_slower(chance: Random) -> Case:
    """A Python function whose list grows."""
    job = large(chance, has_stacks=True, steps=16)
    usual, slope = healthy_ns(job), chance.uniform(0.08, 0.16)
    trend = (r"grow|longer|slower|trend|increas|from step",)
    return _function_case(
        chance, lambda rank, step: usual * slope * step, job, rest=trend, truth="takes longer from step to step"
    )


@kind
def python_function_in_some_steps(chance: Random) -> Case:
    """Logging in some steps."""
    job = large(chance, has_stacks=True, steps=16)
    steps = range(chance.randint(1, 3), job.steps, chance.choice([3, 4, 5]))
    length = act.in_steps(healthy_ns(job) * chance.uniform(1.5, 3), steps)
    return _function_case(chance, length, job, never=(EVERY_STEP,), truth=f"in {len(steps)} of {job.steps} steps")


@kind
def python_without_stacks(chance: Random) -> Case:
    """Host time of which nothing was recorded."""
    job = large(chance)
    length = act.always(healthy_ns(job) * chance.uniform(0.4, 1.2))
    hooked = job.with_hook("start", act.python(chance.choice(FUNCTIONS), length))
    return Case("host_unrecorded", hooked, job, truth="the host does something that wasn't recorded")


@kind
def logging_each_step(chance: Random) -> Case:
    """Metrics are read from the device and written in each step."""
    job = large(chance, has_stacks=True)
    frame = f"trainer/logger.py({chance.randint(20, 200)}): log_scalars"
    write = act.python(
        "tensorboard/writer.py(122): add_scalar", act.always(healthy_ns(job) * chance.uniform(0.25, 0.8))
    )

    def log(place: act.Place) -> None:
        act.times(6, act.item)(place)
        write(place)

    return Case(
        "host_function", job.with_hook("end", act.framed(frame, log)), job,
        rest=(place_name(frame) + "|" + place_name("writer.py(122): add_scalar"),), truth=f"{frame} in each step",
    )  # fmt: skip


@kind
def garbage_collection(chance: Random) -> Case:
    """Python collects garbage in some steps."""
    job = large(chance, has_stacks=True, steps=12)
    steps = some_steps(chance, job, 0.3)
    length = act.in_steps(healthy_ns(job) * chance.uniform(0.8, 2), steps)
    return Case(
        "garbage_collection", job.with_hook("forward_end", act.collect_garbage(length, "train.py(120): train_step")), job,
        never=(EVERY_STEP,), truth=f"garbage is collected in {len(steps)} of {job.steps} steps",
    )  # fmt: skip


@kind
def checkpoint_in_loop(chance: Random) -> Case:
    """One step writes a checkpoint."""
    job = large(chance, has_stacks=True, steps=12)
    frame, step = f"ckpt.py({chance.randint(10, 90)}): save_checkpoint", one_step(chance, job)
    save = act.save_checkpoint(frame, 200_000_000, int(healthy_ns(job) * chance.uniform(4, 9)))
    return Case(
        "checkpoint", job.with_hook("end", act.only_in([step], save)), job, rest=(step_name(job, step) + r"|1 of \d+ steps",),
        never=(EVERY_STEP,), truth=f"step {job.first_step + step} writes a checkpoint",
    )  # fmt: skip


@kind
def evaluation_in_one_step(chance: Random) -> Case:
    """One step runs a validation set."""
    job = large(chance, has_stacks=True, steps=10, hidden=2048, layers=2)
    frame, step = f"eval.py({chance.randint(10, 90)}): validate", one_step(chance, job)
    return Case(
        "evaluation", job.with_hook("end", act.only_in([step], act.evaluate(frame, chance.randint(12, 20)))), job,
        rest=(step_name(job, step), place_name(frame)), never=(EVERY_STEP,), truth=f"step {job.first_step + step} evaluates",
    )  # fmt: skip


@kind
def recompilation(chance: Random) -> Case:
    """Some steps compile a frame once more."""
    job = large(chance, steps=12)
    steps = some_steps(chance, job, 0.25)
    again = act.compile_again(int(healthy_ns(job) * chance.uniform(2, 5)), 1)
    return Case(
        "recompilation", job.with_hook("start", act.only_in(steps, again)), job, never=(EVERY_STEP,),
        truth=f"{len(steps)} of {job.steps} steps recompile",
    )  # fmt: skip


@kind
def allocation_storm(chance: Random) -> Case:
    """The allocator frees and takes memory in each layer."""
    job = small(chance, layers=4)
    hook = act.allocate(chance.randint(1, 3), chance.randint(180_000, 500_000))
    return Case("allocation", job.with_hook("layer", hook), job, truth="cudaFree and cudaMalloc in each layer")


@kind
def set_up_in_first_step(chance: Random) -> Case:
    """The first step loads kernels and takes memory."""
    job = large(chance, steps=10)
    hook = act.only_in([0], act.set_up(int(healthy_ns(job) * chance.uniform(8, 20))))
    return Case("set_up", job.with_hook("start", hook), job, truth="the first step sets up")


@kind
def optimizer_on_host(chance: Random) -> Case:
    """The optimizer's update runs on the CPU."""
    job = large(chance, device=chance.choice([dv.H100, dv.A100]))
    step = act.optimize_on_host(int(healthy_ns(job) * chance.uniform(0.6, 1.5)), 60_000_000)
    return Case("host_optimizer", job.with_hook("end", step), job, truth="the optimizer runs on the CPU")
