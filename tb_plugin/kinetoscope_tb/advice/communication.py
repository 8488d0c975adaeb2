"""What ranks spend on exposed communication: how much of it must be waiting, and what ends either.

One recording doesn't say when the other ranks came. But a small message can't take long: what exceeds the time that
even a slow network needs for it was spent waiting for another rank. Nor does an equal message take a multiple of the
time at another moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories
from ..arrays.intervals import Ints, exclusive_lengths, merge, without
from ..arrays.nesting import nearest
from ..distributed.collectives.calls import CallRows, calls
from ..distributed.process_groups import Groups
from ..measures.recording.processor_use import ProcessorTime
from ..measures.time.breakdown import intervals_of
from ..measures.time.exposure import exposed_on_host
from ..measures.time.threads import main_thread
from ..names import text
from ..names.collectives import SYNCHRONIZING
from ..names.kernels import is_queued_communication
from ..names.python_frames import runs_backward
from ..names.roles import axis_of_group
from ..trace.row_filters import name_mask
from .culprit import in_program
from .facts import Facts
from .model import COMMUNICATING, Advice, Candidate, ClearedTopic, Culprit, Exposure, KindOfCalls, OpenQuestion

LEAST_EXPOSED = 0.05
"""Of the step: less exposed communication is worth no advice."""

_MOSTLY, _NEARLY_ALL = 0.5, 0.75  # of the exposed time
_OF_LAYERS = 1 / 3  # of the exposed time: gradients are exchanged after the forward pass, by other groups
_EQUAL = 2.0  # times the fastest equal call: what congestion may add
_CALL_NS, _BYTE_NS = 100_000, 2.0  # 0.5 GB/s: half of what 10 Gbit/s Ethernet carries
SMALL_BYTES = 1 << 20
_MANY = 20  # calls per step
_FEW = 0.1  # of the calls
_MENTIONED = 0.1  # of the exposed time
_COALESCE = (
    "Communicate in fewer, larger calls: gradients in buckets (`bucket_cap_mb`), small tensors flattened into one."
)
RECORD_ALL = "Find the rank that comes last: *Ranks* compares all that are recorded at the same time."
"""What finds a late rank as long as one recording is known."""

EVEN_OUT = (
    "Even out what ranks do before they meet: batches, sequence lengths, the placement of tables, experts or layers, "
    "other work of the hosts."
)
"""What is to do about ranks that are late in turn."""

WAITING = f"{RECORD_ALL} Then e{EVEN_OUT[1:]}"
"""What is to do where communication is mostly waiting, for a rank that isn't known."""


@dataclass(frozen=True)
class _Remedy:
    """What makes transfers of a training shorter, and what hides them.

    Args:
        less: What is to do less, before a colon.
        ways: How; `{}` stands for what could have a shorter number format.
        hiding: What hides the rest.
        hiding_first: The same where it comes first, since there is computation that hides nothing yet.
    """

    less: str
    ways: tuple[str, ...]
    hiding: str
    hiding_first: str

    def action(self, long_formats: list[str], *, is_hiding_first: bool) -> str:
        """What to do, if these are in a long format.

        Args:
            long_formats: What could have a shorter format.
            is_hiding_first: Whether there is computation that could hide the transfers.
        """
        ways = [way.format(text.enumeration(long_formats)) for way in self.ways if long_formats or "{}" not in way]
        less = f"{self.less}: {', '.join(ways)}"
        if is_hiding_first:
            return f"{self.hiding_first} Besides, {less[0].lower()}{less[1:]}."
        return f"{less}; {self.hiding}."


_IN_SHORT_FORMAT = "{} in bfloat16"
_SHARDING = (
    _IN_SHORT_FORMAT,
    "sharding within a node only, if there are several (`ShardingStrategy.HYBRID_SHARD`)",
    "larger units",
)
_SMALL_GATHERS = (
    "Gather less often: what layers need of all ranks at once, in one call, or not at all. Normalization over all "
    "ranks (`SyncBatchNorm`) gathers in each layer; over a rank's own batch, or over groups or layers, it doesn't."
)
_BETWEEN_LAYERS = (
    "These calls belong to layers, as those that are split over ranks (tensor parallelism), not to gradients: use "
    "fewer ranks per layer, all within a node, or split along the sequence; overlap calls with computation "
    "(`torch._inductor.config._micro_pipeline_tp`, `torch.distributed._symmetric_memory`)."
)
_FUNCTIONAL, _SPLIT = "_c10d_functional::", "tp"
_RUNS_BACKWARD = "autograd::engine::evaluate_function"
_LONG_FORMATS = r"(?i)^(?:c10::)?(?:complex)?(?:float|double|f(?:loat|p)?(?:32|64))$"
_CONTENTS = {
    "all_gather": "parameters",
    "reduce_scatter": "gradients",
    "all_reduce": "gradients",
    "all_to_all": "embeddings or tokens",
}
"""What the transfers of a kind consist of that a shorter number format suffices for."""
_CHECK_OVERLAP = "check that buckets overlap the backward pass"
_OF_TRANSFERS = {
    "all_reduce": _Remedy(
        "Communicate less often or less",
        ("gradient accumulation under `no_sync()`", _IN_SHORT_FORMAT, "larger batches per rank"),
        _CHECK_OVERLAP,
        "Let buckets of gradients be reduced while the backward pass computes the next ones, as "
        "`DistributedDataParallel` does (`bucket_cap_mb`).",
    ),
    "all_gather": _Remedy(
        "Gather and reduce less",
        _SHARDING,
        "prefetch the next unit while the current one computes",
        "Prefetch the next unit while the current one computes (`set_modules_to_forward_prefetch` and "
        "`set_modules_to_backward_prefetch` of FSDP2; `forward_prefetch=True` and `BackwardPrefetch.BACKWARD_PRE` of "
        "FSDP1).",
    ),
    "reduce_scatter": _Remedy(
        "Gather and reduce less",
        _SHARDING,
        "reduce the gradients of a unit while the backward pass computes the next one's",
        "Reduce the gradients of a unit while the backward pass computes the next one's, on another stream.",
    ),
    "all_to_all": _Remedy(
        "Exchange less",
        (
            _IN_SHORT_FORMAT,
            "fewer and larger exchanges",
            "tables or experts placed so that ranks need less of each other",
        ),
        "run work that doesn't need the result meanwhile",
        "Run work that doesn't need the result meanwhile, such as dense layers or another micro-batch.",
    ),
}
_ALIKE = ({"all_gather", "reduce_scatter"}, {"send", "recv"})
"""Kinds that one remedy is about."""

_REMEDIES = {
    "barrier": "Leave out barriers that nothing needs: collectives wait for each other without them. For a measurement "
    "or a file that all ranks read, one barrier outside of the step is enough.",
    "broadcast": "Broadcast less: `DistributedDataParallel(broadcast_buffers=False)`, if buffers of ranks may differ.",
    **dict.fromkeys(
        ("send", "recv"),
        "Pass activations on while other micro-batches compute: more micro-batches, an interleaved pipeline schedule.",
    ),
}
"""What to do about other kinds in a training."""
_REMEDY = "Communicate less often or less, and run work that doesn't need the result meanwhile."
_SERVING_REMEDY = (
    "Communicate less or elsewhere: fewer ranks per model, fused or quantized all-reduces, other work that runs "
    "meanwhile."
)


def communication(facts: Facts) -> Iterator[Advice | ClearedTopic | OpenQuestion]:
    """Communication that no computation hides."""
    trace = facts.trace
    on_device = facts.has_device and bool(trace.device_events["is_communication"].any())
    names = trace.host_events["name"]
    on_host = trace.host_events["is_communication"].to_numpy()
    if not (on_device or on_host.any()):
        return
    if not on_device and map_categories(names, is_queued_communication)[on_host].any():
        calls = f"only the host's calls were recorded ({facts.percent(facts.mean(facts.parts['Communication']))} of "
        yield OpenQuestion("what communication costs", f"{calls}{facts.unit}), not how long data moved")
        return
    lengths = facts.exposure_parts["exposed communication"] if on_device else _on_host(facts)
    if cleared_topic := facts.cleared_topic("communication", lengths, "exposed communication", LEAST_EXPOSED):
        yield cleared_topic
        return
    saving = facts.mean(lengths)
    whole = facts.mean(facts.exposure_parts["communication"]) if on_device else 0
    share = text.percent(1 - saving / whole) if whole else ""
    overlap = f" Computation hides {share} of {text.time(whole)} of communication{_per(facts)}." if whole else ""
    through_host = facts.has_device and not on_device
    exchange = "kernels exchange data between ranks" if on_device else "the host exchanges data with other ranks"
    computation = "other kernel" if on_device else "kernel" if facts.has_device else "operator"
    start = f"For {facts.part_of(lengths)} {exchange} and no {computation} computes{facts.recurs(lengths)}.{overlap}"
    exposure, remedy, small, caller = _calls(facts, saving, on_device=on_device)
    end = " It goes through the host (gloo), though a GPU computes." if through_host else ""
    if not facts.has_device and (of_cores := _without_free_cores(facts, facts.share(saving))):
        end, remedy = of_cores, remedy.replace(f"; {_CHECK_OVERLAP}", "")
    yield Advice(
        "gloo" if through_host else "communication",
        f"Exposed communication takes {facts.of_steps(lengths)}{small}.",
        "",
        "Let GPUs talk to each other: `init_process_group('nccl')`." if through_host else remedy,
        None,
        "medium",
        "exposed_time" if facts.has_device else "steps",
        "",
        saving,
        COMMUNICATING if on_device else _through_host(facts),
        caller,
        exposure=replace(exposure, start=start, end=end),
    )


def _without_free_cores(facts: Facts, exposed_share: float) -> str:
    """That too few cores are free to hide communication of the host, a share of the step; empty if enough are."""
    cpu = ProcessorTime.of(facts.trace.meta)
    if cpu is None or cpu.used_cores is None or cpu.busy_share is None or 1 - cpu.busy_share >= exposed_share:
        return ""
    if cpu.is_shared:
        used_cores = text.digits(min(cpu.used_cores * cpu.processes, cpu.shared_cores))
        cores = f"{used_cores} of {text.times(cpu.shared_cores, 'core')} are busy"
        usage = f"If each of the job's {cpu.processes} processes on this machine uses as much as this one, {cores}"
    else:
        usage = f"The process uses {text.digits(cpu.used_cores)} of the {text.times(cpu.cores, 'core')} that it may use"
    return (
        f" {usage}: run at the same time as computation, communication would shorten the step by "
        f"{text.percent(1 - cpu.busy_share)} at most, unless threads spin while they wait."
    )


def _per(facts: Facts) -> str:
    """Behind a mean over several steps, next to numbers of some of them."""
    return f" per {facts.noun}" if facts.count > 1 else ""


def _through_host(facts: Facts) -> Candidate:
    """Communication of the host: no recorded wait says so, but the main thread waits where nothing else computes."""
    spans = exposed_on_host(facts.trace)
    threads = np.arange(facts.trace.threads.height)
    return replace(COMMUNICATING, spans=without(spans, intervals_of(facts.trace.device_events)), threads=threads)


def _calls(facts: Facts, exposed_ns: int, *, on_device: bool) -> tuple[Exposure, str, str, Culprit]:
    """What the calls of the steps that count show.

    Returns:
        (The evidence; what to do; that most of the time is in small calls, as the end of a sentence, or nothing; the
        function that makes most of the calls, if they are many.)
    """
    trace = facts.trace
    rows = CallRows.of(trace)
    groups = Groups(trace)
    all_calls = calls(trace, rows, groups)
    is_of_layers = _are_of_layers(facts, rows.op, all_calls["group"], groups.frame()["description"])
    all_calls = all_calls.with_columns(is_of_layers=pl.Series(is_of_layers, dtype=pl.Boolean), op=pl.Series(rows.op))
    exposed_calls = all_calls.filter(pl.col("exposed_ns") > 0)
    counted_calls = exposed_calls.filter(pl.col("step").is_in(np.flatnonzero(facts.is_counted)))
    kinds = counted_calls.group_by("kind").agg(pl.col("exposed_ns").sum())
    kinds = kinds.sort("exposed_ns", "kind", descending=[True, False])
    kind_of_calls, remedy, small, names = None, _REMEDY, "", Culprit()
    if whole := int(kinds["exposed_ns"].sum()):
        kind, longest = kinds.row(0)
        often = counted_calls.filter(pl.col("kind") == kind).height / facts.count
        calls_text = f"{text.often(often)} call{'' if often == 1 else 's'} {facts.per}"
        others = [f"{text.percent(ns / whole)} is {name}" for name, ns in kinds.rows()[1:] if ns >= _MENTIONED * whole]
        rest = f"; {text.enumeration(others)}" if others else ""
        fastest = _fastest_large_call(counted_calls, kind)
        is_hiding_first = on_device and _could_be_hidden(facts, exposed_ns)
        remedy = _remedy_of(kind, counted_calls, is_hiding_first=is_hiding_first)
        are_many, mostly = _many_calls(counted_calls, kind, facts, on_device=on_device)
        where, names = _caller(facts, counted_calls.filter(pl.col("kind") == kind)) if are_many else ("", Culprit())
        kind_of_calls = KindOfCalls(kind, text.percent(longest / whole), f"{calls_text}{where}", rest, fastest)
        if are_many and longest >= _MOSTLY * whole:
            small = mostly
            remedy = remedy if kind == "barrier" or remedy == _SMALL_GATHERS else f"{_COALESCE} {remedy}"
    of_steps = exposed_calls.filter(pl.col("step").is_in([NONE, *np.flatnonzero(facts.is_counted)]))
    least_wait_ns = _least_wait_ns(of_steps, facts, exposed_ns) if on_device else 0.0
    if least_wait_ns < _MOSTLY * exposed_ns:
        is_of_any_job = facts.is_training or remedy == _REMEDIES["barrier"]
        exposure = Exposure("", kind_of_calls, None, _per(facts))
        return exposure, _with_share(remedy, kinds) if is_of_any_job else _SERVING_REMEDY, small, names
    return Exposure("", kind_of_calls, least_wait_ns, _per(facts)), WAITING, small, names


def _with_share(remedy: str, kinds: pl.DataFrame) -> str:
    """The remedy for the first kind, with that kind's share of the exposed time if the others have much of it."""
    whole, first = int(kinds["exposed_ns"].sum()), kinds["kind"][0]
    is_of_one = remedy in (_SMALL_GATHERS, _BETWEEN_LAYERS)
    kinds_alike = next((names for names in _ALIKE if first in names and not is_of_one), {first})
    alike = sum(ns for kind, ns in kinds.rows() if kind in kinds_alike)
    if alike >= _NEARLY_ALL * whole:
        return remedy
    return f"{remedy} That is about {first}, {text.percent(alike / whole)} of it."


def _caller(facts: Facts, calls: pl.DataFrame) -> tuple[str, Culprit]:
    """The function of the program that makes most of some calls, behind their number; empty if there is none.

    The backward pass is none: there buckets of gradients are exchanged.
    """
    start = gather(facts.trace.host_events["start_ns"].to_numpy(), calls["op"].to_numpy())
    start = start[start != NONE]
    if start.size < _MOSTLY * calls.height:
        return "", Culprit()
    instants = merge([(start, start + 1)])  # equal ones: of calls, not of their time
    return in_program(facts, instants, "them", counts=lambda frame: not runs_backward(frame))


def _are_of_layers(facts: Facts, op: NDArray[np.int32], group: pl.Series, descriptions: pl.Series) -> NDArray[np.bool_]:
    """Whether each call, by its operator, is what layers that are split over ranks make: no exchange of gradients.

    The group says so, or that it was made before the backward pass, which runs on a thread of its own: there
    compiled data parallelism calls functional collectives, too.
    """
    host = facts.trace.host_events
    is_split = np.array([axis_of_group(description) == _SPLIT for description in descriptions], bool)
    is_functional = name_mask(host["name"], lambda name: name.startswith(_FUNCTIONAL))
    is_by_main = (nearest(is_functional, host["parent"].to_numpy()) != NONE) & (
        host["thread"].to_numpy() == main_thread(facts.trace)
    )
    by_main = gather(is_by_main & facts.has_device, op, missing=False)
    return np.asarray(gather(is_split, group.to_numpy(), missing=False) | by_main | _in_forward(facts, op))


def _in_forward(facts: Facts, op: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Of each call, by its operator, whether it was made before the backward pass of its step began."""
    host = facts.trace.host_events
    is_backward = name_mask(host["name"], lambda name: name.startswith(_RUNS_BACKWARD))
    is_backward |= host["fwd_thread"].to_numpy() > 0
    backward = np.sort(host["start_ns"].to_numpy()[is_backward])
    start, step = (gather(host[name].to_numpy(), op) for name in ("start_ns", "step"))
    begin, end = (facts.trace.steps[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    first = np.append(backward, np.iinfo(np.int64).max)[np.searchsorted(backward, begin)]
    has_backward = first < end
    is_of_step = (op != NONE) & gather(has_backward, step, missing=False)
    return np.asarray(is_of_step & (start < gather(first, step)))


def _remedy_of(kind: str, all_calls: pl.DataFrame, *, is_hiding_first: bool) -> str:
    """What to do about calls of a kind, by what they exchange and when, and what could hide it.

    Args:
        kind: The kind.
        all_calls: The exposed calls of all kinds.
        is_hiding_first: Whether there is computation that could hide them.
    """
    calls = all_calls.filter(pl.col("kind") == kind)
    whole, sizes = int(calls["exposed_ns"].sum()), calls.filter(pl.col("bytes") >= 0)["bytes"]
    if kind in ("all_gather", "reduce_scatter") and not sizes.is_empty() and float(sizes.mean()) < SMALL_BYTES:  # type: ignore[arg-type]
        return _SMALL_GATHERS
    if kind == "all_reduce" and calls.filter("is_of_layers")["exposed_ns"].sum() >= _OF_LAYERS * whole:
        return _BETWEEN_LAYERS
    if kind not in _OF_TRANSFERS:
        return _REMEDIES.get(kind, _REMEDY)
    return _OF_TRANSFERS[kind].action(_in_long_formats(kind, all_calls), is_hiding_first=is_hiding_first)


def _in_long_formats(kind: str, calls: pl.DataFrame) -> list[str]:
    """What calls of a kind, and those that the same remedy is about, exchange in a format that could be shorter."""
    kinds = next((names for names in _ALIKE if kind in names), {kind})
    whole, contents = int(calls["exposed_ns"].sum()), []
    for name, content in _CONTENTS.items():
        own = calls.filter(pl.col("kind") == name)
        is_long = own["dtype"].cast(pl.String).str.contains(_LONG_FORMATS).fill_null(value=True)
        own_ns, long_ns = int(own["exposed_ns"].sum()), int(own.filter(is_long)["exposed_ns"].sum())
        if name in kinds and long_ns > _MOSTLY * own_ns and own_ns >= _MENTIONED * whole:
            contents.append(content)
    return contents


def _could_be_hidden(facts: Facts, exposed_ns: int) -> bool:
    """Whether computation that hides no communication takes as long as what is exposed."""
    computation, whole = (facts.mean(facts.exposure_parts[name]) for name in ("computation", "communication"))
    return computation - (whole - exposed_ns) >= exposed_ns


def _fastest_large_call(calls: pl.DataFrame, kind: str) -> tuple[int, int] | None:
    """Bytes and time of the fastest large call of a kind; None if none is large, or its size is unknown."""
    large = calls.filter(pl.col("kind") == kind, pl.col("bytes") >= SMALL_BYTES, pl.col("dur_ns") > 0)
    if large.is_empty():
        return None
    size, ns = large.sort(pl.col("bytes") / pl.col("dur_ns")).select("bytes", "dur_ns").row(-1)
    return size, ns


def _many_calls(calls: pl.DataFrame, kind: str, facts: Facts, *, on_device: bool) -> tuple[bool, str]:
    """Whether calls of a kind are many and move little, so that fewer would do.

    Between hosts a call takes ms, however little it moves, or even if nobody knows how much; most of the time must lie
    outside of the longest tenth, which may have waited for another rank. On a device calls are many also where most of
    the time isn't in them.

    Returns:
        (Whether they are; that most of the time is in them, as the end of a sentence, or nothing.)
    """
    own = calls.filter(pl.col("kind") == kind)
    sizes = own["bytes"].filter(own["bytes"] >= 0)
    own = own if sizes.is_empty() and not on_device else own.filter(pl.col("bytes") >= 0)
    often = own.height / facts.count
    if often < _MANY or (not sizes.is_empty() and float(sizes.mean()) >= SMALL_BYTES):  # type: ignore[arg-type]
        return False, ""
    times = np.sort(own["dur_ns"].to_numpy())
    whole, in_most = int(times.sum()), int(times[: round((1 - _FEW) * times.size)].sum())
    is_usual = whole / own.height < _CALL_NS if on_device else in_most >= _MOSTLY * whole
    if not is_usual:
        return not on_device, ""
    small = "" if sizes.is_empty() else "small "
    return True, f", most of it in {text.often(often)} {small}calls of {kind} {facts.per}"


def _least_wait_ns(calls: pl.DataFrame, facts: Facts, exposed_ns: int) -> float:
    """The exposed time per step in which these calls, on a device, can't have moved data.

    Calls may overlap, so the longest time that each needs is subtracted from the time of all. A broadcast's root waits
    for no rank, and a message of unknown size may be large.
    """
    is_bounded = pl.col("kind").is_in(SYNCHRONIZING) & (pl.col("bytes") >= 0)
    fastest = pl.col("dur_ns").min().over("kind", "group", "bytes", "dtype")
    bound = pl.min_horizontal("exposed_ns", _CALL_NS + _BYTE_NS * pl.col("bytes"), _EQUAL * fastest)
    transfer_ns = calls.select(pl.when(is_bounded).then(bound).otherwise("exposed_ns").sum()).item() / facts.count
    return float(min(exposed_ns, calls["exposed_ns"].sum() / facts.count) - transfer_ns)


def _on_host(facts: Facts) -> Ints:
    """How long the host communicates per step while neither an innermost operator nor a device computes."""
    groups = [intervals_of(facts.trace.device_events), exposed_on_host(facts.trace)]
    return np.asarray(exclusive_lengths(groups, facts.windows.start, facts.windows.end)[1])
