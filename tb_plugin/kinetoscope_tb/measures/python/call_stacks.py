"""Call stacks of host events: the place in the program that called each.

The frames are those that torch wrote with the operator, or with the one around it, or else the Python calls around it
on its thread. Backward operators have the frames of their forward operator, unless they call Python themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...arrays.nesting import innermost, nearest
from ...trace.model import Trace
from ..calls.backward import forward_ops
from ..calls.call_tree import MergedTree, Rows, merged
from .frames import SEPARATOR, frames_of_text, functions, stack_texts


@dataclass(frozen=True)
class Stacks:
    """The stack of each host event as a number; `texts` has the frames.

    Attributes:
        number: Twice the index of the stack, plus one if it is the forward operator's; NONE if there is none.
        written: The stacks that the file has as text: the first indices.
        tree: The paths of Python calls: the indices after them.
        functions: Names of the nodes of the tree.
    """

    number: Rows
    written: list[str]
    tree: MergedTree
    functions: list[str]

    @classmethod
    def of(cls, trace: Trace) -> Stacks:
        """Find the stack of each host event."""
        host, python = trace.host_events, trace.python_calls
        codes, texts = functions(python["name"])
        tree = merged(python["parent"].to_numpy(), codes)
        place, written = _written(host["call_stack"])
        begin, end = python["start_ns"].to_numpy(), (python["start_ns"] + python["dur_ns"]).to_numpy()
        at = host["thread"].to_numpy(), host["start_ns"].to_numpy()
        node = gather(tree.node, innermost(python["thread"].to_numpy(), begin, end, *at))
        parent = host["parent"].to_numpy()
        place = gather(place, nearest(place >= 0, parent))
        own = np.where(place >= 0, place, np.where(node >= 0, node + np.int32(len(written)), NONE)).astype(np.int32)
        forward = forward_ops(trace)
        link = nearest(forward >= 0, parent)
        of_forward = gather(own, gather(forward, link))
        is_forward = (of_forward >= 0) & (own == gather(own, link))  # else the backward pass called Python inside
        number = np.where(is_forward, 2 * of_forward + 1, np.where(own >= 0, 2 * own, NONE))
        return cls(number.astype(np.int32), written, tree, texts)

    def texts(self, number: Rows) -> list[str | None]:
        """The frames of each number, the innermost first; None where there is none."""
        places = number // 2
        first = len(self.written)
        from_python = iter(stack_texts(self.tree, self.functions, places[places >= first] - first))
        return [None if n < 0 else self.written[n] if n < first else next(from_python) for n in places.tolist()]


def _written(stacks: pl.Series) -> tuple[Rows, list[str]]:
    """(index of each row's `Call stack`, or NONE; the distinct stacks as frames); empty texts have no stack."""
    codes, texts = functions(stacks)
    frames = [SEPARATOR.join(frames_of_text(text)) for text in texts]
    is_known = np.array([bool(text) for text in frames] + [False])
    return np.where(is_known[codes], codes, NONE).astype(np.int32), frames
