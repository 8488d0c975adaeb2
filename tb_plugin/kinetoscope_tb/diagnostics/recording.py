"""What the profiler cost, lost, or left out by its options: its own code in steps, names, options that were off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.gather import map_categories
from ..arrays.intervals import length_within
from ..measures.recording.contents import has_stacks
from ..measures.recording.processor_use import ProcessorTime
from ..measures.recording.torch_version import MEMORY_TIMELINE, NSIGHT, writer
from ..measures.time.breakdown import intervals_of
from ..names.text import percent
from ..trace import Diagnostic, Trace
from ..trace.meta import positive_int
from ..trace.row_filters import is_operator

_NOTICEABLE = 0.01  # of the recording
_LEAST_THREAD_NS, _LEAST_SHARE = 20_000_000, 0.1
"""What a progress bar or a logger uses is less; schedulers count a running thread's time with an error of some ms."""
_OURS = "kinetoscope-"
_MOST_NAMED, _LONGEST_NAME = 3, 60
_LOST_NAMES = ("unknown", "")
_REMEDIES = {  # by the writers whose files have other options than torch's
    NSIGHT: "Nsight Systems has them if the steps run inside torch.autograd.profiler.emit_nvtx(record_shapes=True) or "
    "under `nsys profile --pytorch=autograd-shapes-nvtx`.",
    MEMORY_TIMELINE: "This file has memory alone: open the trace of the same run, too.",
}


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Recovery, steps, threads and names, then options."""
    if trace.meta.producer.get("is_recovered") is True:
        yield Diagnostic(
            "recovered",
            1,
            f"The process ended without closing its recording: killed, out of memory, or crashed. {_left(trace)}",
        )
    yield from _steps_counted_twice(trace)
    yield from _unrecorded_threads(trace)
    yield from _lost_names(trace)
    yield from _profiler_in_steps(trace)
    written_by = writer(trace)
    remedy = _REMEDIES.get(written_by or "", "Add ProfilerActivity.CPU to the profiler's activities.")
    if not is_operator(trace).any() and trace.meta.events:
        yield Diagnostic(
            "operators_off",
            1,
            f"No operators were recorded, so nothing is known about the model's own code. {remedy}",
            level="note",
        )
    if written_by not in _REMEDIES:
        yield from _options(trace)


def _left(trace: Trace) -> str:
    """What a trace has that was recovered from a journal."""
    content = "This trace, from its journal, has steps, markers and counters"
    if trace.meta.producer.get("is_window_lost") is False:
        return f"{content} that are in no recording. No recording is lost."
    return f"{content}. Operators and kernels are lost."


def _steps_counted_twice(trace: Trace) -> Iterator[Diagnostic]:
    """A loop over the recorder's `steps()` that calls its `step()` too."""
    if count := positive_int(trace.meta.producer.get("double_steps")):
        yield Diagnostic(
            "steps_counted_twice",
            count,
            "The training calls step() in a loop over steps(), which counts the batches itself. The recorder counted "
            "each batch once, so the steps are right. Remove one of the two calls.",
        )


def _unrecorded_threads(trace: Trace) -> Iterator[Diagnostic]:
    """Processor time of threads without operators in the trace.

    torch.profiler records the thread that started it and those of autograd. Our recorder writes how much processor time
    each thread used in the window (`kinetoscope.cpu`). Threads of libraries, such as those that share an operator's
    loop, belong to operators of recorded threads; so only Python's threads count, and those that ended in the window.
    """
    cpu = ProcessorTime.of(trace.meta)
    if cpu is None or trace.meta.has_option("all_threads"):
        return
    rows = [thread for thread in cpu.threads if not thread.name.startswith(_OURS)]
    with_rows = trace.threads[trace.host_events["thread"].unique()]["tid"].to_list()
    used_ns = sum(thread.used_ns for thread in rows if str(thread.tid) in with_rows)
    without_rows = [
        (thread.name, thread.used_ns) for thread in rows if thread.name and str(thread.tid) not in with_rows
    ]
    if cpu.process_ns > cpu.alive_ns + _LEAST_THREAD_NS:
        without_rows.append(("threads that ended", cpu.process_ns - cpu.alive_ns))
    hidden_ns = sum(ns for _, ns in without_rows)
    if hidden_ns >= max(_LEAST_THREAD_NS, _LEAST_SHARE * cpu.process_ns):
        without_rows.sort(key=lambda thread: -thread[1])
        names = ", ".join(name[:_LONGEST_NAME] for name, _ in without_rows[:_MOST_NAMED])
        more = f" and {len(without_rows) - _MOST_NAMED} more" if without_rows[_MOST_NAMED:] else ""
        yield Diagnostic(
            "threads_not_recorded",
            len(without_rows),
            f"The recorded threads used {_s(used_ns)} of the process's {_s(cpu.process_ns)} of CPU time in this window;"
            f" {_s(hidden_ns)} are of threads that weren't recorded ({names}{more}), whose operators are missing: "
            "Tracer(all_threads=True) records them (torch 2.7).",
        )


def _s(ns: int) -> str:
    return f"{ns / 1e9:.3g} s"


def _lost_names(trace: Trace) -> Iterator[Diagnostic]:
    """Events with the name `unknown`, or an empty one."""
    frames = (trace.host_events, trace.python_calls, trace.device_events)
    masks = (map_categories(frame["name"], lambda name: name in _LOST_NAMES, missing=True) for frame in frames)
    offsets = np.concatenate([frame["offset"].to_numpy()[mask] for frame, mask in zip(frames, masks, strict=True)])
    if offsets.size:
        yield Diagnostic(
            "names_lost",
            int(offsets.size),
            "The profiler wrote `unknown` or nothing instead of a name; since torch 2.7 it does so for every name with "
            "a non-ASCII character (kineto 7ae1ce85). Use ASCII in record_function and in file names.",
            int(offsets.min()),
        )


def _profiler_in_steps(trace: Trace) -> Iterator[Diagnostic]:
    """Python frames of the profiler itself, as far as they lie within steps."""
    calls = trace.python_calls
    own = calls.filter(pl.Series(map_categories(calls["name"], lambda name: "torch/profiler/" in name)))
    start, end = (trace.steps[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    length, own_ns = int((end - start).sum()), int(length_within(intervals_of(own), start, end).sum())
    if length and own_ns > _NOTICEABLE * length:
        yield Diagnostic(
            "profiler_in_steps",
            own.height,
            f"The profiler's own Python code takes {percent(own_ns / length)} of the steps; host times include it.",
            level="note",
        )


def _options(trace: Trace) -> Iterator[Diagnostic]:
    """Options that were off, judging by missing events: torch before 2.0 doesn't write options."""
    is_op = trace.host_events["kind"] == "operator"
    has_shapes = bool((is_op & trace.host_events["input_shapes"].is_not_null()).any())
    options = (
        ("shapes_off", "record_shapes", "Input shapes", has_shapes or not is_op.any(), ""),
        ("memory_off", "profile_memory", "Allocations", trace.memory.height > 0, ""),
        ("stacks_off", "with_stack", "Python stacks", has_stacks(trace), ", at a cost in time and size"),
    )
    for rule, option, what, is_there, cost in options:
        if is_there:
            continue
        if trace.meta.has_option(option):
            words = f"{option}=True was set, but the file has no such events, so views that need them are empty."
            yield Diagnostic(rule.replace("_off", "_empty"), 1, words, level="note")
        else:
            yield Diagnostic(rule, 1, f"{what} were not recorded; {option}=True records them{cost}.", level="note")
