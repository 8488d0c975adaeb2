"""Without a device: operators that take far longer than any processor needs, since their threads wait for cores."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.intervals import Ints
from ..measures.calls.operator_pace import matmul_of_library, with_excess
from ..measures.recording.processor_use import ProcessorTime
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..trace.results import once_per_trace
from .contention import FULL, core_waits_of_steps, off_processor, processor_use
from .facts import LARGE_SHARE, Facts
from .model import Advice, Candidate, Culprit

MENTIONED = 0.1  # of what a sentence is about
_EXCESS = 0.5  # of what a call takes
_FEWEST_STEPS = 3  # in which calls are slow
_MOST_STEPS = 0.5
_FASTER = 20  # times
_LEAST_FLOP = 100_000  # of a call whose rate isn't that of being called
_NEARLY_ALL = 0.8  # of the slow calls' time
_UNEVEN = 2  # times the shortest of some calls
_KIND = ["name", "input_shapes", "input_types"]
_FEWER_THREADS = (
    "Run no more threads than the process has cores: `torch.set_num_threads`, `OMP_NUM_THREADS`; find what else runs "
    "there, and look at the job's limit (cgroup `cpu.max`, Kubernetes `limits.cpu`, `--cpus-per-task`). If that "
    "isn't it, look for numbers near zero (`torch.set_flush_denormal(True)`)."
)
_LOOK = (
    "Look at the clock and power settings of the CPU, at swapping and page faults, and for numbers near zero "
    "(`torch.set_flush_denormal(True)`)."
)


@once_per_trace
def slow_calls(facts: Facts) -> pl.DataFrame | None:
    """The calls of large operators that take more than twice what the slowest core takes, with what with_excess says.

    None if what they exceed that by isn't a large share of most steps, or counters say what the process waits for.
    """
    if facts.has_device or facts.count < _FEWEST_STEPS:
        return None
    calls = with_excess(facts.large_operators)
    calls = calls.filter(pl.col("excess_ns") >= _EXCESS * pl.col("self_ns"))
    excess = facts.sums_of_steps(calls, "excess_ns")
    recurs = (excess >= LARGE_SHARE * facts.length)[facts.is_counted].mean() > _MOST_STEPS
    off = off_processor(facts)
    is_explained = facts.is_worth(core_waits_of_steps(facts), LARGE_SHARE) or (
        off is not None and facts.is_worth(off.held_up, LARGE_SHARE)
    )
    return calls if recurs and not is_explained and facts.is_worth(excess, LARGE_SHARE) else None


def slow_operators(facts: Facts) -> Iterator[Advice]:
    """What they take beyond what the slowest core takes can be saved at least, and more of all operators."""
    calls = slow_calls(facts)
    if calls is None:
        return
    lengths = np.minimum(facts.sums_of_steps(calls, "self_ns"), facts.host_time.lengths["operators"])
    excess_ns = facts.mean(facts.sums_of_steps(calls, "excess_ns"))
    most, name = most_calls(facts, calls)
    faster, (cores, are_free) = _faster(facts, calls), _cores(facts)
    are_alike = _alike(facts, calls)
    probably = "may" if are_alike else "probably"
    cause = "something holds them up" if are_free else f"their threads {probably} wait for cores"
    yield Advice(
        "slow_operators",
        f"Operators take far longer than any processor needs, for {facts.of_steps(lengths, LARGE_SHARE)}: {cause}.",
        f"{facts.part_of(lengths, LARGE_SHARE)}{facts.recurs(lengths, LARGE_SHARE)}, {most}.{_slowest_core(calls)}"
        f"{faster}{cores}{are_alike}",
        _LOOK if are_free else _FEWER_THREADS,
        None,
        "medium" if faster and not (are_free or are_alike) else "low",
        "operators_by_shape",
        "",
        facts.mean(lengths),
        Candidate(
            "what holds operators up",
            less=min(1.0, excess_ns / facts.mean(lengths)),
            spans=intervals_of(calls),
            threads=calls["thread"].unique().to_numpy(),
            more_ns=max(0, facts.mean(facts.operator_time) - excess_ns),
        ),
        Culprit(operator=name),
    )


def _slowest_kind(calls: pl.DataFrame) -> pl.DataFrame:
    """Of the slow calls those of the operator and inputs that take most of their time."""
    sums = calls.group_by(_KIND).agg(pl.col("self_ns").sum()).sort("self_ns", "name", descending=[True, False])
    return calls.join(sums.head(1), on=_KIND, how="semi", nulls_equal=True)


def _slowest_core(calls: pl.DataFrame) -> str:
    """What the slowest core takes for the calls that take most of the time, as a sentence."""
    kind = _slowest_kind(calls)
    work, mean_ns = matmul_of_library(*kind.select(_KIND).row(0)), _mean_ns(kind)
    rate = f"; here it computes {_rate(work.flop / mean_ns)}" if work else ""
    name, most_ns = kind.select("name", "most_ns").row(0)
    return f" A single slow core takes {text.time(most_ns)} at most for such a call of `{name}`{rate}."


def _mean_ns(calls: pl.DataFrame) -> float:
    return float(calls["self_ns"].to_numpy().mean())


def _faster(facts: Facts, calls: pl.DataFrame) -> str:
    """That the same call, or another matmul, is much faster elsewhere in the recording; empty if none is."""
    kind, operators = _slowest_kind(calls), facts.large_operators
    mean_ns = _mean_ns(kind)
    least = int(_equal_ns(facts, kind).min())
    if _FASTER * least <= mean_ns:
        return f" The fastest of the equal calls takes {text.time(least)}."
    work = matmul_of_library(*kind.select(_KIND).row(0))
    fastest = operators.group_by(_KIND).agg(pl.col("self_ns").min()).sort(_KIND)
    rates = [
        other.flop / ns
        for *inputs, ns in fastest.iter_rows()
        if ns and (other := matmul_of_library(*inputs)) and other.flop >= _LEAST_FLOP
    ]
    if work is None or not rates or max(rates) < _FASTER * work.flop / mean_ns:
        return ""
    return f" The fastest matmul of this recording computes {_rate(max(rates))}."


def _equal_ns(facts: Facts, kind: pl.DataFrame) -> Ints:
    """How long all calls with the inputs of some take."""
    return np.asarray(facts.large_operators.join(kind, on=_KIND, how="semi", nulls_equal=True)["self_ns"].to_numpy())


def _alike(facts: Facts, calls: pl.DataFrame) -> str:
    """That nearly all of the slow calls are equal and take equally long, as a sentence; empty if they don't.

    Waits of threads rarely last equally long. Numbers near zero (denormals), which processors compute by microcode, do,
    and only matmuls and operators that such numbers go into are slow.
    """
    kind = _slowest_kind(calls)
    equal_ns = _equal_ns(facts, kind)
    is_only = kind["self_ns"].to_numpy().sum() >= _NEARLY_ALL * calls["self_ns"].to_numpy().sum()
    if not is_only or equal_ns.max() >= _UNEVEN * equal_ns.min():
        return ""
    return " These calls take equally long, as they would if they computed with numbers near zero (denormals)."


def _rate(flop_per_ns: float) -> str:
    return f"{text.digits(flop_per_ns)} GFLOP/s"


def _cores(facts: Facts) -> tuple[str, bool]:
    """(How many cores the process used, as a sentence; whether some that it may use were free)."""
    use, cpu = processor_use(facts), ProcessorTime.of(facts.trace.meta)
    used_cores = use.cores if use else cpu.used_cores if cpu else None
    if used_cores is None:
        return "", False
    own = f" of the {text.times(cpu.cores, 'core')} that it may use" if cpu and cpu.cores else " cores"
    are_free = bool(cpu and cpu.busy_share is not None and cpu.busy_share < FULL)
    are_free &= bool(use and use.machine is not None and use.machine < FULL)
    return f" The process used {text.digits(used_cores)}{own}.", are_free


def most_calls(facts: Facts, rows: pl.DataFrame) -> tuple[str, str]:
    """(The operator and shapes that take most of some operators' time, in words; the operator's name)."""
    alike = rows.group_by("name", "input_shapes").agg(pl.col("self_ns").sum(), pl.len().alias("calls"))
    name, shapes, self_ns, calls = alike.sort("self_ns", "name", descending=[True, False]).row(0)
    of_shapes = f" with shapes {sizes}" if (sizes := _sizes(shapes)) else ""
    often = f"{text.times(calls / facts.count, 'call')} {facts.per} of {text.time(self_ns / calls)} each"
    if self_ns < MENTIONED * int(rows["self_ns"].sum()):
        return f"{rows['name'].n_unique()} operators", name
    return f"most in `{name}`{of_shapes}: {often}", name


def _sizes(shapes: str | None) -> str:
    """The shapes of an operator's tensors; what has none, such as a number, is left out."""
    try:
        sizes = json.loads(shapes or "[]")
    except (ValueError, RecursionError):
        return ""
    tensors = [size for size in sizes if size] if isinstance(sizes, list) else []
    return str(tensors) if tensors else ""
