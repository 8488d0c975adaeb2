"""What a trace's file says beside its events: about the recording, the job and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WriterFingerprint:
    """Details of the text that tell who wrote it, found in samples of it.

    Args:
        keys: Keys of the events and of their arguments.
        categories: Categories of events and arrows, as they are spelt.
        forms: Ways of writing; reader/writer_fingerprint.py names them.
    """

    keys: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()


MOST_RANKS = 1 << 20
"""No job has more; a larger number is damage."""


def clock_offset(told: Any) -> tuple[int, int] | None:
    """The offset of a clock and its error in ns, as our recorder writes them; None for anything else."""
    values = [told.get(key) for key in ("offset_ns", "error_ns")] if isinstance(told, Mapping) else []
    numbers = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**62]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


@dataclass(frozen=True)
class Meta:
    """What the file says beside its events.

    Args:
        top: The top-level keys as JSON values, without traceEvents.
        events: How many events the file holds.
        fingerprint: Of the writer.
        impossible: What it says of the worker's place in its job or of its clock that can't be, in words. The keys
            themselves are null.
    """

    top: Mapping[str, Any] = field(default_factory=dict)
    events: int = 0
    fingerprint: WriterFingerprint = WriterFingerprint()
    impossible: tuple[str, ...] = ()

    def _mapping(self, key: str) -> Mapping[str, Any]:
        value = self.top.get(key)
        return value if isinstance(value, Mapping) else {}

    @property
    def producer(self) -> Mapping[str, Any]:
        """What our own recorder wrote about the recording; empty for other writers."""
        return self._mapping("kinetoscope")

    @property
    def clock(self) -> tuple[int, int] | None:
        """How far the file's clock is ahead of that of the run's reference, and by how much that may be wrong, in ns.

        None where our recorder hasn't measured it.
        """
        return clock_offset(self.producer.get("clock"))

    @property
    def distributed(self) -> Mapping[str, Any]:
        """torch.distributed's state when the recording began: backend, rank, world_size, pg_config."""
        return self._mapping("distributedInfo")

    @property
    def devices(self) -> list[Mapping[str, Any]]:
        """One mapping per device as the driver describes it: id, name, totalGlobalMem, computeMajor and others."""
        listed = self.top.get("deviceProperties")
        return [d for d in listed if isinstance(d, Mapping)] if isinstance(listed, list) else []

    @property
    def world_size(self) -> int | None:
        """How many workers the job has, if the file says so."""
        for value in (self.producer.get("world_size"), self.distributed.get("world_size")):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    @property
    def ranks(self) -> tuple[int, ...] | None:
        """The ranks of which our recorder knew that they record this window, too; None if it doesn't tell of any."""
        told = self.producer.get("ranks")
        if not isinstance(told, list):
            return None
        return tuple(rank for rank in told if isinstance(rank, int) and not isinstance(rank, bool))

    def has_option(self, name: str) -> bool:
        """Whether the file says that an option of the profiler was on; torch before 2.0 says nothing of them."""
        options = self.producer.get("options")
        return bool(self.top.get(name) or (isinstance(options, Mapping) and options.get(name)))

    @property
    def rank(self) -> int | None:
        """The worker's global rank, if the file says so."""
        for value in (self.producer.get("global_rank"), self.distributed.get("rank"), self.top.get("global_rank")):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None
