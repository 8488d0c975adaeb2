"""All traces by run, worker and span, with their names on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from kinetoscope.naming import snapshot_name

from ..errors import NotFound
from ..filesystem import Entry, last_part
from ..names.communication_patterns import NO_PATTERNS, CommunicationPatterns
from ..names.natural_sort import Key, natural_key
from ..names.processes import UNRANKED
from ..names.regex import regex
from ..names.roles import is_no_rank
from ..names.text import visible
from .filename_patterns import NO_SPAN, is_time
from .recency import run_recency, span_recency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .manifest_notes import Note

Value = TypeVar("Value")

CAPTURES = ("capture_traces", "graph_capture_profile")  # folders with recordings of how graphs were captured: vLLM's
# (v1/worker/gpu_model_runner.py) and SGLang's (srt/utils/profile_utils.py)
MOST_CHOICES = 200

# Folders that a trainer puts between a run and its traces: Composer; Megatron-LM; MMEngine; torchtitan; NeMo.
_PUT_BETWEEN = regex(r"(?P<run>.+?)(/(torch_traces|torch_profile|tf_tracing_logs|profiling/traces|device))+")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class TraceFile:
    """One span of one worker of one run.

    Args:
        path: What to open.
        shown: The path as the page shows it, relative to the logdir.
        bytes: Its size; 0 if the storage doesn't report it.
        stamp: Changes whenever the file does.
        started_ns: When the recording began, as the recorder wrote it, in ns since 1970; 0: unknown.
        modified_ns: When the file was last changed, in ns since 1970; 0: unknown.
        notes: Notes of the recorder about the run that concern the span. They aren't a part of the file.
        patterns: Users' patterns of names that are communication.
        captures: Recordings that say what its graphs launch, chosen by the user; None: they are searched next to it.
        process: Which process of the file it is, if the file holds several (`Process.id`).
        has_own_run: Whether the file is a run by itself, since others were merged into it, or it is a snapshot.
        is_snapshot: Whether it is a memory snapshot.
    """

    run: str
    worker: str
    span: str
    path: str
    shown: str
    bytes: int
    stamp: Any
    started_ns: int = field(default=0, compare=False)
    modified_ns: int = field(default=0, compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)
    patterns: CommunicationPatterns = NO_PATTERNS
    captures: tuple[Entry, ...] | None = None
    process: str | None = None
    has_own_run: bool = False
    is_snapshot: bool = False

    @property
    def version(self) -> Any:
        """Changes whenever answers may: with the file, the process and users' patterns."""
        version = (self.stamp, self.patterns.digest) if self.patterns else self.stamp
        return version if self.process is None else (version, self.process)

    @property
    def key(self) -> tuple[str, str | None]:
        """What is read: a file, or a process of it."""
        return self.path, self.process


@dataclass(frozen=True)
class Problem:
    """Something under a logdir that can't be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """All traces in natural order of run, worker and span; files that can't be used; notes about runs.

    `moved` has the first process of each file that holds several, by the names that the file had before that was known.
    `jobs` has the runs into which a Tracer records or recorded, but of which no trace is there: when the newest process
    of each began, in ns since 1970.
    """

    files: tuple[TraceFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: Mapping[str, tuple[Note, ...]] = field(default_factory=dict, compare=False)
    moved: Mapping[tuple[str, str, str], TraceFile] = field(default_factory=dict, compare=False)
    jobs: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def runs(self) -> dict[str, dict[str, dict[str, TraceFile]]]:
        """The files by run, worker and span, each in order."""
        runs: dict[str, dict[str, dict[str, TraceFile]]] = {}
        for file in self.files:
            runs.setdefault(file.run, {}).setdefault(file.worker, {})[file.span] = file
        return runs

    def find(self, run: str, worker: str, span: str) -> TraceFile:
        """Return the file with exactly these names.

        Raises:
            NotFound: There is no such run, worker or span.
        """
        if (first_process := self.moved.get((run, worker, span))) is not None:
            return first_process
        workers = _look_up("run", run, self.runs)
        spans = _look_up("worker", worker, workers)
        return _look_up("span", span, spans)

    def same_span_of_others(self, file: TraceFile) -> list[TraceFile]:
        """For each other worker of the run, its recording of the same span, or else the one in the same position.

        Span names are often times, and workers don't write their files at exactly the same time.
        """
        workers = self.runs[file.run]
        position = list(workers[file.worker]).index(file.span)
        files = []
        for worker, spans in workers.items():
            if worker != file.worker:
                files += [spans[file.span]] if file.span in spans else list(spans.values())[position : position + 1]
        return files

    def ranks(self, run: str) -> dict[str, dict[str, TraceFile]]:
        """The workers of a run that are ranks, by their spans; all workers, if none is a rank."""
        workers = self.runs.get(run, {})
        return {worker: spans for worker, spans in workers.items() if not is_no_rank(worker)} or workers

    def capture_choices(self, file: TraceFile) -> dict[str, Entry]:
        """Other recordings of a file's run, and of the captures below it, by their shown paths.

        Those of the captures come first, then those of the same worker; at most MOST_CHOICES.
        """
        captures = tuple(f"{file.path[: -len(last_part(file.path))]}{folder}/" for folder in CAPTURES)
        of_run = [candidate for candidate in self.files if candidate.run == file.run and candidate.path != file.path]
        of_run.sort(key=lambda candidate: candidate.worker != file.worker)
        others = [candidate for candidate in self.files if candidate.path.startswith(captures)] + of_run
        return {
            candidate.shown: Entry(last_part(candidate.path), candidate.path, candidate.bytes, candidate.stamp)
            for candidate in others[:MOST_CHOICES]
        }

    def snapshot_of(self, file: TraceFile) -> TraceFile | None:
        """The memory snapshot of the same worker and span that our recorder wrote next to a trace."""
        name = last_part(file.path)
        path = f"{file.path[: -len(name)]}{snapshot_name(name)}"
        paths = {path, f"{path}.gz", f"{path}.zst"}
        return next((other for other in self.files if other.is_snapshot and other.path in paths), None)

    @property
    def newest_run(self) -> str | None:
        """The name of the newest run with a trace, else of the newest one; None if there is no run."""
        return next(iter(_newest_runs(self.files)), max(self.jobs, key=self.jobs.__getitem__, default=None))

    def newest(self, **choice: str | None) -> tuple[TraceFile, dict[str, list[str]]]:
        """Return the recording of these names, and the names to choose from where several match, the chosen one first.

        By default it is of the newest run, of its first worker, and the newest of that.

        Args:
            choice: run, worker and span; None is any.

        Raises:
            NotFound: No recording has these names.
        """
        files = list(self.files)
        for level, name in choice.items():
            present = list(dict.fromkeys(getattr(file, level) for file in files))
            if name is not None and name not in present:
                raise NotFound(level, name, present)
            files = [file for file in files if name in (None, getattr(file, level))]
        choices = {}
        for level in choice:
            names = _in_order(level, files)
            if len(names) > 1:
                choices[level] = names
            files = [file for file in files if getattr(file, level) == names[0]]
        return files[0], choices


def recording_of_worker(listing: Listing, file: TraceFile, worker: str) -> TraceFile | None:
    """Another worker's recording of a file's run: of the same span, or else its newest; None: it has none."""
    own = [other for other in listing.files if (other.run, other.worker) == (file.run, worker)]
    same = next((other for other in own if other.span == file.span), None)
    return same or (listing.newest(run=file.run, worker=worker)[0] if own else None)


def newest_span(spans: Mapping[str, TraceFile]) -> str:
    """The newest recording of a worker."""
    return _newest_spans(spans.values())[0]


def _newest_runs(files: Iterable[TraceFile]) -> list[str]:
    """The runs of some recordings, the newest first; memory snapshots come after all traces."""
    latest: dict[str, tuple[bool, int, int, int, Key]] = {}
    for file in files:
        key = not file.is_snapshot, *run_recency(file.run, file.span, file.started_ns, file.modified_ns)
        latest[file.run] = max(key, latest.get(file.run, key))
    return sorted(latest, key=latest.__getitem__, reverse=True)


def _newest_spans(files: Iterable[TraceFile]) -> list[str]:
    """The recordings of one worker, the newest first."""
    keys = {file.span: span_recency(file.span, file.started_ns, file.modified_ns) for file in files}
    return sorted(keys, key=keys.__getitem__, reverse=True)


def _in_order(level: str, files: Sequence[TraceFile]) -> list[str]:
    """The names at a level, the default first: the newest run or span, but the first rank, or else the first worker."""
    if level == "run":
        return _newest_runs(files)
    if level == "worker":
        return sorted(dict.fromkeys(file.worker for file in files), key=_is_behind_ranks)
    return _newest_spans(files)


def _is_behind_ranks(worker: str) -> tuple[bool, bool]:
    """Whether a worker comes behind the ranks of its run: it is none, or a process of a file whose rank isn't known."""
    return is_no_rank(worker), worker.startswith(UNRANKED)


def _look_up(what: str, name: str, entries: Mapping[str, Value]) -> Value:
    if name not in entries:
        raise NotFound(what, name, entries)
    return entries[name]


def listing_of(
    files: Iterable[TraceFile], problems: Iterable[Problem], notes: Mapping[str, tuple[Note, ...]] | None = None
) -> Listing:
    """The listing of these, in natural order; workers that are no ranks come last."""

    def sort_key(file: TraceFile) -> tuple[Any, ...]:
        worker = is_no_rank(file.worker), natural_key(file.worker)
        return natural_key(file.run), worker, _span_order(file.span)

    in_order = sorted(files, key=sort_key)
    return Listing(tuple(in_order), tuple(sorted(problems, key=lambda problem: natural_key(problem.path))), notes or {})


def _span_order(span: str) -> tuple[bool, Key]:
    return span != NO_SPAN, natural_key(span)


def recording_title(run: str, worker: str, span: str) -> str:
    """A run, a worker or what stands for it, and the span if it has a name, as one line of text."""
    return visible(" · ".join((run, worker, *([span] if span not in ("", NO_SPAN) else []))))


def run_labels(runs: Iterable[str]) -> dict[str, str]:
    """Each run without the folders that a trainer puts between it and its traces, unless that makes it ambiguous."""
    names = list(runs)
    short = {run: match["run"] if (match := _PUT_BETWEEN.fullmatch(run)) else run for run in names}
    uses = Counter(short.values())
    return {run: short[run] if uses[short[run]] == 1 else run for run in names}


def span_labels(spans: Iterable[str]) -> dict[str, str]:
    """The display name of each span of a worker: a time as date and time of day, in seconds if that is unambiguous."""
    names = list(spans)
    times = {span: moment for span in names if (moment := _moment(span))}
    seconds = Counter(f"{moment:%Y-%m-%d %H:%M:%S}" for moment in times.values())
    labels = {}
    for span, moment in times.items():
        label = f"{moment:%Y-%m-%d %H:%M:%S}"
        labels[span] = f"{label} UTC" if seconds[label] == 1 else f"{label}.{moment.microsecond:06d} UTC"
    distinct = Counter(labels.values())
    return {span: labels[span] if distinct[labels.get(span, "")] == 1 else span for span in names}


def _moment(span: str) -> datetime | None:
    """When a span that is a time in ms, µs or ns was recorded; None for a number that is something else."""
    if not is_time(span):
        return None
    # torch wrote ms (up to 1.13) and writes ns; these have 13 and 19 digits from 2001 to 2286.
    unit = {13: 1_000, 16: 1, 19: None}.get(len(span), 0)
    if unit == 0:
        return None
    microseconds = int(span) // 1000 if unit is None else int(span) * unit
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
