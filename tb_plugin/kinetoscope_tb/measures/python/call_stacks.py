"""Call stacks of host events: the place in the program that called each.

The frames are those that torch wrote with the operator, or with the one around it, or else the Python calls around it
on its thread. Backward operators have the frames of their forward operator, unless they call Python themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather, map_categories, texts
from ...arrays.nesting import add_up, innermost, nearest
from ...names.regex import regex
from ...trace.model import Trace
from ..calls.backward import forward_ops
from ..calls.call_tree import MergedTree, Rows, merge_calls
from .frames import IN_TEXT, SEPARATOR, frames_of_text, functions, stack_texts

_ANY_FRAME = regex(r"[^;\s]")


@dataclass(frozen=True)
class Stacks:
    """The stack of each host event as a number; `texts` has the frames.

    Attributes:
        number: Of each of all_host_events twice the index of the stack, plus one if it is the forward operator's; NONE
            if there is none.
        file_stacks: The stacks that the file has as text: the first indices.
        tree: The paths of Python calls: the indices after them.
        functions: Names of the nodes of the tree.
    """

    number: Rows
    file_stacks: list[str]
    tree: MergedTree
    functions: list[str]

    @classmethod
    def of(cls, trace: Trace) -> Stacks:
        """Find the stack of each host event."""
        host, python = trace.all_host_events, trace.python_calls
        codes, names = functions(python["name"])
        tree = merge_calls(python["parent"].to_numpy(), codes)
        stack, file_stacks = _file_stacks(host["call_stack"])
        node = gather(tree.node, _callers(trace))
        parent = host["parent"].to_numpy()
        stack = gather(stack, nearest(stack >= 0, parent))
        own = np.where(stack >= 0, stack, np.where(node >= 0, node + np.int32(len(file_stacks)), NONE)).astype(np.int32)
        forward = forward_ops(trace)
        link = nearest(forward >= 0, parent)
        of_forward = gather(own, gather(forward, link))
        is_forward = (of_forward >= 0) & (own == gather(own, link))  # else the backward pass called Python inside
        number = np.where(is_forward, 2 * of_forward + 1, np.where(own >= 0, 2 * own, NONE))
        return cls(number.astype(np.int32), file_stacks, tree, names)

    def texts(self, number: Rows) -> list[str | None]:
        """The frames of each number, the innermost first; None where there is none."""
        stacks = number // 2
        first = len(self.file_stacks)
        from_python = iter(stack_texts(self.tree, self.functions, stacks[stacks >= first] - first))
        return [None if n < 0 else self.file_stacks[n] if n < first else next(from_python) for n in stacks.tolist()]


def _callers(trace: Trace) -> Rows:
    """The innermost Python call around each of all_host_events, or NONE; of a replayed one around its launch."""
    replays, python = trace.replayed, trace.python_calls
    start = python["start_ns"].to_numpy()
    columns = (python["thread"].to_numpy(), start, start + python["dur_ns"].to_numpy())

    def at(frame: pl.DataFrame) -> Rows:
        rows: Rows = innermost(*columns, frame["thread"].to_numpy(), frame["start_ns"].to_numpy())
        return rows

    if replays is None:
        return at(trace.host_events)
    return np.append(at(trace.host_events), gather(at(trace.launches), replays.launch[~replays.is_module]))


def _file_stacks(stacks: pl.Series) -> tuple[Rows, list[str]]:
    """(index of each row's `Call stack`, or NONE; the distinct stacks as frames); empty texts have no stack."""
    codes, texts = functions(stacks)
    frames = [SEPARATOR.join(frames_of_text(text)) for text in texts]
    is_known = np.array([bool(text) for text in frames] + [False])
    return np.where(is_known[codes], codes, NONE).astype(np.int32), frames


def stacks_as_text(trace: Trace, rows: Rows) -> pl.Series:
    """The call stack of each of some host events, or of NONE, as torch writes it; null: none is known.

    Where neither an event nor one around it has any text, it is rebuilt from the Python calls around the event. As in
    torch's own text, these are never those of the forward operator.
    """
    host, python = trace.host_events, trace.python_calls
    stacks = texts(host["call_stack"], rows)
    if python.is_empty():
        return stacks
    has_text = map_categories(host["call_stack"], lambda text: bool(_ANY_FRAME.search(text))).astype(bool)
    around = gather(nearest(has_text, host["parent"].to_numpy()), rows)
    at = np.flatnonzero((rows >= 0) & (around < 0))
    call = _callers(trace)[rows[at]]
    return stacks.scatter(at[call >= 0], _python_stacks(python, call[call >= 0]))


def _python_stacks(python: pl.DataFrame, calls: Rows) -> pl.Series:
    """The stack of each Python call as torch writes it; text is only made once per path of calls."""
    is_innermost, parent = np.zeros(python.height, np.int64), python["parent"].to_numpy()
    is_innermost[calls] = 1
    around = np.flatnonzero(add_up(parent, is_innermost)).astype(np.int32)
    position = np.full(python.height, NONE, np.int32)
    position[around] = np.arange(around.size, dtype=np.int32)
    codes, names = functions(python["name"])
    tree = merge_calls(gather(position, parent[around]), codes[around])
    nodes, stack = np.unique(tree.node[position[calls]], return_inverse=True)
    return pl.Series(stack_texts(tree, names, nodes, separator=IN_TEXT), dtype=pl.String).gather(stack)
