"""Warm-up within the recording: first steps that differ from the others, and first launches that load code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.gather import map_categories
from ..arrays.intervals import Intervals, length_within, merge
from ..measures.time.breakdown import intervals_of
from ..names.calls import allocates
from ..names.compiled_code import is_compilation
from . import text
from .facts import Facts
from .model import Advice

_LOADS = re.compile(
    r"Module(?:Load|GetFunction)|LibraryLoad|GetModule|Lazy Function Loading|hipModuleLoad|FuncGetAttributes"
)
_EXPLAINS = 0.3  # of what warm-up takes beyond a steady step


def warm_up(facts: Facts) -> Iterator[Advice]:
    """The first steps take longer than the others: what that does to averages, and what they do."""
    warm = facts.complete & ~facts.counted
    count = int(warm.sum())
    if not count:
        return
    steady, first = facts.step_ns, float(facts.length[warm].mean())
    mean = float(facts.length[facts.complete].mean())
    causes = {
        what: part
        for what, spans in _first_time_work(facts).items()
        if (part := _excess(facts, spans)) >= _EXPLAINS * (first - steady)
    }
    doing = text.listed([f"{what} ({text.time(part)})" for what, part in causes.items()]) if causes else ""
    which = "The first step takes" if count == 1 else f"The first {count} steps take"
    each = "" if count == 1 else " on average"
    yield Advice(
        "warm_up",
        f"{which} {text.time(first)}{each}, the others {text.time(steady)}: the recording holds warm-up.",
        f"A steady step takes {text.time(steady)}; averages over all {facts.complete.sum()} complete steps are "
        f"{text.percent(mean / steady - 1)} longer. This advice is about the {facts.count} others."
        + (f" What warm-up does: {doing}." if doing else ""),
        "Start recording later: `schedule(wait=…, warmup=…)`. Judge averages without these steps.",
        None,
        "high" if causes else "medium",
        "steps",
        "",
        round(mean - steady),
    )


def _first_time_work(facts: Facts) -> dict[str, Intervals]:
    """When the host does what it does once only."""
    trace = facts.trace
    host, launches, others = trace.host_events, trace.launches, trace.others
    loads = [intervals_of(f, map_categories(f["name"], lambda n: bool(_LOADS.search(n)))) for f in (launches, others)]
    return {
        "compiling": intervals_of(host, map_categories(host["name"], is_compilation)),
        "loading code": merge(loads),
        "taking device memory": intervals_of(launches, map_categories(launches["name"], allocates)),
    }


def _excess(facts: Facts, spans: Intervals) -> float:
    """By how much longer it lasts in a step of the warm-up than in the others."""
    lengths = length_within(spans, facts.windows.start, facts.windows.end)
    return float(lengths[facts.complete & ~facts.counted].mean() - lengths[facts.counted].mean())


def is_first_of_name(facts: Facts, rows: pl.Series) -> pl.Series:
    """Whether each of some device rows is the first of its name in the recording."""
    names = facts.trace.device_events["name"].to_physical().to_numpy()
    first = np.zeros(names.size, bool)
    first[np.unique(names, return_index=True)[1]] = True
    return pl.Series(first)[rows]
