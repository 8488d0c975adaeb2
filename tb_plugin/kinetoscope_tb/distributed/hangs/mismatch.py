"""Ranks that called something else in the same collective: another operation, dtype or size. The majority is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...reader.flight_recorder.schema import Entry
from .job import Job
from .operations import Operation

ASPECTS = ("operation", "dtype", "size")
_INPUTS_ARE_EQUAL = ("all_reduce", "broadcast", "reduce", "all_gather", "gather")
_OUTPUTS_ARE_EQUAL = ("reduce_scatter", "scatter")


@dataclass(frozen=True)
class Mismatch:
    """A collective that ranks called differently.

    Args:
        aspect: What differs: operation, dtype or size.
        operation: The collective, as a rank of the majority called it; as any if there is no majority.
        values: What each rank called, as text.
        culprits: The ranks that differ from the majority; none if there is no majority.
    """

    aspect: str
    operation: Operation
    values: Mapping[int, str]
    culprits: tuple[int, ...]


def mismatches(job: Job) -> list[Mismatch]:
    """The mismatches in open collectives; those with a culprit first."""
    collectives = {(o.group, o.seq): o for rank in job.waiting_ranks for o in job.ranks[rank].open if not o.is_p2p}
    differences = []
    for group, seq in collectives:
        calls = job.calls(group, seq)
        if len(set(_values(calls).values())) > 1 and (mismatch := _mismatch(job, calls)) is not None:
            differences.append(mismatch)
    return sorted(differences, key=lambda mismatch: (not mismatch.culprits, mismatch.operation.created_ns))


def _mismatch(job: Job, calls: Mapping[int, Operation]) -> Mismatch | None:
    """The first aspect in which calls differ.

    An aspect that one of them doesn't record isn't compared, nor one that differed before, in a collective that ended:
    then that is allowed, or these are several groups under one name.
    """
    for aspect in ASPECTS:
        values = {rank: _value(operation, aspect) for rank, operation in calls.items()}
        if None in values.values() or len(set(values.values())) == 1 or _differed_before(job, calls, aspect):
            continue
        texts = {rank: value or "" for rank, value in values.items()}
        (common, count), *_ = Counter(texts.values()).most_common(1)
        usual = next(operation for rank, operation in calls.items() if texts[rank] == common)
        is_majority = 2 * count > len(usual.group.ranks)
        culprits = tuple(sorted(rank for rank, text in texts.items() if text != common)) if is_majority else ()
        return Mismatch(aspect, usual, texts, culprits)
    return None


def _values(calls: Mapping[int, Operation]) -> dict[int, tuple[str | None, ...]]:
    return {rank: tuple(_value(operation, aspect) for aspect in ASPECTS) for rank, operation in calls.items()}


def _differed_before(job: Job, calls: Mapping[int, Operation], aspect: str) -> bool:
    """Whether a collective of the group that ended on all these ranks differed in an aspect."""
    group = next(iter(calls.values())).group
    histories = [job.ranks[rank].by_group[group] for rank in calls]
    for seq in set(histories[0]).intersection(*histories[1:]):
        operations = [history[seq] for history in histories]
        if all(o.is_complete for o in operations) and len({_value(o, aspect) for o in operations}) > 1:
            return True
    return False


def _value(operation: Operation, aspect: str) -> str | None:
    if aspect == "operation":
        return ", ".join(operation.kinds)
    parts = [_part(entry, kind, aspect) for entry, kind in zip(operation.calls, operation.kinds, strict=True)]
    return None if None in parts else ", ".join(part or "" for part in parts)


def _part(entry: Entry, kind: str, aspect: str) -> str | None:
    """The dtype or the elements of what all ranks must have alike; None if nothing must, or it isn't recorded."""
    if kind in _INPUTS_ARE_EQUAL:
        dtypes, sizes = entry.in_dtypes, entry.in_sizes
    elif kind in _OUTPUTS_ARE_EQUAL:
        dtypes, sizes = entry.out_dtypes, entry.out_sizes
    else:
        return None
    if aspect == "dtype":
        return " and ".join(sorted(set(dtypes))) or None
    return None if not sizes or min(sizes) < 0 else str(sum(sizes))
