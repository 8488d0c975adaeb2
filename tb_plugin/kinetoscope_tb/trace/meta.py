"""The metadata of a trace's file: about the recording, the job and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..names.processes import Process

LARGE_EVENTS = 2_000_000
"""From so many events on, an answer takes seconds: half of them matter more than what a second thread costs."""


@dataclass(frozen=True)
class WriterFingerprint:
    """Features of the file that identify its writer, from samples of the text.

    Args:
        keys: Keys of the events and of their arguments.
        categories: Categories of events and arrows, as spelled in the file.
        forms: Formatting features; see reader/writer_fingerprint.py.
    """

    keys: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()


MOST_RANKS = 1 << 20
"""No job has more; a larger number is damage."""


def clock_offset(value: Any) -> tuple[int, int] | None:
    """The offset of a clock and its error in ns, as our recorder writes them; None for anything else."""
    values = [value.get(key) for key in ("offset_ns", "error_ns")] if isinstance(value, Mapping) else []
    numbers = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**62]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def positive_int(value: Any) -> int:
    """A number of the file's metadata that must be a positive 62-bit integer; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 62 else 0


def _cuda(number: object) -> str | None:
    """12040 → 12.4, as the CUDA headers encode it; other numbers as they are."""
    if not isinstance(number, int) or number <= 0:
        return None
    return f"{number // 1000}.{number % 1000 // 10}" if number < 1_000_000 else str(number)


def _hip(number: object) -> str | None:
    """70253211 → 7.2.53211, as HIP_VERSION in HIP's headers encodes it; other numbers as they are."""
    if not isinstance(number, int) or number <= 0:
        return None
    if number < 10_000_000:
        return str(number)
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


@dataclass(frozen=True)
class Meta:
    """The metadata of the file.

    Args:
        top: The top-level keys as JSON values, without traceEvents.
        events: Number of events in the file, of this process if it holds several.
        fingerprint: Of the writer.
        impossible: Descriptions of impossible values of the rank or the clock. The keys themselves are null.
        foreign_writer: The program that wrote the file if it has no events of torch.profiler; None if it has.
        processes: All processes of the file, if it holds several.
        process: Which of them this is.
    """

    top: Mapping[str, Any] = field(default_factory=dict)
    events: int = 0
    fingerprint: WriterFingerprint = WriterFingerprint()
    impossible: tuple[str, ...] = ()
    foreign_writer: str | None = None
    processes: tuple[Process, ...] = ()
    process: Process | None = None

    @property
    def is_large(self) -> bool:
        """Whether answers are worth a second thread, and giving back what is free of their memory meanwhile."""
        return self.events >= LARGE_EVENTS

    def _mapping(self, key: str) -> Mapping[str, Any]:
        value = self.top.get(key)
        return value if isinstance(value, Mapping) else {}

    @property
    def producer(self) -> Mapping[str, Any]:
        """Metadata that our recorder wrote; empty for other writers."""
        return self._mapping("kinetoscope")

    @property
    def cuda_version(self) -> str | None:
        """The version of CUDA; None without it, or if the file doesn't say."""
        version = self.producer.get("cuda_version")
        return str(version) if version else _cuda(self.top.get("cuda_runtime_version"))

    @property
    def rocm_version(self) -> str | None:
        """The version of ROCm's runtime; None without it, or if the file doesn't say."""
        return _hip(self.top.get("hip_runtime_version"))

    @property
    def driver_version(self) -> str | None:
        """The version of CUDA or ROCm that the driver supports; None if the file doesn't say."""
        return _cuda(self.top.get("cuda_driver_version")) or _hip(self.top.get("hip_driver_version"))

    @property
    def clock(self) -> tuple[int, int] | None:
        """Offset of the file's clock from the run's reference clock (positive: ahead) and its error, in ns.

        None unless our recorder measured it.
        """
        return clock_offset(self.producer.get("clock"))

    @property
    def distributed_info(self) -> Mapping[str, Any]:
        """torch.distributed's state when the recording began: backend, rank, world_size, pg_config."""
        return self._mapping("distributedInfo")

    @property
    def devices(self) -> list[Mapping[str, Any]]:
        """One mapping per device as the driver describes it: id, name, totalGlobalMem, computeMajor and others."""
        values = self.top.get("deviceProperties")
        return [d for d in values if isinstance(d, Mapping)] if isinstance(values, list) else []

    @property
    def world_size(self) -> int | None:
        """Number of workers in the job, if the file has it."""
        for value in (self.producer.get("world_size"), self.distributed_info.get("world_size")):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    @property
    def ranks(self) -> tuple[int, ...] | None:
        """The ranks that record this window, as far as our recorder knew; None if it wrote none."""
        values = self.producer.get("ranks")
        if not isinstance(values, list):
            return None
        return tuple(rank for rank in values if isinstance(rank, int) and not isinstance(rank, bool))

    def has_option(self, name: str) -> bool:
        """Whether an option of the profiler was on, according to the file; torch before 2.0 doesn't write options."""
        options = self.producer.get("options")
        return bool(self.top.get(name) or (isinstance(options, Mapping) and options.get(name)))

    @property
    def rank(self) -> int | None:
        """The worker's global rank, if the file has it."""
        for value in (self.producer.get("global_rank"), self.distributed_info.get("rank"), self.top.get("global_rank")):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None
