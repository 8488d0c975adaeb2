"""Which ranks of a job record: all of them, some by number, the first of each machine, or of each group of the mesh.

A rank that isn't selected still does what the others need: it agrees on the run, answers clock measurements, and
accepts requests, which may name it. It runs no profiler and starts no process.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..errors import UsageError
from .mesh import current_coordinates
from .rank_info import current_rank_info, is_distributed, local_world_size, rank_info_from, rank_numbers

if TYPE_CHECKING:
    from .rank_info import RankInfo

Ranks = str | int | Collection[int] | Callable[[int], bool]

PER_NODE, PER_GROUP = "per-node", "per-group:"


class Selection:
    """The ranks that record, and whether this process is one of them.

    Args:
        ranks: Their numbers, as a collection or a text such as `0,8-15`; `per-node` for the first of each machine;
            `per-group:tp` for the first of each group of the mesh's dimension `tp`; a function of a rank's number; None
            for all.

    Raises:
        UsageError: It is none of these.
    """

    def __init__(self, ranks: Ranks | None = None) -> None:
        self._text = None if ranks is None else str(ranks)
        self._dimension = ""
        self._numbers: frozenset[int] | None = None
        self._function: Callable[[int], bool] | None = None
        self._is_per_node = ranks == PER_NODE
        if isinstance(ranks, str):
            self._dimension = ranks.removeprefix(PER_GROUP) if ranks.startswith(PER_GROUP) else ""
            if not self._is_per_node and not self._dimension:
                self._numbers = frozenset(rank_numbers(ranks))
        elif callable(ranks):
            self._function, self._text = ranks, str(getattr(ranks, "__qualname__", "a function"))
        elif ranks is not None:
            self._numbers = _parse_numbers(ranks)
        self._final: bool | None = True if ranks is None else None
        self._from_launcher: bool | None = None

    @property
    def is_selected(self) -> bool:
        """Whether this process records.

        The answer may change until torch.distributed says which rank this is, and for groups until there is a mesh.
        """
        if self._final is not None:
            return self._final
        if not is_distributed():
            if self._from_launcher is None:
                self._from_launcher = self._includes(rank_info_from(os.environ))
            return self._from_launcher
        is_included = self._includes(current_rank_info())
        if not self._dimension or self._dimension in current_coordinates():
            self._final = is_included
        return is_included

    def _includes(self, rank_info: RankInfo) -> bool:
        if self._numbers is not None:
            return rank_info.global_rank in self._numbers
        if self._function is not None:
            return bool(self._function(rank_info.global_rank))
        if self._is_per_node:
            return not rank_info.local_rank
        if self._dimension:
            return rank_info.world_size == 1 or current_coordinates().get(self._dimension) == 0
        return True

    def selected_ranks(self, rank_info: RankInfo) -> list[int] | None:
        """Return the ranks of the job that record, as far as this process knows; None for all of them.

        If the other ranks are unknown, the list has only this process, or is empty: each reports for itself.

        Args:
            rank_info: This process's ranks.
        """
        all_ranks = range(rank_info.world_size)
        if self._text is None:
            return None
        if self._numbers is not None:
            return [rank for rank in all_ranks if rank in self._numbers]
        if self._function is not None:
            return [rank for rank in all_ranks if self._function(rank)]
        size = local_world_size()
        if self._is_per_node and size and _is_by_node(rank_info, size):
            return list(all_ranks[::size])
        return [rank_info.global_rank] if self.is_selected else []

    def is_first_of_node(self, rank_info: RankInfo) -> bool:
        """Whether this process records the machine's counters: the first one there, or the first selected one."""
        size, ranks = local_world_size(), self.selected_ranks(rank_info)
        if not rank_info.local_rank or ranks is None or not size or not _is_by_node(rank_info, size):
            return not rank_info.local_rank
        first = rank_info.global_rank - rank_info.local_rank
        return rank_info.global_rank == min((rank for rank in ranks if rank >= first), default=None)

    def empty_reason(self, rank_info: RankInfo) -> str | None:
        """Return why no rank of the job records; None if some do, or another rank reports it."""
        if rank_info.global_rank or self.is_selected:
            return None
        if self._dimension:
            is_there, what = self._dimension in current_coordinates(), "group"
        else:
            is_there, what = bool(self.selected_ranks(rank_info)), "rank"
        return None if is_there else f"0 windows: ranks={self._text!r}, and the job has no such {what}"


def _parse_numbers(ranks: int | Collection[int]) -> frozenset[int]:
    """Check the numbers.

    Raises:
        UsageError: One isn't the number of a rank.
    """
    try:
        numbers = frozenset(map(operator.index, ranks if isinstance(ranks, Collection) else [ranks]))
    except TypeError:
        numbers = frozenset()
    if not numbers or min(numbers) < 0 or isinstance(ranks, bool):
        raise UsageError(
            f"ranks={ranks!r}: the numbers of the ranks that record, '0,8-15', 'per-node', 'per-group:tp', a "
            "function of a rank's number, or None for all."
        )
    return numbers


def _is_by_node(rank_info: RankInfo, size: int) -> bool:
    """Whether ranks are numbered machine by machine, judging by this process's own ranks."""
    if rank_info.local_rank is None or rank_info.node_rank is None or rank_info.world_size % size:
        return False
    return rank_info.global_rank == rank_info.node_rank * size + rank_info.local_rank
