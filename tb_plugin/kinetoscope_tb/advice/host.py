"""What the host does too late for its devices, or too slowly: data, synchronizing calls, small operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, categories_of, category_codes, gather, scatter_add
from ..arrays.intervals import Intervals, Ints, exclusive_lengths, length_within, merge, without
from ..arrays.nesting import nearest
from ..measures.python.whereabouts import caller_of
from ..measures.recording.contents import has_graphs
from ..measures.recording.lost_launches import lost_launches
from ..measures.recording.server import how_to_record
from ..measures.serving.steadiness import FEWEST_PEERS
from ..measures.time.breakdown import intervals_of
from ..measures.time.idle_causes import NOT_SHOWN, not_shown
from ..names import text
from ..names.calls import allocates, maps_memory, pins_memory
from ..names.device_work import copies_to_device
from ..names.kernels import step_number
from ..names.python_frames import function_name
from ..trace.row_filters import name_mask
from .contention import LOCK_REMEDY, lock_holder
from .culprit import HostCulprit, culprit, in_program, launching_function, rows_of_host, time_inside
from .extra_work import few_stalls
from .facts import (
    LEAST_SHARE,
    SURE_SHARE,
    Facts,
    aten_operators,
    call_within,
    host_shares,
    is_optimizer,
    optimizer_class,
)
from .faults import BLOCKED, UNKNOWN, lacks_launches, link_launches, lone_work, why_unknown
from .model import LAUNCHING, Advice, Candidate, ClearedTopic, Culprit, OpenQuestion, Remedy
from .repetition import (
    described_row,
    gaps_of_unknown_cause,
    host_at,
    how_to_see_host,
    is_loading,
    repeated_gaps,
)
from .server_host import late_of_server
from .spread import growth, rises
from .warm_up import are_first_launches, loads_code, longest_launcher, slow_launches

SHORT_KERNEL_NS = 25_000  # on average: shorter than the host takes for an operator
_MOSTLY = 0.3  # of the kernels begin behind a gap: then launching is what limits, not single pauses
_HALF = 0.5
_HOST_BOUND = 0.10  # of the step: some gaps are normal
_MENTIONED = 0.05  # of the idle time that isn't explained
_FEWEST_GAPS = 20  # per step
_MANY = 100
_MOST_OF_READ = 20  # kernels and copies of an operator whose result is read, such as nonzero
_MARK = (
    "Call `profiler.step()` after each batch, so that start-up doesn't count, and warm up before recording; then look "
    "at the longest gaps."
)
_NO_WAIT = (
    "Don't read results on the host within the step: keep losses and metrics on the device and read them every "
    "hundredth step, copy with `non_blocking=True`."
)
_READ_LATER = (
    "Don't wait for results on the host within the step: copy them with `non_blocking=True`, and read them a step "
    "later."
)
_WAITS = "the host's waits for the device"
_PINNED = (
    "Copy to the device from pinned memory with `non_blocking=True` (`DataLoader(pin_memory=True)`): then the host "
    "doesn't wait for the copy."
)
_WITH_STACKS = " Recording Python stacks (with_stack=True) slows the host, so the share without it is smaller."
_MOST_OF_GAPS = 0.8
_LOOKS = 8  # of gaps that recur
_BARRIERS = frozenset(("cudaDeviceSynchronize", "hipDeviceSynchronize"))
_NO_BARRIER = (
    "Don't wait for the device within the step: measure times by events (`torch.cuda.Event(enable_timing=True)`), or "
    "synchronize in every hundredth step alone."
)
_NO_WAIT_OF_SERVERS = (
    "Let the host prepare the next iteration while this one runs, instead of waiting for its tokens: "
    "`--async-scheduling` (vLLM), no `--disable-overlap-schedule` (SGLang)."
)
_LESS_MEMORY = (
    "and less memory in use: expandable segments are on already, so what is mapped again and again was too much"
)
_WHILE_EMPTY = "host code while no work is queued"
_PIN = (
    "Pin batches off the loop's thread (`DataLoader(pin_memory=True)`), or take one pinned buffer before the loop and "
    "copy each batch into it."
)
_FEWER = "Launch less: `torch.compile(mode='reduce-overhead')` or {graphs}, larger batches, fused operators."
_MORE_IN_GRAPHS = "Launch less: more of the step in graphs, larger batches, fused operators."
_SYNTAX = {
    "aten::_local_scalar_dense": ".item(), float() or a print of a tensor",
    "aten::item": ".item()",
    "aten::nonzero": "nonzero() or an index by a mask",
    "aten::_to_copy": ".cpu() or .to()",
    "aten::copy_": ".cpu(), .to() or copy_()",
    "aten::unique2": "unique()",
    "aten::masked_select": "masked_select()",
    "aten::repeat_interleave": "repeat_interleave()",
    "aten::is_nonzero": "a tensor as a condition",
    "aten::equal": "torch.equal()",
    "cudaDeviceSynchronize": "torch.cuda.synchronize()",
    "hipDeviceSynchronize": "torch.cuda.synchronize()",
}
# torch/optim: `fused` has kernels of GPUs for these, and on CPUs from torch 2.4 on for Adagrad, too.
_LARGE_UPDATE_NS = 1_000_000  # an operator: it takes its time for the memory that it moves, not for being called
DENSE_GRADIENT = "aten::embedding_dense_backward"
SPARSE = (
    "A batch uses few rows of a large embedding: with `nn.Embedding(…, sparse=True)` and `SparseAdam` or `SGD` only "
    "they are updated."
)
_FUSED = frozenset({"Adam", "AdamW", "SGD"})
_FUSED_ON_CPU = _FUSED | {"Adagrad"}
_FOREACH = _FUSED_ON_CPU | {"Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"}


def synchronization(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Devices run dry since a call made the host wait for them."""
    if not facts.has_device:
        return
    lengths = late_of_server(facts).synchronization
    if cleared_topic := facts.cleared_topic(
        "synchronization", lengths, "idle with nothing queued after synchronizing calls"
    ):
        if facts.idle.get("blocked copy", 0.0) < _HOST_BOUND and not facts.may_be_longer(lengths):
            yield cleared_topic
        return
    saving = facts.mean(lengths)
    blockers = facts.late.blockers[:3]
    calls = text.enumeration([_described_blocker(facts, *blocker) for blocker in blockers])
    gap_in_words = _recurring_gap(facts, saving, _late_after_waits(facts)).rstrip()
    yield Advice(
        "synchronizing",
        f"Waiting for {facts.device} leaves {'them' if facts.waits == 'wait' else 'it'} idle for "
        f"{facts.of_steps(lengths)}.",
        f"The host waited in {calls}; only then did it launch what came next, which leaves {facts.device} idle for "
        f"{facts.part_of(lengths)}{facts.recurs(lengths)}.{gap_in_words and ' ' + gap_in_words}",
        _PINNED
        if blockers and _is_to_device(facts, blockers[0][-1])
        else _NO_WAIT_OF_SERVERS
        if facts.server and facts.has_iterations
        else _without_wait(facts, blockers[0][-1] if blockers else NONE),
        None,
        "high",
        "gaps",
        "host late",
        saving,
        _reads(facts),
    )


def _late_after_waits(facts: Facts) -> Intervals:
    """When the host is late in gaps that began in a wait."""
    parts = facts.late_parts.filter(pl.Series(facts.late.begins_in_wait[facts.late_parts["gap"].to_numpy()]))
    return merge([(parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy())])


def _reads(facts: Facts) -> Candidate | None:
    """The waits, with the operators around them and what these launch: nothing is read.

    Not with operators that launch much, and so do more than to read: of these the waits alone. None if a server waits
    for requests besides: these come no earlier if the host runs ahead, so no more is saved than what is idle.
    """
    if facts.mean(facts.waiting_for_requests) >= LEAST_SHARE * facts.step_ns:
        return None
    trace, calls = facts.trace, facts.late.reads
    op = aten_operators(trace, calls)
    ranges = np.zeros(trace.host_events.height, bool)
    ranges[op[op != NONE]] = True
    parent, launching_op = trace.host_events["parent"].to_numpy(), trace.recorded_op.to_numpy()
    inside = gather(nearest(ranges, parent), launching_op)
    ranges &= np.bincount(inside[inside != NONE], minlength=ranges.size) <= _MOST_OF_READ
    inside = gather(nearest(ranges, parent), launching_op)
    not_shown = facts.unrecorded_work
    candidate = facts.host_candidate(_WAITS, without(intervals_of(trace.host_events, ranges), not_shown))
    return replace(candidate, rows=np.flatnonzero(inside != NONE), waits=True, unrecorded_work=not_shown)


def _described_blocker(facts: Facts, name: str, _: int, calls: int, example: int) -> str:
    """Such as: `aten::_local_scalar_dense` (.item(); 4 times per step, the longest at `train.py(12): log`)."""
    syntax = "a copy to the device" if _is_to_device(facts, example) else _SYNTAX.get(name)
    code = f"{syntax}; " if syntax else ""
    caller = caller_of(facts.trace, example)
    where = f", the longest at `{function_name(caller)}`" if caller else ""
    return f"`{name}` ({code}{text.times(calls / facts.count, 'time')} {facts.per}{where})"


def _is_to_device(facts: Facts, call: int) -> bool:
    """Whether a call waits for the copy to a device that its operator makes, or for its own."""
    calls, device = facts.trace.launches, facts.trace.device_events
    op = calls["op"][call]
    alike = pl.Series(calls["op"] == op).arg_true() if op != NONE else pl.Series([call])
    names = device.filter(pl.col("launch").is_in(alike.implode()) & (pl.col("kind") == "memcpy"))["name"]
    copies = names.cast(pl.String).to_list()
    return bool(copies) and all(copies_to_device(name) for name in copies)


def host_bound(facts: Facts) -> Iterator[Advice | ClearedTopic | OpenQuestion]:
    """Devices wait since their work is launched too late, for no reason that another rule names."""
    if not facts.has_device:
        return
    if facts.is_worth(facts.graph_captures):
        yield _of_capture(facts)
        return
    of_server = late_of_server(facts)
    is_launching = _is_launching(facts) and not of_server.claims.any()
    stalls = few_stalls(facts)
    of_few, who = stalls.waits, stalls.who
    late = np.maximum(of_server.host - of_few, 0)
    lengths = late + (facts.late.latency if is_launching else 0)
    start, end = (side[of_few > 0] for side in (facts.windows.start, facts.windows.end))
    apart = merge([who[1] if who else (start, end), of_server.spans])
    if cleared_topic := facts.cleared_topic("launches", lengths, "waiting for the host", _HOST_BOUND):
        if not is_launching and (function := _late_in_function(facts, late, apart)):
            yield function
        elif not facts.may_be_longer(lengths, _HOST_BOUND):
            yield replace(cleared_topic, candidate=_host_code(facts))
        elif facts.is_worth(lengths + facts.unlinked_idle, _HOST_BOUND):
            yield _of_unlinked_work(facts)
        return
    yield _late_host(facts, late, apart, is_launching=is_launching)


def _late_in_function(facts: Facts, lengths: Ints, apart: Intervals) -> Advice | None:
    """That the host is a little late in each step, in one function of the program: a cause that can be acted on."""
    if facts.is_whole or not facts.is_worth(lengths, SURE_SHARE) or facts.spread(lengths, SURE_SHARE).is_rare:
        return None
    who = culprit(facts, without(without(facts.late.rest, apart), facts.profiler_spans))
    if who is None or who.names.function is None or who.inside_ns < _HALF * lengths.sum():
        return None
    return _late_host(facts, lengths, apart, is_launching=False, least=SURE_SHARE)


def _late_host(
    facts: Facts, lengths: Ints, apart: Intervals, *, is_launching: bool, least: float = _HOST_BOUND
) -> Advice:
    """That the host is late for so long in each step, without what it does in few steps, `apart`.

    Steps in which that is less than `least` of them don't have it. Launching is slow after waits, too.
    """
    waiting_ns = facts.mean(lengths)
    late = without(facts.late.unnamed if is_launching else facts.late.rest, apart)
    rest = without(late, facts.profiler_spans)
    who = None if is_launching else culprit(facts, rest)
    spans = without(merge([rest, who.spans]), facts.profiler_spans) if who else rest
    added_ns = facts.late.latency if is_launching else np.zeros_like(lengths)
    is_most = 2 * facts.mean(lengths) >= facts.mean(added_ns)
    where, names = _where(facts, who, rest, int(lengths.sum())) if is_most else ("", Culprit())
    holder = None if is_launching else lock_holder(facts, rest)
    if holder:
        where, names = f": the main thread {holder.words}", Culprit(function=holder.function)
    activity = host_shares(facts.late)
    single = _recurring_gap(facts, waiting_ns, rest) or _longest_gap(facts, late, waiting_ns)
    latency = facts.mean(added_ns)
    latency_in_words = f"Launch latency behind it adds {text.time(latency)}. " if latency else ""
    has_stacks = not facts.trace.python_calls.is_empty()
    return Advice(
        "launch_bound" if is_launching else "host_bound",
        f"The host launches work too slowly, which leaves {facts.device} idle for "
        f"{facts.of_steps(lengths + added_ns)}{where or _in_loop(facts)}."
        if is_launching
        else f"{facts.subject} {facts.waits} for the host for {facts.of_steps(lengths, least)}{where}.",
        f"No device work was queued for {facts.part_of(lengths, least)}{_besides(facts, lengths)}"
        + facts.recurs(lengths + added_ns, least)
        + (f"; meanwhile the host spent {activity}." if activity else ".")
        + (holder.evidence if holder else "")
        + f" {_of_profiler(facts, without(late, rest), waiting_ns)}{_growth_of(facts, who)}{latency_in_words}{single}"
        + _launched_kernels(facts)
        + (_WITH_STACKS if has_stacks else ""),
        LOCK_REMEDY if holder else _remedy(facts, names, is_launching=is_launching),
        None,
        "low" if facts.is_whole else "medium" if has_stacks or facts.count == 1 else "high",
        "gaps",
        "host late",
        waiting_ns + latency,
        _host_code(facts) if is_launching else facts.host_candidate(_WHILE_EMPTY, spans),
        names,
        None if facts.server else _no_waits_between(facts) if is_launching else _no_waits(facts),
    )


def _launched_kernels(facts: Facts) -> str:
    """How many kernels a step launches, and how long they take, as a sentence."""
    count = text.times(facts.kernels.height / facts.count, "kernel")
    of_launches = "" if facts.are_launches_known else " whose launches are recorded"
    return f"{count} {facts.per}{of_launches}, of {text.time(facts.mean_kernel_ns)} on average."


def _host_code(facts: Facts) -> Candidate:
    """All host code and launches; a server's waits for requests aren't among them."""
    if not facts.request_waits[0].size:
        return LAUNCHING
    whole = facts.windows.start[:1], facts.windows.end[-1:]
    host = facts.host_candidate(LAUNCHING.words, without(whole, facts.request_waits))
    return replace(host, classes=("launch latency",))


def _where(facts: Facts, who: HostCulprit | None, rest: Intervals, said_ns: int) -> tuple[str, Culprit]:
    """What the host is in while it is late, as the end of a sentence, with how much of the time that it is about.

    Launch latency behind it isn't in that time, since it is as much longer everywhere.
    """
    if who is None:
        return launching_function(facts, rest, said_ns)
    return f", {text.part_of_time(who.inside_ns / max(1, said_ns))} in {who.words}", who.names


def _besides(facts: Facts, lengths: Ints) -> str:
    """How much longer nothing was queued for reasons that have advice of their own; empty if it's little."""
    others_ns = facts.mean(facts.late_lengths) - facts.mean(lengths)
    if facts.share(others_ns) < LEAST_SHARE or facts.spread(lengths).is_rare:
        return ""
    return f", besides {text.time(others_ns)} for other causes"


def _longest_gap(facts: Facts, late: Intervals, waiting_ns: int) -> str:
    """How late the host is in the gap with most of that, if it alone is much of it, as a sentence; else empty.

    The gap itself may last longer: a part of it may have a cause of its own.
    """
    start, end, lengths = facts.late.host_parts
    longest = int(np.minimum(lengths, length_within(late, start, end)).max(initial=0))
    return f"In one gap alone the host is late for {text.time(longest)}. " if longest > _MOSTLY * waiting_ns else ""


def _of_profiler(facts: Facts, spans: Intervals, waiting_ns: int) -> str:
    """How much of the time in which the host is late the profiler itself works, as a sentence; empty if it's little.

    *Idle* counts it as time of what it lies in: the operator with most of it is named.
    """
    own_ns = facts.mean(length_within(spans, facts.windows.start, facts.windows.end))
    if own_ns < _MENTIONED * waiting_ns:
        return ""
    rows = rows_of_host(facts, facts.trace.host_events, lambda name: step_number(name) is not None)
    inside = time_inside(rows.filter(pl.col("kind") == "operator"), spans)
    inside = inside.filter(pl.col("inside") >= _HALF * int((spans[1] - spans[0]).sum()))
    names = inside.select(pl.col("name").cast(pl.String), "dur_ns").sort("dur_ns", "name")["name"].head(1)
    where = "".join(f", most of that in `{name}`" for name in names)
    return f"{text.time(own_ns)} of that time is the profiler's own work{where}, which the saving doesn't count. "


def _no_waits(facts: Facts) -> Remedy | None:
    """That the host never waits for devices: it may run ahead then, so that work is queued while it is busy."""
    waits = facts.waits_of_host[:2]
    if not waits:
        return None
    calls = text.enumeration([_described_blocker(facts, *wait) for wait in waits])
    it = "them" if facts.waits == "wait" else "it"
    return Remedy(
        "synchronization",
        Candidate(_WAITS, waits=True, unrecorded_work=facts.unrecorded_work),
        f"Before, the host waited for {facts.device} in {calls}, which empties the queue: without any wait for {it} "
        "the host would run ahead, which would save {saved}.",
        f"Let it run ahead: {text.as_clause(_without_wait(facts, waits[0][-1]))}",
    )


def _without_wait(facts: Facts, call: int) -> str:
    """What to do instead of a wait for devices (a row of launches, or NONE)."""
    if call != NONE and facts.trace.launches["name"][call] in _BARRIERS:
        return _NO_BARRIER
    return _NO_WAIT if facts.is_training else _READ_LATER


def _no_waits_between(facts: Facts) -> Remedy | None:
    """The same where the host waits again and again, and so is never ahead of the kernels that it launches.

    None if there are fewer waits than half of the gaps: others are longer than the host had to wait.
    """
    remedy = _no_waits(facts)
    name, _, calls, example = max(facts.waits_of_host, key=lambda wait: wait[2], default=("", 0, 0, NONE))
    if remedy is None or calls < max(_HALF * facts.late.gaps, _FEWEST_GAPS * facts.count):
        return None
    often = f"{text.times(calls / facts.count, 'time')} {facts.per}"
    clause = f", since the host waits for {'them' if facts.waits == 'wait' else 'it'} in `{name}` {often}"
    return replace(remedy, clause=clause, action=_without_wait(facts, example))


def _growth_of(facts: Facts, who: HostCulprit | None) -> str:
    """That the culprit takes longer from step to step, be it hidden at first, as a sentence; empty if it doesn't."""
    if who is None or facts.count < 2:
        return ""
    on_host = (facts.trace.steps[side].to_numpy() for side in ("host_start_ns", "host_end_ns"))
    first, last = growth(length_within(who.spans, *on_host)[facts.is_counted])
    if not rises(first, last):
        return ""
    return f"It takes longer from step to step: {text.time(first)} in the first third, {text.time(last)} in the last. "


def _in_loop(facts: Facts) -> str:
    """The operator whose kernels the device waits for most of the time that launching takes, as the end of a sentence.

    It is one that is called many times: others launch what a model consists of.
    """
    ends, trace = facts.late.ends, facts.trace
    launch, length = trace.device_events["launch"].to_numpy()[ends["after"]], ends["length"].to_numpy()
    names, is_launch = trace.host_events["name"], launch != NONE
    code = gather(category_codes(names), aten_operators(trace, launch[is_launch]))
    calls = np.bincount(code[code != NONE])
    by_code = scatter_add(code, length[is_launch], calls.size)
    most = int(by_code.max(initial=0))
    if not calls.size or most < _HALF * int(length.sum()):
        return ""
    codes = np.flatnonzero((by_code == most) & (calls > 0))
    operators = categories_of(names).gather(codes).to_list()
    name, count = max(zip(operators, calls[codes].tolist(), strict=True))
    if count < _MANY * facts.count:
        return ""
    return f", most of it before kernels of `{name}` ({text.often(count / facts.count)} times {facts.per})"


def _is_launching(facts: Facts) -> bool:
    """Whether the host is late again and again, before many short kernels: launching them is what takes long.

    It isn't where a few long gaps are most of the time.
    """
    is_many = facts.late.gaps > max(_MOSTLY * facts.kernels.height, _FEWEST_GAPS * facts.count)
    in_few = facts.late.in_longest_ns > _HALF * facts.count * facts.mean(facts.late.host + facts.late.latency)
    return facts.mean_kernel_ns < SHORT_KERNEL_NS and is_many and not in_few


def is_launch_bound(facts: Facts) -> bool:
    """Whether launching is what limits, and costs enough to say so."""
    return _is_launching(facts) and facts.is_worth(facts.late.host + facts.late.latency, _HOST_BOUND)


def _recurring_gap(facts: Facts, waiting_ns: int, spans: Intervals) -> str:
    """The gap that recurs in every step and explains most of the wait for the host, and where the host is then.

    Args:
        facts: What is known of the recording.
        waiting_ns: The wait, per step.
        spans: When it is; gaps may also be due to something else.
    """
    parts = facts.idle_parts.filter(pl.col("cause") == "host late")
    of_gaps = ((gap, parts.filter(pl.col("gap").is_in(gap.numbers))) for gap in repeated_gaps(facts, ("host late",)))
    inside = ((gap, own) for gap, own in of_gaps if _lies_in(own, spans))
    largest, own = next(inside, (None, parts))
    if largest is None or facts.mean(largest.lengths) < _HALF * waiting_ns:
        return ""
    which = f"of {text.time(largest.typical_ns)} before {described_row(facts, largest)} recurs"
    steps = _steps_with(facts, largest.lengths)
    many = f", {text.often(largest.per_step)} times per {facts.noun}" if largest.per_step >= 1.5 else ""
    often = many if many and steps.startswith("every ") else f" in {steps}{many}"
    where = _host_in(facts, own)
    return f"{'A' if many else 'One'} gap {which}{often}{f', with the host {where}' if where else ''}. "


def _lies_in(parts: pl.DataFrame, spans: Intervals) -> bool:
    """Whether nearly all of some parts of gaps lies in the spans."""
    start, end = parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy()
    return bool(length_within(spans, start, end).sum() >= _MOST_OF_GAPS * (end - start).sum())


def _host_in(facts: Facts, parts: pl.DataFrame) -> str:
    """Where the host is in the middle of some gaps; empty if that isn't the same in a few of them."""
    length = pl.col("end_ns") - pl.col("start_ns")
    longest = parts.sort(length, "start_ns", descending=[True, False]).unique("gap", keep="first").sort("start_ns")
    looks = np.unique(np.linspace(0, longest.height - 1, _LOOKS).astype(np.int64))
    middle = ((longest["start_ns"] + longest["end_ns"]) // 2).gather(looks)
    where = {host_at(facts, at) for at in middle}
    return where.pop() if len(where) == 1 else ""


def _steps_with(facts: Facts, per_step: Ints) -> str:
    """The steps that have a cost: every step, steps 3 and 7, 5 of 6 steps."""
    spread = facts.spread(per_step)
    if spread.is_rare or spread.has.all():
        return facts.steps_of(per_step)
    return facts.out_of_steps(spread)


def _of_capture(facts: Facts) -> OpenQuestion:
    part = facts.percent(facts.mean(facts.graph_captures))
    return OpenQuestion(
        f"whether {facts.device} {facts.waits} for the host",
        f"for {part} of {facts.unit} graphs are captured, and nothing that is captured runs; record their replays",
    )


def _of_unlinked_work(facts: Facts) -> OpenQuestion:
    size, verb = facts.mean(facts.unlinked_idle), "are" if facts.waits == "wait" else "is"
    part = f"{facts.percent(size)} of {facts.unit}"
    return OpenQuestion(
        f"whether {facts.device} {facts.waits} for the host",
        f"for {part} {facts.device} {verb} idle around work of which no call is known that launched it",
        size,
        link_launches(facts),
        "health",
    )


def _remedy(facts: Facts, names: Culprit, *, is_launching: bool) -> str:
    if is_launching:
        return _MORE_IN_GRAPHS if has_graphs(facts.trace) else _FEWER.format(graphs=facts.terms.graphs)
    if pins_memory(facts.late.calls) and facts.late.activity["runtime call"] > _HALF:
        return _PIN
    if facts.server:
        more = "" if facts.count >= FEWEST_PEERS else f" {how_to_record(facts.server)}"
        who = names.operator or names.range or (names.function and names.function.rpartition(": ")[-1])
        what = f"`{who}` and what it calls, and at what else" if who else "what"
        return (
            f"Look at {what} the host does meanwhile: *Idle* lists that by innermost operator or function, "
            f"and *Limits* by phase.{more}"
        )
    if facts.is_whole:
        return _MARK
    return "Shorten what the host does between launches: move it out of the step, or to another thread or process."


def launch_calls(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Devices wait for single calls that take long to launch work."""
    slow = slow_launches(facts)
    lengths = np.zeros(len(facts.windows.names), np.int64)
    np.add.at(lengths, slow["window"].to_numpy(), slow["length"].to_numpy())
    for cause in ("launch latency", "dependency", "graph launch")[is_launch_bound(facts) :]:
        share = facts.idle.get(cause, 0.0) - (facts.share(facts.mean(lengths)) if cause == "launch latency" else 0.0)
        if share >= _HOST_BOUND:
            yield _between_queued(facts, cause, share)
    if not facts.is_worth(lengths) or loads_code(facts, slow):
        return
    saving = facts.mean(lengths)
    calls = text.times(slow.height / facts.count, "call")
    launcher = longest_launcher(facts, slow)
    longest = f"; the longest{launcher and f', {launcher},'} leaves {facts.device} idle for "
    longest += text.time(slow["length"].max())  # type: ignore[arg-type]
    where = longest if slow.height > 1 else launcher and f", {launcher}"
    yield Advice(
        "slow_launch",
        f"{facts.subject} {facts.waits} for calls that launch work for {facts.of_steps(lengths)}.",
        f"{facts.part_of(lengths)} in {calls} {facts.per}{facts.recurs(lengths)}{where}.",
        _faster_launches(facts, slow),
        saving,
        "medium",
        "gaps",
        "launch latency",
    )


def _faster_launches(facts: Facts, slow: pl.DataFrame) -> str:
    """What to do about slow launches: warm up where most of the time is in the first launch of each kernel."""
    waits = "what the calls wait for: a lock, an allocation, a full queue."
    if not are_first_launches(facts, slow):
        return f"Look at {waits}"
    eager = " (CUDA_MODULE_LOADING=EAGER loads all at start)" if facts.terms.vendor == "NVIDIA" else ""
    return (
        f"Warm up before recording: the first launch of a kernel loads its code{eager}. If every {facts.noun} shows "
        f"it, look at {waits}"
    )


def _between_queued(facts: Facts, cause: str, share: float) -> ClearedTopic:
    """That devices are idle for a large share of the step between work that is queued, with the rows that wait."""
    parts = facts.idle_parts.filter(pl.col("cause") == cause)
    lengths = facts.lengths_of_gaps(parts["gap"], (parts["end_ns"] - parts["start_ns"]).to_numpy())
    rows = facts.ends_of_gaps(lengths)
    return ClearedTopic(
        cause,
        f"{text.percent(share)} idle between queued work ({cause})",
        lost_ns=round(share * facts.step_ns),
        rows=rows["after"].to_numpy(),
        row_ns=rows["length"].to_numpy(),
    )


def unexplained_idle(facts: Facts) -> Iterator[Advice]:
    """Idle time of devices that the recording doesn't explain: named with its size, and with what is known of it."""
    recurring_gaps = [number for gap in gaps_of_unknown_cause(facts) for number in gap.numbers]
    idle = facts.idle_shares(~pl.col("gap").is_in(recurring_gaps))
    shares = {cause: idle.get(cause, 0.0) for cause in UNKNOWN}
    whole, first = sum(shares.values()), max(shares, key=lambda cause: shares[cause])
    is_all_queued = shares[NOT_SHOWN] < _MENTIONED * whole
    share = whole - shares[NOT_SHOWN] if is_all_queued else whole
    if share < _HOST_BOUND or facts.is_worth(facts.graph_captures) or is_loading(facts):
        return
    causes = [cause for cause in sorted(shares, key=lambda c: -shares[c]) if shares[cause] >= _MENTIONED * whole]
    where, source = in_program(facts, facts.blocked_idle) if BLOCKED in causes else ("", Culprit())
    reasons = {
        BLOCKED: f"work was queued, and the host in `{facts.blocking_call}`, which may wait for {facts.device}{where}",
        "unexplained": "work was queued, and waited for nothing that was recorded",
        NOT_SHOWN: _why_not_shown(facts),
    }
    first_part, *parts = (f"for {text.percent(shares[cause])}" for cause in causes)
    parts = [f"{first_part} of {facts.unit}", *parts]
    evidence = "; ".join(f"{part}, {reasons[cause]}" for part, cause in zip(parts, causes, strict=True))
    yield Advice(
        "unexplained_idle",
        _idle_title(facts, share, causes),
        f"{text.capitalize(evidence)}.",
        link_launches(facts)
        if lacks_launches(facts)
        else f"Look at the longest gaps, and at what else used the device. {_more_steps(facts)}",
        None,
        "cannot_tell",
        "gaps",
        first,
        round(share * facts.step_ns),
        culprit=source if causes[0] == BLOCKED else Culprit(),
    )


def _idle_title(facts: Facts, share: float, causes: Sequence[str]) -> str:
    """That devices are idle for a share of the step for these causes, the largest first, and what is known of it."""
    is_busy = "are" if facts.waits == "wait" else "is"
    part = f"{text.percent(share)} of {facts.unit}"
    if NOT_SHOWN not in causes:
        mostly = "" if list(causes) == [BLOCKED] else "mostly "
        in_call = f"{mostly}while the host is in `{facts.blocking_call}`"
        reason = in_call if causes[0] == BLOCKED else "for no recorded reason"
        return f"{facts.subject} {is_busy} idle with work already queued for {part}, {reason}."
    if lacks_launches(facts):
        return why_unknown(facts, part)
    if list(causes) == [NOT_SHOWN] and not_shown(facts.trace)[0].size:
        of = "the time" if facts.is_whole else facts.unit
        return f"{text.percent(share)} of {of} isn't in the recording: {facts.device} may have been busy then."
    return f"For {part} no work of {facts.device} is recorded, and no reason why."


def _why_not_shown(facts: Facts) -> str:
    """Why devices may have been busy though nothing is recorded."""
    if lacks_launches(facts):
        return f"the work before or after is one of {lone_work(facts)} without a recorded call"
    if lost_launches(facts.trace).any():
        return "launched work that has no GPU event may have run"
    return "work from before the recording, or work whose launch isn't in it, may have run"


def _more_steps(facts: Facts) -> str:
    """How to record the same with more evidence."""
    if facts.server:
        return how_to_record(facts.server) if facts.count < FEWEST_PEERS else how_to_see_host(facts)
    with_host = "" if facts.has_operators else ", with ProfilerActivity.CPU"
    return f"Record several steps in the middle of a run{with_host}."


def kernels_of_optimizer(facts: Facts) -> NDArray[np.integer]:
    """The kernels (rows of device_events) that an optimizer launches for one parameter after the other."""
    unfused_optimizer = facts.unfused_optimizer
    if unfused_optimizer is None:
        return np.empty(0, np.int64)
    return np.flatnonzero(gather(unfused_optimizer[1], facts.trace.recorded_op.to_numpy(), missing=False))


def optimizer(facts: Facts) -> Iterator[Advice]:
    """The optimizer updates each parameter by itself."""
    unfused_optimizer = facts.unfused_optimizer
    if unfused_optimizer is None:
        return
    (name, ran), kernels = unfused_optimizer, kernels_of_optimizer(facts)
    windows = facts.windows.start, facts.windows.end
    candidate = facts.host_candidate("the optimizer's step", facts.unfused_optimizer_spans)
    if facts.has_device:
        of_kernels = length_within(intervals_of(facts.trace.device_events[kernels]), *windows)
        calls = lengths = facts.late.optimizer + of_kernels
        what = f"device idle time, and {text.time(facts.mean(of_kernels))} of kernels"
        candidate = replace(candidate, rows=kernels)
    else:
        calls = facts.calling_in_optimizer + facts.rest_in_optimizer
        lengths, what = np.asarray(length_within(facts.unfused_optimizer_spans, *windows)), "host time"
    if not facts.is_worth(calls):
        return
    saving = facts.mean(lengths)
    own_ns = facts.mean(facts.late.optimizer) if facts.has_device else saving
    rows = f" and {text.often(kernels.size / facts.count)} kernels" if kernels.size else ""
    is_of_large = not facts.has_device and saving >= _LARGE_UPDATE_NS * int(ran.sum()) / facts.count
    manner = (
        "reads and writes all parameters in each operator" if is_of_large else "updates one parameter after the other"
    )
    has_embedding = is_of_large and (facts.trace.host_events["name"] == DENSE_GRADIENT).any()
    yield Advice(
        "optimizer",
        f"{name} {manner}, which costs {facts.of_steps(lengths)}.",
        f"{text.often(int(ran.sum()) / facts.count)} operators{rows} {facts.per} in `Optimizer.step`, none of them "
        f"fused: {text.time(own_ns)} of {what}{facts.recurs(lengths)}.",
        f"Let one kernel update many parameters: {grouped_update(name, has_device=facts.has_device)}."
        + (f" {SPARSE}" if has_embedding else ""),
        None,
        "medium",
        "operators",
        "",
        saving,
        candidate,
    )


def host_optimizer(facts: Facts) -> Iterator[Advice]:
    """An optimizer's step launches no kernel, though a device computes: it updates parameters on the host.

    Each class is judged by itself: a program can have several optimizers.
    """
    if not facts.has_device:
        return
    host, device = facts.trace.all_host_events, facts.trace.device_events
    ranges = name_mask(host["name"], is_optimizer)
    kernels = (device["kind"] == "kernel").to_numpy()
    op = device["op"].to_numpy()
    launch_host = gather(facts.trace.launches["host"].to_numpy(), device["launch"].to_numpy())
    of_row = gather(nearest(ranges, host["parent"].to_numpy()), np.where(op != NONE, op, launch_host))
    on_device = host["name"].gather(np.unique(of_row[kernels & (of_row != NONE)]))
    ranges &= ~host["name"].is_in(on_device.implode()).fill_null(value=False).to_numpy()
    spans = intervals_of(facts.trace.host_events, ranges[: facts.trace.host_events.height])
    groups = [intervals_of(device, kernels), spans]
    lengths = np.asarray(exclusive_lengths(groups, facts.windows.start, facts.windows.end)[1])
    if not facts.is_worth(lengths):
        return
    inside = gather(ranges, of_row, missing=False)
    name = optimizer_class(str(host["name"].filter(pl.Series(ranges))[0]))
    copy_ns = int(device["dur_ns"].filter(pl.Series(inside)).sum())
    copies = f", {text.time(copy_ns / facts.count)} of it while gradients or parameters are copied" if copy_ns else ""
    candidate = facts.host_candidate("the optimizer on the host", spans)
    yield Advice(
        "host_optimizer",
        f"The optimizer ({name}) runs on the host for {facts.of_steps(lengths)}.",
        f"`Optimizer.step` launches no kernel: for {facts.part_of(lengths)} the host updates parameters and "
        f"{facts.device} compute{'' if facts.waits == 'wait' else 's'} nothing{facts.recurs(lengths)}{copies}.",
        "Update parameters on the device if its memory suffices (with sharded or 8-bit states); else offload fewer of "
        "them, and let the update overlap the backward pass.",
        None,
        "high",
        "gaps",
        "",
        facts.mean(lengths),
        replace(candidate, rows=np.flatnonzero(inside)),
    )


def grouped_update(optimizer: str, *, has_device: bool) -> str:
    """How a class of torch.optim updates many parameters with one kernel; of other classes which ones do."""
    fused_classes = _FUSED if has_device else _FUSED_ON_CPU
    ways = [f"`{optimizer}(…, fused=True)`"] if optimizer in fused_classes else []
    if has_device and optimizer in _FOREACH:
        ways.append("`foreach=True`" if ways else f"`{optimizer}(…, foreach=True)`")
    return " or ".join(ways) or f"{optimizer} may have an option for it; `torch.optim.AdamW` has `fused=True`"


def allocation(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Devices wait while the host asks the driver for memory."""
    if not facts.has_device:
        return
    lengths = facts.late.allocating
    take, give_back = facts.terms.memory_calls
    if cleared_topic := facts.cleared_topic("allocation", lengths, f"in {take} and the like"):
        if not facts.may_be_longer(lengths):
            yield cleared_topic
        return
    saving = facts.mean(lengths)
    longest = call_within(facts.trace, facts.host_spans["allocating"], allocates)
    has_segments = bool(call_within(facts.trace, facts.host_spans["allocating"], maps_memory))
    remedy = _LESS_MEMORY if has_segments else "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (torch 2.1 or later)"
    yield Advice(
        "allocation",
        f"Asking the driver for memory takes {facts.of_steps(lengths)}.",
        f"For {facts.part_of(lengths)} {facts.device} {facts.waits} while the host is in calls "
        f"such as {longest or f'{take} and {give_back}'}{facts.recurs(lengths)}; a warm allocator makes none.",
        "Keep the caching allocator's memory: no `torch.cuda.empty_cache()` in the step, shapes that repeat, "
        f"{remedy}. Record after some steps of warm-up.",
        None,
        "low" if facts.is_whole else "medium",
        "gaps",
        "runtime call",
        saving,
        facts.host_candidate("calls for memory", facts.host_spans["allocating"]),
    )
