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

    frames = {view: _frame(view, trace) for view in ("overview", "advice", "environment", "kernels", "operators")}
    advice = frames["advice"].rows(named=True) if frames["advice"] is not None else []
    yield visible(title)
    yield from _environment(frames["environment"])
    yield ""
    if advice:
        yield from _paragraph(advice[0], "")
        yield ""
    yield from _breakdown(trace, frames["overview"])
    yield from _top("Top kernels", frames["kernels"], "total_ns", labels_of_kernels(trace))
    measure = "device_self_ns" if not trace.device_events.is_empty() else "host_self_ns"
    yield from _top("Top operators", frames["operators"], measure, {})
    yield from _others(advice[1:])


def _frame(name: str, trace: Trace) -> pl.DataFrame | None:
    from ..engine import Missing, compute
    from ..views import VIEWS

    result = compute(VIEWS[name], trace, {})
    return None if isinstance(result, Missing) else result


def _environment(frame: pl.DataFrame | None) -> Iterator[str]:
    if frame is None:
        return
    facts = dict(frame.select("fact", "value").rows())
    shown = [f"{name} {facts[name]}" for name in ("torch", "CUDA", "ROCm") if name in facts]
    yield from _wrapped(" · ".join([*([facts["Device"]] if "Device" in facts else []), *shown]))


def _size(advice: Mapping[str, Any]) -> str:
    from ..advice import text

    confidence = f"confidence {advice['confidence'].replace('_', ' ')}"
    if advice["saving_ns"] is None:
        return confidence
    return f"saves at most {text.time(advice['saving_ns'])}, {text.percent(advice['saving_frac'] or 0)}; {confidence}"


def _breakdown(trace: Trace, frame: pl.DataFrame | None) -> Iterator[str]:
    from ..advice import text
    from ..trace.steps import step_noun

    if frame is None:
        return
    rows = frame.rows(named=True)
    whole = rows[-1]
    count = int(trace.steps["is_complete"].sum()) or trace.steps.height
    names, noun = trace.steps["name"].to_list(), step_noun(trace.steps)
    unit = "The recording" if names == ["all"] else f"Average of {count} {noun}s" if count > 1 else f"One {noun}"
    spread = f" ± {text.time(whole['stdev_ns'])}" if whole["stdev_ns"] is not None else ""
    yield f"{unit}: {text.time(whole['mean_ns'])}{spread}"
    for row in rows[:-1]:
        share = row["share_frac"] or 0.0
        if row["mean_ns"]:
            bar = "█" * round(_BAR * share)
            yield f"  {row['category']:<14}{text.time(row['mean_ns']):>10}{100 * share:>7.1f} %  {bar}".rstrip()
    yield ""


def _top(title: str, frame: pl.DataFrame | None, measure: str, labels: Mapping[str, str]) -> Iterator[str]:
    from ..advice import text
    from .text_table import visible

    if frame is None or frame.is_empty():
        return
    whole = int(frame[measure].sum())
    rows = frame.sort(measure, descending=True, maintain_order=True).head(MOST).rows(named=True)
    yield f"{title:<{_NAME + 2}}{'total':>10}{'share':>9}{'calls':>10}"
    for row in rows:
        if not row[measure]:
            break
        name = visible(labels.get(row["name"], row["name"]) or "")
        name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        calls = "" if row["calls"] is None else f"{row['calls']:,}"
        yield f"  {name:<{_NAME}}{text.time(row[measure]):>10}{100 * row[measure] / whole:>7.1f} %{calls:>10}".rstrip()
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
