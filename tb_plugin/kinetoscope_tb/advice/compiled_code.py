"""torch.compile in the steps: frames that are compiled again, and frames that fall apart at graph breaks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories
from ..arrays.intervals import Ints, length_within, without
from ..arrays.nesting import nearest
from ..measures.python.whereabouts import place_at
from ..measures.time.breakdown import intervals_of
from ..names.compiled_code import compile_id, is_compilation, is_compiled_graph, is_compiled_region, region_id
from . import text
from .facts import LEAST_SHARE, Facts
from .model import Advice, Cleared

_NAMED = 3
_MOST = 0.8  # of the steps: a graph break recurs with its frame


def recompiles(facts: Facts) -> Iterator[Advice]:
    """torch.compile compiles in steps that aren't warm-up."""
    host = facts.trace.host_events
    compiles = map_categories(host["name"], is_compilation)
    if not compiles.any():
        return
    lengths = facts.late.compiling if facts.has_device else facts.host_time.lengths["compiling"]
    saving = facts.mean(lengths)
    if facts.share(saving) < LEAST_SHARE:  # of a single step too: what compiles is known, however steps differ
        return
    parent = host["parent"].to_numpy()
    outermost = compiles & (gather(nearest(compiles, parent), parent) == NONE) & _is_counted(facts)
    steps = np.unique(host["step"].to_numpy()[outermost]).size
    again = {frame: number for frame, number in _ids(facts, np.flatnonzero(outermost)).items() if number > 0}
    count = int(outermost.sum())
    if not again and steps < 2:
        yield _of_first_compilation(facts, count, saving)
        return
    frames = [f"frame {frame} ({text.times(number + 1, 'version')} so far)" for frame, number in again.items()]
    named = f" It compiled {text.listed(frames[:_NAMED])} again." if frames else ""
    place = place_at(facts.trace, *_start(facts, int(outermost.argmax())))
    where = f" One is called at `{place.caller}`." if place and place.caller else ""
    verb = "recompiles" if again else "compiles"
    yield Advice(
        "recompiles",
        f"torch.compile {verb} in {steps} of {text.times(facts.count, 'step')}, which takes {facts.percent(saving)} of "
        f"{facts.unit}.",
        f"{text.times(count / facts.count, 'compilation')} {facts.per}: {facts.part(saving)}.{named}{where}",
        "Find the guard that fails with `TORCH_LOGS=recompiles`; pad inputs to a few shapes, or mark sizes that change "
        "(`torch._dynamo.mark_dynamic`, `dynamic=True`).",
        saving,
        "high",
        "operators",
        "re:dynamo_timed",
    )


def _of_first_compilation(facts: Facts, count: int, saving: int) -> Advice:
    return Advice(
        "warm_up",
        f"The recording holds warm-up: torch.compile compiles for {facts.percent(saving)} of {facts.unit}.",
        f"{text.times(count, 'compilation')} in {'the recording' if facts.is_whole else 'one step'}: "
        f"{facts.part(saving)}; none is known to be a second one of its frame.",
        "Call each compiled function on each of its shapes before recording.",
        saving,
        "high",
        "operators",
        "re:dynamo_timed",
    )


def _is_counted(facts: Facts) -> NDArray[np.bool_]:
    return gather(facts.counted, facts.trace.host_events["step"].to_numpy(), missing=False)


def _start(facts: Facts, row: int) -> tuple[int, int]:
    host = facts.trace.host_events
    return int(host["thread"][row]), int(host["start_ns"][row])


def _ids(facts: Facts, compilations: NDArray[np.int64]) -> dict[int, int]:
    """The number of the last compilation of each frame in the steps that count, as far as it is recorded.

    Where no range says what was compiled, it is the region that a compilation lies in or that comes next on its thread,
    if that is the region's first time.
    """
    host = facts.trace.host_events
    names = host["name"].filter(pl.Series(_is_counted(facts))).unique().cast(pl.String)
    if ids := dict(sorted(each for each in map(compile_id, names) if each is not None)):
        return ids
    codes = host["name"].to_physical().to_numpy()
    regions = np.flatnonzero(map_categories(host["name"], is_compiled_region))
    first = regions[np.unique(codes[regions], return_index=True)[1]]
    around = nearest(np.isin(np.arange(host.height), regions), host["parent"].to_numpy())[compilations]
    place = np.searchsorted(regions, compilations)
    following = np.where(place < regions.size, np.append(regions, NONE)[place], NONE)
    compiled = np.where(around == NONE, following, around)
    compiled = compiled[np.isin(compiled, first)]
    compiled = compiled[host["thread"].to_numpy()[compiled] == host["thread"].to_numpy()[compilations[0]]]
    found = map(region_id, host["name"][np.unique(compiled)].cast(pl.String).to_list())
    return dict(sorted(each for each in found if each is not None))


def graph_breaks(facts: Facts) -> Iterator[Advice | Cleared]:
    """Frames that torch.compile cut: the code behind a break is a frame of its own, evaluated within the first."""
    host = facts.trace.host_events
    regions = map_categories(host["name"], is_compiled_region)
    if not regions.any():
        return
    parent = host["parent"].to_numpy()
    around = gather(nearest(regions, parent), parent)
    counted = _is_counted(facts)
    inner = regions & (around != NONE) & counted
    steps = np.unique(host["step"].to_numpy()[inner]).size
    if steps < _MOST * facts.count:
        return
    cut = np.zeros(host.height, bool)
    cut[around[inner]] = True
    cut &= around == NONE
    lengths = _between_graphs(facts, cut)
    if lengths is None:
        return
    if cleared := facts.cleared("graph breaks", lengths, "between compiled graphs"):
        yield cleared
        return
    yield _broken(facts, cut, inner, lengths)


def _between_graphs(facts: Facts, cut: NDArray[np.bool_]) -> Ints | None:
    """How long outermost regions with breaks run what isn't compiled, in each step; None if graphs leave no ranges."""
    host = facts.trace.host_events
    graphs = map_categories(host["name"], is_compiled_graph) & (nearest(cut, host["parent"].to_numpy()) != NONE)
    if not graphs.any():
        return None
    compiles = map_categories(host["name"], is_compilation)
    spans = without(intervals_of(host, cut), intervals_of(host, graphs | compiles))
    return length_within(spans, facts.windows.start, facts.windows.end)


def _broken(facts: Facts, cut: NDArray[np.bool_], inner: NDArray[np.bool_], lengths: Ints) -> Advice:
    host = facts.trace.host_events
    size, breaks = facts.mean(lengths), int(inner.sum()) / facts.count
    names = sorted({str(name) for name in host["name"].filter(pl.Series(cut & _is_counted(facts))).unique()})
    place = place_at(facts.trace, *_start(facts, int((cut & _is_counted(facts)).argmax())))
    where = f", called at `{place.caller}`" if place and place.caller else ""
    outer = text.listed([f"`{name}`" for name in names[:_NAMED]])
    return Advice(
        "graph_breaks",
        f"Graph breaks cut compiled code into pieces: {text.digits(breaks)} {facts.per}, with "
        f"{facts.percent(size)} of {facts.unit} spent between compiled graphs.",
        f"{outer}{where} evaluate{'s' if len(names) == 1 else ''} {text.times(breaks, 'more region')} within: what "
        f"follows each break. {facts.part(size)} go to checking guards and to code that isn't compiled.",
        "Find the reasons with `TORCH_LOGS=graph_breaks` or `fullgraph=True`: prints, `.item()`, calls that Dynamo "
        "doesn't trace.",
        None,
        "medium",
        "operators",
        "re:Torch-Compiled Region",
        None if facts.has_device else size,
    )
