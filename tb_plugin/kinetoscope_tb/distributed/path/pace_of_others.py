"""How much shorter the steps of a run would be if some ranks were as fast as the others, simulated over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..run import Ranks
from .merged_graph import MergedGraph
from .paths import Paths

Ints = NDArray[np.int64]


def savings_at_pace_of_others(ranks: Ranks, workers: Sequence[Sequence[str]]) -> list[int | None]:
    """How much shorter the average complete step would be, in ns, for each choice of workers that become faster.

    None if no step of these workers has another rank.
    """
    return mean_savings(ranks, [partial(_savings_of_workers, names) for names in workers])


def mean_savings(ranks: Ranks, choices: Sequence[Callable[[Paths], Ints | None]]) -> list[int | None]:
    """How much shorter the average complete step would be, in ns, for each of several choices of faster work.

    Steps of different spans may have the same names, so that each span is simulated by itself.

    Args:
        ranks: The traces.
        choices: What each saves in the steps of a span; None if the span has nothing of it.

    Returns:
        None for a choice that no span has.
    """
    savings, counts = [0] * len(choices), [0] * len(choices)
    for index in sorted({member.place for member in ranks.members}):
        span = Ranks(ranks.run, tuple(member for member in ranks.members if member.place == index), index)
        if not choices or span.segments.is_empty():
            continue
        paths = Paths.of(span)
        for number, choice in enumerate(choices):
            if (shorter := choice(paths)) is not None:
                savings[number] += int(shorter[paths.averaged_steps].sum())
                counts[number] += len(paths.averaged_steps)
    return [round(saving / count) if count else None for saving, count in zip(savings, counts, strict=True)]


def _savings_of_workers(names: Sequence[str], paths: Paths) -> Ints | None:
    span = paths.merged_graph.ranks
    members = [i for i, _ in span.readable if span.members[i].worker in names]
    return _savings(paths, members) if members else None


def _savings(paths: Paths, members: Sequence[int]) -> Ints:
    """How much shorter each step would be if some ranks took no longer for any class of work than others typically.

    Others are ranks with the same step that aren't among these, of a pipeline those of the same stage; all but the
    rank itself if none is left. All that a rank does of a class between two calls becomes faster by the same factor, so
    that it takes the median of the others' time between these calls.
    """
    graph = paths.merged_graph
    steps = graph.ranks.steps.select("member").join(graph.ranks.stages, "member", "left", maintain_order="left")
    steps = steps.with_row_index("row").with_columns(place=pl.Series(paths.place))
    is_late, less = pl.col("member").is_in(list(members)), np.zeros_like(graph.spent)
    paces: dict[tuple[int, ...], _Pace] = {}
    for member, row, step, stage in steps.filter(is_late).select("member", "row", "place", "stage").rows():
        alike = (pl.col("place") == step) & pl.col("stage").eq_missing(stage) & (pl.col("member") != member)
        rest = steps.filter(alike)
        usual = rest.filter(~is_late)
        others = tuple((rest if usual.is_empty() else usual)["row"].to_list())
        if others:
            if others not in paces:
                paces[others] = _Pace.of(graph, others)
            segments = graph.of_one_step(row)
            less[segments] = paces[others].beyond(graph.between[segments], graph.spent[segments])
    shorter: Ints = np.maximum(paths.shorter(less.sum(axis=1), np.zeros_like(graph.dur)), 0)
    return shorter


@dataclass(frozen=True)
class _Pace:
    """How long some ranks take between the calls of a step.

    Attributes:
        between: The numbers of what lies between two calls (MergedGraph.between), in order.
        times: How long each rank takes for it, in ns: [rank, number, class].
        is_common: Whether all of these ranks have it.
    """

    between: Ints
    times: Ints
    is_common: NDArray[np.bool_]

    @classmethod
    def of(cls, graph: MergedGraph, rows: Sequence[int]) -> _Pace:
        """Return the pace of some ranks in a step, which are rows of Ranks.steps."""
        segments = [graph.of_one_step(row) for row in rows]
        rank = np.repeat(np.arange(len(rows)), [part.size for part in segments])
        of_ranks = np.concatenate(segments)
        between, number = np.unique(graph.between[of_ranks], return_inverse=True)
        times = np.zeros((len(rows), between.size, graph.spent.shape[1]), np.int64)
        np.add.at(times, (rank, number), graph.spent[of_ranks])
        has_it = np.zeros(times.shape[:2], bool)
        has_it[rank, number] = True
        return cls(between, times, np.all(has_it, axis=0))

    def beyond(self, between: Ints, times: Ints) -> Ints:
        """How much longer segments of another rank take for each class than these ranks typically.

        Where calls aren't those of all ranks, because rows are missing or unmatched, what lies between them is compared
        as a whole.

        Args:
            between: The numbers of the segments.
            times: Their times: [segment, class].
        """
        common = self.between[self.is_common & np.isin(self.between, between)]
        number = np.searchsorted(common, between)
        number[~np.isin(between, common)] = common.size
        own = np.zeros((common.size + 1, times.shape[1]), np.int64)
        np.add.at(own, number, times)
        is_own = np.isin(self.between, common)
        rest = self.times[:, ~is_own].sum(axis=1, keepdims=True)
        usual = np.median(np.concatenate([self.times[:, is_own], rest], axis=1), axis=0)
        share = np.maximum(own - usual, 0) / np.maximum(own, 1)
        less: Ints = (times * share[number]).astype(np.int64)
        return less
