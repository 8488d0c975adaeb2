"""Call stacks: from where in the program an operator was called.

The frames are those that torch wrote with the operator, or with the one around it, or else the Python calls around it
on its thread. Backward work, which the program calls as a whole, has the frames of its forward operator, unless it
calls Python itself.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from ..tables import BOOL, STACK, Column, Table
from ..trace import NONE, Trace
from ..trace.backward import forward_ops
from ..trace.call_tree import MergedTree, Rows, merged
from ..trace.lookup import take
from ..trace.nesting import innermost, nearest
from ..trace.op_calls import OpCosts, OpName, operator_table
from ..trace.python_frames import SEPARATOR, frames_of_text, functions, stack_texts
from ..views import View

MOST_STACKS = 1000
OTHERS = "[other stacks]"


class CallStacks(Table):
    """One row is one operator, called from one place in the program.

    `[other stacks]` are those with the least time, if there are more than a thousand.
    """

    key, weight = ("name", "stack", "is_forward_stack"), "device_self_ns"

    name = OpName.name
    stack = Column(STACK, "Frames from the innermost to the outermost, one a line; missing where none were recorded.")
    is_forward_stack = Column(BOOL, "Whether the frames are those of its forward operator.")
    calls = OpCosts.calls
    device_self_ns = OpCosts.device_self_ns
    device_total_ns = OpCosts.device_total_ns
    host_self_ns = OpCosts.host_self_ns
    host_total_ns = OpCosts.host_total_ns
    host_self_bytes = OpCosts.host_self_bytes
    device_self_bytes = OpCosts.device_self_bytes


AMOUNTS = [column.name for column in CallStacks.columns[3:]]


def call_stacks(trace: Trace, *, name: str | None = None, input_shapes: str | None = None) -> pl.DataFrame:
    """Stacks by device self time, then host self time.

    Args:
        trace: The trace.
        name: One operator; all of them if not given.
        input_shapes: Only its calls with these shapes; all calls if not given.
    """
    stacks = _Stacks.of(trace)
    marked = dataclasses.replace(trace, host_events=trace.host_events.with_columns(number=stacks.number))
    rows = operator_table(marked, ["name", "input_shapes", "number"])
    for column, wanted in (("name", name), ("input_shapes", input_shapes)):
        rows = rows if wanted is None else rows.filter(pl.col(column) == wanted)
    rows = _summed(rows, ["name", "number"])
    known, others = rows.head(MOST_STACKS), rows.tail(-MOST_STACKS)
    number = known["number"].cast(pl.Int32).fill_null(NONE).to_numpy()
    frames = pl.DataFrame(
        {"stack": stacks.texts(number), "is_forward_stack": [bool(n % 2) if n >= 0 else None for n in number.tolist()]},
        schema={"stack": pl.String, "is_forward_stack": pl.Boolean},
    )
    known = _summed(pl.concat([known.drop("number"), frames], how="horizontal"), ["name", "stack", "is_forward_stack"])
    rest = others.select(pl.lit(OTHERS if name is None else name).alias("name"), *AMOUNTS)
    rest = _summed(rest, ["name"]).with_columns(stack=pl.lit(OTHERS))
    return CallStacks.of(pl.concat([known, rest], how="diagonal").select(CallStacks.schema().names()))


def _summed(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The amounts of each group; what is known of none of its rows stays missing."""
    sums = [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()) for name in AMOUNTS]
    order = ["device_self_ns", "host_self_ns", *by]
    return rows.group_by(by).agg(sums).sort(order, descending=[True, True, *(False for _ in by)], nulls_last=True)


@dataclasses.dataclass(frozen=True)
class _Stacks:
    """The stack of each host event as a number; `texts` has the frames.

    Attributes:
        number: Twice the place of the stack, plus one if it is that of the forward operator; NONE if there is none.
        written: The stacks that the file has as texts: the first places.
        tree: The paths of Python calls: the places behind them.
        functions: What the nodes of the tree are called.
    """

    number: Rows
    written: list[str]
    tree: MergedTree
    functions: list[str]

    @classmethod
    def of(cls, trace: Trace) -> _Stacks:
        """Find the stack of each host event."""
        host, python = trace.host_events, trace.python_calls
        codes, texts = functions(python["name"])
        tree = merged(python["parent"].to_numpy(), codes)
        place, written = _written(host["call_stack"])
        begin, end = python["start_ns"].to_numpy(), (python["start_ns"] + python["dur_ns"]).to_numpy()
        at = host["thread"].to_numpy(), host["start_ns"].to_numpy()
        node = take(tree.node, innermost(python["thread"].to_numpy(), begin, end, *at))
        parent = host["parent"].to_numpy()
        place = take(place, nearest(place >= 0, parent))
        own = np.where(place >= 0, place, np.where(node >= 0, node + np.int32(len(written)), NONE)).astype(np.int32)
        forward = forward_ops(trace)
        link = nearest(forward >= 0, parent)
        of_forward = take(own, take(forward, link))
        is_forward = (of_forward >= 0) & (own == take(own, link))  # else the backward pass called Python inside
        number = np.where(is_forward, 2 * of_forward + 1, np.where(own >= 0, 2 * own, NONE))
        return cls(number.astype(np.int32), written, tree, texts)

    def texts(self, number: Rows) -> list[str | None]:
        """The frames of each number, the innermost first; None where there is none."""
        places = number // 2
        first = len(self.written)
        from_python = iter(stack_texts(self.tree, self.functions, places[places >= first] - first))
        return [None if n < 0 else self.written[n] if n < first else next(from_python) for n in places.tolist()]


def _written(stacks: pl.Series) -> tuple[Rows, list[str]]:
    """(The place of each row's `Call stack`, or NONE; the distinct ones as frames); a text without any is no stack."""
    codes, texts = functions(stacks)
    frames = [SEPARATOR.join(frames_of_text(text)) for text in texts]
    is_known = np.array([bool(text) for text in frames] + [False])
    return np.where(is_known[codes], codes, NONE).astype(np.int32), frames


VIEW = View(
    call_stacks,
    table=CallStacks,
    title="Call stacks",
    group="Host",
    needs="stacks",
    hint="No call stacks were recorded. Pass with_stack=True to the profiler.",
    detail_of="operators",
)
