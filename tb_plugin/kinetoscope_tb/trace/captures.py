"""The recordings that say what a trace's graphs launch. The engine searches for them after the trace is there."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import Postponed

if TYPE_CHECKING:
    import polars as pl

    from .model import Trace


@dataclass(frozen=True)
class CaptureFiles:
    """What a search for captures came to.

    Args:
        traces: Recordings of captures, or of the same work without graphs.
        node_notes: What side-car files say of nodes of graphs: node (CUDA's 64-bit number), mark, stack (one frame per
            line, the innermost first).
        unused: Files that were compared and don't fit, each with the reason.
    """

    traces: tuple[Trace, ...] = ()
    node_notes: pl.DataFrame | None = None
    unused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Captures:
    """The captures of one trace, found or still being searched.

    Args:
        search: Its result, once it is there.
    """

    search: Future[CaptureFiles] = field(default_factory=Future)

    @classmethod
    def of(cls, *traces: Trace, node_notes: pl.DataFrame | None = None) -> Captures:
        """Captures that are known."""
        captures = cls()
        captures.search.set_result(CaptureFiles(traces, node_notes))
        return captures

    @property
    def files(self) -> CaptureFiles:
        """What the search found.

        Raises:
            Postponed: It isn't done.
        """
        if not self.search.done():
            raise Postponed(self.search)
        return self.search.result()


NO_CAPTURES = Captures.of()
