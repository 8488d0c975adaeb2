"""What if: how long a step would take if what a rule of advice is about took less time.

The steps are laid out again (critical_path/what_if.py): the same work runs in the same order on the same threads and
streams, so other paths become critical by themselves, and what is hidden behind them saves nothing. A rule whose remedy
is not to do the same in less time, such as a call that waits, has no row.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...advice.given import Given, given_advice
from ...critical_path.classes import CLASSES
from ...critical_path.explanation import Explanation, path_explanation
from ...diagnostics.diagnose import diagnose
from ...table import DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, View

_DEFAULT = 50
_HOST_WORK = ("all host code", ("operator", "between operators"))
_TARGETS = {
    "data_loading": ("data loading", ("data loading",)),
    "communication": ("communication", ("device communication", "host communication")),
    "gloo": ("communication", ("host communication",)),
    "copies": ("copying", ("copy",)),
    "host_bound": _HOST_WORK,
    "launch_bound": _HOST_WORK,
    "small_operators": _HOST_WORK,
    "host_operator": ("operators", ("operator",)),
}
"""What each rule that isn't about kernels would have take less time: in words, and as classes of the path."""


class WhatIf(Table):
    """How long a step would take if what each rule of advice is about took 50 %, or as much as chosen, less time."""

    key, weight = ("rule",), "saved_ns"

    rule = Column(TEXT, "Id of the rule; several, separated by commas, if they are chosen together.")
    target = Column(TEXT, "What would take less time.")
    path_ns = Column(DURATION, "How much of it lies on the critical path, per step.")
    recorded_ns = Column(
        DURATION, "Mean length of the steps that advice is about, as recorded: the complete ones after warm-up."
    )
    step_ns = Column(DURATION, "Their mean length with all steps laid out again.")
    saved_ns = Column(DURATION, "Recorded - new length.")
    saved_frac = Column(FRACTION, "The same / the recorded length.")


class _Target(NamedTuple):
    """What a rule is about.

    Attributes:
        words: Its name.
        classes: The classes of the path's segments that it is; none for kernels.
        kernels: The rows of device_events that it is; None for classes.
    """

    words: str
    classes: tuple[int, ...]
    kernels: NDArray[np.integer] | None

    def nodes(self, explained: Explanation) -> NDArray[np.bool_]:
        """Which nodes of the graph belong to it."""
        what_if = explained.what_if
        return np.isin(what_if.part, self.classes) if self.kernels is None else what_if.computation_of(self.kernels)

    def segments(self, path: pl.DataFrame) -> NDArray[np.bool_]:
        """Which segments of the critical path belong to it."""
        part, row = path["class"].to_numpy(), path["device_event"].to_numpy()
        if self.kernels is None:
            return np.isin(part, self.classes)
        inside: NDArray[np.bool_] = (part == CLASSES.index("computation")) & np.isin(row, self.kernels)
        return inside


def what_if(trace: Trace, *, less: str | None = None) -> pl.DataFrame:
    """Each rule at 50 %; with `less`, such as `data_loading:25,copies:50`, these rules together, in percent.

    There are no rows if `less` isn't spelled so, or names a rule that has no row.
    """
    given = given_advice(trace, tuple(diagnose(trace)))
    targets = _targets(given)
    chosen = [{rule: _DEFAULT} for rule in targets] if less is None else _parsed(less, targets)
    rows = [_row(trace, given, targets, percents) for percents in chosen]
    return WhatIf.of(pl.DataFrame(rows, schema=WhatIf.schema(), orient="row"))


def _targets(given: Given) -> dict[str, _Target]:
    """What each rule of the given advice is about, in its order."""
    targets: dict[str, _Target] = {}
    for advice in given.advice:
        if advice.kernels is not None:
            targets[advice.rule] = _Target("these kernels", (), advice.kernels)
        elif advice.rule in _TARGETS:
            words, classes = _TARGETS[advice.rule]
            targets[advice.rule] = _Target(words, tuple(map(CLASSES.index, classes)), None)
    return targets


def _parsed(less: str, targets: dict[str, _Target]) -> list[dict[str, int]]:
    """The percentage of each rule that `less` names, as the only entry; none if a part of it isn't possible."""
    parts = less.split(",") if less else []
    spelled = [re.fullmatch(r"(\w+):(\d\d?|100)", part, re.ASCII) for part in parts]
    chosen = {each[1]: int(each[2]) for each in spelled if each and each[1] in targets}
    return [chosen] if len(chosen) == len(parts) else []


def _row(trace: Trace, given: Given, targets: dict[str, _Target], percents: dict[str, int]) -> tuple[object, ...]:
    """The steps with all of these targets shortened, each by its own percentage; where two overlap, by the larger."""
    explained = path_explanation(trace)
    path = explained.path
    of_nodes, on_path = np.zeros(explained.what_if.part.size, np.uint8), np.zeros(path.height, bool)
    for rule, percent in percents.items():
        inside = targets[rule].nodes(explained)
        of_nodes[inside] = np.maximum(of_nodes[inside], np.uint8(percent))
        on_path |= targets[rule].segments(path)
    length, step = (path["end_ns"] - path["start_ns"]).to_numpy(), path["step"].to_numpy()
    spent = np.zeros(trace.steps.height, np.int64)
    np.add.at(spent, step[on_path], length[on_path])
    saved = explained.what_if.saved_together(of_nodes)[given.counted]
    recorded = explained.what_if.recorded[given.counted]
    mean_ns, saved_ns = round(float(recorded.mean())), round(float(saved.mean()))
    words = ", ".join(dict.fromkeys(targets[rule].words for rule in percents))
    path_ns = round(float(spent[given.counted].mean()))
    share = saved_ns / mean_ns if mean_ns else None
    return ",".join(percents), words, path_ns, mean_ns, mean_ns - saved_ns, saved_ns, share


VIEW = View(
    what_if,
    table=WhatIf,
    title="What if",
    entry="Overview",
    within="recording",
    shares=path_explanation,
    needs="work",
    hint="No advice about this trace is about something that could take less time, or `less` names none of it.",
    place=Part("overview"),
    reads_captures=True,
)
