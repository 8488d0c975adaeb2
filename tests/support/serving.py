"""Serving on several ranks, as files: any number of iterations and ranks, with graphs with their captures in the same folder."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from .graphs import WORKS, GraphRecording, Operator, Work, kernels_of
from .server import DIALECTS, annotation_of

TOKENS = 7  # of each prompt


@dataclass(frozen=True)
class Iteration:
    """One iteration: all ranks run it. A decode replays the graph of this number, a prefill runs its work eagerly."""

    phase: str
    batch: int
    graph: int


@dataclass(frozen=True)
class Serving:
    """What a server ran.

    Args:
        dialect: Of its annotations.
        ranks: Of tensor parallelism.
        graphs: The work that each graph was captured from.
        iterations: In order.
    """

    dialect: str
    ranks: int
    graphs: tuple[Work, ...]
    iterations: tuple[Iteration, ...]

    def work(self, rank: int, iteration: Iteration) -> Work:
        """What a rank runs: the same operators as the others, on its part of the tensors."""
        return _part(self.graphs[iteration.graph], rank)

    def recording(self, rank: int) -> GraphRecording:
        """What the profiler of a rank writes."""
        made = GraphRecording("rocm")
        for iteration in self.iterations:
            work, batch = self.work(rank, iteration), iteration.batch
            if iteration.phase == "decode":
                mark = annotation_of(self.dialect, "decode", 0, 0, batch)
                made.replayed(work, iteration.graph, mark=mark)
            else:
                made.eager(work, mark=annotation_of(self.dialect, "prefill", batch, TOKENS * batch, 0))
        return made

    def tokens(self, iteration: Iteration) -> int:
        """The tokens that an iteration processes."""
        return iteration.batch * (1 if iteration.phase == "decode" else TOKENS)

    def write(self, folder: Path) -> None:
        """The files of all ranks, with the captures in a folder of their own."""
        (folder / "capture_traces").mkdir(parents=True)
        for rank in range(self.ranks):
            captures = GraphRecording("rocm")
            for work in self.graphs:
                captures.captured(_part(work, rank))
            _write(folder / f"tp{rank}_rank{rank}.1.pt.trace.json.gz", self.recording(rank))
            _write(folder / "capture_traces" / f"graph_capture_rank_{rank}.1.pt.trace.json.gz", captures)


def _part(work: Work, rank: int) -> Work:
    return tuple(Operator(op.name, (*op.sizes, 100 + rank), op.module, op.kernels) for op in work)


def _write(path: Path, recording: GraphRecording) -> None:
    path.write_bytes(gzip.compress(recording.builder.text().encode(), 1))


@st.composite
def servings(draw: st.DrawFn) -> Serving:
    """Any serving that has a decode."""
    named = st.lists(WORKS, min_size=1, max_size=3, unique_by=lambda work: tuple(kernels_of(work)))
    graphs = tuple(draw(named))
    numbers = st.integers(0, len(graphs) - 1)
    one = st.builds(Iteration, st.sampled_from(["prefill", "decode"]), st.integers(1, 32), numbers)
    first = Iteration("decode", draw(st.integers(1, 32)), draw(numbers))
    rest = draw(st.lists(one, max_size=8))
    return Serving(draw(st.sampled_from(DIALECTS)), draw(st.integers(1, 3)), graphs, (first, *rest))
