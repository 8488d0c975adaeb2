"""Random cases for tests/fuzz: how many, which, and the damage and odd values that they share.

`make fuzz` damages 10 000 files of every kind, `make test` some of them; each failure names the case that repeats it.
"""

from __future__ import annotations

import json
import os
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace.model import COLLECTED

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_WHOLE = "KINETOSCOPE_FUZZ_CASES" in os.environ
CASES = int(os.environ.get("KINETOSCOPE_FUZZ_CASES", "300"))
FIRST = int(os.environ.get("KINETOSCOPE_FUZZ_FIRST", "0"))

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    "word",
    "1",
    "-1",
    "99999999999999999999",
    "\ud800",
    "a\0b\r\n\t\u202e<script>",
    "x" * 10_000,
    0,
    -1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    2**64,
    10**30,
    0.5,
    -0.0,
    1e-320,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    [],
    {},
    [None],
    [[]],
    ["\ud800"],
    {"": None},
    {"\ud800": "\ud800"},
    [1, "2", None, [3], {"4": 5}],
    [0, 10**9],
)
"""What a field may hold in place of what it should: another type, nothing, too large, no text."""


def case_numbers(group: int, groups: int, share: float = 1.0, *, files: int = 1) -> range:
    """The cases of one of several groups.

    Args:
        group: Which group.
        groups: How many there are.
        share: The part of `CASES` that `make test` runs, for cases that take longer than others.
        files: How many damaged files one case holds: `make fuzz` counts files.
    """
    return range(FIRST + group, FIRST + max(1, int(CASES / files if IS_WHOLE else CASES * share)), groups)


@contextmanager
def named(case: int) -> Iterator[None]:
    """Names the case that failed, so that it can be repeated alone."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"case {case}: KINETOSCOPE_FUZZ_FIRST={case} KINETOSCOPE_FUZZ_CASES=1") from error


def damaged(data: bytes, numbers: random.Random) -> bytes:
    """The bytes with one to five damages: cut off, a piece lost, overwritten, inserted or repeated."""
    for _ in range(numbers.choice((1, 1, 1, 2, 5))):
        at = numbers.randrange(len(data) + 1)
        length = numbers.choice((1, 1, 2, 10, 200, 3000))
        kind = numbers.randrange(5)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + numbers.randbytes(min(length, 40)) + data[at + length :]
        elif kind == 3:
            data = data[:at] + bytes(numbers.choices(b'"{}[],:\\ \n0n', k=min(length, 10))) + data[at:]
        else:
            data = data[:at] + data[numbers.randrange(len(data) + 1) :][:length] + data[at:]
    return data


RAW_TEXTS = (
    *("1e999", "-1e999", "1e-99999999999999999999", "1E+2", "00012", "-0", "0x1f", "9" * 5000, "nan", "N/A", ""),
    *("[" * 60 + "]" * 60, "[" * 1000 + "]" * 1000, '{"a":' * 1000 + "1" + "}" * 1000, '"\\"', '"\\x"', "[1,]"),
)
"""JSON, or nearly, that `json.dumps` never writes."""

_RAW = "in place of a raw text"


def with_odd_value(value: Any, numbers: random.Random, others: tuple[Any, ...] = ()) -> Any:
    """A JSON value with one odd one somewhere in it: of ODD_VALUES or `others`."""
    odd = numbers.choice((*ODD_VALUES, *others, "\x1b]0;title\a\x1b[2J"))
    if isinstance(value, dict) and value and numbers.random() < 0.9:
        key = numbers.choice(sorted(value))
        how = numbers.random()
        if how < 0.1:
            return {other: item for other, item in value.items() if other != key}
        if how < 0.2:
            return {**value, numbers.choice(("new", "\ud800", "")): odd}
        return {**value, key: with_odd_value(value[key], numbers, others)}
    if isinstance(value, list) and value and numbers.random() < 0.9:
        at = numbers.randrange(len(value))
        return [*value[:at], with_odd_value(value[at], numbers, others), *value[at + 1 :]]
    return odd


def odd_json(value: Any, numbers: random.Random, others: tuple[Any, ...] = ()) -> bytes:
    """A JSON text with odd values, texts that are nearly JSON, or damage in it."""
    for _ in range(numbers.choice((0, 1, 1, 1, 2, 4))):
        value = with_odd_value(value, numbers, (*others, _RAW))
    raw = numbers.choice(RAW_TEXTS)
    data = json.dumps(value, ensure_ascii=numbers.random() < 0.5).replace(f'"{_RAW}"', raw)
    data = data.encode("utf-8", "surrogatepass")
    return damaged(data, numbers) if numbers.random() < 0.3 else data


def outcome(data: bytes, size: int, path: str) -> Any:
    """What the reader makes of the bytes in blocks of a size: the trace's parts, or the message of its refusal."""
    try:
        trace = read_blocks((data[i : i + size] for i in range(0, len(data), size)), path=path)
    except TraceError as error:
        return str(error)
    as_texts = pl.col(pl.Enum).cast(pl.String)  # lost events leave their texts among the categories
    return trace.meta, trace.diagnostics, [getattr(trace, name).with_columns(as_texts) for name in COLLECTED]


def assert_same_outcome(data: bytes, path: str, whole: Any, size: int) -> None:
    """Holds that blocks of a size give the outcome that the whole file gave."""
    parts = outcome(data, size, path)
    if isinstance(whole, str) or isinstance(parts, str):
        assert whole == parts
        return
    assert whole[:2] == parts[:2]
    assert all(a.equals(b) for a, b in zip(whole[2], parts[2], strict=True))
