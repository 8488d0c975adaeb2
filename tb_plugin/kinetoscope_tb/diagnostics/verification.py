"""Checks that a run's traces are complete: each file by itself, and all ranks of a span together.

Each file is checked by `diagnose`; checks across files are here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..discovery import TraceFile
from ..discovery.filename_patterns import is_time
from ..errors import KinetoscopeError
from ..names.text import time
from ..trace import Diagnostic, Trace
from .diagnose import diagnose
from .other_files import FOREIGN

_MOST_LISTED = 8
_CLOCKS_DIFFER_NS = 10_000_000  # clock error of machines that use a time server


@dataclass(frozen=True)
class Verdict:
    """The result for one file.

    Args:
        file: The trace.
        problem: Why it is unreadable; empty if it is readable.
        diagnostics: Losses and warnings; notes affect no numbers and are left out.
        rank: Its rank, if the file has it.
        world_size: Number of ranks of its job, if the file has it.
        ranks: The ranks that should record, as far as the file knows; None for all.
        is_recovered: Whether it was recovered from the journal of a killed process.
        window_ns: Unix times of the recording's start and end, on rank 0's clock if the recorder measured the offset;
            None if it is unreadable.
    """

    file: TraceFile
    problem: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    ranks: tuple[int, ...] | None = None
    is_recovered: bool = False
    window_ns: tuple[int, int] | None = None

    @property
    def state(self) -> Literal["ok", "warning", "loss", "foreign", "unreadable"]:
        """The worst level of its diagnostics; foreign: another program than torch.profiler wrote it."""
        if self.problem:
            return "unreadable"
        if any(diagnostic.rule == FOREIGN for diagnostic in self.diagnostics):
            return "foreign"
        levels = {diagnostic.level for diagnostic in self.diagnostics}
        return "loss" if "loss" in levels else "warning" if "warning" in levels else "ok"


def verdict(file: TraceFile, trace: Trace | KinetoscopeError) -> Verdict:
    """Check one file, given its trace or the error of reading it."""
    if isinstance(trace, KinetoscopeError):
        return Verdict(file, problem=str(trace))
    zero, (start, end) = trace.common_origin_ns, trace.window
    return Verdict(
        file,
        diagnostics=tuple(diagnostic for diagnostic in diagnose(trace) if diagnostic.level != "note"),
        rank=trace.meta.rank,
        world_size=trace.meta.world_size,
        ranks=trace.meta.ranks,
        is_recovered=trace.meta.producer.get("is_recovered") is True,
        window_ns=(zero + start, zero + end),
    )


def run_problems(verdicts: Sequence[Verdict]) -> list[str]:
    """Problems across the files of one run, in words."""
    spans: dict[str, list[Verdict]] = defaultdict(list)
    spans_before: Counter[str] = Counter()
    for verdict in verdicts:
        spans_before[verdict.file.worker] += 1
        # Spans named by time differ between ranks: the first spans of all ranks belong together, and so on.
        spans[f"no. {spans_before[verdict.file.worker]}" if is_time(verdict.file.span) else verdict.file.span].append(
            verdict
        )
    sizes = sorted({verdict.world_size for verdict in verdicts if verdict.world_size is not None})
    problems = []
    if len(sizes) > 1:
        numbers = ", ".join(map(str, sizes))
        problems.append(
            f"The files disagree on the number of ranks ({numbers}): traces of different jobs are in one run."
        )
    size = sizes[0] if len(sizes) == 1 else None
    for span, group in spans.items():
        if not all(verdict.is_recovered for verdict in group):
            problems += [f"Span {span}: {problem}" for problem in _span_problems(group, size)]
    return problems


def _span_problems(group: Sequence[Verdict], size: int | None) -> Iterator[str]:
    ranks = [verdict.rank for verdict in group if verdict.rank is not None]
    files_of = Counter(verdict.rank for verdict in group if verdict.rank is not None and not verdict.is_recovered)
    twice = sorted(rank for rank, count in files_of.items() if count > 1)
    if twice:
        yield f"more than one file claims to be {_rank_list(twice)}."
    if size is not None and len(ranks) == len(group):
        recording_ranks = [verdict.ranks for verdict in group]
        expected_ranks = (
            set(range(size))
            if None in recording_ranks
            else {rank for ranks_of_job in recording_ranks for rank in ranks_of_job or ()}
        )
        missing = sorted(expected_ranks - set(ranks))
        if missing:
            yield f"of {len(expected_ranks)} ranks {len(missing)} left no trace: {_rank_list(missing)}."
    recordings = [verdict for verdict in group if not verdict.is_recovered]
    windows = [
        (verdict.window_ns, verdict.file.worker) for verdict in recordings if verdict.window_ns and verdict.window_ns[0]
    ]
    if len(windows) > 1:
        last_start, late = max((window[0], worker) for window, worker in windows)
        first_end, early = min((window[1], worker) for window, worker in windows)
        if last_start > first_end + _CLOCKS_DIFFER_NS:
            gap_ns = last_start - first_end
            words = "their clocks differ, or they didn't record the same steps."
            yield f"{late} begins {time(gap_ns)} after {early} ended: {words}"


def _rank_list(ranks: Iterable[int]) -> str:
    names = [f"rank {rank}" for rank in ranks]
    return ", ".join(names[:_MOST_LISTED]) + (", …" if len(names) > _MOST_LISTED else "")
