"""`kinetoscope summary`: the first screen of a recording as text, at most 100 characters wide."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..docstrings import docstring
from .traces import capture_option, chosen, communication_option, device_option, listed, opened, where

if TYPE_CHECKING:
    import polars as pl

    from ..trace import Trace

MOST = 5  # kernels and operators
MOST_LANES = 12
WIDTH = 100
_BAR = 20
_NAME = 48
_NOTHING = "nothing_to_fix"


def _summary(
    path: str, device: str | None, captures: Sequence[str], communication: Sequence[str], **names: str | None
) -> None:
    """Say where the time of a recording went, and what to do. PATH is a trace file or a logdir."""
    file = chosen(listed(path, communication), names)
    with opened(file, device, captures) as trace:
        for line in _lines(trace, f"{file.run} · {file.worker}" + (f" · {file.span}" if file.span else "")):
            click.echo(line)


def _lines(trace: Trace, title: str) -> Iterator[str]:
    from ..measures.calls.kernel_names import labels_of_kernels
    from .text_table import visible

    frames = {view: _frame(view, trace) for view in ("overview", "advice", "environment", "top", "lanes")}
    advice = frames["advice"].rows(named=True) if frames["advice"] is not None else []
    yield visible(title)
    yield from _environment(frames["environment"], trace.meta.foreign_writer)
    yield ""
    if advice:
        yield from _paragraph(advice[0], "")
        yield ""
    if trace.meta.foreign_writer is not None:
        yield from _busy_lanes(trace, frames["lanes"])
    if trace.meta.foreign_writer is None or not trace.device_events.is_empty():
        yield from _breakdown(trace, frames["overview"])
    labels = labels_of_kernels(trace)
    for kind in ("kernel", "operator"):
        yield from _top(trace, frames["top"], kind, labels)
    yield from _others(advice[1:])


def _frame(name: str, trace: Trace) -> pl.DataFrame | None:
    from ..engine import Missing, compute
    from ..views import VIEWS

    result = compute(VIEWS[name], trace, {})
    return None if isinstance(result, Missing) else result


def _environment(frame: pl.DataFrame | None, foreign_writer: str | None) -> Iterator[str]:
    if frame is None:
        return
    facts = dict(frame.select("fact", "value").rows())
    shown = [f"{name} {facts[name]}" for name in ("torch", "CUDA", "ROCm") if name in facts]
    by = [f"written by {foreign_writer}"] if foreign_writer is not None else []
    yield from _wrapped(" · ".join([*([facts["Device"]] if "Device" in facts else []), *shown, *by]))


def _size(advice: Mapping[str, Any]) -> str:
    from ..names import text

    confidence = f"confidence {advice['confidence'].replace('_', ' ')}"
    if advice["saving_ns"] is None:
        return confidence
    return f"saves at most {text.time(advice['saving_ns'])}, {text.percent(advice['saving_frac'] or 0)}; {confidence}"


def _breakdown(trace: Trace, frame: pl.DataFrame | None) -> Iterator[str]:
    from ..names import text
    from ..trace.steps import step_noun

    if frame is None:
        return
    rows = frame.rows(named=True)
    whole = rows[-1]
    count, noun = _counted(trace), step_noun(trace.steps)
    unit = "The recording" if not count else f"Average of {count} {noun}s" if count > 1 else f"One {noun}"
    spread = f" ± {text.time(whole['stdev_ns'])}" if whole["stdev_ns"] is not None else ""
    yield f"{unit}: {text.time(whole['mean_ns'])}{spread}"
    for row in rows[:-1]:
        share = row["share_frac"] or 0.0
        if row["mean_ns"]:
            bar = "█" * round(_BAR * share)
            yield f"  {row['category']:<14}{text.time(row['mean_ns']):>10}{100 * share:>7.1f} %  {bar}".rstrip()
    yield ""


def _busy_lanes(trace: Trace, frame: pl.DataFrame | None) -> Iterator[str]:
    from ..names import text
    from .text_table import visible

    yield f"Busy time by lane: {trace.meta.events:,} events in {text.time(trace.window[1] - trace.window[0])}"
    for row in [] if frame is None else frame.head(MOST_LANES).rows(named=True):
        name = visible(f"{row['process']} · {row['lane']}")
        name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        busy = f"{text.time(row['busy_ns']):>13}{100 * (row['busy_frac'] or 0):>7.1f} %"
        yield f"  {name:<{_NAME}}{busy}{row['events']:>10,}"
    yield ""


def _counted(trace: Trace) -> int:
    """The steps that averages are over; 0 if none were marked."""
    is_marked = trace.steps["name"].to_list() != ["all"]
    return (int(trace.steps["is_complete"].sum()) or trace.steps.height) if is_marked else 0


def _top(trace: Trace, frame: pl.DataFrame | None, kind: str, labels: Mapping[str, str]) -> Iterator[str]:
    """The same rows and numbers as on the page: per complete step."""
    from ..names import text
    from ..trace.steps import step_noun
    from .text_table import visible

    rows = [] if frame is None else frame.filter(kind=kind).head(MOST).rows(named=True)
    if not rows:
        return
    measure = f"per {step_noun(trace.steps)}" if _counted(trace) > 1 else "total"
    yield f"{f'Top {kind}s':<{_NAME + 2}}{measure:>13}{'share':>9}{'calls':>10}"
    for row in rows:
        name = visible(labels.get(row["name"], row["name"]) if kind == "kernel" else row["name"])
        name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        share, calls = 100 * row["share_frac"], "" if row["calls"] is None else text.digits(row["calls"])
        yield f"  {name:<{_NAME}}{text.time(row['mean_ns']):>13}{share:>7.1f} %{calls:>10}".rstrip()
    yield ""


def _others(advice: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What to do besides, and what is fine."""
    causes = [each for each in advice if each["rule"] != _NOTHING]
    if causes:
        yield "Also"
    for number, each in enumerate(causes, 1):
        yield from _paragraph(each, f"{number:>2}. ")
    for each in advice[len(causes) :]:
        yield ""
        yield from _wrapped(f"{each['title']} {each['evidence']}")


def _paragraph(advice: Mapping[str, Any], before: str) -> Iterator[str]:
    """A title with its size, the evidence, and what to do."""
    after = " " * (len(before) or 2)
    yield from _wrapped(f"{advice['title']} ({_size(advice)})", before)
    yield from _wrapped(advice["evidence"], after)
    if advice["rule"] != _NOTHING:
        yield from _wrapped(advice["action"], f"{after}→ ")


def _wrapped(sentence: str, before: str = "") -> list[str]:
    from .text_table import visible

    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    after = " " * len(before)
    return textwrap.wrap(
        visible(sentence), width, initial_indent=before, subsequent_indent=after, break_long_words=False
    )


summary = click.Command(
    "summary",
    params=[*where(), communication_option(), device_option(), capture_option()],
    callback=_summary,
    help=docstring(_summary),
)
