"""Operations, ranks and instants as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta, timezone

from ...names.collectives import element_bytes
from ...names.text import enumeration, memory_size
from .groups import WORLD
from .operations import Operation

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST_NS = 1 << 62
_MOST_RANGES, _MOST_CALLS = 8, 4


def instant(ns: int) -> str:
    """Such as 2026-11-26 07:42:53 UTC; empty if it isn't known."""
    if not 0 < ns < _LATEST_NS:
        return ""
    return (_EPOCH + timedelta(microseconds=ns // 1000)).strftime("%Y-%m-%d %H:%M:%S UTC")


def title(operation: Operation) -> str:
    """Such as all_reduce 6 or recv 1<-0."""
    calls = [entry.name.partition(":")[2] or entry.name for entry in operation.calls]
    if not operation.is_p2p:
        return f"{operation.kinds[0]} {operation.seq}"
    more = ", …" if len(calls) > _MOST_CALLS else ""
    return calls[0] if len(calls) == 1 else f"batch {operation.seq} ({', '.join(calls[:_MOST_CALLS])}{more})"


def full_title(operation: Operation) -> str:
    """Such as all_reduce 6 of mesh_dp (ranks 2 and 3, 4.00 KiB)."""
    size, group = message_bytes(operation), operation.group
    members = "" if group.description == WORLD else ranks_title(group.ranks)
    details = ", ".join(filter(None, [members, memory_size(size) if size else ""]))
    return f"{title(operation)} of {group.label}{f' ({details})' if details else ''}"


def message_bytes(operation: Operation) -> int:
    """The message of a rank: the larger of inputs and outputs; 0 if that isn't known."""
    inputs = sum(_bytes(entry.in_sizes, entry.in_dtypes) for entry in operation.calls)
    return max(inputs, sum(_bytes(entry.out_sizes, entry.out_dtypes) for entry in operation.calls))


def _bytes(sizes: Sequence[int], dtypes: Sequence[str]) -> int:
    pairs = zip(sizes, dtypes, strict=False)
    return sum(size * (element_bytes(dtype) or 0) for size, dtype in pairs if size > 0)


def ranks_title(ranks: Collection[int]) -> str:
    """Such as rank 2, or ranks 0–3 and 5."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {rank_ranges(ranks)}"


def rank_ranges(ranks: Collection[int]) -> str:
    """Such as 0–3 and 5; of many ranges the first ones."""
    ranges: list[list[int]] = []
    for rank in sorted(ranks):
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    parts = [part for low, high in ranges for part in _range(low, high)]
    if len(parts) > _MOST_RANGES:
        return f"{', '.join(parts[:_MOST_RANGES])} … ({len(ranks)} in all)"
    return enumeration(parts)


def _range(low: int, high: int) -> list[str]:
    return [f"{low}–{high}"] if high - low > 1 else [str(rank) for rank in range(low, high + 1)]
