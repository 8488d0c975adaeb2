"""What lies under the logdirs: runs, workers, spans. Names and sizes only; no file is opened.

A run is a folder that holds traces, a worker one process of it, a span one recording of that worker. What a file name
of torch's form says is `kinetoscope.naming`'s business; the forms of other writers are listed here. A request never
becomes a path: its names are looked up in a `Listing`.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from kinetoscope.naming import parse

from .errors import LogdirError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Value = TypeVar("Value")

NO_SPAN = "default"

_REMOTE_STAMPS = ("ETag", "etag", "mtime", "LastModified", "updated", "created")  # what fsspec's file systems say
_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")
_EXTENSION = re.compile(r"\.json(\.gz|\.zst)?$")
_UNFINISHED = re.compile(r"\.(tmp|part|partial)(-[^.]*)?$")
_SPAN_FOLDER = re.compile(r"(?:iteration_|profiler-tensorboard-iter)(\d+)")  # torchtitan, torchtune; detectron2

# File names without their extension, by who writes them; without a worker, the whole name is one.
_OTHER_WRITERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<worker>rank-\d+)-step-(?P<span>\d+)\.chrome_trace",  # OLMo-core
        r"prof_start_(?P<span>\d+)_end_\d+_(?P<worker>rank_\d+)",  # verl
        r"ep\d+-ba(?P<span>\d+)-(?P<worker>rank\d+)",  # Composer
        r"(?P<worker>profiler(-trace)?)[-_]iter(?P<span>\d+)",  # detectron2
        r"(?P<span>.+?)-(?P<worker>TP-\d+(-(DP|PP|EP)-\d+)*(-(EXTEND|DECODE))?)\.trace",  # SGLang
        r"(?P<worker>rank\d+)_trace",  # torchtitan
        r"(?P<worker>trace)_(?P<span>\d+)",
        r"libkineto_(trace|activities)_.*",  # Kineto on demand
        r"profile_\d+|(.+-)?rank-\d+",  # accelerate; Megatron-LM, NeMo, TensorRT-LLM
        r"(?i:.*(trace|profile).*)",  # somebody's export_chrome_trace("trace.json")
    )
)

_WAIT_OR_DELETE = "it is being written, or its process ended too early. Delete it if nothing writes it."
_UNFINISHED_REASON = f"This recording isn't complete: {_WAIT_OR_DELETE}"
_EMPTY_REASON = f"This file is empty: {_WAIT_OR_DELETE}"


@dataclass(frozen=True)
class Logdir:
    """A folder (or one trace file) to list, and the name that its runs begin with."""

    path: str
    name: str = ""


@dataclass(frozen=True)
class TraceFile:
    """One span of one worker of one run.

    Args:
        path: What to open.
        shown: The path as the page shows it, relative to the logdir.
        stamp: Changes whenever the file does.
    """

    run: str
    worker: str
    span: str
    path: str
    shown: str
    bytes: int
    stamp: Any


@dataclass(frozen=True)
class Problem:
    """Something under a logdir that can't be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """All traces, in natural order of run, worker and span, and what can't be used."""

    files: tuple[TraceFile, ...] = ()
    problems: tuple[Problem, ...] = ()

    @cached_property
    def runs(self) -> dict[str, dict[str, dict[str, TraceFile]]]:
        """The files by run, worker and span, each in order."""
        runs: dict[str, dict[str, dict[str, TraceFile]]] = {}
        for file in self.files:
            runs.setdefault(file.run, {}).setdefault(file.worker, {})[file.span] = file
        return runs

    def find(self, run: str, worker: str, span: str) -> TraceFile:
        """Return the file of exactly these names.

        Raises:
            NotFound: There is no such run, worker or span.
        """
        workers = _look_up("run", run, self.runs)
        spans = _look_up("worker", worker, workers)
        return _look_up("span", span, spans)


def _look_up(what: str, name: str, known: Mapping[str, Value]) -> Value:
    if name not in known:
        raise NotFound(what, name, known)
    return known[name]


def parse_logdirs(logdir: str | None, logdir_spec: str | None = None) -> tuple[Logdir, ...]:
    """The logdirs of TensorBoard's two flags, by TensorBoard's own rules.

    `--logdir` is one path. `--logdir_spec` is a comma list of `path` or `name:path`; a name is put before the names of
    its runs, and where several paths have none, the last part of the path is.
    """
    parts = [logdir] if logdir else [part for part in (logdir_spec or "").split(",") if part]
    named = [("", logdir)] if logdir else [_name_and_path(part) for part in parts]
    is_only_one = len(named) == 1
    return tuple(Logdir(_absolute(path), name or ("" if is_only_one else _last_part(path))) for name, path in named)


def _name_and_path(part: str) -> tuple[str, str]:
    name, colon, path = part.partition(":")
    is_path = not colon or part.startswith("/") or _URL.match(part) or os.path.splitdrive(part)[0]
    return ("", part) if is_path else (name, path)


def _absolute(path: str) -> str:
    return path.rstrip("/") if _URL.match(path) else os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111


def _last_part(path: str) -> str:
    return PurePath(path.rstrip("/")).name or path


def list_traces(logdirs: Sequence[Logdir]) -> Listing:
    """List all logdirs; what can't be listed becomes a problem."""
    found = _Found()
    for logdir in logdirs:
        if not _URL.match(logdir.path) and os.path.isfile(logdir.path):  # noqa: PTH113
            found.add_given(logdir)
        else:
            _walk(logdir, found)
    return found.listing()


def list_given(path: str) -> Listing:
    """List one path that a person named: a trace file, whatever it is called, or a logdir.

    Raises:
        LogdirError: There is no such path, or it holds no trace.
    """
    logdir = Logdir(_absolute(path))
    listing = list_traces([logdir])
    if not listing.files:
        reasons = [f"{p.path}: {p.reason}" for p in listing.problems[:3]]
        advice = "A trace's name ends in .pt.trace.json or .pt.trace.json.gz; any other JSON file can be named itself."
        raise LogdirError("\n".join([f"There is no trace in {path}.", *(reasons or [advice])]))
    return listing


class _Found:
    """Collects files and problems; two files never share a run, worker and span."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str, str], TraceFile] = {}
        self.problems: list[Problem] = []

    def add_given(self, logdir: Logdir) -> None:
        name = PurePath(logdir.path).name
        parsed = _worker_and_span(name) or (_EXTENSION.sub("", name), "")
        entry = _stat_entry(logdir.path)
        self._add(logdir.name or PurePath(logdir.path).parent.name, parsed[0], parsed[1] or NO_SPAN, name, entry)

    def add(self, logdir: Logdir, folder: str, entry: _Entry) -> None:
        shown = "/".join(filter(None, [logdir.name, folder, entry.name]))
        finished = _UNFINISHED.sub("", entry.name)
        parsed = _worker_and_span(finished)
        if parsed is None:
            return
        if finished != entry.name:
            self.problems.append(Problem(_sayable(shown), _UNFINISHED_REASON))
        elif _sayable(shown) != shown:
            self.problems.append(
                Problem(_sayable(shown), "This name isn't UTF-8, so no address can hold it. Rename it.")
            )
        elif not entry.bytes:
            self.problems.append(Problem(shown, _EMPTY_REASON))
        else:
            worker, span = parsed
            run, span = _run_and_span(folder, span)
            run = "/".join(filter(None, [logdir.name, run])) or _last_part(logdir.path)
            self._add(run, worker, span, shown, entry)

    def _add(self, run: str, worker: str, span: str, shown: str, entry: _Entry) -> None:
        new = TraceFile(run, worker, span, entry.path, shown, entry.bytes, entry.stamp)
        there = self.files.setdefault((run, worker, span), new)
        if there is not new:
            reason = f"{there.shown} is the same span of the same worker; rename one of them."
            self.problems.append(Problem(shown, reason))

    def listing(self) -> Listing:
        files = sorted(self.files.values(), key=lambda f: (_natural(f.run), _natural(f.worker), _span_order(f.span)))
        return Listing(tuple(files), tuple(sorted(self.problems, key=lambda p: _natural(p.path))))


def _sayable(name: str) -> str:
    """The name, with what isn't UTF-8 in it made visible."""
    return name.encode(errors="backslashreplace").decode()


def _worker_and_span(name: str) -> tuple[str, str] | None:
    parsed = parse(name)
    if parsed is not None:
        return parsed.worker, "" if parsed.span is None else str(parsed.span)
    stem = _EXTENSION.sub("", name)
    match = next(filter(None, (form.fullmatch(stem) for form in _OTHER_WRITERS)), None) if stem != name else None
    if match is None:
        return None
    groups = match.groupdict()
    return groups.get("worker") or stem.removesuffix(".trace"), groups.get("span") or ""


def _run_and_span(folder: str, span: str) -> tuple[str, str]:
    """Run and span of a file; a folder that numbers its recordings is a span, if the file name has no number itself."""
    parent, _, last = folder.rpartition("/")
    numbered = _SPAN_FOLDER.fullmatch(last)
    if numbered and not span:
        return parent, numbered[1]
    return folder, span or NO_SPAN


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which rank10 comes after rank2."""
    return [(0, int(p), p) if p.isdigit() else (1, 0, p.casefold()) for p in re.findall(r"[0-9]+|[^0-9]+", name)]


def _span_order(span: str) -> tuple[bool, list[tuple[int, int, str]]]:
    return span != NO_SPAN, _natural(span)


@dataclass(frozen=True)
class _Entry:
    name: str
    path: str
    is_folder: bool
    is_link: bool
    bytes: int
    stamp: Any
    identity: Any  # the same for two ways to one folder


def _walk(logdir: Logdir, found: _Found) -> None:
    """Add every file under the logdir; links are followed, each folder is entered once."""
    folders, entered = [("", logdir.path)], set()
    while folders:
        folder, path = folders.pop()
        try:
            entries = sorted(_entries(path), key=lambda e: (e.is_link, _natural(e.name)))
        except (OSError, ValueError, ImportError) as error:
            shown = "/".join(filter(None, [logdir.name, folder])) or logdir.path
            found.problems.append(Problem(_sayable(shown), f"This folder can't be listed: {_reason(error)}."))
            continue
        for entry in entries:
            if entry.is_folder and entry.identity not in entered:
                entered.add(entry.identity)
                folders.append((f"{folder}/{entry.name}".lstrip("/"), entry.path))
            elif not entry.is_folder:
                found.add(logdir, folder, entry)


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text or type(error).__name__).rstrip(".")


def _entries(path: str) -> Iterator[_Entry]:
    """What lies in one folder, without what is hidden."""
    if _URL.match(path):
        yield from _remote_entries(path)
        return
    with os.scandir(path) as scan:
        for item in scan:
            if item.name.startswith("."):
                continue
            try:
                yield _entry(item.name, item.path, item.stat(), is_link=item.is_symlink())
            except OSError:  # a link to nothing, or a file that went away in the meantime
                continue


def _stat_entry(path: str) -> _Entry:
    return _entry(PurePath(path).name, path, os.stat(path), is_link=False)  # noqa: PTH116


def _entry(name: str, path: str, info: os.stat_result, *, is_link: bool) -> _Entry:
    identity = (info.st_dev, info.st_ino) if info.st_ino else path
    is_folder = stat.S_ISDIR(info.st_mode)
    return _Entry(name, path, is_folder, is_link, info.st_size, (info.st_size, info.st_mtime_ns), identity)


def _remote_entries(url: str) -> Iterator[_Entry]:
    from fsspec.core import url_to_fs  # imports slowly, and few logdirs are remote

    files, root = url_to_fs(url)
    files.invalidate_cache(root)
    for info in files.ls(root, detail=True):
        name = PurePath(info["name"].rstrip("/")).name
        if name.startswith(".") or info["name"].rstrip("/") == root.rstrip("/"):
            continue
        size = info.get("size") or 0
        changed = next((info[key] for key in _REMOTE_STAMPS if key in info), None)
        path = f"{url.rstrip('/')}/{name}"
        is_folder = info["type"] == "directory"
        yield _Entry(name, path, is_folder, is_link=False, bytes=size, stamp=(size, str(changed)), identity=path)
