"""How much shorter the steps of a run would be if one rank were as fast as the others, simulated over all ranks."""

from __future__ import annotations

from ..run import Ranks
from .paths import Paths


def saved_at_pace_of_others(ranks: Ranks, worker: str) -> int | None:
    """How much shorter the average complete step would be, in ns; None if no step of the worker has another rank.

    Steps of different spans may have the same names, so that each span is simulated by itself.
    """
    saving_ns, count = 0, 0
    for index in sorted({member.place for member in ranks.members}):
        span = Ranks(ranks.run, tuple(member for member in ranks.members if member.place == index), index)
        of_worker = [i for i, _ in span.readable if span.members[i].worker == worker]
        if of_worker and not span.segments.is_empty():
            paths = Paths.of(span)
            saving_ns += int(paths.saved_at_pace_of_others(of_worker[0])[paths.counted].sum())
            count += len(paths.counted)
    return round(saving_ns / count) if count else None
