"""A rank's coordinates in its job's mesh, `{"dp": 0, "tp": 1}`, derived from the process groups that it belongs to.

torch.distributed's `init_device_mesh` makes a group per dimension and describes it as `mesh_dp` (torch 2.13; a part of
a mesh that was flattened, as `mesh_dp_tp`). A rank's coordinate is its place in the group.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .rank_info import is_distributed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PREFIX = "mesh_"


def coordinates(groups: Iterable[tuple[str, Mapping[int, int]]], rank: int) -> dict[str, int]:
    """Return a rank's coordinate in each dimension.

    A dimension is left out if two groups have its name and the rank has different indices in them.

    Args:
        groups: The description of each group, and the index in it of each global rank.
        rank: The rank.
    """
    indices: dict[str, set[int]] = {}
    for description, index_of in groups:
        if description.startswith(_PREFIX) and rank in index_of:
            indices.setdefault(description[len(_PREFIX) :], set()).add(index_of[rank])
    return {name: index for name, (index, *more_indices) in indices.items() if not more_indices}


def current_coordinates() -> dict[str, int]:
    """Return this process's coordinates; empty without a mesh, or if this torch stores its groups elsewhere."""
    if not is_distributed():
        return {}
    dist = sys.modules["torch.distributed"]
    world = getattr(dist.distributed_c10d, "_world", None)
    ranks_of = dict(getattr(world, "pg_group_ranks", {}))
    # Groups that this rank isn't in are represented by a number.
    groups = ((getattr(group, "group_desc", ""), indices) for group, indices in ranks_of.items())
    return coordinates(((str(description), indices) for description, indices in groups), dist.get_rank())
