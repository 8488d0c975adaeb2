"""The process groups of one trace, and the ranks in each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, texts
from ..trace import Trace
from ..trace.meta import MOST_RANKS
from .model import GROUPS


class Groups:
    """The groups of a trace, numbered as they occur.

    If the metadata doesn't name the group of a call, it is the job's only group; the whole job, if the file has no
    groups at all; unknown, if there are several. If the call's shapes say that another number of ranks takes part, it
    is a group of that size with unknown ranks.
    """

    def __init__(self, trace: Trace) -> None:
        self._rows: dict[tuple[Any, ...], int] = {}
        self._world = trace.meta.world_size
        groups = _parse_list(trace.meta.distributed_info.get("pg_config"))
        self._config = [group for group in groups if isinstance(group, dict)]
        self._by_name = {str(group.get("pg_name")): group for group in reversed(self._config)}

    def frame(self) -> pl.DataFrame:
        """The frame GROUPS."""
        return pl.DataFrame(list(self._rows), schema=GROUPS, orient="row")

    def sizes_of(self, group: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of ranks in each group, or NONE; `group` are rows of the frame, or NONE."""
        return gather(self.frame()["size"].to_numpy(), group)

    def of(
        self, trace: Trace, metadata: NDArray[np.int32], sizes: NDArray[np.int64] | None = None
    ) -> NDArray[np.int32]:
        """The row of each call's group, or NONE.

        Args:
            trace: The trace.
            metadata: Metadata of each call: rows of trace.collectives, or NONE.
            sizes: The size of its group according to its shapes, or NONE.
        """
        columns = ("group", "group_description", "group_ranks")
        rows = pl.DataFrame({name: texts(trace.collectives[name], metadata) for name in columns}).with_columns(
            size=pl.Series(np.where(metadata >= 0, trace.collectives["group_size"].to_numpy()[metadata], NONE))
            if trace.collectives.height
            else pl.lit(NONE, pl.Int64),
            size_by_shapes=pl.lit(NONE, pl.Int64) if sizes is None else pl.Series(sizes, dtype=pl.Int64),
        )
        distinct = rows.unique(maintain_order=True)
        numbers = pl.Series([self._number(*row) for row in distinct.rows()], dtype=pl.Int32)
        distinct = distinct.with_columns(number=numbers)
        return rows.join(distinct, rows.columns, "left", maintain_order="left", nulls_equal=True)["number"].to_numpy()

    def _number(
        self, name: str | None, description: str | None, ranks_json: str | None, size: int, size_by_shapes: int
    ) -> int:
        if name is None:
            return self._group_without_name(size_by_shapes)
        config = self._by_name.get(name, {})
        size = size if size >= 0 else _whole(config.get("pg_size"))
        ranks = _ranks(config.get("ranks")) or _ranks(_json(ranks_json)) or self._all_ranks(size)
        label = description or config.get("pg_desc")
        return self._row(name, str(label) if label is not None else None, size, ranks)

    def _group_without_name(self, size_by_shapes: int) -> int:
        """The group of calls without a group name; `size_by_shapes` is how many ranks take part, or NONE."""
        if self._only is None or size_by_shapes not in (NONE, self._only[0]):
            return NONE if size_by_shapes == NONE else self._row(None, None, size_by_shapes, [])
        return self._row(None, None, *self._only)

    @cached_property
    def _only(self) -> tuple[int, Sequence[int]] | None:
        """The size and the ranks of the only group of the job; None: there are several."""
        groups = [(_ranks(group.get("ranks")), _whole(group.get("pg_size"))) for group in self._config]
        if len({(format_ranks(ranks), size) for ranks, size in groups}) > 1:
            return None
        ranks, size = groups[-1] if groups else ([], NONE)
        size = size if size >= 0 else (self._world if self._world is not None else NONE)
        return size, ranks or self._all_ranks(size)

    def _all_ranks(self, size: int) -> range:
        """All ranks, if the group is that large: torch sometimes leaves the list of the default group empty."""
        return range(size if size == self._world and 0 < size <= MOST_RANKS else 0)

    def _row(self, name: str | None, description: str | None, size: int, ranks: Sequence[int]) -> int:
        row = (name, description, size if size >= 0 else (len(ranks) or NONE), format_ranks(ranks))
        return self._rows.setdefault(row, len(self._rows))


def _parse_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = _json(value)
    return value if isinstance(value, list) else []


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):  # torch cuts long lists after 30 ranks, with an ellipsis
        return None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else NONE


def _ranks(value: Any) -> list[int]:
    """A list of ranks from a file; empty if it isn't one."""
    ranks = value if isinstance(value, list) else []
    return ranks if all(0 <= _whole(rank) < MOST_RANKS for rank in ranks) else []


def format_ranks(ranks: Iterable[int]) -> str | None:
    """Ranks as a short text: 0-3,8; None for none. Evenly spaced ones as 0-56/8: from, to, stride."""
    if isinstance(ranks, range) and len(ranks) > 2 and ranks.step == 1:
        return f"{ranks[0]}-{ranks[-1]}"
    numbers = sorted(set(ranks))
    if not numbers:
        return None
    gaps = {after - before for before, after in pairwise(numbers)}
    if len(numbers) > 2 and len(gaps) == 1 and gaps != {1}:
        return f"{numbers[0]}-{numbers[-1]}/{gaps.pop()}"
    parts, first = [], numbers[0]
    for before, after in zip(numbers, [*numbers[1:], -1], strict=True):
        if after != before + 1:
            parts.append(str(first) if first == before else f"{first}-{before}")
            first = after
    return ",".join(parts)


_PART = re.compile(r"(\d+)(?:-(\d+))?(?:/(\d+))?")


@dataclass(frozen=True)
class RankSet:
    """The ranks of a text in `GROUPS`, in order; ranges are only expanded on iteration."""

    ranges: tuple[range, ...]

    @classmethod
    def of(cls, text: str | None) -> RankSet:
        """Return the ranks of a text such as 0-3,8."""
        parts = _PART.findall(text or "")
        return cls(tuple(range(int(first), int(last or first) + 1, int(stride or 1)) for first, last, stride in parts))

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def among(self, ranks: AbstractSet[int]) -> list[int]:
        """Return the ranks that are also in `ranks`, iterating over the smaller set."""
        if len(self.ranges) == 1 and len(self) > len(ranks):
            return sorted(rank for rank in ranks if rank in self.ranges[0])
        return [rank for rank in self if rank in ranks]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.ranges)


def group_label(name: str | None, description: str | None, size: int, ranks: str | None) -> str:
    """The label of a group: its description or name, and its ranks."""
    label = description if description and description != "undefined" else name
    who = f"ranks {ranks}" if ranks else (f"{size} ranks" if size >= 0 else "ranks unknown")
    return f"{label} · {who}" if label else who
