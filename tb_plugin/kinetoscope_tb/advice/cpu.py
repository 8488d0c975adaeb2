"""What a recording without a device says of its host: what it waits for, what holds it up, which operators dominate.

The parts that rules look at are those of measures/time/host_time.py, so no two claim the same time; only the number
format, activations that are computed again, and what some steps alone do lie across them. What processor counters
say is spread over the parts in this order: time off the processor that a recorded wait doesn't explain belongs to what
wasn't recorded first, then to the operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories
from ..arrays.intervals import Intervals, Ints, length_within, merge, without
from ..arrays.nesting import nearest
from ..measures.calls.operator_loop import OperatorLoop, operator_loops
from ..measures.calls.unfused_attention import UnfusedAttention, unfused_attention
from ..measures.python.whereabouts import Location, locations
from ..measures.recording.options import was_on
from ..measures.time.breakdown import intervals_of, loading_ranges
from ..measures.time.host_time import HOST_PARTS, SMALL_OP_NS
from ..names import text
from ..names.python_frames import describe_wait, function_name
from ..names.tensor_cores import is_matrix_op
from ..trace.results import once_per_trace
from ..trace.row_filters import is_operator, name_mask
from .anomaly import nan_search, while_on
from .contention import (
    FULL,
    LOCK_REMEDY,
    OffProcessor,
    core_waits_of_steps,
    lock_holder,
    off_processor,
)
from .culprit import in_program
from .facts import LARGE_SHARE, Facts, is_optimizer, optimizer_class
from .host import DENSE_GRADIENT, SPARSE, grouped_update
from .kernel_text import DOUBLES_FASTER, IN_FLOAT, has_doubles, use_fused
from .model import Advice, Candidate, ClearedTopic, Culprit
from .operator_pace import MENTIONED, most_calls, slow_calls

_ALONE = 1.2  # cores: one thread, and a little of others
_MOSTLY_IDLE = 0.3  # of all cores in use at most
_MOST = 0.5
_DOMINATES = 0.4  # of the step
_AVOIDABLE = 0.15  # of the step, in copies: they compute nothing
_OVERHEAD = 0.15  # of the step
_FEW = 10
_MOST_NAMED = 3
_CALL_NS = 100_000  # Python calls the next operator within that, stacks or not
_OF_LOOPS = ("operators", "calling", "rest")

_REMEDIES = {
    "sleeps": "Take the sleep out of the step.",
    "waits for a lock or another thread": "Let the other thread work one step ahead, or hold the lock for less.",
    "waits for another process": "Let the other process work one step ahead.",
    "waits for a file or a socket": "Read and write in another thread or process, one step ahead or behind.",
}
_WATCH = (
    "Watch the process with py-spy (`py-spy record --native`), or annotate the parts of the step "
    "(`torch.profiler.record_function`)."
)
_OF_ELEMENTS = frozenset(("aten::item", "aten::is_nonzero", "aten::select", "aten::unbind"))
_READ_ONCE = (
    "Don't go over a tensor element by element: compute on the whole tensor (comparison and `sum`, `torch.bincount`), "
    "or read it once before the loop (`.tolist()`)."
)
_WITH_ONEDNN = (
    "Let oneDNN convolve: `torch.backends.mkldnn.is_available()` and `torch.backends.mkldnn.enabled` have to be True, "
    "and tensors in float32 or bfloat16."
)
_DEEPCOPY = re.compile(r"(?:^|[/\\])copy\.py\(\d+\): deepcopy$")
_COPY_IN_PLACE = (
    "Don't make new objects in each step: copy the values into tensors that exist (`copy_`, `torch._foreach_copy_`); "
    "`torch.optim.swa_utils.AveragedModel` averages weights in place."
)
_BATCH = (
    "Let each operator take all elements at once instead of one: stack what the loop goes over (batched matmuls, "
    "`torch.vmap`, padding)."
)
_MATMULS, _CONVOLUTIONS, _COPIES = "matmuls", "convolutions", "copies and casts"
_OF_TORCH = re.compile(
    r"^(?:aten|prims?|c10d|torch|autograd|profiler|mkldnn|quantized|record_param_comms)\b|^Optimizer"
)
_DENSE_GRADIENTS = "dense gradients of embeddings"
_CONVOLUTION = re.compile(r"conv", re.IGNORECASE)
_WITHOUT_ONEDNN = re.compile(r"nnpack|slow_conv|thnn_conv")  # what aten/src/ATen/native/Convolution.cpp falls back to
_MATMUL = re.compile(r"gemm|matmul|linear|lstm|gru|attention|mm$|mm_out$")
_FAMILIES = (
    (
        _COPIES,
        re.compile(r"^aten::(?:copy_|_to_copy|to|clone|contiguous|cat|stack|fill_|zero_|zeros?|empty\w*)$"),
    ),
    (
        "elementwise operators",
        re.compile(
            r"^aten::_?(?:add|sub|rsub|mul|div|pow|sqrt|rsqrt|exp|log|sin|cos|tanh|sigmoid|relu|gelu|silu|leaky_relu|elu|abs|neg"
            r"|clamp\w*|where|masked_fill|threshold|hardtanh|erf|reciprocal|addcmul|addcdiv|lerp|bernoulli|dropout"
            r"|native_dropout|eq|ne|lt|gt|le|ge|maximum|minimum)(?:_backward)?_?$"
        ),
    ),
    ("softmax and losses", re.compile(r"^aten::_?(?:log_)?softmax|^aten::(?:nll|cross_entropy|mse|l1)_loss")),
    (
        "sorting and indexing",
        re.compile(
            r"^aten::_?(?:sort|topk|argsort|unique\w*|nonzero|index\w*|gather|scatter\w*|masked_select|searchsorted)_?$"
        ),
    ),
)


def _is_meant(facts: Facts) -> bool:
    """Whether the host is all there is."""
    return facts.has_operators and not facts.has_device


def small_operators(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Without a device: time that goes to calling small operators, and to Python between them."""
    host = facts.trace.host_events
    if not _is_meant(facts):
        return
    parent = host["parent"].to_numpy()
    is_op = is_operator(facts.trace) & ~loading_ranges(facts.trace)
    outermost = is_op & (gather(nearest(is_op, parent), parent) == NONE)
    dur = host["dur_ns"].to_numpy()
    lengths, spans = facts.host_time.lengths["calling"], facts.host_spans["calling"]
    if facts.is_worth(facts.calling_in_optimizer) and facts.unfused_optimizer is not None:
        lengths, spans = lengths - facts.calling_in_optimizer, without(spans, facts.unfused_optimizer_spans)
    of_others = merge([claim.spans for claim in (nan_search(facts), _longest_loop(facts)) if claim is not None])
    lengths, spans = lengths - facts.part_within("calling", of_others), without(spans, of_others)
    is_small = outermost & (dur < SMALL_OP_NS) & gather(facts.is_counted, host["step"].to_numpy(), missing=False)
    small = int(is_small.sum())
    saving = facts.mean(lengths)
    is_calling = small / facts.count >= _FEW and saving <= _CALL_NS * small / facts.count
    if not (is_calling and facts.is_worth(lengths, _OVERHEAD)):
        yield ClearedTopic("small operators", f"{facts.percent(saving)} in and between small operators")
        return
    where, source = in_program(facts, spans)
    yield Advice(
        "small_operators",
        f"Calling small operators takes {facts.of_steps(lengths, _OVERHEAD)}{where}.",
        f"{text.often(small / facts.count)} operators {facts.per} take {text.time(float(dur[is_small].mean()))} each "
        f"on average; with Python between them that is {facts.part_of(lengths, _OVERHEAD)}"
        f"{facts.recurs(lengths, _OVERHEAD)}.{while_on(facts)}",
        "Do more per call: larger batches, whole-tensor operations instead of loops, `torch.compile`.",
        None,
        "medium",
        "operators",
        "",
        saving,
        facts.host_candidate("calls of small operators", spans),
        source,
    )


def main_thread_waits(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """The main thread waits for another thread, a lock, a file or a sleep while no operator runs."""
    if not _is_meant(facts):
        return
    time, off = facts.host_time, off_processor(facts)
    recorded_waits = time.lengths["waiting"]
    lengths = recorded_waits + (off.waits if off else 0)
    if cleared_topic := facts.cleared_topic(
        "waits of the main thread", lengths, "waiting for threads, locks and files"
    ):
        if not facts.trace.python_calls.is_empty():
            yield cleared_topic
        return
    saving = facts.mean(lengths)
    shares = locations(facts.trace, time.thread, time.spans["waiting"])
    words = _in_words(shares)
    by_frames = f" Of what Python recorded of it: {words}." if words and facts.is_worth(recorded_waits) else ""
    by_counters = _by_counters(facts, off)
    what = describe_wait(shares[0][0].frame) if by_frames else ""
    where, culprit = in_program(facts, time.spans["waiting"]) if by_frames else ("", Culprit())
    yield Advice(
        "main_thread_waits",
        f"The main thread {what or 'waits for something unrecorded'} for {facts.of_steps(lengths)}{where}.",
        f"For {facts.part_of(lengths)} it waits and no operator runs{facts.recurs(lengths)}.{by_frames}{by_counters}",
        _REMEDIES.get(what, _with_stacks("Record Python stacks (with_stack=True): they show where it waits.", facts)),
        saving,
        "high" if facts.mean(recorded_waits) >= 0.5 * saving else "medium",
        "python_calls" if by_frames else "steps",
        culprit=culprit,
    )


def _with_stacks(remedy: str, facts: Facts) -> str:
    """A remedy that records Python stacks; where they were on, another one."""
    return _WATCH if was_on(facts.trace, "with_stack") else remedy


def _in_words(shares: list[tuple[Location, float]]) -> str:
    """The largest places with their shares; empty if none is large."""
    largest = [f"{text.percent(share)} in {location.words}" for location, share in shares[:3] if share >= MENTIONED]
    return text.enumeration(largest) if largest else ""


def _by_counters(facts: Facts, off: OffProcessor | None) -> str:
    if off is None or not facts.is_worth(off.waits):
        return ""
    return (
        f" For {text.time(facts.mean(off.waits))} {facts.per} nothing was recorded and the process was off the "
        f"processors, of which others were free: it used {text.digits(off.use.cores)} cores."
    )


def host_threads(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Other processes take the cores, the process is throttled, or most cores are free for operators on one thread.

    Nothing where `core_waits` says that the main thread waits for a core.
    """
    off = off_processor(facts) if _is_meant(facts) else None
    if off is None or off.use.machine is None:
        return
    use, machine = off.use, off.use.machine
    if facts.is_worth(off.held_up, LARGE_SHARE):
        yield _held_up(facts, off, machine)
        return
    if facts.is_worth(core_waits_of_steps(facts), LARGE_SHARE) or slow_calls(facts) is not None:
        return
    large = facts.mean(facts.host_time.lengths["operators"])
    is_single = use.cores >= 1 / _ALONE and use.peak_cores <= _ALONE
    if machine > _MOSTLY_IDLE or not is_single or facts.share(large) < _MOST or facts.is_one_of_many:
        usage = f"the process used {text.digits(use.cores)} cores, the machine {text.percent(machine)}"
        yield ClearedTopic("processor cores", usage)
        return
    yield Advice(
        "host_threads",
        f"Operators run on one core, while {text.percent(1 - machine)} of the machine's cores are free.",
        f"The process used {text.digits(use.cores)} cores, and the whole machine {text.percent(machine)} of its own; "
        f"operators take {facts.of_steps(facts.host_time.lengths['operators'])}.",
        "Use more threads if operators are large enough: `torch.set_num_threads`, `OMP_NUM_THREADS`, the job's cores.",
        None,
        "low",
        "operators",
    )


def _held_up(facts: Facts, off: OffProcessor, machine: float) -> Advice:
    size = facts.mean(off.held_up)
    is_full = machine >= FULL
    title = (
        f"Other processes take the cores: the process doesn't run for {facts.of_steps(off.held_up)}."
        if is_full
        else f"Something holds the process up for {facts.of_steps(off.held_up)}, though cores are free."
    )
    usage = f"It used {text.digits(off.use.cores)} cores, less than the one that its main thread needs"
    return Advice(
        "host_threads",
        title,
        f"{usage}, while {text.percent(machine)} of the machine's cores were in use: for {facts.part_of(off.held_up)} "
        "operators were open and it was on no core.",
        "Find what else runs on the machine and stop it, or give this job cores of its own (`taskset`, cgroups)."
        if is_full
        else "Check the job's CPU limit (cgroup `cpu.max`, `nr_throttled`), swapping and page faults.",
        round(size * facts.usual_step_ns / facts.step_ns),
        "medium",
        "steps",
        size_ns=size,
    )


def outside_operators(facts: Facts) -> Iterator[Advice]:
    """Long stretches without an operator that no recorded wait explains: Python's own work, or nothing known."""
    if not _is_meant(facts):
        return
    time, off = facts.host_time, off_processor(facts)
    lengths, spans = time.lengths["rest"] - (off.waits if off else 0), time.spans["rest"]
    if facts.unfused_optimizer is not None:
        lengths, spans = np.maximum(lengths - facts.rest_in_optimizer, 0), without(spans, facts.unfused_optimizer_spans)
    if (loop := _longest_loop(facts)) is not None:
        in_loop = facts.part_within("rest", loop.spans)
        lengths, spans = np.maximum(lengths - in_loop, 0), without(spans, loop.spans)
    if not facts.is_worth(lengths, LARGE_SHARE):
        return
    size = facts.mean(lengths)
    shares = locations(facts.trace, time.thread, spans)
    if sum(share for _, share in shares) >= _MOST:
        yield _of_python(facts, lengths, spans, shares, off)
        return
    yield Advice(
        "unexplained_idle",
        f"For {facts.of_steps(lengths)} no operator runs, and the trace doesn't show what the host does.",
        f"{facts.part_of(lengths)}, in stretches of more than 0.2 ms{facts.recurs(lengths)}: Python may compute, or "
        f"wait.{facts.annotated_words}",
        _with_stacks("Record Python stacks (with_stack=True), or annotate the parts of the step.", facts),
        None,
        "cannot_tell",
        "steps",
        "",
        size,
    )


def _of_python(
    facts: Facts, lengths: Ints, spans: Intervals, shares: list[tuple[Location, float]], off: OffProcessor | None
) -> Advice:
    saving = facts.mean(lengths)
    words = _in_words(shares)
    where, culprit = in_program(facts, spans)
    is_running = off is not None and off.use.cores >= 1 / _ALONE
    doubt = "" if is_running else " A wait that leaves no frame, such as `with lock:`, would look the same."
    evidence = f"For {facts.part_of(lengths)} no operator runs{facts.recurs(lengths)}" + (
        f": {words}." if words else "."
    )
    holder = lock_holder(facts, spans)
    title = f"Python code outside operators takes {facts.of_steps(lengths)}{where}."
    if holder:
        title = f"For {facts.of_steps(lengths)} the main thread {holder.words}."
        where, culprit, doubt = holder.function, Culprit(function=holder.function), holder.evidence
    return Advice(
        "host_bound",
        title,
        evidence + doubt + facts.annotated_words,
        LOCK_REMEDY if holder else "Move it out of the step, into worker processes, or into tensor operations.",
        None,
        "medium" if is_running or where else "low",
        "python_calls",
        "",
        saving,
        facts.host_candidate("Python outside operators", spans),
        culprit if where else Culprit(function=shares[0][0].caller or None if words else None),
    )


@once_per_trace
def _longest_loop(facts: Facts) -> OperatorLoop | None:
    """The function but for the training loop whose loops of small operators take longest, if that is worth a word.

    Its spans are without what host_time counts for other parts than operators, calling and rest.
    """
    if not _is_meant(facts):
        return None
    others = merge([facts.host_time.spans[part] for part in HOST_PARTS if part not in _OF_LOOPS])
    for loop in operator_loops(facts.trace, facts.is_counted, facts.optimizer_spans):
        if not facts.is_training_loop(loop.frame):
            own = loop._replace(spans=without(loop.spans, others))
            lengths = length_within(own.spans, facts.windows.start, facts.windows.end)
            return own if facts.is_worth(lengths, LARGE_SHARE) else None
    return None


def operator_loop(facts: Facts) -> Iterator[Advice]:
    """A function of the program that calls small operators in a loop, on one element after the other."""
    loop = _longest_loop(facts)
    if loop is None:
        return
    lengths = length_within(loop.spans, facts.windows.start, facts.windows.end)
    calls = facts.trace.python_calls
    deepcopies = intervals_of(calls, map_categories(calls["name"], lambda name: _DEEPCOPY.search(name) is not None))
    is_copying = length_within(deepcopies, *loop.spans).sum() >= _MOST * (loop.spans[1] - loop.spans[0]).sum()
    does = "copies objects with `copy.deepcopy`" if is_copying else "calls small operators in a loop"
    remedy = _COPY_IN_PLACE if is_copying else _READ_ONCE if loop.operators[0] in _OF_ELEMENTS else _BATCH
    yield Advice(
        "operator_loop",
        f"`{function_name(loop.frame)}` {does}, which takes {facts.of_steps(lengths, LARGE_SHARE)}.",
        f"{facts.part_of(lengths, LARGE_SHARE)}{facts.recurs(lengths, LARGE_SHARE)}: with Python between them, "
        f"{text.often(loop.small / facts.count)} operators {facts.per}; it calls {_most_often(loop)}, "
        f"{text.often(loop.times / facts.count)} times{' each' if len(loop.operators) > 1 else ''}.",
        remedy,
        None,
        "medium",
        "operators",
        "",
        facts.mean(lengths),
        facts.host_candidate("the loop's small operators", loop.spans),
        Culprit(function=loop.frame, operator=loop.operators[0]),
    )


def _most_often(loop: OperatorLoop) -> str:
    """The operators that a loop calls most often, in words; of many the first ones, and how many there are."""
    names = [f"`{name}`" for name in loop.operators]
    others = len(names) - _MOST_NAMED
    if others > 0:
        names[_MOST_NAMED:] = ["1 other" if others == 1 else f"{others} others"]
    return f"{text.enumeration(names)} most often"


def python_operator(facts: Facts) -> Iterator[Advice]:
    """An operator that is written in Python, such as a function of autograd, and takes long between what it calls."""
    if not _is_meant(facts) or facts.trace.python_calls.is_empty():
        return
    rows = facts.large_operators.filter(~pl.col("name").str.contains(_OF_TORCH.pattern))
    sums = rows.group_by("name").agg(pl.col("self_ns").sum()).sort("self_ns", "name")
    if sums.is_empty():
        return
    name, host = sums["name"][-1], facts.trace.host_events
    own = rows.filter(pl.col("name") == name)
    inner = host.filter(pl.col("parent").is_in(own["row"].cast(pl.Int32).implode()))
    spans = without(intervals_of(own), intervals_of(inner))
    lengths = length_within(spans, facts.windows.start, facts.windows.end)
    where, culprit = in_program(facts, spans)
    if not facts.is_worth(lengths, LARGE_SHARE) or culprit.function is None:
        return
    begin = facts.trace.python_calls.filter(pl.col("name").cast(pl.String) == culprit.function)["start_ns"].to_numpy()
    if not length_within(intervals_of(own), begin, begin + 1).any():
        return
    yield Advice(
        "python_operator",
        f"Python inside the operator `{name}` takes {facts.of_steps(lengths, LARGE_SHARE)}{where}.",
        f"{facts.part_of(lengths, LARGE_SHARE)}{facts.recurs(lengths, LARGE_SHARE)}, without the operators that it "
        f"calls: {text.times(own.height / facts.count, 'call')} {facts.per}.",
        "Compute with operators on whole tensors in place of Python, or write the operator in C++ "
        "(`torch.utils.cpp_extension`).",
        None,
        "medium",
        "python_calls",
        "",
        facts.mean(lengths),
        facts.host_candidate("Python inside this operator", spans),
        replace(culprit, operator=name),
    )


def host_operator(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Attention in separate operators; and of the others, one family that takes most of the step.

    Matmuls and oneDNN's convolutions are what the step is for: nothing says how fast this processor could compute them.
    """
    if not _is_meant(facts):
        return
    attention = _attention(facts)
    if attention is not None:
        yield _of_attention(facts, *attention)
    operators = _other_operators(facts, attention)
    family_of = {name: _family(name) for name in operators["name"].unique()}
    in_gradient = _in_dense_gradient(facts, operators["row"].to_numpy())
    family = pl.col("name").replace_strict(family_of, return_dtype=pl.String)
    operators = operators.with_columns(
        family=pl.when(pl.Series(in_gradient)).then(pl.lit(_DENSE_GRADIENTS)).otherwise(family)
    )
    sums = operators.group_by("family").agg(pl.col("self_ns").sum()).sort("self_ns", "family", descending=[True, False])
    if sums.is_empty():
        return
    family, family_ns = sums.row(0)
    share = facts.share(family_ns / facts.count)
    rows = operators.filter(pl.col("family") == family)
    computes = family == _MATMULS or (family == _CONVOLUTIONS and not _falls_back(rows))
    if computes or share < _DOMINATES:
        percent, dominates = text.percent(min(share, 1.0)), share >= _DOMINATES
        calls = f" ({_calls_of(facts, rows)[0]})" if dominates else ""
        evidence = f"{percent} in {family}, the largest family of operators{calls}"
        yield ClearedTopic("dominant operators", evidence, f"{family} for {percent}" if dominates else "")
        if family != _COPIES:
            yield from _if_much(facts, _COPIES, operators.filter(pl.col("family") == _COPIES), _AVOIDABLE)
        return
    yield from _if_much(facts, family, rows, _DOMINATES)


def _if_much(facts: Facts, family: str, rows: pl.DataFrame, least: float) -> Iterator[Advice]:
    """That a family of operators takes so large a share of most steps."""
    inside = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    lengths = np.minimum(inside, facts.host_time.lengths["operators"])
    recurs = (lengths >= MENTIONED * facts.length)[facts.is_counted].mean() > _MOST
    if facts.is_worth(lengths, least) and recurs:
        yield _dominant(facts, family, rows, lengths, least)


def _falls_back(rows: pl.DataFrame) -> bool:
    """Whether some convolutions aren't oneDNN's."""
    return bool(rows["name"].str.contains(_WITHOUT_ONEDNN.pattern).any())


def _in_dense_gradient(facts: Facts, rows: Ints) -> NDArray[np.bool_]:
    """Which of some rows of host_events fill or compute the dense gradient of an embedding."""
    host = facts.trace.host_events
    makes_gradient = name_mask(host["name"], lambda name: name == DENSE_GRADIENT)
    return np.asarray(nearest(makes_gradient, host["parent"].to_numpy())[rows] != NONE)


def _other_operators(facts: Facts, attention: tuple[UnfusedAttention, Ints] | None) -> pl.DataFrame:
    """The large operators but for those that other claims are about: slow ones, of attention, and of an optimizer."""
    rows = _without_slow_calls(facts, facts.large_operators)
    if attention is not None:
        rows = rows.filter(~pl.col("row").is_in(attention[0].ops.tolist()))
    if facts.unfused_optimizer is not None and facts.is_worth(facts.calling_in_optimizer + facts.rest_in_optimizer):
        start = rows["start_ns"].to_numpy()
        inside = length_within(facts.unfused_optimizer_spans, start, start + 1) > 0
        rows = rows.filter(pl.Series(~inside, dtype=pl.Boolean))
    if (loop := _longest_loop(facts)) is not None:
        start = rows["start_ns"].to_numpy()
        inside = length_within(loop.spans, start, start + 1) > 0
        rows = rows.filter(pl.Series(~inside, dtype=pl.Boolean))
    return rows


def _without_slow_calls(facts: Facts, rows: pl.DataFrame) -> pl.DataFrame:
    """Some large operators but for calls that are held up: what these compute isn't why they take so long."""
    slow = slow_calls(facts)
    return rows if slow is None else rows.filter(~pl.col("row").is_in(slow["row"].implode()))


def _attention(facts: Facts) -> tuple[UnfusedAttention, Ints] | None:
    """Attention in separate operators, and how long it takes in each step; None if that isn't worth a word."""
    rows = facts.large_operators.filter(pl.col("self_ns") >= SMALL_OP_NS)  # no views, no mere callers
    attention = unfused_attention(facts.trace, rows.select(op=pl.col("row").cast(pl.Int64)))
    if attention is None:
        return None
    lengths = facts.sums_of_steps(rows.filter(pl.Series(attention.is_member, dtype=pl.Boolean)), "self_ns")
    lengths = np.minimum(lengths, facts.host_time.lengths["operators"])
    return (attention, lengths) if facts.is_worth(lengths, LARGE_SHARE) else None


def _of_attention(facts: Facts, attention: UnfusedAttention, lengths: Ints) -> Advice:
    rows = facts.large_operators.filter(pl.col("row").is_in(attention.ops.tolist()))
    where, culprit = _of_operators(facts, rows)
    return Advice(
        "unfused_attention",
        f"Attention that isn't fused takes {facts.of_steps(lengths, LARGE_SHARE)}{where}.",
        f"{facts.part_of(lengths, LARGE_SHARE)}{facts.recurs(lengths, LARGE_SHARE)}, {most_calls(facts, rows)[0]}. "
        f"Between the matmuls, scores of {' × '.join(map(str, attention.scores))} are written to memory and read "
        "again.",
        use_fused(attention, has_device=False),
        None,
        "medium",
        "operators_by_shape",
        "",
        facts.mean(lengths),
        Candidate("attention", spans=intervals_of(rows), threads=rows["thread"].unique().to_numpy()),
        culprit,
    )


def double_precision(facts: Facts) -> Iterator[Advice]:
    """Operators of the host on float64 tensors, which Python's and NumPy's numbers make of a model by accident."""
    if not _is_meant(facts):
        return
    rows = facts.large_operators
    is_double = {types: has_doubles(types) for types in rows["input_types"].unique().drop_nulls()}
    if not any(is_double.values()):
        return
    doubles = pl.col("input_types").replace_strict(is_double, default=False, return_dtype=pl.Boolean)
    rows = _without_slow_calls(facts, rows.filter(doubles))
    lengths = np.minimum(facts.sums_of_steps(rows, "self_ns"), facts.host_time.lengths["operators"])
    if not facts.is_worth(lengths, LARGE_SHARE):
        return
    where, culprit = _of_operators(facts, rows)
    most, name = most_calls(facts, rows)
    yield Advice(
        "double_precision",
        f"Operators on float64 tensors take {facts.of_steps(lengths, LARGE_SHARE)}{where}.",
        f"{facts.part_of(lengths, LARGE_SHARE)}, {most}{facts.recurs(lengths, LARGE_SHARE)}. In float32 "
        "they would move half the bytes and compute twice as many numbers at once.",
        IN_FLOAT,
        None,
        "medium",
        "operators_by_shape",
        "",
        facts.mean(lengths),
        Candidate(
            "the extra time of double precision",
            less=1 - 1 / DOUBLES_FASTER,
            spans=intervals_of(rows),
            threads=rows["thread"].unique().to_numpy(),
        ),
        culprit if where else Culprit(operator=name),
    )


def _of_operators(facts: Facts, rows: pl.DataFrame) -> tuple[str, Culprit]:
    """The optimizer, or else the function of the program, that most of some operators' time lies in."""
    spans = intervals_of(rows)
    whole = int((spans[1] - spans[0]).sum())
    inside = int(length_within(facts.optimizer_spans, *spans).sum())
    if inside >= _MOST * whole:
        return f", most of it in the optimizer's step ({_optimizer_of(facts)})", Culprit(range=_optimizer_of(facts))
    return in_program(facts, spans)


def _optimizer_of(facts: Facts) -> str:
    """The class of the optimizer whose steps take longest."""
    ranges = facts.trace.host_events.select("name", "dur_ns")
    ranges = ranges.filter(pl.Series(map_categories(ranges["name"], is_optimizer)))
    sums = ranges.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum()).sort("dur_ns", "name")
    return optimizer_class(str(sums["name"][-1]))


def _family(name: str) -> str:
    """The family of an operator; one that belongs to none is its own."""
    if _CONVOLUTION.search(name):
        return _CONVOLUTIONS
    if is_matrix_op(name) or _MATMUL.search(name):
        return _MATMULS
    return next((words for words, pattern in _FAMILIES if pattern.search(name)), f"`{name}`")


def _dominant(facts: Facts, family: str, rows: pl.DataFrame, lengths: Ints, least: float) -> Advice:
    calls, name = _calls_of(facts, rows)
    is_of_convolutions = family == _CONVOLUTIONS
    what = f"{family} without oneDNN" if is_of_convolutions else family
    where, culprit = _of_operators(facts, rows)
    return Advice(
        "host_operator",
        f"{text.capitalize(what)} take{'s' if family.startswith('`') else ''} {facts.of_steps(lengths, least)}{where}.",
        f"{facts.part_of(lengths, least)}{facts.recurs(lengths, least)}, {calls}.{while_on(facts)}",
        _WITH_ONEDNN if is_of_convolutions else _less_of(facts, family, culprit),
        None,
        "medium" if facts.count > 1 else "low",  # the calls of one step may be the first ones
        "operators_by_shape" if " with shapes " in calls else "operators",
        "",
        facts.mean(lengths),
        Candidate(family, spans=intervals_of(rows), threads=rows["thread"].unique().to_numpy()),
        replace(culprit, operator=name),
    )


def _calls_of(facts: Facts, rows: pl.DataFrame) -> tuple[str, str]:
    """(The most expensive of some operators, with how often all are called, in words; its name)."""
    most, name = most_calls(facts, rows)
    innermost = int((~rows["row"].is_in(rows["parent"].cast(pl.Int64).implode())).sum())  # others wrap one of them
    is_more = innermost > rows["name"].eq(name).sum()
    in_all = f"; {text.often(innermost / facts.count)} calls {facts.per} in all" if is_more else ""
    return f"{most}{in_all}", name


def _less_of(facts: Facts, family: str, culprit: Culprit) -> str:
    """What makes a family of operators take less time."""
    if culprit.range:
        return f"Let one kernel update each parameter: {grouped_update(culprit.range, has_device=facts.has_device)}."
    if family == _DENSE_GRADIENTS:
        return SPARSE
    return (
        "Call it less, on less data, or in another way; `torch.compile` fuses elementwise operators, copies and casts."
    )
