"""File names: which process recorded a file, and which of its recordings it is.

`kinetoscope.naming` parses the names of torch's handler; the patterns here are those of other writers, taken from their
sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from kinetoscope.naming import parse, parse_snapshot

from ..names.regex import regex

NO_SPAN = "default"
MOST_REMEMBERED = 1 << 14  # names, parsed again for each listing

_EXTENSION = regex(r"\.((json|pftrace|perfetto-trace|pickle|pkl)(\.gz|\.zst)?|sqlite|html)$")
_SNAPSHOT = regex(r"\.((pickle|pkl)(\.gz|\.zst)?|html)$")  # others have such names too
_PERFETTO = regex(r"(\.pt\.trace)?\.(pftrace|perfetto-trace)(\.gz|\.zst)?$")
_NSIGHT = regex(r"(?:(?P<span>.+?)[._-])?(?P<worker>rank[-_]?\d+)\.sqlite")  # -o report.rank%q{RANK}
_UNFINISHED = regex(r"\.(tmp|part|partial)(-[^.]*)?$")

# A number of 12 digits or more is a time in ms, µs or ns, and no step.
_TIME_DIGITS = 12

# torch's form with a time or more in the worker; without a group `span`, the number behind the worker is the span.
_TORCH_WORKERS = tuple(
    regex(pattern)
    for pattern in (
        r"(?P<worker>r\d+)-\d+-\d+-\d+-\d+-\d+",  # torchtune: rank and minute
        r"(?P<worker>rank-\d+)\.(?P<span>[A-Z][a-z]{2}_\d\d_\d\d_\d\d_\d\d)",  # Meta: rank and second
        r"(?P<worker>worker_\d+)_epoch_(?P<span>\d+)",  # Ray Train
    )
)

# File names without their extension; without a worker, the whole name is one.
_OTHER_WRITERS = tuple(
    regex(pattern)
    for pattern in (
        r"(?P<worker>rank-\d+)-step-(?P<span>\d+)\.chrome_trace",  # OLMo-core
        r"prof_start_(?P<span>\d+)_end_\d+_(?P<worker>rank_\d+)",  # verl
        r"ep\d+-ba(?P<span>\d+)-(?P<worker>rank\d+)",  # Composer
        r"(?P<worker>profiler(-trace)?)[-_]iter(?P<span>\d+)",  # detectron2
        r"(?P<span>.+?)-(?P<worker>TP-\d+(-(DP|PP|EP)-\d+)*(-(EXTEND|DECODE))?)\.trace",  # SGLang
        r".+-global-(?P<worker>rank\d+)\.trace",  # SGLang's diffusion
        r"bs_(?P<span>\d+)_(?P<worker>rank\d+)",  # SGLang's captures of graphs: the batch size
        r"(?P<span>\w+Runner_bs_\d+\w*?)_(?P<worker>rank\d+)",  # of SGLang 0.5.23: of which runner, too
        r"cuda_graph_capture-(?P<span>\w+)-(?P<worker>TP-\d+)",  # and of all sizes
        r"(?P<worker>rank\d+)_trace",  # torchtitan
        r"(?P<worker>trace)_(?P<span>\d+)",
        r"libkineto_(trace|activities)_.*",  # Kineto on demand
        r"profile_\d+|(.+-)?rank-\d+",  # accelerate; Megatron-LM, NeMo, TensorRT-LLM
    )
)
_SPEAKING = regex(r"trace|profil", re.IGNORECASE)  # such as export_chrome_trace("trace.json")

# A rank over the whole job ends a name. (Lightning's `fit-0-[Strategy]…` is the rank on one machine.)
_RANK = regex(r"(?:.*[^a-zA-Z])?(?:rank|worker|profile)[-_]?\d+|r\d+|TP-\d+.*", re.IGNORECASE)
_HOST_AND_PROCESS = regex(r".+_\d+")

# Folders that number recordings: torchtitan and torchtune; detectron2. torchtitan may have one more folder below.
_SPAN_FOLDER = regex(r"(?:(?P<parent>.*)/)?(?:iteration_|profiler-tensorboard-iter)(?P<span>\d+)(?P<leaf>/[^/]+)?")


@dataclass(frozen=True)
class NameParts:
    """A parsed file name.

    Args:
        worker: The process that recorded it.
        span: Which of its recordings it is; empty if the name has none.
        says_rank: Whether the worker's name contains the rank.
        is_process: Whether the worker's name has only host and process.
        is_certain: Whether only traces have such names.
        looks_right: Whether the name looks like that of a trace.
    """

    worker: str
    span: str = ""
    says_rank: bool = False
    is_process: bool = False
    is_certain: bool = False
    looks_right: bool = True


def is_candidate(name: str) -> bool:
    """Whether a file of this name may be a trace, or an unfinished one."""
    return _EXTENSION.search(finished_name(name)) is not None


def without_extension(name: str) -> str:
    """The name of a trace file without what only says that it is one."""
    return _EXTENSION.sub("", name).removesuffix(".trace").removesuffix(".pt")


def finished_name(name: str) -> str:
    """The final name of a file that is being written."""
    return _UNFINISHED.sub("", name)


@lru_cache(MOST_REMEMBERED)
def name_parts(name: str) -> NameParts:
    """Parse the name of a JSON, Perfetto or SQLite file, or of a memory snapshot."""
    if report := _NSIGHT.fullmatch(name):
        return NameParts(report["worker"], report["span"] or "", says_rank=True)
    stem = _EXTENSION.sub("", name)
    if _SNAPSHOT.search(name):
        return _of_snapshot(name, stem)
    is_perfetto = _PERFETTO.search(name) is not None
    torch_name = _PERFETTO.sub("", name) + ".pt.trace.json" if is_perfetto else name.removesuffix(".zst")
    parts = parse(torch_name)
    if is_perfetto and not stem.endswith(".pt.trace") and any(form.fullmatch(stem) for form in _OTHER_WRITERS):
        parts = None
    if parts is not None:
        return _in_torch_form(parts.worker, "" if parts.span is None else str(parts.span))
    match = next(filter(None, (form.fullmatch(stem) for form in _OTHER_WRITERS)), None)
    if match is None:
        return NameParts(stem.removesuffix(".trace"), looks_right=_SPEAKING.search(stem) is not None)
    groups = match.groupdict()
    worker = groups.get("worker") or stem
    is_process = stem.startswith("libkineto_")
    return NameParts(worker, groups.get("span") or "", _says_rank(worker), is_process)


def _of_snapshot(name: str, stem: str) -> NameParts:
    """The parts of a memory snapshot's name: the recorder names it like the trace of the same span."""
    recorder_name = parse_snapshot(name)
    if recorder_name is None:
        return NameParts(stem, looks_right=False)
    trace, mark = recorder_name
    ending = ".json" if any(form.fullmatch(trace) for form in _OTHER_WRITERS) else ".pt.trace.json"
    parts = name_parts(f"{trace}{ending}")
    return replace(parts, span=f"{parts.span}{mark}".lstrip("."), is_certain=False, looks_right=False)


def _in_torch_form(worker: str, span: str) -> NameParts:
    match = next(filter(None, (form.fullmatch(worker) for form in _TORCH_WORKERS)), None)
    groups = match.groupdict() if match else {}
    worker, span = groups.get("worker") or worker, ".".join(filter(None, [groups.get("span"), span]))
    return NameParts(worker, span, _says_rank(worker), is_process_name(worker), is_certain=True)


def is_process_name(worker: str) -> bool:
    """Whether the name of a worker has only host and process, as torch names it: no rank."""
    return not _says_rank(worker) and _HOST_AND_PROCESS.fullmatch(worker) is not None


def _says_rank(worker: str) -> bool:
    return _RANK.fullmatch(worker) is not None


def is_time(span: str) -> bool:
    """Whether a span is the time at which it was recorded."""
    return span.isdecimal() and len(span) >= _TIME_DIGITS


def run_and_name(folder: str, name: NameParts) -> tuple[str, NameParts]:
    """The run of a file in a folder, and its name; a folder that numbers recordings is the span, not a run.

    If the name has its own number, the span is that, unless it is only a time.
    """
    match = _SPAN_FOLDER.fullmatch(folder)
    if not match or (name.span and not is_time(name.span)):
        return folder, name
    run = f"{match['parent'] or ''}{match['leaf'] or ''}".lstrip("/")
    return run, replace(name, span=match["span"])
