"""A trace's columns as the arguments of Chrome's events, named as kineto names them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...reader.input.encodings import whole_characters
from ...timeline.core.model import FRAMES, Timeline
from ...trace import Trace
from .events import Texts, json_text

_NAMES = {
    "host_events": {
        "external_id": "External id",
        "sequence": "Sequence number",
        "fwd_thread": "Fwd thread id",
        "input_shapes": "Input Dims",
        "input_types": "Input type",
        "concrete_inputs": "Concrete Inputs",
        "call_stack": "Call stack",
    },
    "launches": {"correlation": "correlation", "external_id": "External id"},
    "device_events": {
        "correlation": "correlation",
        "external_id": "External id",
        "bytes": "bytes",
        "grid": "grid",
        "block": "block",
        "registers_per_thread": "registers per thread",
        "shared_memory_bytes": "shared memory",
        "blocks_per_sm": "blocks per SM",
        "occupancy_frac": "est. achieved occupancy %",
        "graph_id": "graph id",
        "graph_node_id": "graph node id",
    },
    "python_calls": {
        "python_id": "Python id",
        "python_parent_id": "Python parent id",
        "module_id": "Python module id",
    },
    "syncs": {
        "correlation": "correlation",
        "sync_kind": "cuda_sync_kind",
        "wait_on_stream": "wait_on_stream",
        "wait_on_event": "wait_on_cuda_event_id",
        "wait_on_record": "wait_on_cuda_event_record_corr_id",
        "event_id": "event_id",
    },
    "others": {},
}
_OF_COLLECTIVES = {
    "name": "Collective name",
    "dtype": "dtype",
    "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems",
    "group_size": "Group size",
    "group": "Process Group Name",
    "group_description": "Process Group Description",
    "group_ranks": "Process Group Ranks",
    "nth": "Seq",
}
_AS_JSON = ("input_shapes", "input_types", "concrete_inputs", "grid", "block")  # lists, as written in the file


class ArgumentTexts:
    """The ends of the slices' events, with their arguments."""

    def __init__(self, trace: Trace, timeline: Timeline) -> None:
        self._timeline = timeline
        self._frames = [_Frame(getattr(trace, name), _NAMES[name]) for name in FRAMES]
        self._collectives = _Frame(trace.collectives, _OF_COLLECTIVES)
        self._collective_of = np.full(timeline.frame_first[-1], NONE, np.int32)
        for name, column in (("host_events", "host_event"), ("device_events", "device_event")):
            rows = trace.collectives[column].to_numpy()
            with_row = np.flatnonzero(rows >= 0)
            self._collective_of[rows[with_row] + timeline.frame_first[FRAMES.index(name)]] = with_row

    def of(self, slices: NDArray[np.int64], always: str) -> Texts:
        """The end of each slice's event, from its arguments on; `always` comes first in all of them."""
        event = self._timeline.event[slices]
        frame = np.searchsorted(self._timeline.frame_first, event, "right") - 1
        members = pl.Series([f",{always}" if always else ""]).new_from_index(0, slices.size)
        for which in np.unique(frame).tolist():
            at = np.flatnonzero(frame == which)
            rows = event[at] - self._timeline.frame_first[which]
            members = members.scatter(at, members.gather(at) + self._frames[which].members(rows))
        collective = self._collective_of[event]
        at = np.flatnonzero(collective >= 0)
        if at.size:
            members = members.scatter(at, members.gather(at) + self._collectives.members(collective[at]))
        members_of_args = pl.concat_str(pl.lit(',"args":{'), members.str.slice(1), pl.lit("}}"))
        return Texts.of_series(
            pl.select(pl.when(members == "").then(pl.lit("}")).otherwise(members_of_args)).to_series()
        )


class _Frame:
    """Columns of a frame, and their names in JSON."""

    def __init__(self, frame: pl.DataFrame, names: Mapping[str, str]) -> None:
        self._names = names
        self._columns = {column: frame[column] for column in names}
        self._spelt = {
            column: pl.Series([_json(text, column) for text in values.dtype.categories.to_list()], dtype=pl.String)
            for column, values in self._columns.items()
            if isinstance(values.dtype, pl.Enum)
        }

    def members(self, rows: NDArray[np.integer]) -> pl.Series:
        """The members of some rows, each value after a comma and its name; empty if nothing is known."""
        texts_of_rows = pl.Series([""]).new_from_index(0, rows.size)
        for column, values in self._columns.items():
            texts = self._texts(column, values.gather(rows))
            if texts.null_count() < texts.len():
                texts_of_rows += (f",{json_text(self._names[column])}:" + texts).fill_null("")
        return texts_of_rows

    def _texts(self, column: str, values: pl.Series) -> pl.Series:
        """Values as JSON, null where there is none."""
        if column in self._spelt:
            return self._spelt[column].gather(values.to_physical().cast(pl.Int64))
        is_known = values.is_finite() if values.dtype.is_float() else values >= 0
        values_or_percent = (values * 100).round(9) if column == "occupancy_frac" else values
        return pl.select(pl.when(is_known).then(values_or_percent.cast(pl.String))).to_series()


def _json(text: str, column: str) -> str:
    """The text as a JSON string; or as the JSON value that it is, if strict JSON has such a value."""
    if column in _AS_JSON:
        try:
            return whole_characters(json_text(json.loads(text, parse_constant=_refuse)))
        except (ValueError, RecursionError):
            pass
    return json_text(text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)
