"""Kernels that needn't run so long: attention that isn't fused, operators far below their roof, kernels to fuse.

Each kernel belongs to one rule at most, the first that applies: unfused attention; matmuls, convolutions and attention
far below their roof; float matmuls that lower precision would speed up; elementwise kernels to fuse; casts and layout
changes; other memory-bound kernels far below the memory's bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..arrays.intervals import Ints, length_within
from ..measures.calls.kernel_work import NO_CAPTURE, Group, KernelWork
from ..measures.calls.memory_work import NO_MODEL
from ..measures.calls.op_calls import module_classes
from ..measures.calls.unfused_attention import UnfusedAttention, unfused_attention
from ..measures.calls.waiting_calls import waits_for_devices
from ..measures.recording.lost_launches import lone_rows
from ..measures.time.breakdown import intervals_of
from ..measures.time.idle import axes
from ..names import text
from ..names.kernel_labels import kernel_label
from ..names.regex import regex
from .culprit import in_program
from .facts import LEAST_SHARE, Facts
from .faults import link_launches
from .host import is_launch_bound, kernels_of_optimizer
from .kernel_causes import TINY_NS, Cause, cause_of, misaligned_sizes
from .kernel_growth import KernelGrowth
from .kernel_text import (
    DOUBLES_FASTER,
    IN_FLOAT,
    has_doubles,
    inputs_of,
    largest_groups,
    limit_in_words,
    use_fused,
)
from .kernel_times import KernelTimes
from .model import Advice, Candidate, ClearedTopic, Confidence, Culprit, OpenQuestion
from .precision import FASTER, channels_last, image_layouts, mixed_precision, slow_floats

_CLOSE = "how close kernels come to the device's limits"
_LEAST = 0.10
"""Of the step: less of it isn't worth changing a model for."""
_LEAST_SAVED = 0.05
"""Of the step, at the roof: as much as the least time saves at half of it."""
_FAR_BELOW = 1 / 2
"""Of the roof: tuned kernels for large sizes reach 60 to 90 %, also where they are bound by memory."""
_BELOW = 3 / 4
"""Of the roof, where the sizes show a cause that the user can change: well tuned matmuls reach that."""
_MUCH_SHARED = 0.1
"""Of the time: kernels that run at the same time take a part of the device, and may explain a low share of the roof."""
_MOVED = 0.05
"""Of the step: some casts and layout changes are needed everywhere."""
_MOST = 1 / 2
"""Of the time: an operator that takes more is named."""
_NEARLY_ALL, _HARDLY = 0.99, 0.1  # of the kernel time
_LOOP = 50  # calls per step
_ADDS_ATOMICALLY = regex(r"index_add|scatter_(?:add|reduce)|index_put|embedding_dense_backward|bincount|histc")
"""Operators whose threads may add to the same element."""

Mask = NDArray[np.bool_]


@dataclass
class _Kernels:
    """The kernels of the steps that count, which of them no rule has claimed yet, and which are slow float matmuls."""

    facts: Facts
    work: KernelWork
    is_free: Mask
    is_slow_float: Mask

    def of_groups(self, groups: Sequence[int]) -> Mask:
        """The free kernels of some groups, by their numbers."""
        is_chosen = np.zeros(len(self.work.groups), bool)
        is_chosen[np.array(groups, np.int64)] = True
        return self.is_free & is_chosen[self.work.group]

    def of_family(self, family: str) -> Mask:
        """The free kernels of a family."""
        return self.of_groups([number for number, group in enumerate(self.work.groups) if group.family == family])

    def lengths(self, mask: Mask) -> Ints:
        """How long any of the chosen kernels runs, per step."""
        windows = self.facts.windows
        return length_within(intervals_of(self.facts.kernels, mask), windows.start, windows.end)

    def claim(self, mask: Mask) -> None:
        """No later rule counts these kernels."""
        self.is_free &= ~mask

    def candidate(self, words: str, mask: Mask, less: NDArray[np.float64] | float | None = 1.0) -> Candidate:
        """That the chosen kernels take a share of their time less."""
        return Candidate(words, rows=self.facts.kernel_rows[mask], less=less)

    def fewer(self, words: str, mask: Mask, less: float | None = 1.0) -> Candidate:
        """That some of the chosen kernels, and the operators that launch them, are gone."""
        host, launches = self.facts.trace.host_events, self.operators(mask)
        threads = host["thread"].filter(pl.Series(launches)).unique().to_numpy()
        kernels = self.candidate(words, mask, less)
        return replace(kernels, spans=intervals_of(host, launches), threads=threads)

    def operators(self, mask: Mask) -> Mask:
        """Which rows of host_events are operators that launch the chosen kernels."""
        rows, op = self.facts.trace.host_events.height, self.facts.kernels["op"].to_numpy()[mask]
        launches = np.zeros(rows, bool)
        launches[op[(op >= 0) & (op < rows)]] = True
        return launches

    def confidence(self, groups: Sequence[Group]) -> Confidence:
        """Return high if the trace names each device; medium if kernel names do."""
        return "high" if all(self.work.limits[group.device].is_named for group in groups) else "medium"


def kernels(facts: Facts) -> Iterator[Advice | ClearedTopic | OpenQuestion]:
    """Advice about kernels; each one is claimed once."""
    yield from _without_launch(facts)
    if facts.kernels.is_empty():
        return
    work = facts.kernel_work
    kernels = _Kernels(facts, work, np.ones(facts.kernels.height, bool), slow_floats(facts))
    yield from _unfused_attention(kernels)
    yield from _unequal_times(kernels)
    yield from _growth(kernels)
    kernels.claim(np.isin(facts.kernel_rows, kernels_of_optimizer(facts)))
    for family in _MATRICES:
        yield from _below_roof(kernels, family)
    yield from channels_last(facts, kernels.is_free)
    kernels.claim(image_layouts(facts))
    yield from mixed_precision(facts, kernels.is_free)
    kernels.claim(kernels.is_slow_float)
    yield from _doubles(kernels)
    yield from _elementwise(kernels)
    yield from _conversions(kernels, "cast")
    yield from _conversions(kernels, "layout")
    yield from _below_roof(kernels, "memory")
    yield from _rest(kernels)


def _without_launch(facts: Facts) -> Iterator[OpenQuestion]:
    """That much of the time is in kernels without a step and an operator, since their launches aren't recorded."""
    device = facts.trace.device_events
    belong_nowhere = (device["step"] == NONE) & (device["kind"] == "kernel") & ~device["is_communication"]
    rows = device.filter(belong_nowhere & pl.Series(lone_rows(facts.trace), dtype=pl.Boolean))
    mean_ns = facts.mean(length_within(intervals_of(rows), facts.windows.start, facts.windows.end))
    if facts.share(mean_ns) >= _LEAST:
        reason = f"for {facts.percent(mean_ns)} of {facts.unit} kernels run of which no launch is recorded, nor inputs"
        topic = f"{_CLOSE}, of those without a launch" if facts.kernels.height else _CLOSE
        yield OpenQuestion(topic, reason, mean_ns, link_launches(facts), "health")


def _unfused_attention(kernels: _Kernels) -> Iterator[Advice]:
    """Softmax between two matmuls."""
    facts = kernels.facts
    attention = unfused_attention(facts.trace, facts.kernels)
    if attention is None or not facts.is_worth(kernels.lengths(attention.is_member), _LEAST):
        return
    lengths = kernels.lengths(attention.is_member)
    groups = [kernels.work.groups[number] for number in np.unique(kernels.work.group[attention.is_member])]
    kernels.claim(attention.is_member)
    fused_ns = _fused_ns(kernels, attention, groups[0].device)
    time_ns = int(facts.kernels["dur_ns"].to_numpy()[attention.is_member].sum())
    less = None if fused_ns is None else max(0.0, 1 - fused_ns / time_ns)
    share = time_ns / max(int(facts.kernels["dur_ns"].sum()), 1)
    module = _module(facts, attention)
    core = [group for group in groups if "softmax" in group.name or "mm" in group.name]
    scores = " × ".join(map(str, attention.scores))
    at_roof = text.time((fused_ns or 0.0) / facts.count)
    at_best = f" Fused attention would take at least {at_roof}, at the device's roof." if less else ""
    yield Advice(
        "unfused_attention",
        f"Attention that isn't fused takes {facts.of_steps(lengths)}.",
        f"{facts.part_of(lengths)}, {100 * share:.0f} % of the kernel time{facts.recurs(lengths)}"
        f"{f', in `{module}`' if module else ''}: {largest_groups(core, facts.count)}. Between the "
        f"matmuls, scores of {scores} are written to memory and read again.{at_best}",
        use_fused(attention, has_device=True),
        None,
        kernels.confidence(groups) if less else "medium",
        "kernels_by_op",
        "re:softmax|bmm",
        facts.mean(lengths),
        kernels.fewer("the extra time of unfused attention" if less else "attention", attention.is_member, less),
    )


def _fused_ns(kernels: _Kernels, attention: UnfusedAttention, device: int) -> float | None:
    """How long fused attention would take at the roof, over the steps that count; None: unknown."""
    peaks, number_format = kernels.work.limits[device].peaks, attention.number_format
    if peaks is None or number_format is None:
        return None
    rate = peaks.roof(f"{number_format}_matrix") or peaks.roof(number_format)
    return None if rate is None else max(attention.flop / rate, attention.moved_bytes / peaks.bandwidth) * 1e9


def _module(facts: Facts, attention: UnfusedAttention) -> str:
    """The class of the module that most of the operators are in; empty if no modules were recorded."""
    node, class_of = module_classes(facts.trace)
    classes = [class_of[number] or "" for number in node[attention.ops] if number >= 0]
    return max(sorted(set(classes)), key=classes.count, default="")


def _unequal_times(kernels: _Kernels) -> Iterator[Advice]:
    """Equal kernels that take different times."""
    facts, times = kernels.facts, KernelTimes.of(kernels.facts, kernels.work)
    dur = facts.kernels["dur_ns"].to_numpy()
    slower = times.is_slower & kernels.is_free
    less = 1 - times.fastest_ns / np.maximum(dur, 1)
    lengths = np.zeros(facts.length.size, np.int64)
    step = facts.trace.device_events["step"].to_numpy()[facts.kernel_rows]
    np.add.at(lengths, step[slower], (dur - times.fastest_ns)[slower].astype(np.int64))
    if not facts.is_worth(lengths, _LEAST):
        return
    kernels.claim(kernels.of_groups(_near_roof_at_best(kernels, slower, times.fastest_ns)))
    largest = int(np.argmax(np.where(slower, dur - times.fastest_ns, 0)))
    name = kernels.work.groups[kernels.work.group[largest]].name or str(facts.kernels["name"][largest])[:60]
    first, last = times.rise
    yield Advice(
        "kernel_times_vary",
        f"Equal kernels get slower from step to step: {text.often(last / first)} times as long at the end as at first."
        if last
        else f"Equal kernels take different times: the slow ones cost {facts.of_steps(lengths)}.",
        f"{text.often(slower.sum() / facts.count)} kernels {facts.per} take longer than the fastest with the same "
        f"name, grid and inputs, by {facts.part_of(lengths)}{facts.recurs(lengths)}; such as `{name}`: "
        f"{text.time(times.fastest_ns[largest])} at best, {text.time(dur[largest])} at worst. No other work of this "
        "process runs meanwhile.",
        "Look at clocks, power and temperature while it runs (`nvidia-smi dmon -s pc`, `rocm-smi`): falling clocks "
        "slow all kernels."
        if last
        else "Look for another process on the device, and at its clocks, while it runs (`nvidia-smi`, `rocm-smi`).",
        None,
        "medium",
        "steps" if last else "kernels",
        "",
        facts.mean(lengths),
        kernels.candidate("the extra time of slower equal kernels", slower, less[slower]),
    )


def _growth(kernels: _Kernels) -> Iterator[Advice]:
    """Operators whose kernels take longer from step to step, while those of others don't.

    What grows steadily has no bound: less of it is worth a word, too.
    """
    facts = kernels.facts
    rise = KernelGrowth.of(facts, kernels.work, kernels.is_free)
    slope_ns = rise.slope_ns
    if facts.has_iterations or not facts.is_worth(rise.more_ns, LEAST_SHARE if slope_ns else _LEAST):
        return
    is_growing, (first, last) = rise.is_growing, rise.rise_ns
    is_alone = not (kernels.is_free & ~is_growing).any()
    kernels.claim(is_growing)
    others = f" and {text.times(len(rise.names) - 1, 'other')}" if len(rise.names) > 1 else ""
    slope = f", {text.time(slope_ns)} more in each" if slope_ns else ""
    where, culprit = in_program(facts, intervals_of(facts.trace.host_events, kernels.operators(is_growing)), "them")
    yield Advice(
        "growing_kernels",
        f"Kernels of `{rise.names[0]}`{others} take longer from step to step: {text.often(last / max(first, 1))} "
        f"times as long at the end as at first{where}.",
        f"They take {text.time(first)} per step in the first third of the steps, and {text.time(last)} in the last"
        f"{slope}: "
        f"{facts.part_of(rise.more_ns)} more than at first{facts.recurs(rise.more_ns)}."
        + ("" if is_alone else " Other kernels don't grow, so it isn't the device's clock."),
        "Look at what grows: a cache, a list of tensors or a history that is concatenated, longer inputs. Bound its "
        "size, or write into a buffer of the final size.",
        None,
        "medium",
        "steps",
        "",
        facts.mean(rise.more_ns),
        kernels.candidate("the extra time of kernels that grow", is_growing, rise.less[is_growing]),
        culprit,
    )


def _near_roof_at_best(kernels: _Kernels, slower: Mask, fastest_ns: NDArray[np.float64]) -> list[int]:
    """The groups of some kernels that aren't far below their roof when they are fastest."""
    best = np.bincount(kernels.work.group, fastest_ns, len(kernels.work.groups))
    numbers = np.unique(kernels.work.group[slower]).tolist()
    roofs = {number: kernels.work.groups[number].roof_ns for number in numbers}
    return [number for number, roof in roofs.items() if roof is None or roof >= _FAR_BELOW * best[number]]


_RECORD_CAPTURE = (
    "Record the capture of the graphs too, while the program starts, and put that recording into a folder "
    "`capture_traces` next to this one, or name it with `--capture`: it has the operators and shapes of the replayed "
    "kernels. Until then *Inside graphs* shows their layers, inferred from the order of kernels."
)
_MATRICES = {"matmul": "Matmuls", "convolution": "Convolutions", "attention": "Attention kernels"}
_SUBJECTS = {**_MATRICES, "memory": "Memory-bound kernels"}
_FILTERS = {"matmul": "re:mm|linear", "convolution": "conv", "attention": "attention"}


def _below_roof(kernels: _Kernels, family: str) -> Iterator[Advice]:
    """Operators of a family that run below half of their roof."""
    facts, groups = kernels.facts, kernels.work.groups
    numbers = _far_below(kernels, family)
    if not numbers:
        return
    is_chosen = kernels.of_groups(numbers)
    lengths = kernels.lengths(is_chosen)
    slow_groups = [groups[number] for number in numbers]
    time_ns = sum(group.time_ns for group in slow_groups)
    roof_ns = sum(group.roof_ns or 0.0 for group in slow_groups)
    fraction = roof_ns / max(time_ns, 1)
    saved_ns = (lengths * (1 - min(1.0, fraction))).astype(np.int64)
    if not (facts.is_worth(lengths, _LEAST) or facts.is_worth(saved_ns, _LEAST_SAVED)):
        return
    kernels.claim(is_chosen)
    rule = "elementwise_below_roof" if family == "memory" else f"{family}_below_roof"
    all_ns = sum(group.time_ns for group in groups if _is_of(group, family))
    which = _SUBJECTS[family] if time_ns > 0.9 * all_ns else f"Some {text.as_clause(_SUBJECTS[family])}"
    what = "the memory's bandwidth" if family == "memory" else "their roof"
    why, action, is_likely = _why(kernels, slow_groups)
    concurrent_share = _concurrent_share(kernels, is_chosen)
    overlap = (
        f" For {text.percent(concurrent_share)} of it other kernels run at the same time, and take a part of the "
        "device."
        if concurrent_share >= _MUCH_SHARED
        else ""
    )
    yield Advice(
        rule,
        f"{which} run at {text.percent(fraction)} of {what}, and take {facts.of_steps(lengths)}.",
        f"{facts.part_of(lengths)}{facts.recurs(lengths)}; at the roof they would take "
        f"{text.time(facts.mean(lengths) * fraction)} ({limit_in_words(slow_groups[0], kernels.work.limits)}). Most "
        f"of it: {largest_groups(slow_groups, facts.count)}.{overlap} {why}",
        action,
        None,
        "medium" if overlap or not is_likely else kernels.confidence(slow_groups),
        "kernels_by_op" if family == "memory" else "operator_efficiency",
        _FILTERS.get(family, ""),
        facts.mean(lengths),
        kernels.candidate("the time of these kernels above their roof", is_chosen, _beyond_roof(kernels)[is_chosen]),
    )


def _beyond_roof(kernels: _Kernels) -> NDArray[np.float64]:
    """By which share of its time each kernel would be shorter at its roof."""
    fraction = [min(1.0, 1.0 if group.roof_frac is None else group.roof_frac) for group in kernels.work.groups]
    return 1.0 - np.array(fraction)[kernels.work.group]


def _concurrent_share(kernels: _Kernels, mask: Mask) -> float:
    """The share of the chosen kernels' time in which others, communication among them, run on the same device."""
    trace, rows = kernels.facts.trace, kernels.facts.kernel_rows[mask]
    is_chosen = np.zeros(trace.device_events.height, bool)
    is_chosen[rows] = True
    is_other = (trace.device_events["kind"] == "kernel").to_numpy() & ~is_chosen
    shared_ns = whole_ns = 0
    for _, _, of_device in axes(trace, "device"):
        device, masks = trace.device_events.select("start_ns", "dur_ns"), (is_chosen, is_other)
        if of_device.size < device.height:
            device, masks = device[of_device], (is_chosen[of_device], is_other[of_device])
        (start, end), others = (intervals_of(device, mask) for mask in masks)
        shared_ns += int(length_within(others, start, end).sum())
        whole_ns += int((end - start).sum())
    return shared_ns / whole_ns if whole_ns else 0.0


def _is_of(group: Group, family: str) -> bool:
    """Whether a group belongs to a family; `memory` is what multiplies no matrices and has a roof."""
    if family == "memory":
        return group.family not in _MATRICES and group.roof_ns is not None
    return group.family == family


def _far_below(kernels: _Kernels, family: str) -> list[int]:
    """The groups of a family that are worth naming, the longest first."""
    with_roof = [
        (number, group, group.roof_frac)
        for number, group in enumerate(kernels.work.groups)
        if _is_of(group, family) and group.roof_frac is not None and group.call_ns >= TINY_NS
    ]
    if not with_roof:
        return []
    in_float, free = (
        set(np.flatnonzero(np.bincount(kernels.work.group[mask])).tolist())
        for mask in (kernels.is_slow_float, kernels.is_free)
    )
    numbers = []
    for number, group, fraction in with_roof:
        if number not in free:
            continue
        # lower precision saves up to 1 - 1 / FASTER: more than the way to a roof that is nearer
        least = 1 / FASTER if number in in_float else _FAR_BELOW
        could_pad = (
            number not in in_float and fraction < _BELOW and misaligned_sizes(group, kernels.work.limits[group.device])
        )
        if fraction < least or could_pad:
            numbers.append(number)
    return numbers


def _why(kernels: _Kernels, groups: Sequence[Group]) -> tuple[str, str, bool]:
    """(the cause of most of the lost time, what to do about it, whether it isn't just a possible one)."""
    lost_ns: dict[str, float] = {}
    first: dict[str, tuple[Group, Cause]] = {}
    for group in groups:
        kind, cause = cause_of(group, kernels.work.limits[group.device]) or ("", None)
        lost_ns[kind] = lost_ns.get(kind, 0.0) + group.time_ns - (group.roof_ns or 0.0)
        if cause and (kind not in first or cause.is_likely > first[kind][1].is_likely):
            first[kind] = group, cause
    most = max(lost_ns, key=lambda kind: lost_ns[kind])
    if not most:
        return (
            "Neither the shapes nor the names of the kernels show why.",
            "Try other kernels for these shapes (`torch.compile(mode='max-autotune')`, a newer library), and look into "
            "the kernel with Nsight Compute or ROCm Compute Profiler.",
            True,
        )
    group, cause = first[most]
    about = "" if group is groups[0] else f" (of `{group.name}` {inputs_of(group)})"
    how = "Likely" if cause.is_likely else "Possible"
    return f"{how} cause{about}: {cause.sentence}.", cause.action, cause.is_likely


def _elementwise(kernels: _Kernels) -> Iterator[Advice]:
    """Elementwise and normalization kernels, one per operator of eager PyTorch, that could be fused.

    Where most of them are tiny, and the device waits longer for launches than these run, launching is what takes time;
    where it waits for less, but for more than half of that, the gaps between them count, too.
    """
    facts = kernels.facts
    is_chosen = kernels.of_family("elementwise")
    lengths = kernels.lengths(is_chosen)
    group_ns = np.bincount(
        kernels.work.group[is_chosen], facts.kernels["dur_ns"].to_numpy()[is_chosen], len(kernels.work.groups)
    )
    groups = [kernels.work.groups[number] for number in np.flatnonzero(group_ns)]
    total = float(group_ns.sum())
    if not facts.is_worth(lengths, _LEAST) or _is_of_one_operator(kernels, group_ns):
        return
    tiny_ns = sum(int(ns) for ns, group in zip(group_ns, kernels.work.groups, strict=True) if group.call_ns < TINY_NS)
    gaps = facts.late.host + facts.late.latency
    is_tiny = tiny_ns > _MOST * total and is_launch_bound(facts)
    if is_tiny and facts.mean(gaps) > facts.mean(lengths):
        return
    runs, fused_ns = _fused_runs(kernels, is_chosen)
    less = max(0.0, 1 - fused_ns / total)
    if less * facts.mean(lengths) < _MOVED * facts.step_ns:
        return
    kernels.claim(is_chosen)
    count = int(is_chosen.sum())
    yield Advice(
        "elementwise",
        _title_of_elementwise(facts, lengths, gaps if is_tiny else None) + f"{_largest_operator(groups, facts)}.",
        f"{facts.part_of(lengths)}{facts.recurs(lengths)}: {text.often(count / facts.count)} kernels "
        f"{facts.per}, in {text.often(runs / facts.count)} runs without another kernel in between. With one fused "
        f"kernel for each run, they would take at least {text.time(fused_ns / facts.count)}. Most of it: "
        f"{largest_groups(groups, facts.count)}.",
        "Fuse them: `torch.compile` the model, or use a library's fused modules for what repeats most.",
        None,
        "medium",
        "kernels_by_op",
        "re:elementwise|norm|reduce|Cat",
        facts.mean(lengths),
        kernels.fewer("the extra time of unfused kernels", is_chosen, less),
    )


def _title_of_elementwise(facts: Facts, lengths: Ints, gaps: Ints | None) -> str:
    """How long such kernels take, together with the gaps between tiny ones if these take half as long or more."""
    if gaps is not None and facts.mean(gaps) > _MOST * facts.mean(lengths):
        return f"Tiny kernels, launched one by one, take {facts.of_steps(lengths + gaps)} with the gaps between them"
    return f"Elementwise and normalization kernels, one per operator, take {facts.of_steps(lengths)}"


def _doubles(kernels: _Kernels) -> Iterator[Advice]:
    """Kernels on float64 tensors in a program that mostly computes in other formats."""
    facts, dur_ns = kernels.facts, kernels.facts.kernels["dur_ns"].to_numpy()
    of_groups = np.array([has_doubles(group.types or "[]") for group in kernels.work.groups], bool)
    is_chosen = kernels.is_free & of_groups[kernels.work.group]
    lengths = kernels.lengths(is_chosen)
    if not facts.is_worth(lengths, _MOVED) or dur_ns[of_groups[kernels.work.group]].sum() > _MOST * dur_ns.sum():
        return
    kernels.claim(is_chosen)
    groups = [kernels.work.groups[number] for number in np.unique(kernels.work.group[is_chosen])]
    yield Advice(
        "double_precision",
        f"Operators on float64 tensors take {facts.of_steps(lengths)}{_largest_operator(groups, facts)}.",
        f"{facts.part_of(lengths)}{facts.recurs(lengths)}; the rest computes in other number formats. In float32 they "
        f"would move half the bytes. Most of it: {largest_groups(groups, facts.count)}.",
        IN_FLOAT,
        None,
        "medium",
        "kernels_by_op",
        "",
        facts.mean(lengths),
        kernels.candidate("the extra time of double precision", is_chosen, 1 - 1 / DOUBLES_FASTER),
        Culprit(operator=max(groups, key=lambda group: group.time_ns).name or None),
    )


def _is_of_one_operator(kernels: _Kernels, group_ns: NDArray[np.integer]) -> bool:
    """Whether fusing isn't the matter: one operator takes most of the time of the groups, in few or slow calls."""
    largest = int(group_ns.argmax())
    if group_ns[largest] <= _MOST * group_ns.sum():
        return False
    is_loop = kernels.work.groups[largest].calls >= _LOOP * kernels.facts.count
    return not is_loop or largest in _far_below(kernels, "memory")


def _largest_operator(groups: Sequence[Group], facts: Facts) -> str:
    """The operator that takes most of the time, as the end of a sentence; empty if none does."""
    times: dict[str, int] = {}
    for group in groups:
        times[group.name] = times.get(group.name, 0) + group.time_ns
    name = max(times, key=lambda name: times[name])
    if not name or times[name] <= _MOST * sum(times.values()):
        return ""
    calls = sum(group.calls for group in groups if group.name == name)
    return f", most of it in `{name}` ({text.often(calls / facts.count)} times {facts.per})"


def _fused_runs(kernels: _Kernels, mask: Mask) -> tuple[int, float]:
    """(runs of chosen kernels on a stream without others in between, the time that one kernel for each would take).

    A fused kernel takes at least as long as the longest of the run at the memory's bandwidth, one alone as long as now.
    Where the host waits for a result between two launches, a run ends: what comes next may depend on it.
    """
    fraction, facts = 1.0 - _beyond_roof(kernels), kernels.facts
    calls = facts.trace.launches["start_ns"].to_numpy()
    launch = facts.trace.device_events["launch"].to_numpy()[facts.kernel_rows]
    waits = np.searchsorted(np.sort(calls[waits_for_devices(facts.trace)]), gather(calls, launch))
    rows = facts.kernels.select(
        *("device", "stream", "start_ns", "dur_ns"),
        least=pl.col("dur_ns") * pl.Series(fraction),
        is_chosen=pl.Series(mask),
        waits=pl.Series(waits),
    ).sort("device", "stream", "start_ns")
    stream = ["device", "stream"]
    begins = pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in ("is_chosen", "waits"))
    runs = rows.with_columns(run=begins.fill_null(value=True).cum_sum().over(stream))
    least = pl.when(pl.len() > 1).then(pl.col("least").max()).otherwise(pl.col("dur_ns").max())
    longest = runs.filter("is_chosen").group_by(*stream, "run").agg(least=least)
    return longest.height, float(longest["least"].sum())


_MOVES = {
    "cast": (
        "casts",
        "conversions of number formats",
        "Converting number formats takes",
        "Keep tensors in one number format: load the weights in the format that they are used in, and cast inputs "
        "once; `torch.compile` fuses the rest into their neighbors.",
    ),
    "layout": (
        "layout_changes",
        "changes of the memory layout",
        "Copying tensors into another memory layout takes",
        "Keep one layout: avoid `.contiguous()`, `.transpose()` and `.permute()` between operators that can read "
        "strided inputs, and choose the order of dimensions so that matmuls read it as it is.",
    ),
}


def _conversions(kernels: _Kernels, family: str) -> Iterator[Advice]:
    """Kernels that only convert or reorder; those for channels last have their own rule."""
    facts = kernels.facts
    is_chosen = kernels.of_family(family)
    lengths = kernels.lengths(is_chosen)
    if not facts.is_worth(lengths, _MOVED):
        return
    kernels.claim(is_chosen)
    groups = [kernels.work.groups[number] for number in np.unique(kernels.work.group[is_chosen])]
    rule, words, what, action = _MOVES[family]
    size = facts.mean(lengths)
    yield Advice(
        rule,
        f"{what} {facts.of_steps(lengths)}.",
        f"{facts.part_of(lengths)}{facts.recurs(lengths)} in {text.often(is_chosen.sum() / facts.count)} kernels "
        f"{facts.per} that do nothing else. Most of it: {largest_groups(groups, facts.count)}.",
        action,
        None,
        "medium",
        "kernels_by_op",
        "copy",
        size,
        kernels.fewer(words, is_chosen),
    )


def _rest(kernels: _Kernels) -> Iterator[ClearedTopic | OpenQuestion]:
    """What is unknown of the kernels that no rule claimed, or how little of them is far below the roof."""
    facts, groups = kernels.facts, kernels.work.groups
    has_none = np.array([group.roof_ns is None for group in groups])[kernels.work.group]
    unrated_lengths = kernels.lengths(kernels.is_free & has_none)
    numbers = np.unique(kernels.work.group[kernels.is_free & has_none])
    dur_ns = facts.kernels["dur_ns"].to_numpy()
    rated_share = float(dur_ns[~has_none].sum() / max(1, dur_ns.sum()))
    if numbers.size and (facts.share(facts.mean(unrated_lengths)) >= _LEAST or rated_share < _HARDLY):
        largest = groups[numbers[0]]
        own_ns = sum(groups[number].time_ns for number in numbers if _who(groups[number]) == _who(largest))
        share = own_ns / max(1, sum(groups[number].time_ns for number in numbers))
        words = _unrated_in_words(facts, unrated_lengths, largest, share)
        topic = _CLOSE
        if largest.reason == NO_CAPTURE:
            yield OpenQuestion(topic, words, facts.mean(unrated_lengths), _RECORD_CAPTURE, "graph_kernels")
        else:
            is_most = bool(largest.name) and share >= _MOST
            who = Culprit(operator=largest.name) if is_most else Culprit()
            action = _how_to_know(largest.name) if is_most and largest.reason == NO_MODEL else ""
            yield OpenQuestion(topic, words, facts.mean(unrated_lengths), action, culprit=who)
        return
    below = [number for family in _SUBJECTS for number in _far_below(kernels, family)]
    lengths = kernels.lengths(kernels.of_groups(below))
    of_part = f" (of the {text.percent(rated_share)} of the kernel time that can be rated)"
    is_rest = bool((~kernels.is_free & ~kernels.is_slow_float).any())
    what = f"in {'other ' if is_rest else ''}kernels far below their roof"
    what += of_part if rated_share < _NEARLY_ALL else ""
    topic = "efficiency of other kernels" if is_rest else "kernel efficiency"
    if cleared_topic := facts.cleared_topic(topic, lengths, what, _LEAST):
        yield cleared_topic


def _how_to_know(operator: str) -> str:
    """What says why the kernels of an operator take long, of whose work there is no model."""
    look = "Look at what limits its kernels, with Nsight Compute or rocprof."
    if not _ADDS_ATOMICALLY.search(operator):
        return look
    return f"{look} Additions that meet in few rows wait for each other: sum sorted rows, or in parts first."


def _who(group: Group) -> str:
    """The operator, or kernels by the beginning of their name."""
    return f"`{group.name}`" if group.name else f"kernels such as `{kernel_label(group.kernel)}`"


def _unrated_in_words(facts: Facts, lengths: Ints, largest: Group, share: float) -> str:
    reason = text.as_clause(largest.reason).rstrip(".")
    remedy = "; the option --device names it" if "name the device" in reason else ""
    most = text.most_or_percent(share)
    part = f"{facts.percent(facts.mean(lengths))} of {facts.unit}"
    return f"{part} can't be rated, {most} of it in {_who(largest)}: {reason}{remedy}"
