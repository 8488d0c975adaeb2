"""What devices spend on copies and fills that nothing hides: between host and device, and within a device's memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, map_categories, texts
from ..arrays.intervals import Intervals, Ints, exclusive_lengths, length_within
from ..measures.python.whereabouts import caller_of
from ..measures.time.breakdown import intervals_of
from ..measures.time.step_subset import belongs_to_steps
from ..names import text
from ..names.device_work import copies_between_devices, copies_to_host, is_pageable
from ..names.python_frames import function_name
from .extra_work import claimed_copies
from .facts import LEAST_SHARE, Facts, aten_operators
from .model import Advice, Candidate, ClearedTopic, OpenQuestion

COPY_LESS_OF_CACHE = (
    "Copy less: requests whose KV cache fits in the device's memory aren't swapped (fewer at a time, more memory for "
    "the cache); what must be copied can overlap the next iteration, from pinned memory."
)
_COPYING = "copying between host and device"
_BETWEEN = re.compile(r"HtoD|DtoH|HostToDevice|DeviceToHost|H2D|D2H")
_WITHIN = re.compile(r"DtoD|DeviceToDevice|D2D")
_DIRECTED = re.compile(r"[HDPA]to[HDPA]|(?:Host|Device|Peer|Array)To|[HDPA]2[HDPA]")
_NEARLY_ALL = 0.9  # of their time
_MOSTLY = 0.5
_MANY = 50  # per step
_REPEATED, _LARGE_BYTES = 4, 1 << 20  # so many large copies of one size per step may be of the same data
_SMALL_NS = 25_000  # a copy that takes less time than the host takes to launch it


def copies(facts: Facts) -> Iterator[Advice | ClearedTopic | OpenQuestion]:
    """Copies between host and device that no kernel hides."""
    if not facts.has_device:
        return
    between = _copies(facts, lambda name: bool(_BETWEEN.search(name)))
    is_claimed = between & claimed_copies(facts)
    if is_claimed.any():
        yield _loss(facts, between)
        between &= ~is_claimed
    is_small = _are_small(facts, between)
    lengths, pageable = _lengths(facts, between, with_host=is_small)
    if not facts.is_worth(lengths):
        if not is_claimed.any():
            yield _cleared_copies(facts, between, lengths)
        return
    pageable_part = facts.mean(pageable) / facts.mean(lengths)
    is_pageable = pageable_part > _MOSTLY
    steps, per = facts.steps_with(lengths), facts.per_step_with(lengths)
    of = _of_steps(facts, between, steps)
    size = int(of.filter(pl.col("bytes") > 0)["bytes"].sum()) / steps.size
    amount = f", {text.digits(size / 1e6)} MB {per}" if size else ""
    share = "all of it" if pageable_part >= 1 else f"{text.percent(pageable_part)} of it"
    kind = f"; {share} to or from pageable memory"
    if is_small:
        often = f"{text.often(of.height / steps.size)} copies {per}"
        yield _small(facts, lengths, of, between, often, f"{amount}{kind if is_pageable else ''}")
        return
    yield Advice(
        "copies",
        f"Exposed copies {_direction(of)} take {facts.of_steps(lengths)}.",
        f"For {facts.part_of(lengths)} copies run and no kernel does{facts.recurs(lengths)}"
        f"{amount}{kind if is_pageable else ''}.{_who(facts, of)}",
        _remedy(facts, of, steps.size, is_pageable=is_pageable),
        None,
        "high",
        "copies",
        "",
        facts.mean(lengths),
        Candidate("copies between host and device", rows=np.flatnonzero(between)),
    )


def _loss(facts: Facts, between: NDArray[np.bool_]) -> ClearedTopic:
    """What copies cost, if a claim about a few steps has some of them."""
    lengths, _ = _lengths(facts, between, with_host=False)
    mean_ns, of = facts.mean(lengths), _of_steps(facts, between, np.flatnonzero(facts.is_counted))
    lost_ns = mean_ns if facts.share(mean_ns) >= LEAST_SHARE else 0
    row, row_ns = of["row"].to_numpy(), of["dur_ns"].to_numpy()
    return ClearedTopic("copies", f"{facts.percent(mean_ns)} {_COPYING}", lost_ns=lost_ns, rows=row, row_ns=row_ns)


def _cleared_copies(facts: Facts, between: NDArray[np.bool_], lengths: Ints) -> ClearedTopic | OpenQuestion:
    """That copies cost little, unless those of unknown direction, which may be between host and device, cost much."""
    words, no_direction = _COPYING, _copies(facts, lambda name: not _DIRECTED.search(name))
    if no_direction.any():
        words, between = "in copies, some of unknown direction", between | no_direction
        lengths, _ = _lengths(facts, between, with_host=False)
    verdict = facts.cleared_topic("copies", lengths, words)
    if verdict is None:
        reason = f"the names of {text.often(int(no_direction.sum()))} of the copies don't say their direction"
        return OpenQuestion(f"what {_COPYING} costs", reason, facts.mean(lengths), view="copies")
    of = _of_steps(facts, between, np.flatnonzero(facts.is_counted))
    return replace(verdict, rows=of["row"].to_numpy(), row_ns=of["dur_ns"].to_numpy())


def _small(facts: Facts, lengths: Ints, of: pl.DataFrame, which: NDArray[np.bool_], often: str, amount: str) -> Advice:
    """That copies are so many and so small that launching them is what takes long."""
    candidate = facts.host_candidate("small copies to the device", _launch_spans(facts, which))
    return Advice(
        "small_copies",
        f"Many small copies {_direction(of)} take {facts.of_steps(lengths)}.",
        f"{often} of {text.time(float(of['dur_ns'].mean() or 0))} each{amount}; with the host that "  # type: ignore[arg-type]
        f"launches them, no kernel runs for {facts.part_of(lengths)}{facts.recurs(lengths)}.{_who(facts, of)}",
        "Copy at once what is small: collate or concatenate it on the host, pin it, and cut it on the device; or make "
        "it on the device (`device=`).",
        None,
        "high",
        "copies",
        "",
        facts.mean(lengths),
        replace(candidate, rows=np.flatnonzero(which)),
    )


def device_copies(facts: Facts) -> Iterator[Advice]:
    """Copies within a device's memory that no kernel hides."""
    if not facts.has_device:
        return
    within = _copies(facts, lambda name: bool(_WITHIN.search(name))) & ~claimed_copies(facts)
    lengths, _ = _lengths(facts, within, with_host=False)
    if not facts.is_worth(lengths):
        return
    steps = facts.steps_with(lengths)
    of = _of_steps(facts, within, steps)
    yield Advice(
        "device_copies",
        f"Copies within the device's memory take {facts.of_steps(lengths)}.",
        f"For {facts.part_of(lengths)} copies from device to device run and no kernel does{facts.recurs(lengths)}; "
        f"{text.often(of.height / steps.size)} {facts.per_step_with(lengths)}.{_who(facts, of)}",
        "Copy less on the device: no `.contiguous()` or `.clone()` where views do, layouts that the next kernel reads, "
        "results written into their place (`out=`), or `torch.compile`, which fuses copies.",
        None,
        "high",
        "copies",
        "",
        facts.mean(lengths),
        Candidate("copies within the device's memory", rows=np.flatnonzero(within)),
    )


def peer_copies(facts: Facts) -> Iterator[Advice]:
    """Copies between devices that no kernel of any of them hides."""
    if not facts.has_device:
        return
    between = _copies(facts, copies_between_devices) & ~claimed_copies(facts)
    lengths, _ = _lengths(facts, between, with_host=False)
    if not facts.is_worth(lengths):
        return
    steps = facts.steps_with(lengths)
    of = _of_steps(facts, between, steps)
    sizes = of.filter(pl.col("bytes") > 0)
    size = int(sizes["bytes"].sum())
    often = f"{text.often(of.height / steps.size)} {facts.per_step_with(lengths)}"
    rate = size / max(1, int(sizes["dur_ns"].sum()))  # bytes per ns are GB/s
    amount = f", {text.digits(size / 1e6 / steps.size)} MB at {text.digits(rate)} GB/s" if size else ""
    yield Advice(
        "peer_copies",
        f"Copies between {facts.noun_of_devices}s take {facts.of_steps(lengths)}.",
        f"For {facts.part_of(lengths)} copies from one {facts.noun_of_devices} to another run and no kernel does"
        f"{facts.recurs(lengths)}; {often}{amount}.{_who(facts, of)}",
        "Let each process have its own device, with its own batch (`DistributedDataParallel`, not `DataParallel`); "
        "else copy less, or on a stream of its own while both devices compute.",
        None,
        "high",
        "copies",
        "PtoP",
        facts.mean(lengths),
        Candidate("copies between devices", rows=np.flatnonzero(between)),
    )


def fills(facts: Facts) -> Iterator[Advice]:
    """Memory of a device that is filled with a value while no kernel runs."""
    if not facts.has_device:
        return
    device = facts.trace.device_events
    which = (device["kind"] == "memset").to_numpy() & ~device["is_communication"].to_numpy()
    lengths, _ = _lengths(facts, which, with_host=False)
    if not facts.is_worth(lengths):
        return
    steps = facts.steps_with(lengths)
    of = _of_steps(facts, which, steps)
    yield Advice(
        "fills",
        f"Filling memory with a value (memset) takes {facts.of_steps(lengths)}.",
        f"For {facts.part_of(lengths)} fills run and no kernel does{facts.recurs(lengths)}; "
        f"{text.often(of.height / steps.size)} {facts.per_step_with(lengths)}.{_who(facts, of)}",
        "Fill less: `torch.empty` where all is written anyway, `zero_grad(set_to_none=True)`, buffers that are used "
        "again; or let the kernel that follows write the zeros (`torch.compile`).",
        None,
        "high",
        "kernels",
        "Memset",
        facts.mean(lengths),
        Candidate("fills of memory", rows=np.flatnonzero(which)),
    )


def _copies(facts: Facts, is_meant: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Which rows of device_events are copies of names that are meant."""
    device = facts.trace.device_events
    is_copy = (device["kind"] == "memcpy").to_numpy() & ~device["is_communication"].to_numpy()
    return np.asarray(is_copy & map_categories(device["name"], is_meant))


def _of_steps(facts: Facts, which: NDArray[np.bool_], steps: NDArray[np.intp]) -> pl.DataFrame:
    """The copies among these in some steps, with the number of each as `row`."""
    columns = ("name", "device", "stream", "dur_ns", "bytes", "launch")
    rows = facts.trace.device_events.select(columns).with_row_index("row")
    belong = belongs_to_steps(facts.trace, "device_events", steps.tolist())
    return rows.filter(pl.Series(which & belong, dtype=pl.Boolean))


def _lengths(facts: Facts, which: NDArray[np.bool_], *, with_host: bool) -> tuple[Ints, Ints]:
    """How long these rows run while no other does, of each step; and how long of this those of pageable memory.

    `with_host`: with the time that the host takes to launch them while the device is idle.
    """
    device, windows = facts.trace.device_events, facts.windows
    if not which.any():
        return np.zeros_like(windows.start), np.zeros_like(windows.start)
    pageable = which & map_categories(device["name"], is_pageable)
    is_copy = (device["kind"] == "memcpy").to_numpy()
    groups = [intervals_of(device, where) for where in (~(is_copy | which), pageable, which)]
    groups += [_launch_spans(facts, which)] if with_host else []
    _, from_pages, *others, _ = exclusive_lengths(groups, windows.start, windows.end)
    return np.sum([from_pages, *others], axis=0), np.asarray(from_pages)


def _launch_spans(facts: Facts, which: NDArray[np.bool_]) -> Intervals:
    """When the host is in the operators that launch these copies."""
    trace = facts.trace
    launch = trace.device_events["launch"].to_numpy()[which]
    op = aten_operators(trace, launch[launch != NONE])
    ranges = np.zeros(trace.host_events.height, bool)
    ranges[op[op != NONE]] = True
    return intervals_of(trace.host_events, ranges)


def _are_small(facts: Facts, which: NDArray[np.bool_]) -> bool:
    """Whether these copies go to the device, are many, and take less time than the host takes to launch them."""
    of = _of_steps(facts, which, np.flatnonzero(facts.is_counted))
    is_many = of.height >= _MANY * facts.count
    return is_many and _to_host_share(of) < _MOSTLY and float(of["dur_ns"].mean()) < _SMALL_NS  # type: ignore[arg-type]


def _to_host_share(of: pl.DataFrame) -> float:
    to_host = pl.Series(map_categories(of["name"], copies_to_host), dtype=pl.Boolean)
    return int(of["dur_ns"].filter(to_host).sum()) / max(1, int(of["dur_ns"].sum()))


def _direction(of: pl.DataFrame) -> str:
    share = _to_host_share(of)
    if share > _NEARLY_ALL:
        return "from the device to the host"
    return "between host and device" if share > 1 - _NEARLY_ALL else "from the host to the device"


def _remedy(facts: Facts, of: pl.DataFrame, steps: int, *, is_pageable: bool) -> str:
    """What to do about copies between host and device, of so many steps."""
    if facts.server and facts.has_iterations:
        return COPY_LESS_OF_CACHE
    alike = of.filter(pl.col("bytes") >= _LARGE_BYTES).group_by("bytes").len()
    often = bool((alike["len"] >= _REPEATED * steps).any())
    again = " What is the same each time belongs on the device once (`register_buffer`)." if often else ""
    if _to_host_share(of) > _NEARLY_ALL:
        return (
            "Copy less to the host, and less often: reduce or sample on the device first. Copy with "
            "`non_blocking=True` into pinned memory, and read it a step later."
        )
    if is_pageable:
        pin = "Pin host memory (`DataLoader(pin_memory=True)`) and copy with `non_blocking=True`, one batch ahead."
        return f"{pin}{again}"
    device = facts.trace.device_events
    copies_ns = length_within(intervals_of(device[of["row"].to_numpy()]), facts.windows.start, facts.windows.end)
    if facts.mean(copies_ns) > facts.mean(facts.computation):
        return (
            "The copies take longer than the computation, so one batch ahead can't hide them: copy fewer bytes "
            "(convert on the device, smaller number formats), or see why the link is slow (`nvidia-smi topo -m`, the "
            f"NUMA node).{again}"
        )
    if _has_own_stream(facts, of):
        return (
            "The copies have a stream of their own, but wait there: look at the event that each waits for "
            f"(`wait_stream`, `wait_event`), and copy the next batch while this one computes.{again}"
        )
    return f"Copy one batch ahead on a stream of its own, or copy less: convert and augment on the device.{again}"


def _has_own_stream(facts: Facts, of: pl.DataFrame) -> bool:
    """Whether copies run on streams that run no kernel, nearly all of their time."""
    columns = ["device", "stream"]
    own = of.join(facts.kernels.select(columns).unique(), columns, "anti")
    return int(own["dur_ns"].sum()) >= _NEARLY_ALL * int(of["dur_ns"].sum())


def _who(facts: Facts, of: pl.DataFrame) -> str:
    """The operator that launches most of the time of copies, and the function that calls it, as a sentence."""
    launches = of.filter(pl.col("launch") != NONE)
    names = texts(facts.trace.host_events["name"], aten_operators(facts.trace, launches["launch"].to_numpy()))
    by_op = launches.with_columns(op=names).drop_nulls("op").group_by("op")
    sums = by_op.agg(pl.col("dur_ns").sum(), pl.col("launch").sort_by("dur_ns").last()).sort("dur_ns", "op")
    if sums.is_empty() or sums["dur_ns"][-1] < _MOSTLY * int(of["dur_ns"].sum()):
        longest = launches.sort("dur_ns", "launch")["launch"].tail(1)
        caller = "".join(caller_of(facts.trace, call) for call in longest)
        return f" The longest is made at `{function_name(caller)}`." if caller else ""
    caller = caller_of(facts.trace, int(sums["launch"][-1]))
    return f" `{sums['op'][-1]}` makes most of them{f', the longest at `{function_name(caller)}`' if caller else ''}."
