"""The role of each rank: prefill or decode worker, trainer, rollout or reward, and its place along the job's axes.

Names of workers and descriptions of process groups state it. What the recording shows is weaker, so it is marked as
inferred: a server that only decodes while it is recorded may prefill at other times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..names.roles import axis_of_group, roles_in_name
from .process_groups import RankSet
from .run import Ranks

ROLES = {"member": pl.Int32, "role": pl.String, "role_source": pl.String}
_LARGEST = 1 << 16  # ranks of a group that is listed
NAME, GROUPS, INFERRED = "name", "process groups", "inferred"


def roles(ranks: Ranks) -> pl.DataFrame:
    """One row per member (ROLES); without any sign of a role both are null."""
    facts = [{} if member.summary is None else member.summary.facts for member in ranks.members]
    has_trainer = any(fact.get("is_training") for fact in facts)
    has_server = any(fact.get("phases") for fact in facts)
    coordinates = _coordinates(ranks)
    rows = []
    for number, (member, fact) in enumerate(zip(ranks.members, facts, strict=True)):
        by_name = roles_in_name(member.worker)
        axes = {role.split()[0] for role in by_name}
        by_group = [role for role in coordinates.get(number, []) if role.split()[0] not in axes]
        has_part = any(" " not in role for role in by_name)
        by_recording = [] if has_part else _roles_in_recording(fact, is_mixed=has_trainer and has_server)
        sources = ((by_name, NAME), (by_group, GROUPS), (by_recording, INFERRED))
        role = ", ".join(role for of_source, _ in sources for role in of_source)
        source = ", ".join(source for of_source, source in sources if of_source)
        rows.append((number, role or None, source or None))
    return pl.DataFrame(rows, schema=ROLES, orient="row")


def _roles_in_recording(fact: Mapping[str, Any], *, is_mixed: bool) -> list[str]:
    """What a recording shows of its role; a training alone, without any server in the run, has none."""
    phases = fact["phases"] if isinstance(fact.get("phases"), list) else []
    if is_mixed:
        return ["trainer"] if fact.get("is_training") else ["rollout"] if phases else []
    served_phases = [phase for phase in ("prefill", "decode") if phase in phases or "mixed" in phases]
    return [" and ".join(served_phases)] if served_phases else []


def _coordinates(ranks: Ranks) -> dict[int, list[str]]:
    """The coordinates of each member in the groups along an axis, from descriptions and ranks of groups."""
    rank_of = {rank: member for member, rank in ranks.workers.select("member", "rank").rows() if rank is not None}
    coordinates: dict[int, dict[str, str]] = {}
    for description, group_ranks in dict.fromkeys(ranks.groups.select("description", "ranks").rows()):
        axis, group = axis_of_group(description), RankSet.of(group_ranks)
        if axis is None or not 1 < len(group) <= _LARGEST:
            continue
        for at, rank in enumerate(group):
            if rank in rank_of:
                coordinates.setdefault(rank_of[rank], {}).setdefault(axis, f"{axis} {at}")
    return {member: list(by_axis.values()) for member, by_axis in coordinates.items()}
