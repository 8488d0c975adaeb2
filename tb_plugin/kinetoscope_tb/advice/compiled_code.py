"""torch.compile in the steps: frames that are compiled again, and frames that fall apart at graph breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..arrays.intervals import Intervals, Ints, length_within, merge, without
from ..arrays.nesting import nearest
from ..measures.python.whereabouts import location_at
from ..measures.time.breakdown import intervals_of
from ..measures.time.graph_breaks import find_graph_breaks
from ..names import text
from ..names.compiled_code import (
    compile_id,
    is_backend_call,
    is_compilation,
    is_compiled_region,
    is_frame_compilation,
    region_id,
)
from ..names.python_frames import function_name
from ..trace.row_filters import name_mask
from .facts import LEAST_SHARE, Facts
from .model import Advice, ClearedTopic

_NAMED = 3
_MOST = 0.8  # of the steps: a graph break recurs with its frame


class Compilations(NamedTuple):
    """What torch.compile compiled in the steps that count.

    Attributes:
        rows: The outermost ranges: rows of host_events. Where a frame is compiled again, without first compilations
            of a single step, which no program can do without.
        steps: In how many steps.
        again: The number of each frame's last compilation, of those that weren't its first.
        limits: How many versions each frame had when torch gave it up.
        saving_ns: Time of a step, in which devices wait if there are any.
        spans: When torch.compile compiles these.
        first_ns: How long the first compilations took that aren't among them.
    """

    rows: NDArray[np.int64]
    steps: int
    again: dict[int, int]
    limits: dict[int, int]
    saving_ns: int
    spans: Intervals
    first_ns: int

    @property
    def is_first(self) -> bool:
        """Whether they may be first compilations: part of warm-up."""
        return not self.again and self.steps < 2


def compilations(facts: Facts) -> Compilations | None:
    """None if there are none worth a word; that holds for those of a single step too, however steps differ."""
    host = facts.trace.host_events
    compiles = name_mask(host["name"], is_compilation)
    if not compiles.any():
        return None
    lengths = facts.late.compiling if facts.has_device else facts.host_time.lengths["compiling"]
    parent = host["parent"].to_numpy()
    rows = np.flatnonzero(compiles & (gather(nearest(compiles, parent), parent) == NONE) & _is_counted(facts))
    failures = _without_backend(facts, rows)
    limits = {frame: number for frame, number in _ids_within(facts, failures).items() if number > 0}
    rows = np.setdiff1d(rows, failures)
    again = {frame: number for frame, number in _ids(facts, rows).items() if number > 0}
    first_rows = _first_of_frames(facts, rows) if again else rows[:0]
    spans, first_spans = merge([facts.host_spans["compiling"]]), merge([intervals_of(host[first_rows])])
    others = without(spans, first_spans)
    whole_ns, others_ns = (length_within(s, facts.windows.start, facts.windows.end) for s in (spans, others))
    saving_ns = facts.mean((lengths * (others_ns / np.maximum(whole_ns, 1))).astype(np.int64))
    rows = np.setdiff1d(rows, first_rows)
    if facts.share(saving_ns) < LEAST_SHARE or not rows.size:
        return None
    steps = np.unique(host["step"].to_numpy()[rows]).size
    return Compilations(rows, steps, again, limits, saving_ns, others, int((first_spans[1] - first_spans[0]).sum()))


def _first_of_frames(facts: Facts, compilations: NDArray[np.int64]) -> NDArray[np.int64]:
    """The compilations that are known to be the first of their frames, if they all are in one step."""
    host = facts.trace.host_events
    rows, around = _ranges_with_id(facts, compilations)
    is_first = name_mask(host["name"], lambda name: (compile_id(name) or (0, 1))[1] == 0)[rows]
    first_rows = np.setdiff1d(around[is_first], around[~is_first]).astype(np.int64)
    is_single_step = np.unique(host["step"].to_numpy()[first_rows]).size == 1
    return first_rows if is_single_step else first_rows[:0]


def _without_backend(facts: Facts, compilations: NDArray[np.int64]) -> NDArray[np.int64]:
    """The compilations of frames that were given up: nothing was handed to the backend, as it is for others."""
    host = facts.trace.host_events
    of_frame, calls = (name_mask(host["name"], is_meant) for is_meant in (is_frame_compilation, is_backend_call))
    if not calls.any():
        return compilations[:0]
    around = nearest(np.isin(np.arange(host.height), compilations), host["parent"].to_numpy())[calls]
    return np.setdiff1d(compilations[of_frame[compilations]], around)


def _ranges_with_id(facts: Facts, compilations: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The ranges within some compilations that say what is compiled, and the compilation around each."""
    host = facts.trace.host_events
    rows = np.flatnonzero(name_mask(host["name"], lambda name: compile_id(name) is not None))
    around = nearest(np.isin(np.arange(host.height), compilations), host["parent"].to_numpy())[rows]
    return rows[around != NONE], around[around != NONE]


def _ids_within(facts: Facts, compilations: NDArray[np.int64]) -> dict[int, int]:
    """The number of the last compilation of each frame within some compilations, as far as ranges say it."""
    rows, _ = _ranges_with_id(facts, compilations)
    names = facts.trace.host_events["name"].gather(rows).unique().cast(pl.String)
    return dict(sorted(identity for identity in map(compile_id, names) if identity is not None))


def recompiles(facts: Facts) -> Iterator[Advice]:
    """torch.compile compiles in steps that aren't warm-up."""
    cost = compilations(facts)
    if cost is None or cost.is_first:
        return
    frames = [f"frame {frame} ({text.times(number + 1, 'version')} so far)" for frame, number in cost.again.items()]
    which_frames = f" It compiled {text.enumeration(frames[:_NAMED])} again." if frames else ""
    ends = [
        f" Torch gave frame {frame} up after {number} versions, and ran it uncompiled then, as it does at its limit "
        "(`torch._dynamo.config.recompile_limit`)."
        for frame, number in cost.limits.items()
    ]
    location = location_at(facts.trace, *_start(facts, int(cost.rows[0])))
    where = f" One is called at `{function_name(location.caller)}`." if location and location.caller else ""
    verb = "recompiles" if cost.again else "compiles"
    first = (
        f" Not counted are first compilations, which take {text.time(cost.first_ns)} in all." if cost.first_ns else ""
    )
    often = "" if facts.is_whole else f" in {cost.steps} of {text.times(facts.count, facts.noun)}"
    yield Advice(
        "recompiles",
        f"torch.compile {verb}{often}, which takes {facts.percent(cost.saving_ns)} of {facts.unit}.",
        f"{text.times(cost.rows.size / facts.count, 'compilation')} {facts.per}: {facts.part(cost.saving_ns)}."
        f"{which_frames}{where}{''.join(ends[:_NAMED])}{first}",
        "Find the guard that fails with `TORCH_LOGS=recompiles`; pad inputs to a few shapes, or mark sizes that change "
        "(`torch._dynamo.mark_dynamic`, `dynamic=True`).",
        None,
        "high",
        "operators",
        "re:dynamo_timed",
        cost.saving_ns,
        facts.host_candidate("compilations", cost.spans),
    )


def _is_counted(facts: Facts) -> NDArray[np.bool_]:
    return gather(facts.is_counted, facts.trace.host_events["step"].to_numpy(), missing=False)


def _start(facts: Facts, row: int) -> tuple[int, int]:
    host = facts.trace.host_events
    return int(host["thread"][row]), int(host["start_ns"][row])


def _ids(facts: Facts, compilations: NDArray[np.int64]) -> dict[int, int]:
    """The number of the last compilation of each frame in the steps that count, as far as it is recorded.

    Where no range says what was compiled, it is the region that a compilation lies in or that comes next on its thread,
    if that is the region's first time.
    """
    host = facts.trace.host_events
    if ids := _ids_within(facts, compilations):
        return ids
    codes = host["name"].to_physical().to_numpy()
    regions = np.flatnonzero(name_mask(host["name"], is_compiled_region))
    first = regions[np.unique(codes[regions], return_index=True)[1]]
    around = nearest(np.isin(np.arange(host.height), regions), host["parent"].to_numpy())[compilations]
    index = np.searchsorted(regions, compilations)
    next_regions = np.where(index < regions.size, np.append(regions, NONE)[index], NONE)
    own_regions = np.where(around == NONE, next_regions, around).astype(np.int32)
    thread = host["thread"].to_numpy()
    is_own = np.isin(own_regions, first) & (gather(thread, own_regions) == thread[compilations])
    own_regions = own_regions[is_own]
    identities = map(region_id, host["name"][np.unique(own_regions)].cast(pl.String).to_list())
    return dict(sorted(identity for identity in identities if identity is not None))


def graph_breaks(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """Time between the compiled graphs of frames that torch.compile cut."""
    breaks = find_graph_breaks(facts.trace)
    inner = breaks.inner & _is_counted(facts)
    steps = np.unique(facts.trace.host_events["step"].to_numpy()[inner]).size
    if not inner.any() or steps < _MOST * facts.count or not breaks.between[0].size:
        return
    lengths = facts.late.breaking if facts.has_device else facts.host_time.lengths["breaking"]
    if cleared_topic := facts.cleared_topic("graph breaks", lengths, "between compiled graphs"):
        yield cleared_topic
        return
    yield _advice_on_breaks(facts, breaks.outer & _is_counted(facts), inner, lengths)


def _advice_on_breaks(facts: Facts, outer: NDArray[np.bool_], inner: NDArray[np.bool_], lengths: Ints) -> Advice:
    host = facts.trace.host_events
    saving, breaks = facts.mean(lengths), int(inner.sum()) / facts.count
    names = sorted({str(name) for name in host["name"].filter(pl.Series(outer)).unique()})
    location = location_at(facts.trace, *_start(facts, int(outer.argmax())))
    where = f", called at `{function_name(location.caller)}`" if location and location.caller else ""
    regions = text.enumeration([f"`{name}`" for name in names[:_NAMED]])
    device_waits = f" {facts.subject} {facts.waits} meanwhile." if facts.has_device else ""
    return Advice(
        "graph_breaks",
        f"Graph breaks cut compiled code into pieces: {text.often(breaks)} {facts.per}, with "
        f"{facts.percent(saving)} of {facts.unit} spent between compiled graphs.",
        f"{regions}{where} evaluate{'s' if len(names) == 1 else ''} {text.times(breaks, 'more region')} within: what "
        f"follows each break. {facts.part_of(lengths)} go to guards and to Python between{facts.recurs(lengths)}."
        f"{device_waits}",
        "Find the reasons with `TORCH_LOGS=graph_breaks` or `fullgraph=True`: prints, `.item()`, calls that Dynamo "
        "doesn't trace.",
        None,
        "medium",
        "operators",
        "re:Torch-Compiled Region",
        saving,
        facts.host_candidate("time between compiled graphs", facts.host_spans["breaking"]),
    )
