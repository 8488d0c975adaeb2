"""Healthy jobs, and recordings of which nothing can be said."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from . import activities as act
from . import devices as dv
from . import programs
from .cases import HEALTHY, UNKNOWN, Case, healthy_ns, kind, large, small
from .host_kinds import with_loader
from .machine import Kernel
from .rank_kinds import ranks_job
from .training import train_step


@kind
def healthy_training(chance: Random) -> Case:
    """A device that computes near its roof."""
    return Case(HEALTHY, large(chance, tokens=8192), truth="healthy")


@kind
def healthy_and_ahead(chance: Random) -> Case:
    """A host that never waits."""
    return Case(HEALTHY, large(chance, tokens=8192, reads_loss=False), truth="healthy")


@kind
def healthy_with_stacks(chance: Random) -> Case:
    """The same with stacks recorded."""
    return Case(HEALTHY, large(chance, tokens=8192, has_stacks=True), truth="healthy")


@kind
def healthy_loader(chance: Random) -> Case:
    """A loader that is always ahead."""
    job = large(chance, tokens=8192)
    return Case(
        HEALTHY,
        with_loader(job, act.always(healthy_ns(job) * 1.3), is_behind=False, workers=4),
        truth="healthy, with a loader that is hidden",
    )


@kind
def healthy_python(chance: Random) -> Case:
    """Python that takes half a step, hidden behind the device."""
    job = large(chance, tokens=8192, reads_loss=False, has_stacks=True)
    work = act.python("metrics.py(57): log_metrics", act.always(healthy_ns(job) * 0.4))
    return Case(HEALTHY, job.with_hook("end", work), truth="healthy, with Python work that is hidden")


@kind
def healthy_ranks(chance: Random) -> Case:
    """A reduction hidden behind the backward pass."""
    return Case(HEALTHY, ranks_job(chance, bus_rate=400), truth="healthy, on several ranks")


@kind
def healthy_noise(chance: Random) -> Case:
    """Kernels that vary by a few percent."""
    return Case(HEALTHY, large(chance, tokens=8192, noise=0.04), truth="healthy, with noise")


@kind
def healthy_two_devices(chance: Random) -> Case:
    """A process with two devices that work at the same time."""
    job = small(chance, device=dv.H100, devices=2, layers=8, tokens=8192, hidden=4096, steps=10)
    return Case(HEALTHY, replace(job, program=programs.two_devices(take_turns=False)), truth="healthy, on two devices")


@kind
def healthy_experts(chance: Random) -> Case:
    """Experts of equal load, and a fast network."""
    job = large(chance, device=dv.H100, ranks=2, layers=3, tokens=16384, hidden=4096, steps=8, bus_rate=2_000)
    return Case(HEALTHY, replace(job, program=programs.experts(lambda rank: 1)), truth="healthy experts")


@kind
def healthy_copies(chance: Random) -> Case:
    """Copies of the next batch on a stream of their own."""
    job = large(chance, tokens=8192)
    count = int(healthy_ns(job) * 0.4 * job.device.link_rate * 0.85)

    def prefetch(place: act.Place) -> None:
        act.copy_in(place, count, stream=30)

    return Case(HEALTHY, job.with_hook("start", prefetch), truth="healthy, with copies that are hidden")


@kind
def healthy_lengths(chance: Random) -> Case:
    """Batches whose lengths differ by a tenth, as they do after sorting by length."""
    job = large(chance, tokens=8192, hidden=3072, steps=14)

    def step(place: act.Place) -> None:
        place.job = replace(job, tokens=place.random.randrange(7600, 8400, 64))
        train_step(place)

    return Case(HEALTHY, replace(job, program=step), truth="healthy, with batches of different lengths")


@kind
def healthy_pipeline(chance: Random) -> Case:
    """Two stages with many microbatches."""
    job = large(chance, device=dv.H100, ranks=2, layers=2, tokens=8192, hidden=4096, steps=4)
    return Case(HEALTHY, replace(job, program=programs.pipeline(32, lambda link: 400)), truth="a healthy pipeline")


@kind
def healthy_shards(chance: Random) -> Case:
    """Sharded parameters that are gathered before they are needed."""
    job = ranks_job(chance, bus_rate=400)
    return Case(
        HEALTHY, replace(job, program=programs.sharded(prefetches=True)), truth="healthy, with sharded parameters"
    )


@kind
def host_rows_alone(chance: Random) -> Case:
    """Launches were recorded, and no work of the device."""

    def keep_host(contents: dict[str, Any]) -> dict[str, Any]:
        rows = [event for event in contents["traceEvents"] if event.get("cat") not in ("kernel", "gpu_memcpy", "ac2g")]
        return {**contents, "traceEvents": rows}

    return Case(
        UNKNOWN, large(chance), damage=keep_host, truth="only the host was recorded: what the device does isn't"
    )


@kind
def unnamed_device(chance: Random) -> Case:
    """A convolution at an unknown share of an unnamed device's roof."""

    def convolve(place: act.Place) -> None:
        with place.host.operator("aten::cudnn_convolution", [(8, 256, 56, 56), (256, 256, 3, 3)], ["float"] * 2):
            place.launch(Kernel(dv.CONVOLUTION, 6_000_000, (784, 1, 1)))
        act.item(place)

    return Case(
        UNKNOWN,
        large(chance, device=dv.UNNAMED, program=convolve),
        truth="the device isn't named, so nothing can be rated",
    )


@kind
def unknown_kernel(chance: Random) -> Case:
    """A kernel of the user's own takes all of the time; no shapes say what it does."""

    def scan(place: act.Place) -> None:
        with place.host.range("mylib::scan", "cpu_op"):
            place.launch(Kernel(dv.CUSTOM, 8_000_000, (2112, 1, 1)))
        act.item(place)

    return Case(UNKNOWN, large(chance, program=scan), truth="all of the time is a kernel that can't be rated")


@kind
def too_short(chance: Random) -> Case:
    """A few kernels, without steps."""

    def shorten(contents: dict[str, Any]) -> dict[str, Any]:
        events = [event for event in contents["traceEvents"] if not event["name"].startswith("ProfilerStep")]
        starts = sorted(event["ts"] for event in events if event.get("cat") == "kernel")
        return {**contents, "traceEvents": [event for event in events if event["ph"] == "M" or event["ts"] < starts[3]]}

    return Case(UNKNOWN, large(chance, steps=2), damage=shorten, truth="three kernels aren't a training")


@kind
def kernels_lost(chance: Random) -> Case:
    """The profiler's buffer was full: a third of the kernels is missing."""
    start = chance.uniform(0.3, 0.6)

    def lose(contents: dict[str, Any]) -> dict[str, Any]:
        events = contents["traceEvents"]
        kernels = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy")]
        gone = {id(event) for event in kernels[int(len(kernels) * start) : int(len(kernels) * (start + 0.33))]}
        return {**contents, "traceEvents": [event for event in events if id(event) not in gone]}

    return Case(UNKNOWN, large(chance), damage=lose, truth="a third of the kernels is missing")


@kind
def device_rows_alone(chance: Random) -> Case:
    """A writer that records kernels only; the device is idle for half of the time, for an unknown reason."""
    job = large(chance)
    hooked = job.with_hook("start", act.python("a.py(1): f", act.always(healthy_ns(job) * chance.uniform(0.8, 1.5))))

    def keep_device(contents: dict[str, Any]) -> dict[str, Any]:
        rows = [
            event
            for event in contents["traceEvents"]
            if event.get("cat") in ("kernel", "gpu_memcpy") or event["ph"] == "M"
        ]
        return {**contents, "traceEvents": rows}

    return Case(UNKNOWN, hooked, damage=keep_device, truth="only kernels were recorded: why the device is idle isn't")


@kind
def wrong_unit(chance: Random) -> Case:
    """Times of the device in another unit than those of the host."""

    def shorten(contents: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {**event, "dur": event["dur"] / 1000} if event.get("cat") in ("kernel", "gpu_memcpy") else event
            for event in contents["traceEvents"]
        ]
        return {**contents, "traceEvents": rows}

    return Case(UNKNOWN, large(chance), damage=shorten, truth="durations of kernels are in another unit")


@kind
def clocks_apart(chance: Random) -> Case:
    """The clock of the device jumps by milliseconds against that of the host."""
    jump = chance.uniform(8_000, 20_000)

    def shift(contents: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {**event, "ts": event["ts"] + jump} if event.get("cat") in ("kernel", "gpu_memcpy") else event
            for event in contents["traceEvents"]
        ]
        return {**contents, "traceEvents": rows}

    return Case(UNKNOWN, small(chance, layers=2), damage=shift, truth="the clocks of host and device are apart")
