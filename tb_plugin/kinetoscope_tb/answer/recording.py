"""The answer about one recording: its advice as claims, and the views that show where its time went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import polars as pl

from ..advice.model import Advice, Culprit
from ..advice.trace_advice import TraceAdvice, trace_advice
from ..arrays.gather import texts
from ..diagnostics.diagnose import diagnose
from ..entries import ENTRIES
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.recording.contents import has_device_events, has_iterations, has_snapshot, missing_part
from ..measures.recording.left_out_steps import left_out_steps
from ..measures.recording.usual_step import usual_step
from ..measures.serving.request_waits import waiting_times
from ..measures.time.idle import Windows
from ..measures.time.idle_causes import gap_parts, matters
from ..measures.time.step_subset import counted_steps, has_steps
from ..names import text
from ..names.text import visible
from ..trace import Trace
from ..trace.steps import step_noun
from ..view import View
from .model import Answer, Claim, NotSaid, Number, RowKey, Rows

MOST = 5  # kernels and operators
MOST_LANES = 12
_NEARLY_ALL = 0.99  # of the kernel time
_OF_SNAPSHOT = ("snapshot_summary", "snapshot_levels", "snapshot_alive", "snapshot_growth")
_MOST_ROWS = {"lanes": MOST_LANES, "snapshot_alive": MOST, "snapshot_growth": MOST}
"""Of the views that list more than the answer."""


Views = Mapping[str, View]
FramesOf = Callable[[Trace, Sequence[View]], Iterator[pl.DataFrame | None]]


def recording_answer(trace: Trace, views: Views, frames_of: FramesOf) -> Answer:
    """The answer about a recording, or about a memory snapshot.

    Args:
        trace: The recording.
        views: All views.
        frames_of: Computes views of it, each None if it has no data for that, by the time that they are needed.
    """
    names = list(_views(trace))
    frames_in_order = frames_of(trace, [views[view] for view in names])
    findings = None if has_snapshot(trace) else trace_advice(trace, diagnose)
    frames = dict(zip(names, frames_in_order, strict=True))
    with_rows = {view: frame for view, frame in frames.items() if frame is not None and not frame.is_empty()}
    rows = {view: rows_of(frame, _MOST_ROWS.get(view)) for view, frame in with_rows.items()}
    answer = Answer(
        rows={view: part for view, part in rows.items() if view != "environment"},
        environment=_environment(trace, rows.get("environment", ())),
        steps=len(counted_steps(trace)) if has_steps(trace) else 0,
        steps_left_out=sum(part.steps.size for part in left_out_steps(trace)),
        step_noun=step_noun(trace.steps),
        events=trace.meta.events,
        window_ns=trace.window[1] - trace.window[0],
        uses_device=has_device_events(trace),
    )
    answer = _of_snapshot(answer, trace, views) if findings is None else _of_trace(answer, trace, findings, views)
    losses = _losses(trace, answer.claims)
    return replace(answer, sentences={**answer.sentences, "losses": losses}) if losses else answer


def _losses(trace: Trace, claims: Iterable[Claim]) -> str:
    """What of the recording is gone, as far as no claim says it."""
    sentences = " ".join(f"{claim.title} {claim.evidence}" for claim in claims)
    losses = [diagnostic for diagnostic in diagnose(trace) if diagnostic.level == "loss"]
    words = [loss.consequence for loss in losses if loss.fault is None or loss.fault.clause not in sentences]
    return f"Data of this recording is gone: {' '.join(words)}" if words else ""


def _of_snapshot(answer: Answer, trace: Trace, views: Views) -> Answer:
    is_whole = not missing_part(trace)
    peaks = tuple(row for row in answer.rows.get("snapshot_levels", ()) if row["what"] == "peak")
    rows = {**answer.rows, "snapshot_levels": peaks}
    claims = tuple(_of_summary(row, views, is_whole=is_whole) for row in rows.pop("snapshot_summary"))
    sentences = {"peak": _peaks(peaks, is_whole=is_whole)} if peaks else {}
    return replace(answer, claims=claims, rows=rows, numbers=tuple(_numbers(rows)), sentences=sentences)


def _of_trace(answer: Answer, trace: Trace, findings: TraceAdvice, views: Views) -> Answer:
    top = tuple(_with_labels(trace, answer.rows.get("top", ())))
    claims = tuple(_claim(trace, advice, findings, top, views) for advice in findings.advice)
    questions = [question for advice in findings.advice for question in advice.open_questions]
    unknowns = (NotSaid(question.topic, question.reason, question.action) for question in questions)
    mfu = answer.rows.get("mfu", ())
    without_mfu = (NotSaid("MFU", row["why_mfu_unknown"]) for row in mfu if row["why_mfu_unknown"])
    is_rank = bool(trace.host_events["is_communication"].any())
    left_out = " ".join(f"Left out: {part.words}, since {part.reason}." for part in left_out_steps(trace))
    sentences = {
        "tokens": _tokens(answer.rows.get("phases", ())),
        "mfu": _utilization(trace, mfu),
        "left_out": left_out,
    }
    return replace(
        answer,
        claims=claims,
        step_ns=findings.step_ns,
        usual_step_ns=findings.usual_step_ns if usual_step(trace) else None,
        not_said=(*not_said_of(claims), *_steps_not_said(trace), *unknowns, *dict.fromkeys(without_mfu)),
        numbers=(*_numbers(answer.rows), *_idle(trace)),
        sentences={topic: sentence for topic, sentence in sentences.items() if sentence},
        **(_of_rank(trace) if is_rank else {}),
        rows={**answer.rows, "top": top} if top else answer.rows,
    )


def _steps_not_said(trace: Trace) -> Iterator[NotSaid]:
    """The steps that averages leave out, and why."""
    for part in left_out_steps(trace):
        yield NotSaid(
            f"What {part.words} took.", f"Averages leave {part.pronoun} out, since {part.reason}.", part.remedy
        )


def _of_rank(trace: Trace) -> dict[str, Any]:
    fields: dict[str, Any] = import_module(".rank_work", __package__).rank_work(trace)  # not needed for a single rank
    return fields


def _views(trace: Trace) -> Iterator[str]:
    """The views behind the answer, as far as they concern the recording."""
    yield "environment"
    if has_snapshot(trace):
        yield from _OF_SNAPSHOT
        return
    yield from ("gpus", "mfu", "top")
    if has_iterations(trace):
        yield "phases"
    if trace.meta.foreign_writer is not None:
        yield "lanes"
    if trace.meta.foreign_writer is None or not trace.device_events.is_empty():
        yield "overview"


def rows_of(frame: pl.DataFrame, most: int | None = None) -> Rows:
    """The first rows of a frame, with None for what isn't a finite number."""
    floats = pl.col(pl.Float64, pl.Float32)
    first = frame if most is None else frame.head(most)
    return tuple(first.with_columns(pl.when(floats.is_finite()).then(floats)).rows(named=True))


def _with_labels(trace: Trace, top: Rows) -> Iterator[dict[str, Any]]:
    """The first kernels and operators, each with its label."""
    labels = labels_of_kernels(trace)
    for kind in ("kernel", "operator"):
        for row in [row for row in top if row["kind"] == kind][:MOST]:
            yield {**row, "label": labels.get(row["name"], row["name"]) if kind == "kernel" else row["name"]}


def _claim(trace: Trace, advice: Advice, findings: TraceAdvice, top: Rows, views: Views) -> Claim:
    culprit = _culprit(trace, advice, top)
    saving = advice.saving_ns
    measurement, cause = advice.certainty
    low_ns, high_ns = advice.saving_range or (None, None)
    return Claim(
        id=advice.rule,
        about="recording",
        title=advice.title,
        evidence=advice.words,
        action=advice.action,
        saving_ns=saving,
        saving_frac=None if saving is None else findings.saved_frac(saving),
        confidence=advice.confidence,
        measurement=measurement,
        cause=cause,
        culprit=culprit,
        view=advice.view,
        filter=advice.filter,
        rows=tuple(_rows_of_culprit(culprit)),
        question=question_of(views[advice.view]),
        exposure=advice.whole_exposure,
        saving_low_ns=low_ns,
        saving_high_ns=high_ns,
    )


def question_of(view: View) -> str:
    """The question that a view helps to answer."""
    return ENTRIES[view.entry].question


def not_said_of(claims: Iterable[Claim]) -> Iterator[NotSaid]:
    """The claims without a cause, as what can't be said."""
    for claim in claims:
        if claim.confidence == "cannot_tell":
            yield NotSaid(claim.title, claim.evidence, claim.action)


def _of_summary(row: dict[str, Any], views: Views, *, is_whole: bool) -> Claim:
    """Why the last allocation of a memory snapshot failed, or who holds most memory."""
    return Claim(
        id=row["rule"],
        about="recording",
        title=row["title"],
        evidence=row["evidence"],
        action=row["action"] or "",
        saving_ns=None,
        saving_frac=None,
        confidence=row["confidence"],
        measurement="high" if is_whole else "low",
        cause=row["confidence"],
        culprit=Culprit(),
        view=row["view"],
        filter="",
        question=question_of(views[row["view"]]),
    )


def _culprit(trace: Trace, advice: Advice, top: Rows) -> Culprit:
    """The code that advice names; of advice about device work the kernel and the operator with most of its time."""
    if advice.kernels is None or not advice.kernels.size:
        return replace(advice.culprit, module=_module(advice.culprit.operator, top))
    work = trace.device_events.select("name", "device", "dur_ns", "op")[advice.kernels]
    operator = _largest(work.with_columns(name=texts(trace.all_host_events["name"], work["op"].to_numpy())))
    is_of_one = work["device"].n_unique() == 1 < trace.device_events["device"].n_unique()
    device = int(work["device"][0]) if is_of_one else None
    module = _module(operator, top)
    return replace(advice.culprit, device=device, kernel=_largest(work), operator=operator, module=module)


def _largest(work: pl.DataFrame) -> str | None:
    """The name that most of the time goes to."""
    sums = work.drop_nulls("name").group_by("name").agg(pl.col("dur_ns").sum())
    largest = sums.with_columns(pl.col("name").cast(pl.String)).sort("dur_ns", "name", descending=[True, False])
    return largest["name"][0] if largest.height else None


def _module(operator: str | None, top: Rows) -> str | None:
    """The class of modules that one of the first operators spends most of its time in."""
    return next((row["owner"] for row in top if row["kind"] == "operator" and row["name"] == operator), None)


def _rows_of_culprit(culprit: Culprit) -> Iterator[RowKey]:
    for view, name in (("kernels", culprit.kernel), ("operators", culprit.operator)):
        if name is not None:
            yield RowKey(view, {"name": name})


def _numbers(rows: Mapping[str, Rows]) -> Iterator[Number]:
    """The key numbers, each with the row that has it."""
    for row in rows.get("overview", ())[-1:]:
        step = RowKey("overview", {"category": row["category"]})
        yield Number("step", row["mean_ns"], "ns", "", step, "mean_ns")
        if row["stdev_ns"] is not None:
            yield Number("step_stdev", row["stdev_ns"], "ns", "", step, "stdev_ns")
    shares = ("gpus", "utilization_frac", "utilization"), ("mfu", "mfu_frac", "mfu")
    for view, column, name in shares:
        for row in rows.get(view, ()):
            if row[column] is not None:
                device = f"device {row['device']}"
                yield Number(name, row[column], "fraction", device, RowKey(view, {"device": row["device"]}), column)
    for row in rows.get("phases", ()):
        if row["tokens_per_s"] is not None:
            phase = RowKey("phases", {"phase": row["phase"]})
            yield Number("tokens_per_s", row["tokens_per_s"], "tokens/s", row["phase"], phase, "tokens_per_s")
    for row in rows.get("snapshot_levels", ()):
        peak = RowKey("snapshot_levels", {name: row[name] for name in ("device", "time_ns", "event")})
        yield Number("peak_memory", row["allocated_bytes"], "bytes", f"device {row['device']}", peak, "allocated_bytes")


def _idle(trace: Trace) -> Iterator[Number]:
    """The idle time of each device by cause, as the view `idle` has it."""
    parts = gap_parts(trace, "device", Windows.of(trace, per_step=False))
    length = pl.col("end_ns") - pl.col("start_ns")
    sums = (
        parts.group_by("device", "cause")
        .agg(length.sum().alias("total_ns"))
        .with_columns(pl.col("cause").cast(pl.String))
    )
    for device, cause, total_ns in sums.sort("device", "total_ns", "cause", descending=[False, True, False]).rows():
        row = RowKey("idle", {"scope": "device", "device": device, "stream": None, "step": "all"})
        yield Number("idle", total_ns, "ns", f"device {device}: {cause}", row, f"{cause.replace(' ', '_')}_ns")


def _without_waits(trace: Trace, share: float) -> str:
    """The same share of the time in which a server has requests, as a clause; empty if it hardly waits for any."""
    if step_noun(trace.steps) != "iteration":
        return ""
    steps = trace.steps[counted_steps(trace)]
    start, end = (steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    waiting_ns, whole_ns = int(waiting_times(trace, start, end).sum()), int((end - start).sum())
    if not matters(waiting_ns, whole_ns) or waiting_ns >= whole_ns:
        return ""
    return f" ({text.percent(share * whole_ns / (whole_ns - waiting_ns))} without the waits for requests)"


def _environment(trace: Trace, rows: Rows) -> str:
    """The device and the versions, and the program that wrote the file if it isn't PyTorch's profiler."""
    facts = {row["fact"]: row["value"] for row in rows}
    versions = [f"{name} {facts[name]}" for name in ("torch", "CUDA", "ROCm") if name in facts]
    by = [f"written by {trace.meta.foreign_writer}"] if trace.meta.foreign_writer is not None else []
    return visible(" · ".join([*([facts["Device"]] if "Device" in facts else []), *versions, *by]))


def _tokens(phases: Sequence[dict[str, Any]]) -> str:
    """Tokens per second of a server, by phase."""
    rates = [_rate(row) for row in phases if row["tokens_per_s"] is not None]
    return f"The server processes: {'; '.join(rates)}." if rates else ""


def _rate(row: dict[str, Any]) -> str:
    """Tokens per second of a phase, a bound where much of its time isn't in the recording."""
    is_bound = matters(row["not_shown_ns"], row["total_ns"])
    least, most = ("at least ", "at most ") if is_bound else ("", "")
    rate = f"{row['phase']} {least}{row['tokens_per_s']:,.0f} tokens/s".replace(",", "\u202f")
    per_token = f", {most}{text.time(row['token_ns'])} per token" if row["token_ns"] is not None else ""
    share = text.percent(row["not_shown_ns"] / row["total_ns"]) if is_bound else ""
    return f"{rate}{per_token}{f' ({share} of the time is not in the recording)' if is_bound else ''}"


def _peaks(levels: Sequence[dict[str, Any]], *, is_whole: bool) -> str:
    """The peak of each device of a memory snapshot, a line each."""
    lines = []
    for row in levels:
        sizes = [text.memory_size(row[f"{name}_bytes"]) for name in ("allocated", "active", "reserved")]
        of_device = f"device {row['device']}{'' if is_whole else ', in what could be read'}"
        lines.append(f"Peak of {of_device}: {sizes[0]} allocated, {sizes[1]} active, {sizes[2]} reserved")
    return "\n".join(lines)


def _utilization(trace: Trace, devices: Sequence[dict[str, Any]]) -> str:
    """What share of the peak a step's matrix work reaches; of several devices, their mean."""
    rows = [row for row in devices if row["mfu_frac"] is not None]
    if not rows:
        return ""
    mean = {
        name: sum(row[name] for row in rows) / len(rows)
        for name in ("mfu_frac", "time_of_known_work_frac", "peak_flop_per_s")
    }
    bound = "" if mean["time_of_known_work_frac"] > _NEARLY_ALL else "at least "
    devices_of = f", mean of {len(rows)} devices" if len(rows) > 1 else ""
    usual = rows[0]["usual_mfu_frac"]
    without = f" ({text.percent(usual)} of one without the profiler)" if usual is not None else ""
    unit = f"the average {step_noun(trace.steps)}" if has_steps(trace) else "the recording"
    without += _without_waits(trace, mean["mfu_frac"])
    return (
        f"MFU: {bound}{text.percent(mean['mfu_frac'])} of {text.digits(mean['peak_flop_per_s'] / 1e12)} Tflop/s "
        f"({rows[0]['dtype']}) over {unit} of {text.time(rows[0]['step_ns'])}{without}{devices_of}; FLOPs are known, "
        f"or 0, in {text.percent(mean['time_of_known_work_frac'])} of the kernel time without communication."
    )
