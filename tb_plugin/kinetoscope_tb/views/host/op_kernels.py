"""Kernels of an operator: which device work its calls launch, in which order, and how often each sequence occurs.

Two calls of one operator can run different kernels: for other shapes, or because a library chose another algorithm.
Work launched by nested operators belongs to the call too, as in device total; of nested calls with the same name only
the innermost counts, so that nothing counts twice for a name.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, categories_of, category_codes, gather, number_alike, scatter_add
from ...arrays.native import SEED, Array, Function
from ...arrays.nesting import nearest
from ...measures.calls.op_calls import OpName
from ...measures.recording.contents import has_device_events
from ...table import COUNT, DURATION, TEXT, Column, Table
from ...trace import Trace
from ...view import Detail, View

_number_sequences = Function("number_sequences")

MOST_SEQUENCES = 1000
MOST_NAMES = 50  # that the text of a sequence lists
MOST_NESTED = 256  # levels of operators around a launch
OTHERS = "[other sequences]"


class OpKernels(Table):
    """Which kernels, copies and fills the calls of an operator launch.

    `[other sequences]` are those with the least time, if there are more than a thousand.
    """

    key, weight = ("name", "sequence"), "device_total_ns"

    name = OpName.name
    sequence = Column(
        TEXT,
        "Kernels, copies and fills in the order of their launches; × is the number of repetitions in a row. Missing "
        "for calls that launched nothing.",
    )
    calls = Column(COUNT, "Calls of the operator that launched exactly this.")
    device_events = Column(COUNT, "GPU events that these calls launched, including nested operators.")
    device_total_ns = Column(DURATION, "Sum of the durations of these GPU events.")
    mean_ns = Column(DURATION, "Device time of one such call: total / calls, rounded to the nanosecond.")


def op_kernels(trace: Trace, *, name: str | None = None, input_shapes: str | None = None) -> pl.DataFrame:
    """Sequences by device time, the longest first.

    Args:
        trace: The trace.
        name: One operator; all of them if not given.
        input_shapes: Only its calls with these shapes; all calls if not given.
    """
    host = trace.all_host_events
    is_named = (host["kind"] == "operator") & ~host["is_repeat"] & _equals(host["name"], name)
    is_call = is_named.to_numpy()
    is_selected = (is_named & _equals(host["input_shapes"], input_shapes)).to_numpy()
    rows = _sequences(trace, is_call, is_selected)
    largest = rows.head(MOST_SEQUENCES).with_columns(sequence=_texts(trace, rows.head(MOST_SEQUENCES)["codes"]))
    rest = rows.tail(-MOST_SEQUENCES).with_columns(
        name=pl.lit(OTHERS) if name is None else pl.col("name"), sequence=pl.lit(OTHERS)
    )
    sums = _sums(pl.concat([largest.drop("codes"), rest.drop("codes"), _idle_calls(trace, is_selected, rows)]))
    mean = pl.when(pl.col("sequence").is_not_null()).then((pl.col("device_total_ns") / pl.col("calls")).round())
    return OpKernels.of(sums.with_columns(mean_ns=mean.cast(pl.Int64)).select(OpKernels.schema().names()))


def _equals(texts: pl.Series, requested_text: str | None) -> pl.Series:
    return (pl.Series([True]) if requested_text is None else texts.cast(pl.String) == requested_text).fill_null(
        value=False
    )


def _sequences(trace: Trace, is_call: NDArray[np.bool_], is_selected: NDArray[np.bool_]) -> pl.DataFrame:
    """Name, codes (of the device rows' names, in order, as text), calls, rows and time of each sequence."""
    call, row = _device_rows(trace, is_call)
    call, row = call[is_selected[call]], row[is_selected[call]]
    device, names = trace.device_events, trace.all_host_events["name"]
    pairs = pl.DataFrame({"call": call, "launch": device["launch"].gather(row), "row": row}).sort(
        "call", "launch", "row"
    )
    call, row = pairs["call"].to_numpy(), pairs["row"].to_numpy()
    codes = category_codes(device["name"])
    sequence, parent, code = _sequence_trie(call, codes[row])
    first = np.flatnonzero(np.diff(call, prepend=NONE))
    last = np.append(first[1:], call.size)[: first.size] - 1
    name = category_codes(names.gather(call[first])).astype(np.int64)
    alike, number = number_alike((name + 1) * parent.size + sequence[last])
    duration = device["dur_ns"].to_numpy()[row]
    sums = pl.DataFrame(
        {
            "name": names.gather(call[first][alike]).cast(pl.String),
            "codes": [_codes(node, parent, code) for node in sequence[last][alike].tolist()],
            "calls": np.bincount(number, minlength=alike.size),
            "device_events": scatter_add(number, last - first + 1, alike.size),
            "device_total_ns": scatter_add(np.repeat(number, last - first + 1), duration, alike.size),
        },
        schema_overrides={"codes": pl.String, "calls": pl.Int64},
    )
    return sums.sort("device_total_ns", "name", "codes", descending=[True, False, False])


def _sequence_trie(call: Array, code: Array) -> tuple[Array, Array, Array]:
    """The sequences of codes of each call as nodes of a trie: up to each row; each node's parent and code."""
    sequence, room = np.empty(call.size, np.int32), 1 << 10
    while True:
        parent, last = np.empty(room, np.int32), np.empty(room, np.int32)
        count = _number_sequences(call, code, SEED, np.full(2 * room, NONE, np.int32), parent, last, sequence)
        if count >= 0:
            return sequence, parent[:count], last[:count]
        room *= 8


def _codes(node: int, parent: Array, last: Array) -> str:
    codes: list[str] = []
    while node > 0:
        codes += [str(last[node])] if last[node] != NONE else []
        node = parent[node]
    return ",".join(reversed(codes))


def _device_rows(trace: Trace, is_call: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(call, device row) for each device row and each operator around its launch; per name only the innermost call.

    Only the MOST_NESTED innermost levels of operators count.
    """
    parent = trace.all_host_events["parent"].to_numpy()
    name = category_codes(trace.all_host_events["name"])
    innermost = nearest(is_call, parent)
    at = gather(innermost, trace.device_events["op"].to_numpy())
    row = np.arange(at.size, dtype=np.int32)
    calls, rows = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    while (row := row[at != NONE]).size and len(calls) <= MOST_NESTED:
        at = at[at != NONE]
        calls.append(at)
        rows.append(row)
        at = gather(innermost, gather(parent, at))
    call, device_row = np.concatenate(calls), np.concatenate(rows)
    key = device_row.astype(np.int64) * (int(name.max(initial=0)) + 2) + name[call] + 1
    _, first = np.unique(key, return_index=True)  # the innermost came first
    return call[first], device_row[first]


def _texts(trace: Trace, codes: pl.Series) -> pl.Series:
    """The sequences as text."""
    names = categories_of(trace.device_events["name"]).to_list()
    return pl.Series([_text([names[int(code)] for code in text.split(",")]) for text in codes], dtype=pl.String)


def _text(names: list[str]) -> str:
    runs: list[tuple[str, int]] = []
    for name in names:
        times = runs.pop()[1] if runs and runs[-1][0] == name else 0
        runs.append((name, times + 1))
    parts = [name if times == 1 else f"{name} ×{times}" for name, times in runs[:MOST_NAMES]]
    return " → ".join([*parts, *([f"and {len(runs) - MOST_NAMES} more"] if len(runs) > MOST_NAMES else [])])


def _idle_calls(trace: Trace, is_call: NDArray[np.bool_], rows: pl.DataFrame) -> pl.DataFrame:
    """Calls of the operators in `rows` that launched nothing."""
    call_counts = trace.all_host_events.select("name").filter(is_call).group_by("name").agg(all_calls=pl.len())
    call_counts = call_counts.with_columns(pl.col("name").cast(pl.String))
    busy = rows.group_by("name").agg(pl.col("calls").sum())
    left = call_counts.join(busy, on="name").with_columns(calls=pl.col("all_calls").cast(pl.Int64) - pl.col("calls"))
    no_work = {"device_events": pl.lit(0, pl.Int64), "device_total_ns": pl.lit(0, pl.Int64)}
    idle = left.filter(pl.col("calls") > 0).with_columns(**no_work, sequence=pl.lit(None, pl.String))
    return idle.select("name", "calls", "device_events", "device_total_ns", "sequence")


def _sums(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, merged if their texts are equal; the longest first."""
    amounts = pl.col("calls", "device_events", "device_total_ns").sum()
    order = ["device_total_ns", "name", "sequence"]
    return rows.group_by("name", "sequence").agg(amounts).sort(order, descending=[True, False, False], nulls_last=True)


VIEW = View(
    op_kernels,
    table=OpKernels,
    title="Kernels it launches",
    entry="Operators",
    place=Detail("operators", also=("operators_by_shape",)),
    needs=has_device_events,
    hint="No GPU events were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    reads_captures=True,
)
