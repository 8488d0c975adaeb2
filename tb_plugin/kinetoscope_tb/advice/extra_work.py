"""Work beyond what each step needs: activations computed again, steps that do more than the others, growing inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.intervals import Intervals, Ints, length_within, merge, without
from ..arrays.nesting import nearest
from ..measures.calls.matrix_work import element_count
from ..measures.recording.options import was_on
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..names.kernel_labels import kernel_label
from ..names.kernels import step_number
from ..names.python_frames import function_name, is_of_program, without_address
from ..trace.results import once_per_trace
from ..trace.row_filters import is_operator, name_mask
from .accumulation import accumulation, accumulation_on_host
from .culprit import in_program
from .facts import LARGE_SHARE, LEAST_SHARE, Facts, is_optimizer, launched_within, optimizer_class
from .model import Advice, Candidate, ClearedTopic, Culprit
from .repetition import host_at
from .server_host import late_of_server
from .warm_up import slow_operators, slow_step

_RECOMPUTES = re.compile(r"^CheckpointFunctionBackward$")
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function: (?!CheckpointFunctionBackward)")
_FRAME = re.compile(r"torch/utils/checkpoint\.py\(\d+\): (?:unpack_hook|recompute_fn|recompute)$")
_GROUPED, _LAST_OF_ADAM = "aten::_foreach_", "aten::_foreach_addcdiv_"
_PASSES_OF_FUSED = 7 / 4  # times those of the last operator
_LONGER = 1.5  # times the median step
_MORE_KERNELS = 1.25  # times the median step's: else the same kernels were slower
_MORE, _LARGER = "with more kernels", "with kernels for other inputs or of other grids"
_OTHER = "with kernels that no other step has"
_NUMBER = r"\d+"
_LESS_OFTEN = (
    "Run `{}` less often or on less data, an evaluation also without gradients and in larger batches; judge the "
    "averages without it."
)
_OF_UPDATES = (
    "An optimizer updates in these steps alone: if gradients are accumulated, judge the averages over whole rounds of "
    "steps; if not, look at why it doesn't in the others, such as gradients that aren't finite."
)
_LESS_OFTEN_ON_HOST = (
    "Run `{}` less often, on less data, or in another thread or process; judge the averages without it."
)
_EVEN = (
    "If batches are padded to their longest sample, put samples of similar length into a batch, or cap their length; "
    "judge the averages with that in mind."
)
_JOINING = ("aten::cat", "aten::stack")
_FEWEST_STEPS = 5  # whose inputs grow
_UNEVEN = 0.05  # of the mean increase: batches may differ a little
_LEAST_GROWTH = 0.05  # of what they join at first
_TRIED = 30  # names, the longest
_MOST = 0.5  # of the steps, of what they take longer, or of their kernels


class _Extra(NamedTuple):
    """What devices do more in some steps than in the others.

    Attributes:
        clause: What most of it is, as the end of a sentence; empty if that isn't known.
        evidence: How it shows.
        action: What to do about it.
        candidate: What the host does then; None if only kernels or inputs show it.
        culprit: Who does it.
    """

    clause: str
    evidence: str
    action: str
    candidate: Candidate | None = None
    culprit: Culprit = Culprit()


def grouped_optimizer(facts: Facts) -> Iterator[Advice]:
    """Adam updates groups of parameters by one operator after the other, each of which moves all of them again.

    A fused kernel reads parameters, gradients and both states once, and writes all but the gradients: 7 passes over
    them. The last of the operators, `addcdiv_`, reads three of them and writes one: 4 passes, so a pass takes a fourth
    of its time.
    """
    op, host, device = facts.trace.recorded_op.to_numpy(), facts.trace.host_events["name"], facts.trace.device_events
    is_grouped = gather(name_mask(host, lambda name: name.startswith(_GROUPED)), op, missing=False)
    is_last = gather(name_mask(host, lambda name: name == _LAST_OF_ADAM), op, missing=False)
    if not is_last.any():
        return
    call = gather(facts.trace.launches["start_ns"].to_numpy(), device["launch"].to_numpy())
    in_step = length_within(facts.optimizer_spans, call, call + 1) > 0
    rows = np.intersect1d(np.flatnonzero(is_grouped & in_step), facts.kernel_rows)
    dur_ns = device["dur_ns"].to_numpy()
    whole_ns, fused_ns = int(dur_ns[rows].sum()), _PASSES_OF_FUSED * int(dur_ns[rows][is_last[rows]].sum())
    lengths = length_within(intervals_of(device[rows]), facts.windows.start, facts.windows.end)
    less = max(0.0, 1 - fused_ns / max(1, whole_ns))
    if not fused_ns or less * facts.share(facts.mean(lengths)) < LEAST_SHARE:
        return
    ranges = name_mask(host, is_optimizer)
    name = optimizer_class(str(host.filter(pl.Series(ranges))[0]))
    yield Advice(
        "grouped_optimizer",
        f"{name} moves all parameters in one operator after the other, which takes {facts.of_steps(lengths)}.",
        f"{facts.part_of(lengths)}{facts.recurs(lengths)}, in {text.often(rows.size / facts.count)} kernels "
        f"{facts.per}; a fused one would read and write everything once, in about {text.time(fused_ns / facts.count)}.",
        f"Let one kernel update many parameters: `{name}(…, fused=True)`.",
        None,
        "medium",
        "operators",
        "_foreach_",
        facts.mean(lengths),
        Candidate("the extra time of unfused updates", rows=rows, less=less),
        Culprit(operator=_LAST_OF_ADAM),
    )


def longer_steps(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Some steps take longer, since devices compute more in them."""
    if not facts.has_device or facts.has_iterations or facts.count < 3:
        return
    lengths = _extra_computation(facts)
    if not facts.is_worth(lengths):
        return
    if verdict := accumulation(facts, lengths > 0, float(lengths.sum())):
        yield verdict
        return
    extra = _extra(facts, lengths)
    median, spread = float(np.median(facts.length[facts.is_counted])), facts.spread(lengths)
    times = text.digits(spread.length_ns / median)
    takes, does = ("take", "they do") if facts.names_several_steps(lengths) else ("takes", "it does")
    steps, computes = facts.steps_of(lengths), "compute" if facts.waits == "wait" else "computes"
    yield Advice(
        "longer_steps",
        f"{text.capitalize(steps)} {takes} {times} times as long as the median {facts.noun}: "
        f"{does} more work{extra.clause}.",
        f"{facts.subject} {computes} {text.time(spread.cost_ns)} longer "
        f"than in the median {facts.noun} of {text.time(median)}, {extra.evidence}{facts.recurs(lengths)}.",
        extra.action,
        None if extra.candidate else facts.mean(lengths),
        "high" if extra.candidate else "medium",
        "steps",
        "",
        facts.mean(lengths),
        extra.candidate,
        extra.culprit,
    )


def _extra(facts: Facts, lengths: Ints) -> _Extra:
    """What devices do more in some steps: what runs there alone, else the same on other inputs.

    Args:
        facts: Of the trace.
        lengths: How much longer each of the devices computes in each of these steps; 0 in the others.
    """
    which, least_ns = lengths > 0, _MOST * float(lengths.sum()) * len(facts.computation_of_devices)
    kernels = _kernels(facts)
    has_more_kernels = bool((kernels[which] >= _MORE_KERNELS * np.median(kernels[facts.is_counted])).all())
    evidence = _MORE if has_more_kernels else _OTHER
    for words, spans, culprit in _only_there(facts, which):
        is_inside = launched_within(facts.trace, spans)[facts.kernel_rows]
        if facts.kernels["dur_ns"].filter(pl.Series(is_inside, dtype=pl.Boolean)).sum() >= least_ns:
            name = function_name(words)
            action = _OF_UPDATES if _is_update(facts, spans) else _LESS_OFTEN.format(name)
            return _Extra(f", most of it in `{name}`", evidence, action, _candidate(facts, words, spans), culprit)
    rows = _kernels_only_in(facts, which)
    if not has_more_kernels and rows.filter("is_elsewhere")["dur_ns"].sum() >= least_ns:
        return _Extra(", on larger inputs", _LARGER, _EVEN)
    by_kernel = rows.filter(~pl.col("is_elsewhere")).group_by("name").agg(pl.col("dur_ns").sum())
    most = by_kernel.filter(pl.col("dur_ns") >= least_ns).sort("dur_ns", pl.col("name").cast(pl.String))
    if most.is_empty():
        return _Extra("", evidence, _how_to_see(facts, "launches it"))
    kernel = str(most["name"][-1])
    label = kernel_label(kernel)
    action = _LESS_OFTEN.format(label)
    return _Extra(f", most of it in `{label}`", evidence, action, culprit=Culprit(kernel=kernel))


def _is_update(facts: Facts, spans: Intervals) -> bool:
    """Whether most of some time lies in an optimizer's step."""
    return bool(length_within(facts.optimizer_spans, *spans).sum() >= _MOST * (spans[1] - spans[0]).sum())


def longer_host_steps(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Some steps take longer, since a function, a range or an operator of the host runs in them alone.

    With a device: since it waits for the host there, whatever runs.
    """
    if facts.count < 3:
        return
    if facts.has_device:
        yield from _stalled_steps(facts)
        return
    if facts.has_iterations:
        return
    of_longer = _only_in_longer_steps(facts)
    who = of_longer or _in_few_steps(facts)
    if who is None:
        yield from _slow_operators_of_step(facts)
        return
    name, spans, culprit = who
    if verdict := accumulation_on_host(facts, spans):
        yield verdict
        return
    median = float(np.median(facts.length[facts.is_counted]))
    lengths = length_within(spans, facts.windows.start, facts.windows.end)
    spread = facts.spread(lengths)
    steps, times = facts.steps_of(lengths), text.digits(spread.length_ns / median)
    is_plural = facts.names_several_steps(lengths)
    yield Advice(
        "longer_host_steps",
        f"{text.capitalize(steps)} {'take' if is_plural else 'takes'} {times} times as long as the "
        f"median {facts.noun}: `{function_name(name)}` runs in {'them' if is_plural else 'it'} alone."
        if of_longer
        else f"`{function_name(name)}` takes {facts.of_steps(lengths)}, and runs in no other.",
        f"It takes {text.time(spread.cost_ns)} there{facts.recurs(lengths)}; the median {facts.noun} "
        f"takes {text.time(median)}.",
        _OF_UPDATES if _is_update(facts, spans) else _LESS_OFTEN_ON_HOST.format(function_name(name)),
        None,
        "high",
        "steps",
        "",
        facts.mean(lengths),
        facts.host_candidate(function_name(name), spans),
        culprit,
    )


def _slow_operators_of_step(facts: Facts) -> Iterator[Advice]:
    """One step that takes much longer, since the same few operators take longer; of the first one `warm_up` says so."""
    row = slow_step(facts)
    if row is None or not facts.is_counted[:row].any():
        return
    is_slow = np.arange(facts.is_counted.size) == row
    usual, slow = float(np.median(facts.length[facts.is_counted & ~is_slow])), slow_operators(facts, is_slow)
    lengths = np.where(is_slow, facts.length - round(usual), 0)
    if not slow.names or not facts.is_worth(lengths):
        return
    name, times = facts.steps_of(lengths), text.digits(facts.length[row] / usual)
    yield Advice(
        "longer_host_steps",
        f"{text.capitalize(name)} takes {times} times as long as the median {facts.noun}{slow.clause}.",
        f"It takes {text.time(int(facts.length[row]))}, the median other {facts.noun} {text.time(usual)}. "
        f"{slow.numbers}",
        "See what else the machine did then, and whether it recurs: record more steps, and several times.",
        None,
        "medium",
        "operators",
        slow.names[0],
        facts.mean(lengths),
        culprit=Culprit(operator=slow.names[0]),
    )


class FewStalls(NamedTuple):
    """What makes few steps longer while devices don't compute.

    Attributes:
        waits: How long devices wait in each step for the host, for that reason; 0 in the others.
        copies: How long copies that it makes run in each step while no kernel does; 0 in the others.
        who: What runs in these steps alone, when, and by its kind; None if nothing that is known.
    """

    waits: Ints
    copies: Ints
    who: tuple[str, Intervals, Culprit] | None = None

    @property
    def are_copies(self) -> bool:
        """Whether copies are the larger part."""
        return bool(self.copies.sum() > self.waits.sum())

    @property
    def lengths(self) -> Ints:
        """What is said of these steps: how long devices wait, with copies where these are the larger part."""
        return self.waits + self.copies if self.are_copies else self.waits


def _stalled_steps(facts: Facts) -> Iterator[Advice]:
    """Steps that take longer since devices wait for the host in them."""
    stalls = few_stalls(facts)
    lengths, who = stalls.lengths, stalls.who
    which, median = lengths > 0, float(np.median(facts.length[facts.is_counted]))
    if not which.any():
        return
    name, spans, culprit = who or ("", merge([]), Culprit())
    besides, launched_ns = _launched_work(facts, stalls, which) if who else (_longest_wait(facts, which), 0)
    yield Advice(
        "longer_host_steps",
        _title_of_stalls(facts, stalls),
        f"{facts.subject} {_stall_in_words(facts, stalls, which)}{facts.recurs(lengths)}; "
        f"the median {facts.noun} takes {text.time(median)}.{besides}",
        _LESS_OFTEN_ON_HOST.format(function_name(name)) if who else _how_to_see(facts, "the host does"),
        None if who else facts.mean(lengths),
        "high" if who else "medium",
        "gaps",
        "host late",
        facts.mean(lengths) + launched_ns,
        _candidate(facts, name, spans) if who else None,
        culprit,
    )


def _title_of_stalls(facts: Facts, stalls: FewStalls) -> str:
    """Why some steps take longer; if a wait without a known reason is the smaller part of it, how long that is."""
    lengths, median = stalls.lengths, float(np.median(facts.length[facts.is_counted]))
    is_plural, spread = facts.names_several_steps(lengths), facts.spread(lengths)
    takes, them = ("take", "them") if is_plural else ("takes", "it")
    if stalls.who is None and spread.cost_ns < _MOST * (spread.length_ns - median):
        return f"{facts.subject} {facts.waits} for the host for {facts.of_steps(lengths)}, longer than in the others."
    waits = f"{text.as_clause(facts.subject)} {facts.waits} for the host"
    reason = f"`{function_name(stalls.who[0])}` runs in {them} alone" if stalls.who else waits
    steps, times = facts.steps_of(lengths), text.digits(spread.length_ns / median)
    return f"{text.capitalize(steps)} {takes} {times} times as long as the median {facts.noun}: {reason}."


def _stall_in_words(facts: Facts, stalls: FewStalls, which: NDArray[np.bool_]) -> str:
    """What devices do in some steps instead of computing, and for how long."""
    there = "in each of them" if facts.names_several_steps(stalls.lengths) else "there"
    waits = f"{facts.waits} {text.time(float(stalls.waits[which].mean()))} longer for the host"
    if stalls.are_copies:
        verb = "copy" if facts.waits == "wait" else "copies"
        waits = f" and {waits}" if facts.mean(stalls.waits) >= LEAST_SHARE * facts.step_ns else ""
        waits = f"{verb} {text.time(float(stalls.copies[which].mean()))} longer{waits}"
    return f"{waits} {there} than in the others"


@once_per_trace
def few_stalls(facts: Facts) -> FewStalls:
    """How long devices don't compute in each step for what makes few steps longer, if that is worth a word.

    They wait for the host. Where it is known what runs there, what else they wait for isn't part of it, since other
    steps may have that, too, but copies that it makes are.
    """
    claims = late_of_server(facts).claims
    waits, no_time = np.where(claims >= _MOST * facts.stalls, 0, facts.stalls - claims), np.zeros_like(facts.length)
    copies = _stalling_copies(facts, waits)
    are_copies = bool(copies.sum() > waits.sum())
    for stalls, copies_of in ((waits + copies, copies), (waits, no_time)) if are_copies else ((waits, copies),):
        if facts.is_worth(stalls) and (who := _only_in_stalls(facts, stalls, of_copies=stalls is not waits)):
            late = without(facts.late.rest, without(facts.late.rest, who[1]))
            rows = intervals_of(facts.trace.device_events, _copies_within(facts, who[1]))
            own, copy_ns = (length_within(part, facts.windows.start, facts.windows.end) for part in (late, rows))
            return FewStalls(np.minimum(waits, own), np.minimum(copies_of, copy_ns), who)
    return FewStalls(waits if facts.is_worth(waits) else no_time, no_time)


def _stalling_copies(facts: Facts, waits: Ints) -> Ints:
    """How much longer copies take in few steps, where they and some waits are why these are longer."""
    if facts.has_iterations:
        return np.zeros_like(facts.length)
    copies = facts.copying_exceptions
    more = facts.length - float(np.median(facts.length[facts.is_counted]))
    return np.where(waits + copies >= _MOST * more, copies, 0)


def _copies_within(facts: Facts, spans: Intervals) -> NDArray[np.bool_]:
    """Which rows of device_events are copies that are launched during some spans."""
    is_copy = (facts.trace.device_events["kind"] == "memcpy").to_numpy()
    return np.asarray(is_copy & launched_within(facts.trace, spans))


def claimed_copies(facts: Facts) -> NDArray[np.bool_]:
    """Which rows of device_events are copies of what runs in few steps alone, and makes these longer."""
    stalls = few_stalls(facts)
    is_claimed = facts.has_device and stalls.who is not None and stalls.lengths.any()
    return _copies_within(facts, stalls.who[1] if stalls.who and is_claimed else merge([]))


def _only_in_stalls(facts: Facts, stalls: Ints, *, of_copies: bool) -> tuple[str, Intervals, Culprit] | None:
    """What runs only in the steps that stall, for most of that time; None: nothing that is known.

    An operator of ATen is no reason for its copies.
    """
    hits = (hit for hit in _only_there(facts, stalls > 0) if not (of_copies and hit[0].startswith("aten::")))
    return next((hit for hit in hits if (hit[1][1] - hit[1][0]).sum() >= _MOST * stalls.sum()), None)


def _how_to_see(facts: Facts, what: str) -> str:
    """What to do where nothing that was recorded runs in some steps alone."""
    watch = "watch the process with py-spy (`py-spy record --native`)"
    if not was_on(facts.trace, "with_stack"):
        return f"The trace doesn't say what {what} there: record Python stacks (`with_stack=True`), or {watch}."
    why = "" if facts.trace.python_calls.is_empty() else ", since no function runs in these steps alone"
    return (
        f"The trace doesn't say what {what} there{why}: annotate parts of the loop "
        f"(`torch.profiler.record_function`), or {watch}."
    )


def _longest_wait(facts: Facts, which: NDArray[np.bool_]) -> str:
    """How long devices wait for the host at most without a break in some steps, and where it is then; as a sentence."""
    parts = facts.late_parts.filter(pl.col("window").is_in(np.flatnonzero(which)))
    if parts.is_empty():
        return ""
    start, end = parts.select("start_ns", "end_ns").row(int((parts["end_ns"] - parts["start_ns"]).arg_max() or 0))
    where = host_at(facts, (start + end) // 2)
    return f" The longest wait takes {text.time(end - start)}{f', with the host {where}' if where else ''}."


def _launched_work(facts: Facts, stalls: FewStalls, which: NDArray[np.bool_]) -> tuple[str, int]:
    """How long devices are busy with what the host launches then besides, as a sentence and per step; or little."""
    spans = stalls.who[1] if stalls.who else merge([])
    busy = intervals_of(facts.trace.device_events, launched_within(facts.trace, spans))
    lengths = length_within(busy, facts.windows.start, facts.windows.end)
    lengths -= stalls.copies if stalls.are_copies else 0
    if facts.mean(lengths) < LEAST_SHARE * facts.step_ns:
        return "", 0
    return f" What it launches takes {text.time(float(lengths[which].mean()))} besides.", facts.mean(lengths)


def _only_there(facts: Facts, which: NDArray[np.bool_]) -> Iterator[tuple[str, Intervals, Culprit]]:
    """What runs in some steps alone, when, and by its kind: the program's functions, then ranges and operators.

    The shortest of each comes first. Annotations that differ in numbers alone, such as `batch 4`, are the same.
    """
    begin = facts.trace.steps["host_start_ns"].to_numpy()
    functions, ranges = facts.trace.python_calls, facts.trace.host_events
    for frame, is_left_out in ((functions, lambda name: not is_of_program(name)), (ranges, _is_step)):
        counts_numbers = pl.lit(value=True) if frame is functions else pl.col("kind") == "operator"
        rows = frame.select("name", "start_ns", "dur_ns", counts_numbers=counts_numbers)
        rows = rows.filter(pl.Series(~map_categories(rows["name"], is_left_out), dtype=pl.Boolean))
        step = np.searchsorted(begin, rows["start_ns"].to_numpy(), "right") - 1
        is_inside = pl.Series(which[np.maximum(step, 0)] & (step >= 0), dtype=pl.Boolean)
        by_name = rows.with_columns(is_inside=is_inside).group_by("name")
        sums = by_name.agg(pl.col("is_inside", "counts_numbers").all(), pl.col("dur_ns").sum())
        words = pl.col("name").cast(pl.String)
        kind = pl.when("counts_numbers").then(words).otherwise(words.str.replace_all(_NUMBER, "#"))
        sums = sums.filter(pl.col("is_inside").all().over(kind))
        for name in sums.sort("dur_ns", "name")["name"].tail(_TRIED).to_list():
            words_of_name, spans = without_address(str(name)), intervals_of(rows.filter(pl.col("name") == name))
            culprit = Culprit(function=words_of_name) if frame is functions else Culprit(range=words_of_name)
            yield words_of_name, spans, culprit


def _only_in_longer_steps(facts: Facts) -> tuple[str, Intervals, Culprit] | None:
    """What runs in the long steps alone and takes most of what they take longer, if that is no matter of chance.

    The longest of them is one in which it runs.
    """
    median = float(np.median(facts.length[facts.is_counted]))
    is_longer = facts.is_counted & (facts.length >= _LONGER * median)
    if not is_longer.any() or is_longer.sum() >= _MOST * facts.count:
        return None
    least_ns = _MOST * int((facts.length[is_longer] - median).sum())
    who = next((hit for hit in _only_there(facts, is_longer) if (hit[1][1] - hit[1][0]).sum() >= least_ns), None)
    if who is None:
        return None
    lengths = length_within(who[1], facts.windows.start, facts.windows.end)
    longest = np.where(facts.is_counted, facts.length, 0).argmax()
    return who if lengths[longest] and facts.is_worth(lengths) else None


def _in_few_steps(facts: Facts) -> tuple[str, Intervals, Culprit] | None:
    """A function of the program that takes a large share of few steps, and of all, and runs in no other step.

    However much other work makes steps differ, its calls say which ones have it. The innermost such function counts.
    """
    calls, begin = facts.trace.python_calls, facts.trace.steps["host_start_ns"].to_numpy()
    rows = calls.select("name", "start_ns", "dur_ns")
    rows = rows.filter(pl.Series(map_categories(rows["name"], is_of_program), dtype=pl.Boolean))
    step = np.searchsorted(begin, rows["start_ns"].to_numpy(), "right") - 1
    least_ns = LARGE_SHARE * int(facts.length[facts.is_counted].sum())
    by_name = rows.with_columns(step=pl.Series(step)).group_by("name")
    sums = by_name.agg(pl.col("step").n_unique(), pl.col("dur_ns").sum())
    sums = sums.filter((pl.col("step") < _MOST * facts.count) & (pl.col("dur_ns") >= least_ns)).sort("dur_ns", "name")
    for name in sums["name"].to_list():
        spans = intervals_of(rows.filter(pl.col("name") == name))
        lengths = length_within(spans, facts.windows.start, facts.windows.end)
        is_large = facts.mean(lengths) >= LARGE_SHARE * facts.step_ns
        if is_large and facts.spread(lengths, LARGE_SHARE).is_rare:
            words = without_address(str(name))
            return words, spans, Culprit(function=words)
    return None


def _candidate(facts: Facts, name: str, spans: Intervals) -> Candidate:
    """What the host does at some times, with all that it launches: without it, none of that would run."""
    host = facts.host_candidate(function_name(name), spans)
    return replace(host, rows=np.flatnonzero(launched_within(facts.trace, spans)))


def _extra_computation(facts: Facts) -> Ints:
    """How much longer devices compute in each step than in the median one, where that is why the step is longer."""
    counts, kernels = facts.is_counted, _kernels(facts)
    usual, usual_computation = (float(np.median(values[counts])) for values in (facts.length, facts.computation))
    more = facts.computation - usual_computation
    is_longer = counts & (facts.length >= _LONGER * usual) & (more >= _MOST * (facts.length - usual))
    if not is_longer.any():
        return np.zeros(facts.length.size, np.int64)
    has_more_kernels = kernels >= _MORE_KERNELS * np.median(kernels[counts])
    is_longer &= has_more_kernels | (_only_in(facts, is_longer) >= _MOST * more)
    is_exception = is_longer.sum() < _MOST * counts.sum()
    return np.where(is_longer & is_exception, more, 0).astype(np.int64)


def _kernels_only_in(facts: Facts, steps: NDArray[np.bool_]) -> pl.DataFrame:
    """The kernels of some steps that no other step has with the same inputs and grid.

    Their `name`, `step` and `dur_ns`, and whether the operator, or where none was recorded the kernel, runs in other
    steps, too: `is_elsewhere`.
    """
    step, work = facts.trace.device_events["step"].gather(facts.kernel_rows), facts.kernel_work
    operators = pl.Series([group.name for group in work.groups], dtype=pl.String).gather(work.group)
    rows = facts.kernels.select("name", "grid", "dur_ns").with_columns(
        step=step, group=pl.Series(work.group), is_there=pl.Series(steps[step.to_numpy()]), operator=operators
    )
    caller = pl.when(pl.col("operator") == "").then(pl.col("name").cast(pl.String)).otherwise("operator")
    rows = rows.with_columns(is_elsewhere=(~pl.col("is_there")).any().over(caller))
    rows = rows.filter(pl.col("is_there").all().over("name", "grid", "group"))
    return rows.select("name", "step", "dur_ns", "is_elsewhere")


def _only_in(facts: Facts, steps: NDArray[np.bool_]) -> Ints:
    """How long kernels run in each of some steps that no other step has with the same inputs and grid."""
    sums = _kernels_only_in(facts, steps).group_by("step").agg(pl.col("dur_ns").sum())
    lengths = np.zeros(facts.length.size, np.int64)
    lengths[sums["step"].to_numpy()] = sums["dur_ns"].to_numpy()
    return lengths


def _kernels(facts: Facts) -> NDArray[np.int64]:
    """How many kernels each step has."""
    step = facts.trace.device_events["step"].gather(facts.kernel_rows).to_numpy()
    return np.bincount(step, minlength=facts.is_counted.size)


def _is_step(name: str) -> bool:
    return step_number(name) is not None


def recomputation(facts: Facts) -> Iterator[Advice]:
    """Activation checkpointing: forward operators run a second time, in the backward pass.

    With use_reentrant, CheckpointFunctionBackward runs them, and then the backward pass of what they computed, inside
    its own; without it, the hook that unpacks a saved tensor does (torch/utils/checkpoint.py), which only stacks show.
    """
    if facts.has_device:
        again = _in_recomputation(facts)
        busy = intervals_of(facts.trace.device_events, again)
        candidate = Candidate("recomputed activations", rows=np.flatnonzero(again))
    else:
        busy = _recomputation_on_host(facts)
        candidate = facts.host_candidate("recomputed activations", busy)
    lengths = length_within(busy, facts.windows.start, facts.windows.end)
    if not facts.is_worth(lengths):
        return
    yield Advice(
        "recomputation",
        f"Recomputing activations in the backward pass takes {facts.of_steps(lengths)}.",
        f"Activation checkpointing runs forward operators again for {facts.part_of(lengths)}{facts.recurs(lengths)}.",
        "If memory suffices, checkpoint fewer layers, or only what is cheap to compute again (selective activation "
        "checkpointing: `create_selective_checkpoint_contexts`); the view Memory says how much is free.",
        None,
        "high",
        "operators",
        "",
        facts.mean(lengths),
        candidate,
    )


def _recomputation_on_host(facts: Facts) -> Intervals:
    """When operators run again on the host."""
    trace = facts.trace
    host, calls = trace.host_events, trace.python_calls
    is_op = is_operator(trace)
    recomputes = name_mask(host["name"], lambda name: bool(_RECOMPUTES.search(name)))
    backward = name_mask(host["name"], lambda name: bool(_BACKWARD.search(name)))
    inner = nearest(recomputes | backward, host["parent"].to_numpy())
    by_function = intervals_of(host, is_op & gather(recomputes, inner, missing=False))
    by_hook = intervals_of(calls, map_categories(calls["name"], lambda name: bool(_FRAME.search(name))))
    operators = intervals_of(host, is_op & ~backward)
    return merge([by_function, without(operators, without(operators, by_hook))])


def _in_recomputation(facts: Facts) -> NDArray[np.bool_]:
    """Which rows of device_events the recomputation launches."""
    trace = facts.trace
    host, op = trace.all_host_events, trace.device_events["op"].to_numpy()
    parent = host["parent"].to_numpy()
    recomputes = name_mask(host["name"], lambda name: bool(_RECOMPUTES.search(name)))
    backward = name_mask(host["name"], lambda name: bool(_BACKWARD.search(name)))
    inner = gather(nearest(recomputes | backward, parent), op)
    by_function: NDArray[np.bool_] = gather(recomputes, inner, missing=False)
    hooks = map_categories(trace.python_calls["name"], lambda name: bool(_FRAME.search(name)))
    return by_function | launched_within(trace, intervals_of(trace.python_calls, hooks))


def growing_inputs(facts: Facts) -> Iterator[Advice]:
    """A training accumulates what each step adds, such as outputs, and concatenates all of it again in each step.

    How long operators take varies with what else the machine does; the sizes of their inputs don't.
    """
    host = facts.trace.host_events
    if not facts.is_training or facts.count < _FEWEST_STEPS or host["input_shapes"].null_count() == host.height:
        return
    is_op = is_operator(facts.trace)
    is_outermost = ~gather(is_op, host["parent"].to_numpy(), missing=False)  # else an operator joins its own inputs
    joins = name_mask(host["name"], lambda name: name in _JOINING) & is_op & is_outermost
    rows = host.filter(pl.Series(joins, dtype=pl.Boolean) & (pl.col("step") >= 0))
    if rows.is_empty():
        return
    shapes = rows["input_shapes"].cast(pl.String)
    elements_of = {shape: element_count(shape) for shape in shapes.drop_nulls().unique().to_list()}
    elements = shapes.replace_strict(elements_of, default=0, return_dtype=pl.Int64).to_numpy()
    per_step = np.bincount(rows["step"].to_numpy(), elements, facts.is_counted.size)[facts.is_counted]
    more = np.diff(per_step)
    is_steady = more.min() > 0 and np.ptp(more) <= _UNEVEN * more.mean()
    if not is_steady or per_step[-1] - per_step[0] < _LEAST_GROWTH * per_step[0]:
        return
    names = rows["name"].cast(pl.String).unique().sort().to_list()
    operators, more_text = text.enumeration([f"`{name}`" for name in names]), text.digits(float(more.mean()))
    where, culprit = in_program(facts, intervals_of(rows))
    yield Advice(
        "growing_inputs",
        f"The inputs of {operators} grow by {more_text} elements in every {facts.noun}{where}.",
        f"From {text.digits(float(per_step[0]))} elements to {text.digits(float(per_step[-1]))} in {facts.count} "
        f"{facts.noun}s: something accumulates from {facts.noun} to {facts.noun} and is never dropped, so memory "
        "grows, and what computes with all of it takes longer and longer.",
        "Keep what a fixed number of steps added (a ring buffer, `collections.deque(maxlen=…)`), or only sums of it; "
        "`detach()` what you store for statistics, or it retains its graph, too.",
        None,
        "high",
        "operators_by_shape",
        names[0],
        culprit=culprit,
    )
