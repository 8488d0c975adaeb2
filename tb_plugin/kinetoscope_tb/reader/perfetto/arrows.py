"""Links between launches and device work, and between nodes of a graph → the arrows that torch's JSON has for them.

A launch lists the work that it launched (torch's extension 3000), and work lists the work that it waited for
(event_wait_ids). JSON has arrows of category `ac2g` instead: their id is the correlation, or 2^40 and more between two
rows of devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..scan.counters import CounterLines
from ..scan.kinds import Kind
from ..scan.rows import Noted, Part, Sorted

_FIRST_EDGE = 2**40
_TOKENS = [b'"ac2g"', b'"s"', b'"f"']
_PLACED = ("launches", "device_events", "others")


@dataclass
class Links:
    """All links of a file: pairs of the offset of an event and an id of device work."""

    launches: list[NDArray[np.int64]] = field(default_factory=list)
    waits: list[NDArray[np.int64]] = field(default_factory=list)
    stages: list[NDArray[np.int64]] = field(default_factory=list)

    def add_to(self, events: Sorted) -> int:
        """Add the arrows to the events; return how many links lead to work that isn't in the file."""
        launches, waits, stages = (_pairs(parts) for parts in (self.launches, self.waits, self.stages))
        self.launches, self.waits, self.stages = [], [], []
        if launches.is_empty() and waits.is_empty():
            return 0
        work = stages.unique("id", keep="first", maintain_order=True).rename({"offset": "work"})
        rows = _rows(events)
        launched = launches.join(work, "id", maintain_order="left").select("offset", "work")
        waited = waits.join(work, "id", maintain_order="left").select(offset="work", work="offset")
        lost = launches.height - launched.height + waits.height - waited.height
        arrows = pl.concat(
            [
                _placed(launched, rows).with_columns(id=pl.col("correlation"), begin="ts"),
                _placed(waited, rows).with_columns(
                    id=_FIRST_EDGE + pl.int_range(pl.len()), begin=pl.col("ts") + pl.col("dur")
                ),
            ]
        )
        if arrows.height:
            _append(events, arrows)
        return lost


def _pairs(parts: list[NDArray[np.int64]]) -> pl.DataFrame:
    pairs = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.int64)
    return pl.DataFrame({"offset": pairs[0], "id": pairs[1]})


def _rows(events: Sorted) -> pl.DataFrame:
    """The place, time and correlation of the events that arrows link."""
    frames = []
    for name in _PLACED:
        rows = events.frames[name]
        columns = {column: rows[column].astype(np.int64) for column in ("offset", "ts", "dur", "pid", "tid")}
        correlation = rows["correlation"].astype(np.int64) if "correlation" in rows else np.full(rows["ts"].size, -1)
        frames.append(pl.DataFrame({**columns, "correlation": correlation}))
    return pl.concat(frames).with_columns(pl.col("dur").clip(lower_bound=0)).unique("offset", keep="first")


def _placed(links: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Both events of each link; those that aren't in the frames are left out."""
    begun = links.join(rows, "offset", maintain_order="left")
    return begun.join(rows.rename({"offset": "work"}), "work", suffix="_to", maintain_order="left")


def _append(events: Sorted, arrows: pl.DataFrame) -> None:
    known = {token: code for code, token in enumerate(events.tokens)}
    tokens = list(dict.fromkeys([*events.tokens, *_TOKENS]))
    code = {token: known.get(token, tokens.index(token)) for token in _TOKENS}
    first = arrows.unique(["offset", "id"], keep="first", maintain_order=True)  # one launch may begin much work
    begins = _columns(first, code[b'"s"'], ("pid", "tid", "begin", "offset"))
    ends = _columns(arrows, code[b'"f"'], ("pid_to", "tid_to", "ts_to", "work"))
    columns: dict[str, NDArray[Any]] = {name: np.concatenate([begins[name], ends[name]]) for name in begins}
    columns["category"] = np.full(columns["ts"].size, code[b'"ac2g"'])
    columns["dur"] = np.full(columns["ts"].size, -1)
    columns["length"] = np.zeros(columns["ts"].size, np.int32)
    columns["kind"] = np.full(columns["ts"].size, Kind.FLOW, np.int8)
    nothing = (Noted(), Noted(), Noted(), Noted(), CounterLines(np.empty(0, np.int64), b""))
    events.append(Part(columns["ts"].size, tokens, {"flows": columns}, *nothing))


def _columns(arrows: pl.DataFrame, phase: int, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    columns = dict(zip(("pid", "tid", "ts", "offset"), (arrows[name].to_numpy() for name in names), strict=True))
    return {**columns, "id": arrows["id"].to_numpy(), "phase": np.full(arrows.height, phase)}
