"""Everything that is ever opened and that others may have written: one list, which the fuzzers walk.

`tests/unit/test_file_kinds.py` finds each call that opens a file, and asks that its module is here or in `OWN`. Each
kind names the tests that damage it; kinds with `whole` are damaged by `tests/fuzz/test_files_beside.py`, which puts
them next to a recording that must stay as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from support.build import TraceBuilder
from support.graphs import GraphRecording, Operator
from support.snapshots import MIB, Allocator, trained

BESIDE = "test_files_beside.py"
WORK = (Operator("aten::mm", (4, 4), 0, ("gemm",)), Operator("aten::add", (4,), 1, ("add", "norm")))
GOOD = "good/rank0.1.pt.trace.json"
"""The recording that stays as it is: it replays a graph, so that files next to it are read."""


@dataclass(frozen=True)
class FileKind:
    """Files of one format.

    Args:
        readers: The modules that open them.
        tests: The files of tests/fuzz that damage them.
        whole: Whole ones by their path in a logdir: JSON values, or bytes of any other format.
    """

    readers: frozenset[str]
    tests: frozenset[str]
    whole: Callable[[], Mapping[str, Any]] | None = None


def _readers(*names: str) -> frozenset[str]:
    return frozenset(names)


_TRACE = _readers(
    "kinetoscope_tb.reader",
    "kinetoscope_tb.reader.event",
    "kinetoscope_tb.reader.input.source",
    "kinetoscope_tb.discovery.header_probe",
)
_DATABASE = _readers(
    "kinetoscope_tb.filesystem.databases",
    "kinetoscope_tb.reader.nsight.event",
    "kinetoscope_tb.reader.nsight.ingest",
    "kinetoscope_tb.discovery.header_probe",
)
_COPIES = _readers("kinetoscope_tb.export.merge", "kinetoscope_tb.export.publish", "kinetoscope_tb.export.repair")
_RUN_FOLDER = frozenset({"test_run_folder.py"})


def _memory_timeline() -> dict[str, Any]:
    sizes = [[100, *(10 * (at % 3) for _ in range(8))] for at in range(4)]
    return {"memory/rank0.json": [[-1, 10, 20, 30], sizes]}


def _raw_memory_timeline() -> dict[str, Any]:
    return {"memory/rank1.raw.json": [[-1, 2, 64, 0], [1000, 1, 512, 3], [2000, 3, 512, 3], [3000, 0, 64, 9]]}


def _node_notes() -> dict[str, Any]:
    stacks = {"4294967296": "train.py:3:step\nmodel.py:9:forward", "4294967297": "a.py:1:f"}
    marks = {"4294967296": [{"name": "forward"}], "4294967298": []}
    return {"good/kernel_py_stacks.json": stacks, "good/kernel_annotations.json": marks}


def _capture() -> dict[str, Any]:
    replays = GraphRecording("rocm").replayed(WORK, 1).replayed(WORK, 1)
    return {
        "graphs/rank0.1.pt.trace.json": json.loads(replays.builder.text()),
        "graphs/capture_traces/graph_rank0.json": json.loads(GraphRecording("rocm").captured(WORK).builder.text()),
        "good/capture_traces/graph_rank0.json": {"traceEvents": []},
    }


def _patterns() -> dict[str, Any]:
    return {"communication_patterns.txt": b"# ours\nmy_allreduce\nrange: my_library::\n[broken\n"}


def _manifest() -> dict[str, Any]:
    saved = {"state": "saved", "file": "rank0.1.pt.trace.json", "problem": "repaired"}
    windows = [{"span": 1, "ranks": {"0": saved, "1": {"state": "lost", "problem": "disk full"}}}]
    return {
        "good/run.json": {"schema": 1, "world_size": 2, "ranks": [{"rank": 1, "state": "killed"}], "windows": windows}
    }


def _trace() -> dict[str, Any]:
    return {"other/rank0.1.pt.trace.json": json.loads(TraceBuilder().step(5, 0, 900).op("aten::mm", 5, 90).text())}


def _snapshot() -> dict[str, Any]:
    allocator = Allocator(8 * MIB << 7)
    trained(allocator, 2, activation=4 * MIB)
    return {"memory/snapshot.pickle": allocator.dumped()}


def _speedscope() -> dict[str, Any]:
    samples = {"type": "sampled", "name": "Thread 1", "unit": "seconds", "startValue": 0}
    events = {"type": "evented", "name": "main", "unit": "microseconds", "startValue": 1}
    ends = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in (("O", 0, 2), ("O", 1, 3), ("C", 1, 4))]
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "profiles": [samples | {"samples": [[0], [0, 1], []], "weights": [0.01, 0.02, 1]}, events | {"events": ends}],
        "shared": {"frames": [{"name": "main", "file": "train.py", "line": 3}, {"name": "load"}]},
        "exporter": "py-spy@0.4.3",
    }
    return {"good/rank0.speedscope.json": document}


KINDS = {
    "trace": FileKind(
        _TRACE, frozenset({"test_any_value_in_any_field.py", "test_reader.py", "test_views.py", BESIDE}), _trace
    ),
    "Perfetto trace": FileKind(_TRACE, frozenset({"test_perfetto.py"})),
    "Nsight export": FileKind(_DATABASE, frozenset({"test_nsight.py"})),
    "speedscope": FileKind(_TRACE, frozenset({BESIDE}), _speedscope),
    "memory timeline": FileKind(_TRACE, frozenset({BESIDE}), _memory_timeline),
    "raw memory timeline": FileKind(_TRACE, frozenset({BESIDE}), _raw_memory_timeline),
    "memory snapshot": FileKind(_TRACE, frozenset({BESIDE, "test_snapshots.py"}), _snapshot),
    "trace that is copied": FileKind(_COPIES, frozenset({"test_any_value_in_any_field.py", "test_reader.py"})),
    "notes about graphs": FileKind(_readers("kinetoscope_tb.reader.node_notes"), frozenset({BESIDE}), _node_notes),
    "capture": FileKind(_readers("kinetoscope_tb.engine.capture_search"), frozenset({BESIDE}), _capture),
    "communication patterns": FileKind(_readers("kinetoscope_tb.discovery.scanner"), frozenset({BESIDE}), _patterns),
    "manifest": FileKind(
        _readers(
            "kinetoscope_tb.discovery.manifest_notes",
            "kinetoscope.output.manifest",
            "kinetoscope.journal.prune",
            "kinetoscope.session.budgeted_windows",
        ),
        frozenset({"test_jobs.py", "test_run_folder.py", BESIDE}),
        _manifest,
    ),
    "dump of the flight recorder": FileKind(
        _readers("kinetoscope_tb.reader.flight_recorder.files"), frozenset({"test_flight_recorder.py"})
    ),
    "summaries of a run": FileKind(_readers("kinetoscope_tb.engine.cache.pack"), frozenset({"test_summaries.py"})),
    "cache entry": FileKind(
        _readers("kinetoscope_tb.engine.cache.folder"), frozenset({"test_cache_entries.py", "test_summaries.py"})
    ),
    "status of a rank": FileKind(_readers("kinetoscope.output.manifest"), _RUN_FOLDER),
    "journal": FileKind(
        _readers("kinetoscope.journal.journal", "kinetoscope.journal.recover"),
        frozenset({"test_jobs.py", "test_run_folder.py"}),
    ),
    "last minutes": FileKind(_readers("kinetoscope.output.ring"), frozenset({"test_last_minutes.py"})),
    "request": FileKind(_readers("kinetoscope.scheduling.request"), frozenset({"test_jobs.py", "test_run_folder.py"})),
    "plan": FileKind(_readers("kinetoscope.scheduling.consensus"), _RUN_FOLDER),
    "attempt of a job": FileKind(_readers("kinetoscope.job.run_attempts"), _RUN_FOLDER),
    "queue of recordings": FileKind(
        _readers(
            *("kinetoscope.output.spool", "kinetoscope.output.writer_process", "kinetoscope.output.writer_client"),
            *("kinetoscope.session.results", "kinetoscope.output.commit", "kinetoscope.output.upload"),
        ),
        _RUN_FOLDER,
    ),
    "conditions of a recording": FileKind(
        _readers("kinetoscope_tb.compare.gate.conditions"), frozenset({"test_gate_conditions.py"})
    ),
    "unfinished recording": FileKind(_readers("kinetoscope.output.chrome", "kinetoscope.output.commit"), _RUN_FOLDER),
}

OWN = {
    "kinetoscope.composer.json_traces.handler": "what torch wrote for this process, a moment ago",
    "kinetoscope.composer.json_traces.node_file": "what the ranks of this node write, in a folder of the job",
    "kinetoscope.job.cluster": "what Kubernetes mounts into each pod",
    "kinetoscope.job.job_store": "/proc",
    "kinetoscope.output.process_watch": "/proc and /sys",
    "kinetoscope.process_id": "/proc",
    "kinetoscope.profiling.memory_picture": "what torch wrote for this process, a moment ago",
    "kinetoscope.sampling.clock_sync": "/proc",
    "kinetoscope.sampling.cpu_times": "/proc",
    "kinetoscope.sampling.procfs": "/proc",
    "kinetoscope.sampling.usable_cores": "/proc and /sys",
    "kinetoscope.selftest.abilities": "what this process wrote, a moment ago",
    "kinetoscope.selftest.deaths": "what its own trainings wrote",
    "kinetoscope.signals.system_calls": "/proc",
    "kinetoscope.signals.thread_states": "/proc",
    "kinetoscope.atomic_write": "what is published, where a link to it isn't possible",
    "kinetoscope.path_below": "opens for the modules above",
    "kinetoscope_tb.cli.gate_machine": "/proc and /sys",
    "kinetoscope_tb.cli.gate_record": "what the user's command printed into our file",
    "kinetoscope_tb.arrays.pages": "memory, no file",
    "kinetoscope_tb.cli.process": "/dev/null",
    "kinetoscope_tb.engine.cache.version": "our own sources",
    "kinetoscope_tb.engine.sidecar_summaries": "what this process wrote into a temporary folder",
    "kinetoscope_tb.filesystem.atomic_write": "files that are written",
    "kinetoscope_tb.filesystem.files": "opens for the modules above",
    "kinetoscope_tb.filesystem.regular_files": "opens for the modules above",
    "kinetoscope_tb.notebook.widget": "a script of the package",
    "kinetoscope_tb.web.assets": "the page, which comes with the package",
    "kinetoscope_tb.web.encode": "a file of the package",
    "kinetoscope_tb.web.frame": "a script of the package",
    "kinetoscope_tb.web.standalone.application": "the page, which comes with the package",
}
"""Modules that open files which nobody else writes, and why these can be trusted."""
