"""Sorted events of one file → `Parts`: kinds, one time axis, threads, frames, diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ...trace.assemble import Parts
from ...trace.meta import Meta, WriterFingerprint
from ...trace.model import COLLECTED, Diagnostic
from ..foreign_writers import foreign_writer
from ..input.document import not_a_trace
from ..scan.counters import counters, with_samples
from ..scan.damage import damage_outside_events, truncation
from ..scan.ingest import RawTrace
from ..scan.kinds import Kind
from ..scan.rows import Rows, SortedEvents
from ..scan.tokens import Texts, distinct_codes
from .anomalies import text_diagnostics, without_impossible_numbers
from .ascend import sort_ascend_rows
from .begin_end import close_begin_end
from .event_frames import collectives, frame
from .metadata import Metadata
from .plausible_times import plausible_times, profiler_spans, without_impossible_times
from .threads import threads_of
from .uncategorized import sort_uncategorized_rows

_FROM_OPERATORS = ("cpu_to_", "async_npu")
_FROM_CALLS = ("HostToDevice",)
_END = ["pid", "tid", "ts"]  # where an arrow ends; of several rows, the first belongs to the first arrow
_NO_THREADS = np.empty(0, np.int32)


def build_parts(
    raw_trace: RawTrace,
    outside: Metadata,
    path: str,
    source_diagnostics: list[Diagnostic],
    fingerprint: WriterFingerprint,
) -> Parts:
    """Everything that `assemble` needs.

    Args:
        raw_trace: The events; they are taken apart.
        outside: The metadata around them.
        path: The file.
        source_diagnostics: About how it was stored.
        fingerprint: Of its writer.

    Raises:
        NotATrace: No event was usable, or the array has something else in it.
    """
    events = raw_trace.events
    is_clean = raw_trace.lost_bytes is None and not raw_trace.tally and b'"traceEvents"' in raw_trace.head
    if not events.events and not is_clean:
        raise not_a_trace(path, raw_trace.head)
    texts = Texts(events.tokens, outside.labels)
    diagnostics = [
        *text_diagnostics(events),
        *without_impossible_numbers(events),
        *_without_time(events),
    ]
    plausible = plausible_times(events, texts)
    diagnostics += close_begin_end(events, texts, plausible)
    diagnostics += without_impossible_times(events, plausible)
    sort_ascend_rows(events, texts)
    sort_uncategorized_rows(events, texts)
    writer = foreign_writer(events, texts, outside.top, fingerprint)
    diagnostics += _unknown_categories(events, texts)
    earliest, latest = _first_and_last(events)
    diagnostics = [*source_diagnostics, *_damage(raw_trace, outside.lost, latest - earliest), *diagnostics]
    spans = profiler_spans(events.frames["others"], texts)
    window = (min(spans)[0] - earliest, max(end for _, end in spans) - earliest) if spans else None
    links = _device_links(events.frames, texts)
    threads_by_frame, threads = threads_of(events.frames, texts)
    frames = {
        name: frame(name, events.frames.pop(name), texts, earliest, threads_by_frame.pop(name, _NO_THREADS))
        for name in COLLECTED
    }
    frames["collectives"] = collectives(events.frames["collectives"], texts)
    frames["counters"], without_value = counters(events.counters, frames["others"], threads)
    diagnostics += without_value
    if raw_trace.samples is not None:
        frames["counters"] = with_samples(frames["counters"], raw_trace.samples, earliest)
    outside, origin = outside.with_origin(earliest)
    diagnostics += outside.diagnostics()
    meta = Meta(outside.top, events.events, fingerprint, outside.impossible, writer)
    return Parts(path, origin, window, threads, frames, links, meta, tuple(diagnostics))


def _first_and_last(events: SortedEvents) -> tuple[int, int]:
    """When the first event begins, and the last one ends."""
    frames = [rows for rows in events.timed_frames() if rows["ts"].size]
    ends = (int((rows["ts"] + np.maximum(rows["dur"], 0)).max()) for rows in frames)
    return min((int(rows["ts"].min()) for rows in frames), default=0), max(ends, default=0)


def _without_time(events: SortedEvents) -> list[Diagnostic]:
    if not events.untimed.count:
        return []
    words = "Events without a usable time are left out."
    return [Diagnostic("untimed", events.untimed.count, words, events.untimed.first, "loss")]


def _unknown_categories(events: SortedEvents, texts: Texts) -> list[Diagnostic]:
    others = events.frames["others"]
    categories = others["category"][others["kind"] == Kind.UNKNOWN]
    if not categories.size:
        return []
    names = {texts[code] for code in distinct_codes(categories, len(texts))}
    known_names = sorted(filter(None, names))
    names_text = ", ".join(known_names[:8]) + (" …" if len(known_names) > 8 else "")
    kinds = [f"of unknown categories ({names_text})"] if known_names else []
    kinds += ["without a category"] if len(known_names) < len(names) else []
    words = f"Events {' and '.join(kinds)} are shown, but don't count as work."
    return [Diagnostic("unknown_category", int(categories.size), words, level="note")]


def _damage(raw_trace: RawTrace, lost_values: int, span_ns: int) -> list[Diagnostic]:
    diagnostics = [
        *truncation(raw_trace.lost_bytes, raw_trace.end),
        *raw_trace.tally.diagnostics(raw_trace.end, span_ns),
        *damage_outside_events(raw_trace.tail, lost_values, raw_trace.arrays),
    ]
    if not raw_trace.events.events:
        diagnostics.append(Diagnostic("no_events", 1, "The trace has no events. Check that the profiler was running."))
    return diagnostics


def _device_links(frames: Mapping[str, Rows], texts: Texts) -> pl.DataFrame:
    """The device rows at which an arrow ends, by their offsets: `device`.

    An arrow from an operator, or a call, to its device work links the two if, and only if, there is no correlation. The
    autograd profiler's own exporter draws `cpu_to_cuda` (torch/autograd/profiler_util.py); torch_npu draws `async_npu`
    from an operator, and `HostToDevice` from CANN's call (its _cann_file_parser.py).

    `begin` is the offset of an operator's arrow; `launch` that of the call which an arrow of CANN comes from.
    """
    of_operators, of_calls = _links(frames, texts, _FROM_OPERATORS), _links(frames, texts, _FROM_CALLS)
    if of_operators.is_empty() and of_calls.is_empty():
        return _no_links("device", "begin", "launch")
    calls = pl.DataFrame({n: frames["launches"][n] for n in ("tid", "ts", "offset")}).select(
        pl.col("tid", "ts").cast(pl.Int64), launch=pl.col("offset").cast(pl.Int64)
    )
    by_call = of_calls.join(calls.unique(["tid", "ts"], keep="first"), ["tid", "ts"])
    return pl.concat(
        [
            of_operators.select("device", "begin", launch=pl.lit(None, pl.Int64)),
            by_call.select("device", begin=pl.lit(None, pl.Int64), launch="launch"),
        ]
    )


def _no_links(*columns: str) -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.Int64))


def _links(frames: Mapping[str, Rows], texts: Texts, categories: tuple[str, ...]) -> pl.DataFrame:
    """For each device row at which an arrow of such a category ends: where the arrow begins (begin, tid, ts)."""
    flows = frames["flows"]
    links = [c for c in distinct_codes(flows["category"], len(texts)) if (texts[c] or "").startswith(categories)]
    if not links:
        return _no_links("device", "begin", "tid", "ts")
    columns = ("category", "phase", "id", "pid", "tid", "ts", "offset")
    ends = pl.DataFrame({n: flows[n] for n in columns}).cast(dict.fromkeys(columns, pl.Int64))
    ends = ends.filter(pl.col("category").is_in(links))
    starts = {code for code in distinct_codes(flows["phase"], len(texts)) if texts[code] == "s"}
    begins = ends.filter(pl.col("phase").is_in(starts)).unique(["category", "id"], keep="first", maintain_order=True)
    begins = begins.select("category", "id", begin="offset", begin_tid="tid", begin_ts="ts")
    work = pl.DataFrame({n: frames["device_events"][n] for n in (*_END, "offset")})
    work = work.cast(dict.fromkeys((*_END, "offset"), pl.Int64)).select(*_END, nth=_nth(_END), device="offset")
    ends = ends.filter(~pl.col("phase").is_in(starts)).with_columns(nth=_nth(["category", *_END]))
    pairs = ends.join(begins, ["category", "id"])
    return work.join(pairs, [*_END, "nth"]).select("device", "begin", tid="begin_tid", ts="begin_ts")


def _nth(columns: list[str]) -> pl.Expr:
    return pl.int_range(pl.len()).over(columns)
