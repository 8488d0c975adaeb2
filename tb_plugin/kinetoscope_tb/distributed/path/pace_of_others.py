"""How much shorter the steps of a run would be if some ranks were as fast as the others, simulated over all ranks."""

from __future__ import annotations

from collections.abc import Sequence

from ..run import Ranks
from .paths import Paths


def savings_at_pace_of_others(ranks: Ranks, workers: Sequence[Sequence[str]]) -> list[int | None]:
    """How much shorter the average complete step would be, in ns, for each choice of workers that become faster.

    None if no step of these workers has another rank. Steps of different spans may have the same names, so that each
    span is simulated by itself.
    """
    savings, counts = [0] * len(workers), [0] * len(workers)
    for index in sorted({member.place for member in ranks.members}):
        span = Ranks(ranks.run, tuple(member for member in ranks.members if member.place == index), index)
        members_of = [[i for i, _ in span.readable if span.members[i].worker in names] for names in workers]
        if not any(members_of) or span.segments.is_empty():
            continue
        paths = Paths.of(span)
        for number, members in enumerate(members_of):
            if members:
                savings[number] += int(paths.saved_at_pace_of_others(members)[paths.counted].sum())
                counts[number] += len(paths.counted)
    return [round(saving / count) if count else None for saving, count in zip(savings, counts, strict=True)]
