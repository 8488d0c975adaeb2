"""What if: how long a step would take if what a rule of advice is about took less time.

The steps are laid out again (critical_path/what_if.py): the same work runs in the same order on the same threads and
streams, so other paths become critical by themselves, and what is hidden behind them saves nothing. All of it saves
what the rule says; a rule about what the graph doesn't hold has no row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from ...advice.candidates import on_path, partly, percents
from ...advice.facts import Facts
from ...advice.model import Advice
from ...advice.saving_range import Change, at_most, saving_range
from ...advice.trace_advice import TraceAdvice, trace_advice
from ...arrays.intervals import Ints
from ...critical_path.explanation import Explanation, critical_paths, path_explanation
from ...critical_path.path import PathPart
from ...diagnostics.diagnose import diagnose
from ...measures.recording.contents import has_work
from ...table import DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, View

_DEFAULT = 50


class WhatIf(Table):
    """How long a step would take with 50 %, or as much as chosen, of what each rule of advice would change."""

    key, weight = ("rule",), "saved_ns"

    rule = Column(TEXT, "Id of the rule; several, separated by commas, if they are chosen together.")
    target = Column(TEXT, "What would take less time.")
    path_ns = Column(DURATION, "How much of it lies on the critical path, per step.")
    now_ns = Column(
        DURATION,
        "Mean length of the steps that advice is about, the complete ones after warm-up: without the profiler, where "
        "the recorder timed such steps, else as recorded.",
    )
    step_ns = Column(DURATION, "Their mean length with all steps laid out again.")
    saved_ns = Column(DURATION, "Length now - new length.", title="Saved per step")
    saved_frac = Column(FRACTION, "The same / the length now.")
    saved_low_ns = Column(
        DURATION,
        "The least that it may be, as for all of it in `advice`, and no more than that; missing where the saving of a "
        "rule has no range.",
        shown_as="bound",
        adds_up=False,
    )
    saved_high_ns = Column(DURATION, "The most that it may be, as there.", shown_as="bound", adds_up=False)


def what_if(trace: Trace, *, less: str | None = None) -> pl.DataFrame:
    """Each rule at 50 %; with `less`, such as `data_loading:25,copies:50`, these rules together, in percent.

    There are no rows if `less` isn't spelled so, or names a rule that has no row.
    """
    all_advice = trace_advice(trace, diagnose)
    claims = {advice.rule: advice for advice in all_advice.advice if advice.candidate}
    combinations = [{rule: _DEFAULT} for rule in claims] if less is None else _parse(less, claims)
    facts = Facts(trace)
    rows = [_row(facts, all_advice, claims, percents_of_rules) for percents_of_rules in combinations]
    return WhatIf.of(pl.DataFrame(rows, schema=WhatIf.schema(), orient="row"))


def _parse(less: str, claims: dict[str, Advice]) -> list[dict[str, int]]:
    """The percentage of each rule that `less` names, as the only entry; none if a part of it isn't possible."""
    parts = less.split(",") if less else []
    matches = [re.fullmatch(r"(\w+):(\d\d?|100)", part, re.ASCII) for part in parts]
    percent_by_rule = {match[1]: int(match[2]) for match in matches if match and match[1] in claims}
    return [percent_by_rule] if len(percent_by_rule) == len(parts) else []


def _row(facts: Facts, all_advice: TraceAdvice, claims: dict[str, Advice], less: dict[str, int]) -> tuple[object, ...]:
    """The steps with all of these targets shortened, each by its own percentage; where two overlap, by the larger."""
    explanation = path_explanation(facts.trace)
    path, parts = critical_paths(facts.trace), [(claims[rule], percent) for rule, percent in less.items()]
    candidates = [claim.candidate for claim, _ in parts if claim.candidate]
    of_path, segments = np.zeros(path.height, np.int64), PathPart.of(path)
    for candidate in candidates:
        of_path = np.maximum(of_path, on_path(candidate)(segments))
    step_path_ns = np.zeros(facts.trace.steps.height, np.int64)
    np.add.at(step_path_ns, path["step"].to_numpy(), of_path)
    mean_ns, per_step = all_advice.usual_step_ns, _savings(explanation, parts)
    saved_ns = min(mean_ns, round(float(per_step[all_advice.is_counted].mean())))
    words = ", ".join(dict.fromkeys(candidate.words for candidate in candidates))
    path_ns = round(float(step_path_ns[all_advice.is_counted].mean()))
    share = saved_ns / mean_ns if mean_ns else None
    bounds = _range(facts, explanation, parts, per_step)
    return ",".join(less), words, path_ns, mean_ns, mean_ns - saved_ns, saved_ns, share, *bounds


def _savings(explanation: Explanation, parts: Sequence[tuple[Advice, int]]) -> Ints:
    """By how much each step would be shorter if what each rule is about took less time, in percent."""
    less = np.zeros(explanation.what_if.part.size, np.uint8)
    for claim, percent in parts:
        if claim.candidate:
            less = np.maximum(less, partly(percents(claim.candidate, explanation), percent))
    return explanation.what_if.saved_together(less)


def _range(
    facts: Facts, explanation: Explanation, parts: Sequence[tuple[Advice, int]], per_step: Ints
) -> tuple[int | None, int | None]:
    """The least and the most of a saving; None if one of the rules has no range."""
    ranges = [claim.saving_range for claim, _ in parts if claim.saving_range]
    if not parts or len(ranges) < len(parts):
        return None, None
    if len(parts) == 1:
        whole = ranges[0]
    else:
        at_full = [(claim, 100) for claim, _ in parts]
        whole = saving_range(facts, _change(at_full, _savings(explanation, at_full)), explanation)
    return at_most(saving_range(facts, _change(parts, per_step), explanation), whole)


def _change(parts: Sequence[tuple[Advice, int]], per_step: Ints) -> Change:
    shares = tuple((claim.candidate, percent / 100) for claim, percent in parts if claim.candidate)
    return Change(per_step, shares)


VIEW = View(
    what_if,
    table=WhatIf,
    title="What if",
    entry="Overview",
    within="recording",
    shares=path_explanation,
    needs=has_work,
    hint="No advice about this trace is about something that could take less time, or `less` names none of it.",
    place=Part("overview"),
    is_of_advice=True,
    reads_captures=True,
)
