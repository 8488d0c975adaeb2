"""Columns of raw codes and numbers → the frames of `model.COLLECTED`, all at once per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..trace.model import DEVICE_KINDS, HOST_KINDS, LAUNCH_KINDS, NONE
from .columns import Columns
from .kinds import Kind
from .tokens import Texts, float_of, leading_digits, used

Ints = NDArray[Any]

_ENUMS = {"host_events": HOST_KINDS, "launches": LAUNCH_KINDS, "device_events": DEVICE_KINDS}
_KINDS = {
    "host_events": (Kind.OPERATOR, Kind.ANNOTATION),
    "launches": (Kind.RUNTIME, Kind.DRIVER),
    "device_events": (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET),
    "memory": (Kind.MEMORY,),
    "python_calls": (Kind.PYTHON,),
    "flows": (Kind.FLOW,),
    "others": (Kind.OTHER, Kind.UNKNOWN),
}


@dataclass(frozen=True)
class Events:
    """What the frames are cut from: one entry per event of the file.

    Attributes:
        columns: As scanned.
        texts: Of the codes.
        codes: The columns' codes.
        kind: Of each event.
        start_ns: Since the origin; without meaning where the kind is META or UNTIMED.
        dur_ns: NONE if the event has none.
        thread: Row in the threads frame, or NONE.
    """

    columns: Columns
    texts: Texts
    codes: Mapping[str, Ints]
    kind: NDArray[np.int8]
    start_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]
    thread: NDArray[np.int32]


class Frame:
    """The events of some kinds, from which columns are taken one by one."""

    def __init__(self, events: Events, kinds: tuple[Kind, ...]) -> None:
        self.events = events
        first, last = min(kinds), max(kinds)
        self.rows = np.flatnonzero((events.kind >= first) & (events.kind <= last))
        self._place = np.full(events.kind.size, -1, np.int32)
        self._place[self.rows] = np.arange(self.rows.size, dtype=np.int32)
        self.kind = events.kind[self.rows] - first

    def times(self) -> dict[str, Ints]:
        """Start and duration; an event without one lasts no time."""
        return {"start_ns": self.events.start_ns[self.rows], "dur_ns": np.maximum(self.events.dur_ns[self.rows], 0)}

    def place(self) -> dict[str, Ints]:
        """Where the events lie in the text."""
        columns = self.events.columns
        return {"offset": columns.offsets.array()[self.rows], "length": columns.lengths.array()[self.rows]}

    def thread(self) -> Ints:
        """Rows of the threads frame."""
        return self.events.thread[self.rows]

    def text(self, column: str) -> pl.Series:
        """A text that every event has: name, category, phase."""
        return enum(self.events.codes[column][self.rows], self.events.texts)

    def integer(self, arg: str, dtype: type[np.signedinteger[Any]] = np.int64) -> Ints:
        """An integer argument; NONE where it is missing or doesn't fit."""
        values = self._dense(arg, np.int64, first_wins=arg == "correlation")
        if dtype is not np.int64:
            limits = np.iinfo(dtype)
            values[(values < limits.min) | (values > limits.max)] = NONE
        return values.astype(dtype, copy=False)

    def text_arg(self, arg: str) -> pl.Series:
        """A text argument."""
        return enum(self._dense(arg, np.int32), self.events.texts)

    def float_arg(self, arg: str) -> NDArray[np.float64]:
        """A float argument; NaN where it is missing or isn't a number."""
        codes = self._dense(arg, np.int32)
        value_of = np.full(len(self.events.texts) + 1, np.nan)
        for code in used(codes, len(self.events.texts)):
            if code >= 0:
                value_of[code] = float_of(self.events.texts.tokens[code])
        return value_of[codes]

    def is_false(self, arg: str) -> NDArray[np.bool_]:
        """Where the argument says false."""
        codes = self._dense(arg, np.int32)
        texts = self.events.texts
        false = [code for code in used(codes, len(texts)) if (texts[code] or "").lower() == "false"]
        return np.isin(codes, false)

    def _dense(self, arg: str, dtype: type[np.signedinteger[Any]], *, first_wins: bool = False) -> Ints:
        """One value per row. Of several for one event the last holds, as in JSON, if not `first_wins`."""
        rows, values = (growing.array() for growing in self.events.columns.args[arg])
        places = self._place[rows]
        is_ours = places >= 0
        places, values = places[is_ours], values[is_ours]
        if first_wins:
            places, values = places[::-1], values[::-1]
        dense = np.full(self.rows.size, NONE, dtype)
        dense[places] = values
        return dense


def enum(codes: Ints, texts: Texts) -> pl.Series:
    """A Polars enum of the texts that occur; null for code -1. Different tokens may stand for the same text."""
    place_of: dict[str, int] = {}
    physical = np.zeros(len(texts) + 1, np.uint32)
    has_missing = False
    for code in used(codes, len(texts)):
        text = texts[code]
        if text is None:
            has_missing = True
        else:
            physical[code] = place_of.setdefault(text, len(place_of))
    dtype = pl.Enum(list(place_of))
    if not place_of:
        return pl.Series([None] * codes.size, dtype=dtype)
    series = pl.Series(physical[codes])
    if has_missing:
        series = pl.select(pl.when(pl.Series(codes >= 0)).then(series)).to_series()
    return series.cat.to(dtype)


def frames(events: Events) -> dict[str, pl.DataFrame]:
    """Every frame of model.COLLECTED with its recorded columns, rows in the order of the file."""
    makers = (_host_events, _launches, _device_events, _memory, _python_calls, _flows, _others)
    result = {}
    for (name, kinds), columns_of in zip(_KINDS.items(), makers, strict=True):
        frame = Frame(events, kinds)
        columns = columns_of(frame)
        if name in _ENUMS:
            columns["kind"] = pl.Series(frame.kind.astype(np.uint8)).cat.to(_ENUMS[name])
        result[name] = pl.DataFrame({**columns, **frame.place()})
    return result


def _host_events(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "kind": None,
        "thread": frame.thread(),
        **frame.times(),
        "external_id": frame.integer("external_id"),
        "sequence": frame.integer("sequence"),
        "fwd_thread": frame.integer("fwd_thread"),
        "input_shapes": frame.text_arg("input_shapes"),
        "input_types": frame.text_arg("input_types"),
        "call_stack": frame.text_arg("call_stack"),
        "is_finished": ~frame.is_false("finished"),
    }


def _launches(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "kind": None,
        "thread": frame.thread(),
        **frame.times(),
        "correlation": _correlation(frame),
        "external_id": frame.integer("external_id"),
    }


def _device_events(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "kind": None,
        "device": _device(frame),
        "stream": _stream(frame),
        **frame.times(),
        "correlation": _correlation(frame),
        "external_id": frame.integer("external_id"),
        "bytes": frame.integer("bytes"),
        "grid": frame.text_arg("grid"),
        "block": frame.text_arg("block"),
        "registers_per_thread": frame.integer("registers_per_thread", np.int32),
        "shared_memory_bytes": frame.integer("shared_memory_bytes"),
        "blocks_per_sm": frame.float_arg("blocks_per_sm"),
        "occupancy_frac": frame.float_arg("occupancy_percent") / 100,
        "occupancy_limiter": frame.text_arg("occupancy_limiter"),
        "collective": frame.text_arg("collective"),
    }


def _memory(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "thread": frame.thread(),
        "start_ns": frame.times()["start_ns"],
        "device_type": frame.integer("memory_device_type", np.int32),
        "device": frame.integer("memory_device", np.int32),
        "address": frame.integer("memory_address"),
        "bytes": frame.integer("memory_bytes"),
        "total_allocated": frame.integer("total_allocated"),
        "total_reserved": frame.integer("total_reserved"),
    }


def _python_calls(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "thread": frame.thread(),
        **frame.times(),
        "python_id": frame.integer("python_id"),
        "python_parent_id": frame.integer("python_parent_id"),
        "module_id": frame.integer("module_id"),
    }


def _flows(frame: Frame) -> dict[str, Any]:
    return {
        "category": frame.text("category"),
        "phase": frame.text("phase"),
        "id": frame.integer("id"),
        "thread": frame.thread(),
        "start_ns": frame.times()["start_ns"],
    }


def _others(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "category": frame.text("category"),
        "phase": frame.text("phase"),
        "thread": frame.thread(),
        "start_ns": frame.times()["start_ns"],
        "dur_ns": frame.events.dur_ns[frame.rows],
    }


def _correlation(frame: Frame) -> Ints:
    """Zero links nothing: torch before 2.0 writes it for "none" (kineto b96fe094)."""
    values = frame.integer("correlation")
    values[values == 0] = NONE
    return values


def _device(frame: Frame) -> Ints:
    """What the arguments say, or else the row's pid, which is the device's number on rows of devices."""
    device = frame.integer("device", np.int32)
    return np.where(device >= 0, device, _by_text(frame, "pid", _device_of_pid, missing=0)).astype(np.int32)


def _stream(frame: Frame) -> Ints:
    """What the arguments say, or else the number in the row's tid: 7 or "stream 7" (torch up to 1.9)."""
    stream = frame.integer("stream")
    return np.where(stream >= 0, stream, _by_text(frame, "tid", leading_digits, missing=NONE))


def _device_of_pid(pid: str) -> int | None:
    return int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 10 else None


def _by_text(frame: Frame, column: str, number_of: Any, missing: int) -> NDArray[np.int64]:
    """A number worked out from a text of each event, once per text."""
    codes, texts = frame.events.codes[column][frame.rows], frame.events.texts
    numbers = np.full(len(texts) + 1, missing, np.int64)
    for code in used(codes, len(texts)):
        number = number_of(texts[code] or "")
        if number is not None:
            numbers[code] = number
    return numbers[codes]
