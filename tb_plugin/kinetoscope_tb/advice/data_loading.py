"""Steps that wait for their batch. Only of recordings in which data is loaded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.gather import gather
from ..arrays.intervals import Ints, exclusive_lengths, length_within
from ..measures.time.breakdown import intervals_of, loading_ranges
from ..measures.time.idle_culprits import culprit_pieces
from ..measures.time.worker_waits import worker_waits
from ..names import text
from ..names.kernels import is_data_loading, loads_by_workers
from ..names.python_frames import function_name
from .culprit import in_program
from .facts import LEAST_SHARE, Facts
from .model import DATA_LOADING, Advice, ClearedTopic, Culprit, HiddenTime

_MOST_OF_LOADING = 0.8
_AS_LONG = 1.5  # times the median batch
_FEW_BATCHES = 1 / 3  # times as long by chance, these have less than that
_STALL = (
    "Look at what the loader does for that batch: a large or slow file, workers that start, a buffer that fills; a "
    "longer queue (`prefetch_factor`) hides a single late batch."
)
_FASTER_BATCHES = "Prepare batches faster: raise `num_workers` or `prefetch_factor`, and do less work per sample."
_HALF = 0.5


def data_loading(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """The step waits for its batch while nothing else runs."""
    lengths = facts.waits_for_data if facts.has_device else facts.host_time.lengths["loading"]
    waiting_ns = facts.mean(lengths)
    is_loading = pl.Series(loading_ranges(facts.trace), dtype=pl.Boolean)
    loaders = facts.trace.host_events["name"].filter(is_loading).unique().cast(pl.String).to_list()
    if not loaders:
        return
    if cleared_topic := facts.cleared_topic("data loading", lengths, "waiting for data"):
        yield _slow_workers(facts, waiting_ns) or cleared_topic
        return
    if cleared_topic := _of_first_batch(facts, lengths):
        yield cleared_topic
        return
    is_single = any("_SingleProcess" in name for name in loaders)
    is_multiple = any(map(loads_by_workers, loaders))
    idle = f"; {facts.device} {'are' if facts.waits == 'wait' else 'is'} idle then" if facts.has_device else ""
    where = "; the loader runs in the training process" if is_single else "; the loader's workers are too slow"
    few, of_batches = _few_batches(facts)
    is_known = is_single or (is_multiple and not few)
    pins = ", pin_memory=True" if facts.has_device else ""
    where_in_code, loads, source = _loading_function(facts, is_single=is_single)
    yield Advice(
        "data_loading",
        f"{facts.share_of_steps(lengths)} waits for data{few or where_in_code}.",
        f"{facts.part_of(lengths)} are DataLoader time that nothing else overlaps"
        f"{facts.recurs(lengths)}{idle}{where if is_known else ''}.{of_batches}{loads}{_calls_meanwhile(facts)}",
        f"Load data in worker processes: `DataLoader(…, num_workers=4{pins})`."
        if is_single
        else _STALL
        if of_batches or facts.spread(lengths).is_rare
        else _FASTER_BATCHES,
        None,
        "high" if is_single else "medium",
        "gaps" if facts.has_device else "steps",
        "data loading" if facts.has_device else "",
        waiting_ns,
        DATA_LOADING,
        source,
        hidden_time=_loading_meanwhile(facts) if facts.has_device and not facts.spread(lengths).is_rare else None,
    )


def _loading_meanwhile(facts: Facts) -> HiddenTime:
    """How long the host waits for data while devices work."""
    trace, ends = facts.trace, (facts.windows.start, facts.windows.end)
    loads = intervals_of(trace.host_events, loading_ranges(trace))
    alone = exclusive_lengths([intervals_of(trace.device_events), loads], *ends)[1]
    ns = facts.mean(length_within(loads, *ends) - np.asarray(alone))
    return HiddenTime(ns, f", and {text.share(facts.share(ns)).lower()} more while {facts.device} {facts.works}")


def _slow_workers(facts: Facts, exposed_ns: int) -> Advice | None:
    """The main thread waits for workers while devices still work, and then launches the next work too late.

    Args:
        facts: Of the trace.
        exposed_ns: How long the average step waits for data while devices don't work.
    """
    if not facts.has_device:
        return None
    calls = intervals_of(facts.trace.host_events[worker_waits(facts.trace)])
    lengths = length_within(calls, facts.windows.start, facts.windows.end)
    idle = facts.exposure_parts["idle"] - facts.unlinked_idle
    if not (facts.is_worth(lengths) and facts.is_worth(idle)):
        return None
    works = f"{facts.device} still {facts.works}"
    clause = f", most of it while {works}" if exposed_ns < _HALF * facts.mean(lengths) else ""
    return Advice(
        "data_loading",
        f"{facts.share_of_steps(lengths)} waits for data, and then launches work too late.",
        f"{facts.part_of(lengths)} are waits of the main thread for the loader's workers{facts.recurs(lengths)}"
        f"{clause}. They take longer for a batch than {facts.device} for a {facts.plain_noun}, so what else the host "
        "does in less time, it waits for data instead.",
        _FASTER_BATCHES,
        None,
        "medium",
        "gaps",
        "host late",
        min(facts.mean(lengths), facts.mean(idle)),
        DATA_LOADING,
    )


def _of_first_batch(facts: Facts, lengths: Ints) -> ClearedTopic | None:
    """That only the first step waits for its batch, though that takes no longer than later ones, which are hidden.

    The device has nothing queued yet where a recording begins.
    """
    spread, steps = facts.spread(lengths), np.flatnonzero(facts.is_counted)
    if facts.is_whole or not facts.has_device or not spread.is_rare or spread.steps.tolist() != [0]:
        return None
    loads = intervals_of(facts.trace.host_events, loading_ranges(facts.trace))
    begin, end = (facts.trace.steps[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    batch = length_within(loads, begin, end)
    if batch[steps[0]] > _AS_LONG * float(np.median(batch[steps[1:]])):
        return None
    part = f"{text.time(float(lengths[steps[0]]))} waiting for data in {facts.steps_of(lengths)} alone"
    return ClearedTopic("data loading", f"{part} (later batches take as long, hidden by the work of {facts.device})")


def _calls_meanwhile(facts: Facts) -> str:
    """That the breakdown counts much of the loading as calls of other threads, as a sentence; empty if it doesn't."""
    if not facts.has_device:
        return ""
    calls_ns = facts.mean(facts.waits_for_data) - facts.mean(facts.parts["DataLoader"])
    if facts.share(calls_ns) < LEAST_SHARE:
        return ""
    return (
        f" For {text.time(calls_ns)} of it a thread that launches nothing makes calls, such as to pin memory; the "
        "breakdown counts that as Runtime."
    )


def _few_batches(facts: Facts) -> tuple[str, str]:
    """In a recording without steps, that most of the loading is for a few batches: a clause, and a sentence.

    Both are empty if it isn't.
    """
    host, loads = facts.trace.host_events, loading_ranges(facts.trace)
    rows = np.flatnonzero(loads & ~gather(loads, host["parent"].to_numpy(), missing=False))
    start, cost = host["start_ns"].to_numpy()[rows], host["dur_ns"].to_numpy()[rows]
    cost = cost[np.argsort(start, kind="stable")]
    most = np.cumsum(np.sort(cost)[::-1])
    few = int(np.searchsorted(most, _MOST_OF_LOADING * cost.sum())) + 1
    if not facts.is_whole or few >= _FEW_BATCHES * cost.size:
        return "", ""
    longest, times = int(cost.argmax()) + 1, f"{text.time(float(most[few - 1]))} of the {text.time(float(most[-1]))}"
    if few == 1:
        batch = f"batch {longest} of {cost.size}"
        return f", most of it for {batch}", f" B{batch[1:]} takes {times} in the loader."
    batches = f"{few} of {cost.size} batches"
    return f", most of it for {batches}", f" {batches} take {times} in the loader, batch {longest} most."


def _loading_function(facts: Facts, *, is_single: bool) -> tuple[str, str, Culprit]:
    """(Where the host is for most of the time that waits for data, as the end of a sentence; what of it; by its name).

    All are empty without Python stacks, and where worker processes load.
    """
    if facts.trace.python_calls.is_empty():
        return "", "", Culprit()
    if not facts.has_device:
        where, source = in_program(facts, facts.host_time.spans["loading"]) if is_single else ("", Culprit())
        return where, "", source
    by_function = culprit_pieces(facts.trace).by_function("data loading")
    host, source, longest = by_function.row(-1) if by_function.height else (None, None, 0)
    share = longest / max(1, int(by_function["dur_ns"].sum()))
    if host is None or source is None or share < _HALF or is_data_loading(host):  # what the loader does isn't recorded
        return "", "", Culprit()
    code = function_name(source)
    who = f"`{code}`" if source.endswith(f": {host}") else f"`{host}`, called at `{code}`"
    words = f" {text.percent(share)} of that idle time is spent in {who}."
    return (f", most of it in `{code}`", words, Culprit(function=source)) if is_single else ("", words, Culprit())
