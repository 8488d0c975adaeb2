"""How evenly devices work, how full they are while they compute, and how full their memory is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.intervals import Ints, capped_integrals, length_within
from ..measures.memory.levels import device_name
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..names.kernel_labels import kernel_label
from ..trace.row_filters import name_mask
from .facts import LARGE_SHARE, Facts
from .model import Advice, Candidate, ClearedTopic, Culprit, OpenQuestion

_UNFILLED = 0.5  # of the multiprocessors are in use while something computes
_LEAST_KNOWN = 0.8  # of the kernel time
_UNEVEN = 0.10  # of the step
_HARDLY = 0.1  # of what the busiest device computes
_TURNS = 0.8  # of the time of all devices: then two of them rarely compute at the same time
_LISTED = 4
_NEARLY_FULL = 0.9  # of a device's memory

Floats = NDArray[np.float64]


def uneven_devices(facts: Facts) -> Iterator[Advice]:
    """Devices that work one after the other, or of which some have little to do."""
    if not facts.has_device or len(facts.computation_of_devices) < 2:
        return
    lengths = facts.exposure_parts["computation"] - facts.computation
    if not facts.is_worth(lengths, _UNEVEN):
        return
    shares = {device: facts.share(facts.mean(ns)) for device, ns in facts.computation_of_devices.items()}
    together = facts.share(facts.mean(facts.exposure_parts["computation"]))
    noun = facts.noun_of_devices
    least_busy = _HARDLY * max(shares.values())
    is_idle = [device for device, share in shares.items() if share < least_busy]
    what = (
        f"{text.enumeration([f'{noun} {device}' for device in is_idle[:_LISTED]])} hardly compute"
        f"{'s' if len(is_idle) == 1 else ''}"
        if is_idle
        else f"{len(shares)} {noun}s take turns"
        if together > _TURNS * sum(shares.values())
        else f"{len(shares)} {noun}s have uneven work"
    )
    least, most = sorted(shares, key=lambda device: shares[device])[:: len(shares) - 1]
    devices = list(shares) if len(shares) <= _LISTED else [least, most]
    times = text.enumeration([f"{text.percent(shares[device])} on {noun} {device}" for device in devices])
    yield Advice(
        "uneven_devices",
        f"{what}: computation takes {times} of {facts.unit}.",
        f"Some device computes for {text.percent(together)} of {facts.unit}, each of them for "
        f"{text.percent(facts.share(facts.mean(facts.computation)))} on average{facts.recurs(lengths)}.",
        "Let them work at the same time: cut batches into micro-batches that pass through the devices as a pipeline "
        "(`torch.distributed.pipelining`), or give each device a process and a part of the batch "
        "(`DistributedDataParallel`, FSDP).",
        facts.mean(lengths),
        "medium",
        "gpus",
    )


def data_parallel(facts: Facts) -> Iterator[Advice]:
    """DataParallel copies the model to each device in every step, from one process."""
    trace = facts.trace
    device_count = trace.device_events["device"].n_unique()
    names = (trace.host_events["name"], trace.python_calls["name"])
    is_used = any(
        name_mask(n, lambda text: bool(re.search(r"\bDataParallel(?:\.forward|_\d+)", text))).any() for n in names
    )
    if not is_used or device_count < 2:
        return
    yield Advice(
        "data_parallel",
        f"DataParallel drives {device_count} devices from one process.",
        "It copies the model to each device in every step, and one Python process launches the work of all of them.",
        "Use `DistributedDataParallel` with one process per device.",
        None,
        "high",
        "gpus",
    )


def small_kernels(facts: Facts) -> Iterator[Advice | ClearedTopic | OpenQuestion]:
    """Kernels that are too small to fill the device that runs them."""
    if not facts.has_device or facts.kernels.is_empty():
        return
    kernels = facts.kernels.select("device", "start_ns", "dur_ns", "blocks_per_sm")
    is_known = kernels["blocks_per_sm"].is_not_nan()
    if int(kernels["dur_ns"].filter(is_known).sum()) < _LEAST_KNOWN * int(kernels["dur_ns"].sum()):
        yield OpenQuestion(
            "how full the device is",
            "blocks per multiprocessor weren't recorded: torch 1.9 and later record them, on NVIDIA GPUs only",
        )
        return
    busy_ns, unfilled_ns = _busy_and_unfilled(facts, kernels)
    devices = kernels["device"].n_unique()
    lengths = (unfilled_ns / devices).astype(np.int64)
    share = float(unfilled_ns.sum() / max(busy_ns.sum(), 1))
    if share < _UNFILLED or not facts.is_worth(lengths, 0.1):
        if (own := _of_one_kernel(facts, lengths)) is not None:
            yield own
            return
        empty_part = f"{100 * share:.0f} % of the {facts.terms.multiprocessors}"
        lost_ns = facts.mean(lengths)
        empty = np.nan_to_num(1 - np.clip(kernels["blocks_per_sm"].to_numpy(), 0, 1))
        yield ClearedTopic(
            "SM efficiency",
            f"{facts.percent(lost_ns)} lost because running kernels leave {empty_part} empty",
            lost_ns=lost_ns if lost_ns >= LARGE_SHARE * facts.step_ns else 0,
            rows=facts.kernel_rows,
            row_ns=(kernels["dur_ns"].to_numpy() * empty).astype(np.int64),
        )
        return
    yield Advice(
        "small_kernels",
        f"While kernels run, they fill only {100 * (1 - share):.0f} % of {facts.device}.",
        f"Their blocks occupy that share of the {facts.terms.multiprocessors}, averaged over the time that kernels run "
        f"({facts.percent(float(busy_ns[facts.is_counted].mean()) / devices)} of {facts.unit}).",
        "Give kernels more to do: larger batches, fused operators (`torch.compile`), or independent work on a second "
        "stream.",
        facts.mean(lengths),
        "low",
        "gpus",
    )


def _busy_and_unfilled(facts: Facts, kernels: pl.DataFrame) -> tuple[Floats, Floats]:
    """(How long kernels run in each step that counts, how much of that their blocks leave unused), of all devices."""
    windows = facts.windows
    busy_ns, unfilled_ns = np.zeros(facts.length.size), np.zeros(facts.length.size)
    for device in kernels["device"].unique():
        rows = kernels.filter(pl.col("device") == device)
        start, end = rows["start_ns"].to_numpy(), (rows["start_ns"] + rows["dur_ns"]).to_numpy()
        running_ns = length_within(intervals_of(rows), windows.start, windows.end)
        height = np.nan_to_num(rows["blocks_per_sm"].to_numpy())
        edges = np.stack([windows.start, windows.end], axis=1).ravel()  # windows are in order, and don't overlap
        filled_ns = np.diff(capped_integrals(start, end, height, 1.0, edges))[::2]
        busy_ns += np.where(facts.is_counted, running_ns, 0)
        unfilled_ns += np.where(facts.is_counted, running_ns - filled_ns, 0.0)
    return busy_ns, unfilled_ns


def _of_one_kernel(facts: Facts, unfilled_ns: Ints) -> Advice | None:
    """The kernel whose blocks leave most of a device without work, where others fill it.

    Args:
        facts: The facts.
        unfilled_ns: The time per step that the devices lose since all kernels together don't fill them.
    """
    kernels = facts.kernels.select("name", "dur_ns", fill=pl.col("blocks_per_sm").clip(0, 1))
    kernels = kernels.with_columns(row=pl.Series(facts.kernel_rows), lost_ns=pl.col("dur_ns") * (1 - pl.col("fill")))
    sums = kernels.filter(pl.col("fill").is_not_nan()).group_by("name").agg(pl.col("dur_ns", "lost_ns").sum(), pl.len())
    sums = sums.sort("lost_ns", pl.col("name").cast(pl.String), descending=[True, False])
    name, time_ns, lost_ns, calls = sums.row(0)
    if lost_ns < _UNFILLED * time_ns:
        return None
    own = kernels.filter(pl.col("name") == name)
    lost_per_step = np.zeros(facts.length.size)
    np.add.at(lost_per_step, facts.trace.device_events["step"].to_numpy()[own["row"]], own["lost_ns"].to_numpy())
    lengths: Ints = np.minimum(lost_per_step.astype(np.int64), unfilled_ns)
    if not facts.is_worth(lengths, 0.1):
        return None
    label = kernel_label(str(name))
    return Advice(
        "small_kernels",
        f"`{label}` fills only {text.percent(1 - lost_ns / time_ns)} of {facts.device}, which costs "
        f"{facts.of_steps(lengths, 0.1)}.",
        f"It runs for {text.time(time_ns / facts.count)} {facts.per}, in {text.times(calls / facts.count, 'call')}, "
        f"with {text.digits(float(own['fill'].mean()))} blocks per multiprocessor: on most of them none of it runs"  # type: ignore[arg-type]
        f"{facts.recurs(lengths, 0.1)}.",
        "Give it more blocks: split its work over batch, heads, sequence or channels, or larger batches; or run it "
        "at the same time as other work, on a second stream.",
        None,
        "low",
        "kernels",
        "",
        facts.mean(lengths),
        Candidate(
            "the extra time of a kernel that doesn't fill the device",
            rows=own["row"].to_numpy(),
            less=1 - own["fill"].to_numpy(),
        ),
        Culprit(kernel=str(name)),
    )


def memory(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Device memory that is nearly used up; what the host allocates is never compared with a device's size."""
    sizes = {d.get("id"): d.get("totalGlobalMem") for d in facts.trace.meta.devices}
    rows = facts.trace.memory.lazy().filter(pl.col("device_type") > 0)
    peaks = rows.group_by("device").agg(pl.col("total_allocated").max(), kind=pl.col("device_type").first())
    for device, peak, kind in peaks.sort("device").collect().rows():
        size = sizes.get(device)
        if not size or peak <= 0:
            continue
        if peak <= _NEARLY_FULL * size:
            yield ClearedTopic("memory", f"peak memory {text.percent(peak / size)} of {device_name(kind, device)}")
            continue
        yield Advice(
            "memory",
            f"Device {device}'s memory is {100 * peak / size:.0f} % full at its peak.",
            f"Tensors take {text.memory_size(peak)} of {text.memory_size(size)}; what the driver, libraries and "
            "fragments take comes on top. "
            + (
                "A longer sequence or a larger batch may run out of memory."
                if facts.is_training
                else "That is on purpose where a server reserves its cache when it starts."
            ),
            "Recompute activations (`torch.utils.checkpoint`), train in bfloat16, or shard the optimizer's state."
            if facts.is_training
            else "Only if it runs out: smaller batches, shorter sequences, weights or cache in fewer bits, or more "
            "devices for the model.",
            None,
            "high",
            "memory_peak",
        )
        return
