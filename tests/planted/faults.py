"""Faults of a recording: what a profiler loses, repeats or stamps wrongly. Each takes the events and a size.

The size is the share of the recording that the fault touches, unless its docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from blind.cases import HEALTHY
from planted.replay import ROWS

Events = list[dict[str, Any]]
Fault = Callable[[Events, float, np.random.Generator], Events]


def rows_of(events: Events) -> Events:
    """GPU rows by their begin."""
    return sorted((e for e in events if e["cat"] in ROWS), key=lambda e: e["ts"])


def _span(events: Events) -> tuple[float, float]:
    rows = rows_of(events)
    return rows[0]["ts"], max(e["ts"] + e["dur"] for e in rows)


def _without(events: Events, low: float, high: float) -> Events:
    return [e for e in events if e["cat"] not in ROWS or not low <= e["ts"] < high]


def drop_head(events: Events, size: float, rng: np.random.Generator) -> Events:
    """The first buffers of GPU activity are lost."""
    low, high = _span(events)
    return _without(events, low, low + size * (high - low))


def drop_tail(events: Events, size: float, rng: np.random.Generator) -> Events:
    """The last buffers of GPU activity are lost."""
    low, high = _span(events)
    return _without(events, high - size * (high - low), high + 1)


def drop_hole(events: Events, size: float, rng: np.random.Generator) -> Events:
    """A buffer in the middle is lost."""
    low, high = _span(events)
    begin = low + float(rng.uniform(0.1, 0.85 - size)) * (high - low)
    return _without(events, begin, begin + size * (high - low))


def drop_scattered(events: Events, size: float, rng: np.random.Generator) -> Events:
    """Rows are lost here and there, in runs of up to ten, until so much of the device's time is gone."""
    rows = rows_of(events)
    length = max(1, min(10, len(rows) // 50))
    runs = [rows[at : at + length] for at in range(0, len(rows), length)]
    order = rng.permutation(len(runs))
    lost = np.cumsum([sum(e["dur"] for e in runs[at]) for at in order])
    count = int(np.searchsorted(lost, size * lost[-1])) + 1
    gone = {id(e) for at in order[:count] for e in runs[at]}
    return [e for e in events if id(e) not in gone]


def drop_all(events: Events, size: float, rng: np.random.Generator) -> Events:
    """Launches were recorded, and no GPU activity."""
    return [e for e in events if e["cat"] not in ROWS]


def duplicate(events: Events, size: float, rng: np.random.Generator) -> Events:
    """Rows are written twice."""
    rows = rows_of(events)
    return events + [dict(e) for e in rows if rng.random() < size]


def stretch_one(events: Events, size: float, rng: np.random.Generator) -> Events:
    """One kernel ends far too late: its end was taken from another one, as ROCm did."""
    low, high = _span(events)
    rows = [e for e in rows_of(events) if e["cat"] == "kernel"]
    first = [e for e in rows if e["ts"] < low + 0.2 * (high - low)]
    chosen = first[int(rng.integers(len(first)))]
    chosen["dur"] = round(chosen["dur"] + size * (high - low), 3)
    return events


def shift_clock(events: Events, size: float, rng: np.random.Generator) -> Events:
    """The device's clock is off by a share of the recording, forward or back."""
    low, high = _span(events)
    offset = size * (high - low) * float(rng.choice([-1, 1]))
    for event in rows_of(events):
        event["ts"] = round(event["ts"] + offset, 3)
    return events


def drift_clock(events: Events, size: float, rng: np.random.Generator) -> Events:
    """The device's clock runs slow or fast: at the end it's off by a share of the recording."""
    low, _ = _span(events)
    rate = 1 + size * float(rng.choice([-1, 1]))
    for event in rows_of(events):
        event["ts"], event["dur"] = round(low + (event["ts"] - low) * rate, 3), round(event["dur"] * rate, 3)
    return events


def jump_clock(events: Events, size: float, rng: np.random.Generator) -> Events:
    """The device's clock jumps ahead in the middle."""
    low, high = _span(events)
    since = low + float(rng.uniform(0.3, 0.7)) * (high - low)
    for event in rows_of(events):
        if event["ts"] >= since:
            event["ts"] = round(event["ts"] + size * (high - low), 3)
    return events


def confuse_units(events: Events, size: float, rng: np.random.Generator) -> Events:
    """Durations of rows are in another unit: a thousandth of what they should be, or a thousand times as long."""
    factor = float(rng.choice([1e-3, 1e3]))
    for event in rows_of(events):
        event["dur"] = round(event["dur"] * factor, 3)
    return events


def disorder(events: Events, size: float, rng: np.random.Generator) -> Events:
    """Neighbors on a stream change places: the order contradicts that of the launches."""
    rows = [e for e in rows_of(events) if e["cat"] == "kernel"]
    for first, second in zip(rows[::2], rows[1::2], strict=False):
        if rng.random() < size and first["args"].get("stream") == second["args"].get("stream"):
            begin, end = first["ts"], second["ts"] + second["dur"]
            second["ts"], first["ts"] = begin, round(end - first["dur"], 3)
    return events


def unlink(events: Events, size: float, rng: np.random.Generator) -> Events:
    """Rows don't say which call launched them."""
    for event in rows_of(events):
        event["args"] = {
            k: v for k, v in event["args"].items() if k not in ("correlation", "External id", "external id")
        }
    return events


@dataclass(frozen=True)
class FaultKind:
    """A fault, and what it does to verdicts.

    Args:
        id: Of the fault.
        apply: Does it.
        of: What it is applied to: healthy recordings, or "waits": those in which the host is late.
        decisive: Sizes at which it could flip the verdict.
        negligible: Sizes at which it can't.
        must_abstain: Whether nothing can be said when it's decisive; else the true cause is there to be seen.
    """

    id: str
    apply: Fault
    of: str = "healthy"
    decisive: tuple[float, float] = (0.25, 0.6)
    negligible: tuple[float, float] | None = (0.001, 0.004)
    must_abstain: bool = True

    @property
    def cause(self) -> str:
        """What is true without the fault."""
        return "host_unrecorded" if self.of == "waits" else HEALTHY


FAULTS = (
    FaultKind("dropped_head", drop_head),
    FaultKind("dropped_tail", drop_tail, must_abstain=False),  # the steps before can be judged
    FaultKind("dropped_hole", drop_hole),
    FaultKind("dropped_scattered", drop_scattered),
    FaultKind("no_device_rows", drop_all, decisive=(1, 1), negligible=None),
    FaultKind("impossible_kernel", stretch_one, "waits", (0.6, 3.0)),
    FaultKind("jumped_clock", jump_clock),
    FaultKind("confused_units", confuse_units, decisive=(1, 1), negligible=None),
    FaultKind("unlinked_rows", unlink, "waits", (1, 1), None),
    FaultKind("shifted_clock", shift_clock, "waits", (0.1, 0.5)),  # which work was late, no row says any more
    FaultKind("drifting_clock", drift_clock, "waits", (0.1, 0.3)),
    FaultKind("duplicated_rows", duplicate, "waits", (0.3, 1.0), must_abstain=False),
    FaultKind("disordered_stream", disorder, "waits", (0.3, 1.0), None, must_abstain=False),
)
