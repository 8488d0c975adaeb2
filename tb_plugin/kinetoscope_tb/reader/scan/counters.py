"""Counters of the file: events of phase C, with a number per series in their arguments.

The scanner stores only arguments with known names, but the series of a counter can have any name. So the text of these
events is collected during the scan, one line each, and parsed as columns at the end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...trace.model import COUNTERS, Diagnostic
from ..input.encodings import whole_characters
from . import scanner as s
from .columns import EVENT_CODES

_PHASE = EVENT_CODES.index("phase")
_COUNTER = b'"C"'
_LINE, _BLANK = 0x0A, 0x20
_STRING = r'"(?:[^"\\]|\\.)*"'
_ARGS = rf'"args"\s*:\s*\{{((?:[^{{}}"]|{_STRING})*)\}}'
_SERIES = rf"({_STRING})\s*:\s*(?:-?[0-9][0-9.eE+-]*|null|NaN|-?Infinity|{_STRING})"
_VALUE = r'"\s*:\s*"?(-?[0-9][0-9.eE+-]*)"?$'
_TEXTS = ("name", "series", "process")


@dataclass(frozen=True)
class CounterLines:
    """The text of some counters.

    Args:
        offset: Of each, in the file.
        text: A line per event, each with a line break.
    """

    offset: NDArray[np.int64]
    text: bytes


def counter_rows(out: s.Out, tokens: list[bytes]) -> NDArray[np.int64]:
    """Which events of a scan are counters."""
    if _COUNTER not in tokens:
        return np.empty(0, np.int64)
    return np.flatnonzero(out.codes[_PHASE, : int(out.state[s.EVENTS])] == tokens.index(_COUNTER))


def lines_at(text: memoryview, starts: NDArray[np.int64], lengths: NDArray[np.int32]) -> bytes:
    """Pieces of a text, one line each. Line breaks in them become spaces, which are equivalent in JSON."""
    if not starts.size:
        return b""
    ends = np.cumsum(lengths.astype(np.int64) + 1)
    firsts = ends - lengths - 1
    at = np.arange(ends[-1]) + np.repeat(starts - firsts, lengths.astype(np.int64) + 1)
    at[ends - 1] = 0
    data = np.frombuffer(text, np.uint8)[at]
    data[data == _LINE] = _BLANK
    data[ends - 1] = _LINE
    return bytes(data)


def counters(
    texts: list[CounterLines], others: pl.DataFrame, threads: pl.DataFrame
) -> tuple[pl.DataFrame, list[Diagnostic]]:
    """Return the frame of counters, and diagnostics about those left out.

    Args:
        texts: Their texts.
        others: The frame that has a row for each of them.
        threads: The trace's threads.
    """
    if not texts:
        return _no_counters(), []
    offsets = np.concatenate([lines.offset for lines in texts])
    text = b"".join(lines.text for lines in texts).decode("utf-8", "replace")
    lines = pl.Series("line", [text]).str.split("\n").explode().head(offsets.size)
    events = others.join(pl.DataFrame({"offset": offsets, "line": lines}), on="offset", maintain_order="left")
    pairs = pl.col("line").str.extract(_ARGS, 1).str.extract_all(_SERIES)
    series = events.select("name", "thread", "start_ns", "offset", pairs.alias("pair"))
    is_empty = pl.col("pair").list.len().fill_null(0) == 0
    rows = series.filter(~is_empty).explode("pair")
    pid = threads["pid"].gather(rows["thread"])
    value = pl.col("pair").str.extract(_VALUE, 1).cast(pl.Float64, strict=False)
    values = rows.select(
        pl.col("name").cast(pl.String),
        _texts(rows["pair"].str.extract(_SERIES, 1)).alias("series"),
        pid.alias("process"),
        "start_ns",
        pl.when(value.is_finite()).then(value).otherwise(float("nan")).alias("value"),
        "offset",
    )
    return _frame(values), _left_out(series.filter(is_empty))


def with_samples(frame: pl.DataFrame, samples: pl.DataFrame, earliest: int) -> pl.DataFrame:
    """A frame of counters, and samples whose times are those of the file; those before the first event are left out."""
    samples_since_start = samples.with_columns(start_ns=pl.col("time_ns") - earliest).filter(pl.col("start_ns") >= 0)
    columns = samples_since_start.select(frame.columns)
    if frame.is_empty():
        return _frame(columns)
    texts = pl.col(_TEXTS).cast(pl.String)
    return _frame(pl.concat([frame.with_columns(texts), columns.with_columns(texts)]))


def _frame(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order and the types of the frame."""
    in_order = rows.sort("process", "name", "series", "start_ns", maintain_order=True)
    return in_order.select(
        *(
            pl.col(name).cast(pl.Enum(in_order[name].unique(maintain_order=True).drop_nulls().cast(pl.String)))
            for name in _TEXTS
        ),
        *(pl.col(name).cast(dtype) for name, dtype in COUNTERS.items() if name not in _TEXTS),
    )


@cache
def _no_counters() -> pl.DataFrame:
    return _frame(pl.DataFrame(schema={**COUNTERS, **dict.fromkeys(_TEXTS, pl.String)}))


def _texts(tokens: pl.Series) -> pl.Series:
    """The texts of some JSON strings."""
    distinct = tokens.unique().to_list()
    return tokens.replace_strict(distinct, [_text(token) for token in distinct], return_dtype=pl.String)


def _text(token: str) -> str:
    try:
        return whole_characters(str(json.loads(token, strict=False)))
    except ValueError:
        return token[1:-1]


def _left_out(events: pl.DataFrame) -> list[Diagnostic]:
    if events.is_empty():
        return []
    words = "Counters without a number are left out."
    return [Diagnostic("counter_without_value", events.height, words, int(events["offset"].min()), "note")]  # type: ignore[arg-type]
