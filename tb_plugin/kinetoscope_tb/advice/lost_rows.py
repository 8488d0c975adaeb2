"""That much of what happened isn't in the recording, before anything that is said of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..arrays.gather import gather
from ..measures.recording.left_out_steps import left_out_steps, steps_in_words
from ..measures.recording.lost_launches import lost_launches, silent_steps, work_launches
from ..names import text
from ..trace import Diagnostic
from .facts import Facts
from .model import Advice

LOST_ROWS = "lost_rows"
_MUCH = 0.25  # of the launches of the steps that count: then their times say little of devices
_MOST = 0.5  # of the steps


def lost_rows(facts: Facts, diagnostics: Sequence[Diagnostic]) -> Iterator[Advice]:
    """That the file ends early, that many launches have no GPU event, or that averages leave out most steps."""
    losses = [*_end(facts, diagnostics), *_launches(facts), *_steps(facts)]
    if not losses:
        return
    title, *others = losses
    rest_words = steps_in_words(facts.trace, np.flatnonzero(facts.is_counted))
    rest = f"What follows is about {rest_words}." if facts.lack_work.any() else ""
    faults = [diagnostic.fault for diagnostic in diagnostics if diagnostic.fault]
    remedies = [fault.remedy for fault in faults if "totals" in fault.undermines]
    remedies = remedies or [part.remedy for part in left_out_steps(facts.trace)]
    yield Advice(
        LOST_ROWS,
        f"{title}.",
        " ".join([*(f"{other}." for other in others), rest]).strip(),
        " ".join(dict.fromkeys(remedies)),
        None,
        "cannot_tell",
        "health",
        doubt=("cannot_tell", "cannot_tell"),
    )


def _end(facts: Facts, diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    """That an unknown number of rows is missing, and what there is."""
    faults = (diagnostic.fault for diagnostic in diagnostics if diagnostic.fault)
    clauses = [fault.clause for fault in faults if fault.hides_an_end]
    if clauses:
        meta, (begin, end) = facts.trace.meta, facts.trace.window
        yield from (*clauses, f"It holds {text.times(meta.events, 'event')}, which span {text.time(end - begin)}")


def _launches(facts: Facts) -> Iterator[str]:
    """That many launches of the steps that count have no GPU event, or that these steps lack launches."""
    trace = facts.trace
    counts = gather(facts.is_counted, trace.launches["step"].to_numpy(), missing=False)
    launches, are_lost = work_launches(trace), lost_launches(trace)
    if are_lost[counts].sum() >= _MUCH * max(1, launches[counts].sum()):
        share = text.percent(are_lost.sum() / launches.sum())
        of = f"{int(are_lost.sum())} of {int(launches.sum())} launches ({share})"
        yield f"{of} have no GPU event: much device work is lost"
    silent = silent_steps(trace) & facts.is_counted
    if silent.sum() >= _MUCH * facts.count:
        yield f"{int(silent.sum())} of {facts.count} steps lack the launches that the others have, with their work"


def _steps(facts: Facts) -> Iterator[str]:
    """That averages leave out most steps, since their device work isn't known."""
    height = facts.trace.steps.height
    if facts.lack_work.sum() <= _MOST * height:
        return
    for part in left_out_steps(facts.trace):
        if facts.lack_work[part.steps].any():
            verb = "doesn't" if part.steps.size == 1 else "don't"
            yield f"{part.steps.size} of {height} steps {verb} count, since {part.reason}"
