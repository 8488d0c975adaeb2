"""Logdirs → listing: which files are traces, of which run, worker and span.

The worker of a file follows from the rank in its name, else from the rank and host in its first bytes, else from the
host and process in its name. A file is listed even if all of these are missing, or if another file has the same names.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import chain, count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_config_path

from kinetoscope.naming import parse_snapshot, worker_of_rank
from kinetoscope.output.manifest import NAME

from ..errors import LogdirError, MissingPath, TraceError
from ..filesystem import (
    Entry,
    Folder,
    dangling_link,
    entry_at,
    exists,
    folders,
    is_url,
    last_part,
    names_in,
    printable,
    stored_bytes,
)
from ..names.communication_patterns import FILE_NAME, NO_PATTERNS, BadPattern, CommunicationPatterns, parse_patterns
from ..names.natural_sort import natural_key
from ..names.processes import Process
from .filename_patterns import NO_SPAN, NameParts, finished_name, is_candidate, name_parts, run_and_name
from .header_probe import UNKNOWN, Head, Heads
from .listing import Listing, Problem, TraceFile, listing_of
from .logdirs import Logdir, absolute
from .manifest_notes import Manifest, Manifests, Note
from .processes import run_of_file, with_processes
from .recency import moment_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_WAIT_OR_DELETE = "it is being written, or its process ended too early. Delete it if nothing writes it."
_UNFINISHED = f"This recording isn't complete: {_WAIT_OR_DELETE}"
_EMPTY = f"This file is empty: {_WAIT_OR_DELETE}"
_SNAPSHOTS = "memory"
_WORK = ".work"  # of kinetoscope.scheduling.request, which a listing doesn't need
_MOST_PATTERN_BYTES = 1 << 16
_LEAST_PAUSE_NS = 10_000_000_000  # between the recordings of a job and those of the next in the same folder
_MOST_NOTES = 3  # notes of a run without traces
_NO_TRACE = (
    "Files in it and below it whose names end in .json, .pftrace, .perfetto-trace, .pickle, .pkl (also with .gz or "
    ".zst), .sqlite or .html are traces if their first bytes look like one; a file of another name must be given by "
    "its path."
)
_OF_JOB = (
    "A Tracer has recorded into it: `kinetoscope why` says how its job ended, and `kinetoscope recover` what it left."
)
_NOT_UTF8 = "This name isn't UTF-8, so no address can hold it. Rename it."


def list_traces(
    logdirs: Sequence[Logdir],
    heads: Heads | None = None,
    manifests: Manifests | None = None,
    patterns: CommunicationPatterns = NO_PATTERNS,
) -> Listing:
    """List all logdirs; what can't be listed becomes a problem.

    Args:
        logdirs: The folders, or files.
        heads: Cached heads of files from earlier listings.
        manifests: Cached manifests from earlier listings.
        patterns: Communication patterns in addition to those in the logdirs and in the user's configuration.
    """
    heads = heads or Heads()
    heads.begin()
    collector = _Collector(heads, manifests or Manifests(), patterns)
    for logdir in logdirs:
        file = entry_at(logdir.path) if _may_be_file(logdir.path) else None
        if file is not None:
            collector.add_file(logdir, file)
            continue
        for folder in folders(logdir.path, _is_listed):
            collector.add_folder(logdir, folder)
    return collector.listing()


def list_path(path: str, patterns: CommunicationPatterns = NO_PATTERNS) -> Listing:
    """List one path that the user gave: a trace file of any name, or a logdir; with further communication patterns.

    Raises:
        MissingPath: There is no such path.
        LogdirError: It can't be listed, or holds no trace.
    """
    return list_paths([Logdir(absolute(path))], [path], patterns)


def list_paths(
    logdirs: Sequence[Logdir], paths: Sequence[str], patterns: CommunicationPatterns = NO_PATTERNS
) -> Listing:
    """List logdirs as `list_path` does, whose paths the user wrote so.

    Raises:
        MissingPath: One doesn't exist.
        LogdirError: They can't be listed, or hold no trace.
    """
    for path in paths:
        full_path = absolute(path)
        if not is_url(full_path) and not exists(full_path):
            raise MissingPath(_missing(path, full_path))
    listing = list_traces(logdirs, Heads(most_remote=256), patterns=patterns)
    if not listing.files:
        reasons = [f"{p.path}: {p.reason}" for p in listing.problems[:3]] or [_OF_JOB if listing.jobs else _NO_TRACE]
        raise LogdirError("\n".join([f"There is no trace in {', '.join(paths)}.", *reasons]))
    return listing


def _missing(path: str, full_path: str) -> str:
    """That there is nothing at a path as the user wrote it, and why."""
    if (link := dangling_link(full_path)) is not None:
        target = os.path.realpath(link)
        return f"There is no file or folder {path}: the link {link} leads to {target}, which doesn't exist."
    return f"There is no file or folder {path}.{_similar(full_path)}"


def _similar(path: str) -> str:
    """The name next to a missing path that was probably meant."""
    folder, _, name = path.replace("\\", "/").rstrip("/").rpartition("/")
    near = get_close_matches(name, names_in(folder or "/"), 1)
    return f" Did you mean {near[0]}?" if near else ""


def _is_listed(name: str) -> bool:
    return is_candidate(name) or name == FILE_NAME


@dataclass(frozen=True)
class _Candidate:
    """A trace with its parsed name and head."""

    run: str
    name: NameParts
    head: Head
    entry: Entry
    shown: str
    logdir: Logdir


class _Collector:
    """Collects traces and problems."""

    def __init__(self, heads: Heads, manifests: Manifests, patterns: CommunicationPatterns) -> None:
        self._heads, self._manifests = heads, manifests
        self._requested_patterns, self._patterns_of = patterns, dict[Logdir, CommunicationPatterns]()
        self._manifests_of_runs: dict[str, tuple[str, Entry, Manifest]] = {}
        self._paths: set[str] = set()
        self._jobs: dict[str, int] = {}
        self._candidates: list[_Candidate] = []
        self._problems: list[Problem] = []

    def add_file(self, logdir: Logdir, entry: Entry) -> None:
        """Add a file that the user gave: it is a trace whatever its name."""
        run = logdir.name or last_part(logdir.path.rpartition("/")[0] if is_url(logdir.path) else _parent(logdir.path))
        head = self._heads.head(entry)
        workers_only = Head(workers=head.workers, is_merged=head.is_merged)
        self._candidates.append(_Candidate(run, name_parts(entry.name), workers_only, entry, entry.name, logdir))
        if not is_url(logdir.path):
            patterns = entry_at(f"{_parent(logdir.path)}/{FILE_NAME}")
            if patterns is not None:
                self._add_patterns(logdir, patterns, FILE_NAME)

    def _add_patterns(self, logdir: Logdir, entry: Entry, path: str) -> None:
        self._patterns_of[logdir], problems = _patterns_in(entry, printable(path))
        self._problems += problems

    def add_folder(self, logdir: Logdir, folder: Folder) -> None:
        """Add the traces in a folder."""
        where = "/".join(filter(None, [logdir.name, folder.name]))
        if folder.problem:
            what = "This folder can't be listed" if folder.name else "It can't be opened"
            reason = f"{what}: {folder.problem}."
            self._problems.append(Problem(printable(where or logdir.path), reason))
        if not is_url(logdir.path) and (began_ns := _job_began_ns(Path(logdir.path, folder.name))) is not None:
            self._jobs[where or last_part(logdir.path)] = began_ns
        for entry in folder.entries:
            if entry.name == FILE_NAME:
                if not folder.name:
                    self._add_patterns(logdir, entry, f"{where}/{entry.name}".lstrip("/"))
                continue
            self._paths.add(entry.path)
            manifest = self._manifests.manifest(entry) if entry.name == NAME else None
            if manifest is not None:
                self._manifests_of_runs[where or last_part(logdir.path)] = (where, entry, manifest)
                continue
            self._add(logdir, folder.name, entry, f"{where}/{entry.name}".lstrip("/"))

    def _add(self, logdir: Logdir, folder: str, entry: Entry, path: str) -> None:
        name = name_parts(finished_name(entry.name))
        by_name = _reason_by_name(entry, path)
        head = UNKNOWN if by_name in (_UNFINISHED, _EMPTY) else self._head(entry, name)
        problem = by_name or head.problem
        if problem:
            if name.looks_right or head.is_trace:
                self._problems.append(Problem(printable(path), problem))
        elif name.is_certain or head.is_trace or (head.is_trace is None and name.looks_right):
            run, name = run_and_name(folder, name)
            run = "/".join(filter(None, [logdir.name, run])) or last_part(logdir.path)
            self._candidates.append(_Candidate(run, name, head, entry, path, logdir))

    def _head(self, entry: Entry, name: NameParts) -> Head:
        """The head of a file, if reading it is worth it."""
        is_named_fully = name.is_certain and name.says_rank
        return UNKNOWN if is_named_fully and is_url(entry.path) else self._heads.head(entry)

    def listing(self) -> Listing:
        """The collected traces and problems."""
        by_user, problems = _user_patterns()
        self._problems += problems
        patterns = {
            logdir: self._requested_patterns + self._patterns_of.get(logdir, NO_PATTERNS) + by_user
            for logdir in {candidate.logdir for candidate in self._candidates}
        }
        files = _distinct(_by_process(_merged_apart(self._candidates)), patterns)
        runs = {file.run for file in files}
        names = {(file.run, file.worker, file.span) for file in files}
        notes_of_run = {}
        for run, (where, entry, manifest) in self._manifests_of_runs.items():
            notes_of_run[run] = notes = manifest.notes_with_lost_files(
                partial(self._is_there, entry), partial(_has_trace, names, run)
            )
            if run not in runs and notes:
                path, texts = f"{where}/{entry.name}".lstrip("/"), " ".join(note.text for note in notes[:_MOST_NOTES])
                self._problems.append(Problem(printable(path), f"This run has no trace. {texts}"))
        listing = listing_of(
            [_with_notes(file, notes_of_run.get(file.run, ())) for file in files], self._problems, notes_of_run
        )
        jobs = {run: began_ns for run, began_ns in self._jobs.items() if run not in runs}
        workers = {candidate.entry.path: candidate.head.workers for candidate in self._candidates}
        return with_processes(
            replace(listing, jobs=jobs), lambda file: [Process(name, name) for name in workers[file.path]]
        )

    def _is_there(self, manifest: Entry, file: str) -> bool:
        """Whether a file exists below the folder of a manifest."""
        path = manifest.path.removesuffix(manifest.name) + file
        return path in self._paths or entry_at(path) is not None


def _job_began_ns(folder: Path) -> int | None:
    """When the newest process of a run began, in ns since 1970; None if no Tracer recorded into it."""
    try:
        return (folder / _WORK).stat(follow_symlinks=False).st_mtime_ns
    except (OSError, ValueError):  # a name that none can have
        return None


def _merged_apart(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """The candidates; files into which others were merged are runs by themselves, not workers among their parts.

    The memory snapshots that our recorder wrote into a run are one run: it has the ranks and spans of the traces.
    """

    def run(candidate: _Candidate) -> str:
        is_ours = candidate.head.is_snapshot and parse_snapshot(candidate.entry.name) is not None
        return f"{candidate.run}/{_SNAPSHOTS}" if is_ours else run_of_file(candidate.run, candidate.shown)

    return [replace(c, run=run(c)) if c.head.has_own_run else c for c in candidates]


def _has_trace(names: Collection[tuple[str, str, str]], run: str, span: int, rank: int) -> bool:
    """Whether a run has a trace of a span and a rank, by the recorder's own names."""
    return (run, worker_of_rank(rank), str(span)) in names


def _with_notes(file: TraceFile, notes: tuple[Note, ...]) -> TraceFile:
    """The file with the notes about its run and its span."""
    return replace(file, notes=tuple(note for note in notes if note.span in ("", file.span))) if notes else file


def _may_be_file(path: str) -> bool:
    """Whether to check if a path is a file, which is slow for remote paths."""
    return not is_url(path) or "." in last_part(path)


def _parent(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[0]


def _reason_by_name(entry: Entry, path: str) -> str:
    """Why a file can't be used, if its name and size show it."""
    if finished_name(entry.name) != entry.name:
        return _UNFINISHED
    if entry.bytes == 0:
        return _EMPTY
    return _NOT_UTF8 if printable(path) != path else ""


def _by_process(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Name workers by their rank if the name has only host and process, and separate those that share a name.

    A restarted process has another process id, but the same rank and host: it is the same worker. So are processes
    without a rank that recorded one after the other. Workers of one name with different ranks or hosts are different:
    `name@rank8`, `name@host`.
    """
    by_name: dict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for candidate in _of_repeated_jobs(candidates):
        name, rank = candidate.name, candidate.head.rank
        worker = f"rank{rank}" if name.is_process and rank is not None else name.worker
        candidate_of_worker = replace(candidate, name=replace(name, worker=worker))
        by_name[candidate.run, worker].append(candidate_of_worker)
    return [part for group in by_name.values() for part in _split(group)]


def _of_repeated_jobs(candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    """The candidates; jobs of one process that recorded into the same folder in turn are one worker: their host.

    Ranks write their files at about the same time, a job that is started again some seconds later.
    """
    others: list[_Candidate] = []
    processes_of: dict[tuple[str, str], dict[str, list[_Candidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in candidates:
        name = candidate.name
        if name.is_process and candidate.head.is_trace and candidate.head.rank is None and moment_in(name.span):
            host = name.worker.rpartition("_")[0]
            processes_of[candidate.run, host][name.worker].append(candidate)
        else:
            others.append(candidate)
    yield from others
    for (_, host), processes in processes_of.items():
        moments = ([moment_in(recording.name.span) for recording in recordings] for recordings in processes.values())
        active = sorted((min(of_process), max(of_process)) for of_process in moments)
        pauses = [begin - end for (_, end), (begin, _) in pairwise(active)]
        is_repeated = bool(pauses) and min(pauses) >= _LEAST_PAUSE_NS
        for candidate in chain.from_iterable(processes.values()):
            name = replace(candidate.name, worker=host, is_process=False) if is_repeated else candidate.name
            yield replace(candidate, name=name)


def _split(group: list[_Candidate]) -> list[_Candidate]:
    """Workers of one name, distinguished by the rank and host in their first bytes."""
    without_rank = [candidate for candidate in group if not candidate.name.says_rank]
    ranks = {candidate.head.rank for candidate in without_rank} - {None}
    hosts = {candidate.head.host for candidate in without_rank} - {None}
    if len(ranks) < 2 and len(hosts) < 2:
        return group
    parts = []
    for candidate in group:
        by = f"rank{candidate.head.rank}" if len(ranks) > 1 else candidate.head.host
        is_parted = not candidate.name.says_rank and by not in (None, "rankNone")
        worker = f"{candidate.name.worker}@{by}" if is_parted else candidate.name.worker
        parts.append(replace(candidate, name=replace(candidate.name, worker=worker)))
    return parts


def _distinct(candidates: Iterable[_Candidate], patterns: Mapping[Logdir, CommunicationPatterns]) -> list[TraceFile]:
    """The files; if several have the same names, all but the first get their path as part of the span's name."""
    files: dict[tuple[str, str, str], TraceFile] = {}
    for c in sorted(candidates, key=lambda candidate: natural_key(candidate.shown)):
        label = c.name.span or NO_SPAN
        # Two logdirs of one name may even show two files under one path.
        more = (f"{label} ({c.shown}, {number})" for number in count(2))
        spans = chain((label, f"{label} ({c.shown})"), more)
        span = next(span for span in spans if (c.run, c.name.worker, span) not in files)
        file = TraceFile(
            c.run,
            c.name.worker,
            span,
            c.entry.path,
            c.shown,
            c.entry.bytes or 0,
            c.entry.stamp,
            c.head.started_ns,
            c.entry.modified_ns,
            patterns=patterns[c.logdir],
            has_own_run=c.head.has_own_run,
            is_snapshot=c.head.is_snapshot,
        )
        files[file.run, file.worker, file.span] = file
    return list(files.values())


def _user_patterns() -> tuple[CommunicationPatterns, list[Problem]]:
    """The patterns in the user's configuration folder, and what is wrong with them."""
    try:
        path = user_config_path("kinetoscope", appauthor=False) / FILE_NAME
    except RuntimeError:  # the user has no home folder
        return NO_PATTERNS, []
    entry = entry_at(str(path))
    return (NO_PATTERNS, []) if entry is None else _patterns_in(entry, f"{FILE_NAME} of the user's configuration")


def _patterns_in(entry: Entry, name: str) -> tuple[CommunicationPatterns, list[Problem]]:
    """The patterns in a file, and what is wrong with it; the other lines of the file still count."""
    try:
        patterns, bad = _parse_patterns(entry.path, str(entry.stamp))
    except TraceError as error:
        return NO_PATTERNS, [Problem(name, f"Its communication patterns can't be read: {error.problem}")]
    except ValueError as error:
        return NO_PATTERNS, [Problem(name, f"Its communication patterns can't be used: {error}")]
    return patterns, [Problem(name, f"Line {line.line}: {line.reason}") for line in bad]


@lru_cache(64)
def _parse_patterns(path: str, stamp: str) -> tuple[CommunicationPatterns, list[BadPattern]]:  # noqa: ARG001  # of the file
    """The patterns in a file; compiling some takes seconds, and logdirs are listed all the time.

    Raises:
        TraceError: It can't be read.
        ValueError: It isn't a text of at most 64 KiB.
    """
    content = stored_bytes(path, 0, _MOST_PATTERN_BYTES + 1)
    if len(content) > _MOST_PATTERN_BYTES:
        raise ValueError("the file is longer than 64 KiB. Shorten it.")
    try:
        return parse_patterns(content.decode("utf-8-sig").splitlines())
    except UnicodeDecodeError:
        raise ValueError("the file isn't UTF-8 text. Save it as UTF-8.") from None
