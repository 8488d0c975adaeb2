"""Slices as the text of Chrome's JSON events, many at once.

An event is assembled from texts that many slices share (category, name, thread) and from its times, which are written
in microseconds with three decimals from integer nanoseconds, so every viewer reads exact times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import categories_of, category_codes, map_categories
from ...arrays.native import Function
from ...timeline.core.model import FRAMES, Labels
from ...trace import Trace

_write = Function("write_events")

_OF_KIND = {
    "operator": "cpu_op",
    "annotation": "user_annotation",
    "runtime": "cuda_runtime",
    "driver": "cuda_driver",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
"""The categories that kineto writes (output_json.cpp), which other tools look for; ROCm's calls have CUDA's too."""

_MOST_OF_NUMBERS = 2 * (19 + 4) + len(',"dur":')  # bytes of an event's times


@dataclass(frozen=True)
class Texts:
    """Concatenated texts: text i is from `at[i]` up to `at[i + 1]`."""

    data: NDArray[np.uint8]
    at: NDArray[np.int64]

    @staticmethod
    def of(texts: Iterable[str]) -> Texts:
        """These texts, in UTF-8."""
        pieces = [text.encode("utf-8", "replace") for text in texts]
        return Texts(np.frombuffer(b"".join(pieces), np.uint8), np.cumsum([0, *map(len, pieces)], dtype=np.int64))

    @staticmethod
    def of_series(texts: pl.Series) -> Texts:
        """Those of a column without nulls."""
        data = np.frombuffer(texts.str.join("").item().encode(), np.uint8)
        lengths = texts.str.len_bytes().to_numpy()
        return Texts(data, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]))


@dataclass(frozen=True)
class Heads:
    """The starts of a trace's events, up to their name.

    Args:
        code: For each row of all of FRAMES, one frame after the other, its text.
        texts: Phase and category.
        is_instant: For each text, whether the phase is that of an instant, without a duration.
    """

    code: NDArray[np.uint32]
    texts: Texts
    is_instant: NDArray[np.bool_]


def json_text(value: object) -> str:
    """A value as JSON without spaces; numbers aren't rounded.

    Raises:
        ValueError: A number isn't finite, and JSON has no such numbers.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def names(labels: Labels) -> Texts:
    """The members that name a slice, by its label."""
    return Texts.of(f',"name":{json_text(text)}' for text in labels.texts)


def heads(trace: Trace) -> Heads:
    """The start of the event of each row of FRAMES, from which a reader recognizes the same kind of event."""
    codes, head_kinds = [], list[tuple[str | None, bool]]()
    for name in FRAMES:
        frame: pl.DataFrame = getattr(trace, name)
        code, kinds = _kinds(name, frame)
        codes.append(code + len(head_kinds))
        head_kinds += kinds
    texts = Texts.of(_head(*kind) for kind in head_kinds)
    return Heads(np.concatenate(codes).astype(np.uint32), texts, np.array([instant for _, instant in head_kinds]))


def _kinds(name: str, frame: pl.DataFrame) -> tuple[NDArray[np.int64], list[tuple[str | None, bool]]]:
    """(a code of each row of a frame, category and whether an instant of each code)."""
    if "kind" in frame.columns:
        kinds: list[str] = categories_of(frame["kind"]).to_list()
        return frame["kind"].to_physical().to_numpy().astype(np.int64), [(_OF_KIND[kind], False) for kind in kinds]
    if name == "python_calls":
        return np.zeros(frame.height, np.int64), [("python_function", False)]
    category = frame["category"]
    categories = [None, *categories_of(category).to_list()]
    code = category_codes(category).astype(np.int64) + 1
    if name == "others":
        lasts = map_categories(frame["phase"], lambda phase: phase in ("X", "B")).astype(bool)
        code = code + len(categories) * (~lasts & (frame["dur_ns"].to_numpy() <= 0))
    return code, [(category, instant) for instant in (False, True) for category in categories]


def _head(category: str | None, is_instant: bool) -> str:  # noqa: FBT001  # as in the pairs above
    phase = '"ph":"i","s":"t"' if is_instant else '"ph":"X"'
    return f",\n{{{phase}" + ("" if category is None else f',"cat":{json_text(category)}')


def events(
    texts: tuple[Texts, Texts, Texts, Texts],
    codes: tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]],
    is_instant: NDArray[np.bool_],
    times: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> bytes:
    """The events of some slices, each after a comma and a line's end.

    Args:
        texts: Heads, names, threads and tails; a thread's ends with `"ts":`, a tail with the brace that closes it.
        codes: For each slice the indexes of its texts.
        is_instant: Of each head.
        times: Start and duration of each, in ns, none below 0.
    """
    flat = tuple(array for text in texts for array in (text.data, text.at))
    most = sum(int((text.at[1:] - text.at[:-1])[code].sum()) for text, code in zip(texts, codes, strict=True))
    out = np.empty(most + _MOST_OF_NUMBERS * times[0].size, np.uint8)
    whole = tuple(code.astype(np.int64, copy=False) for code in codes)
    size = _write(flat, whole, is_instant, times[0], times[1], np.frombuffer(b',"dur":', np.uint8), out)
    return out[:size].tobytes()
