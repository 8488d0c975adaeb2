"""Graph, critical paths and what-if of a trace, computed once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np
import polars as pl

from ..trace import Trace
from .classes import own_classes
from .graph import Graph
from .path import critical_path
from .what_if import WhatIf


@dataclass(frozen=True)
class Explanation:
    """What several views of a trace share.

    Attributes:
        graph: The graph of waits.
        path: The critical paths of all steps: PATH.
        what_if: Estimates of step times if some work were faster.
    """

    graph: Graph
    path: pl.DataFrame
    what_if: WhatIf

    @classmethod
    def of(cls, trace: Trace) -> Explanation:
        """Return the explanation of a trace: computed at the first call and cached as long as the trace exists."""
        explanation = _memo.find(trace)
        if explanation is None:
            graph = Graph.of(trace)
            parts = own_classes(trace, graph)
            explanation = cls(graph, critical_path(trace, graph, parts), WhatIf.of(trace, graph, parts))
            _memo.add(trace, explanation)
        return explanation

    @property
    def held_bytes(self) -> int:
        """Memory that it uses."""
        holders: tuple[Any, ...] = (self.graph, self.graph.nodes, self.graph.nodes.boundaries, self.what_if)
        arrays = [value for one in holders for value in vars(one).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays) + int(self.path.estimated_size())


class _Memo:
    """Explanations by trace: a dictionary with weak keys that are compared by identity.

    `WeakKeyDictionary` compares keys by equality, which frames don't support.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a trace may be garbage-collected while this thread holds it
        self._explanations: dict[int, tuple[ref[Trace], Explanation]] = {}

    def find(self, trace: Trace) -> Explanation | None:
        """The explanation of a trace, if it is cached."""
        with self._lock:
            of, explanation = self._explanations.get(id(trace), (None, None))
            return explanation if of is not None and of() is trace else None

    def add(self, trace: Trace, explanation: Explanation) -> None:
        """Cache the explanation of a trace until the trace is garbage-collected."""
        key = id(trace)

        def forget(of: ref[Trace]) -> None:
            with self._lock:
                if self._explanations.get(key, (None,))[0] is of:
                    del self._explanations[key]

        with self._lock:
            self._explanations[key] = ref(trace, forget), explanation


_memo = _Memo()
