"""What the recordings of a run have: predicates for `View.needs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run import Ranks


def has_several_workers(ranks: Ranks) -> bool:
    """Whether two workers are readable."""
    return len({ranks.members[i].worker for i, _ in ranks.readable}) > 1


def has_several_times(ranks: Ranks) -> bool:
    """Whether two workers are readable, and there is any time of them; memory snapshots have none."""
    return has_several_workers(ranks) and bool((ranks.steps["total_ns"] > 0).any())


def has_steps(ranks: Ranks) -> bool:
    """Whether any recording has a step."""
    return not ranks.steps.is_empty()


def has_calls(ranks: Ranks) -> bool:
    """Whether there is any call of a collective."""
    return not ranks.calls.is_empty()


def has_matches(ranks: Ranks) -> bool:
    """Whether any call is matched with those of other ranks."""
    return not ranks.matches.is_empty()


def has_traffic(ranks: Ranks) -> bool:
    """Whether there is any transfer whose size is known."""
    return not ranks.traffic.is_empty()


def has_stages(ranks: Ranks) -> bool:
    """Whether there is any stage of a pipeline."""
    return not ranks.stages.is_empty()


OF_COMMUNICATION = (has_calls, has_matches, has_traffic, has_stages)
"""What no run has whose ranks recorded no communication."""
