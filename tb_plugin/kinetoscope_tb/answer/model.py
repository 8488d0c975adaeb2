"""What an answer is. Times are integers in nanoseconds, shares fractions from 0 to 1."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..advice.model import Confidence, Culprit, Exposure

if TYPE_CHECKING:
    from ..discovery import TraceFile
    from .device_work import DeviceWork
    from .host_pace import OperatorPace
    from .step_work import StepWork

_IN_ORDER = ("nothing_to_fix", "no_straggler")

Rows = tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class RowKey:
    """Which row of a view it is: enough for a link.

    Args:
        view: The view's id.
        key: The values of its key columns.
        parameters: The parameters with which it has this row.
    """

    view: str
    key: Mapping[str, Any]
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """What was found.

    Args:
        id: The rule that says so.
        about: `run`, or `recording`.
        title: What it is, with its size.
        evidence: The numbers that say so.
        action: What to do.
        saving_ns: By how much shorter the average step could be at most; None if it isn't about time, or unknown.
        saving_frac: The same / the average step, without the profiler where that is known.
        saving_low_ns: The least that it may be, by what a recording of a few steps can't show; None if unknown.
        saving_high_ns: The most.
        confidence: The word that is shown: the less certain of the two parts.
        measurement: How certain the numbers are.
        cause: How certain it is that they are so for the reason that the title gives.
        culprit: Who it is, as far as that is known.
        view: The view with the evidence.
        filter: The filter of its rows; empty for all.
        rows: Rows of views that show the culprit.
        question: The question that the view answers.
        exposure: Of exposed communication, what the evidence consists of.
    """

    id: str
    about: str
    title: str
    evidence: str
    action: str
    saving_ns: int | None
    saving_frac: float | None
    confidence: Confidence
    measurement: Confidence
    cause: Confidence
    culprit: Culprit
    view: str
    filter: str
    rows: tuple[RowKey, ...] = ()
    question: str = ""
    exposure: Exposure | None = None
    saving_low_ns: int | None = None
    saving_high_ns: int | None = None

    @property
    def is_in_order(self) -> bool:
        """Whether it says that there is nothing to fix."""
        return self.id in _IN_ORDER

    def at_most(self, most_ns: int) -> Claim:
        """The claim if it saves no more than this, nor may save more."""
        if not self.saving_ns:
            return self
        saving_ns = min(self.saving_ns, most_ns)
        frac = None if self.saving_frac is None else self.saving_frac * saving_ns / self.saving_ns
        low_ns, high_ns = (None if ns is None else min(ns, most_ns) for ns in (self.saving_low_ns, self.saving_high_ns))
        return replace(self, saving_ns=saving_ns, saving_frac=frac, saving_low_ns=low_ns, saving_high_ns=high_ns)

    def less(self, most_ns: int, least_ns: int) -> Claim:
        """The claim without what another change saves: so much at most, and of its upper bound so much at least."""
        saving_ns, high_ns = max(0, (self.saving_ns or 0) - most_ns), self.saving_high_ns
        rest = self.at_most(saving_ns)
        if rest.saving_low_ns is None or high_ns is None:
            return rest
        low_ns = max(0, (self.saving_low_ns or 0) - most_ns)
        return replace(rest, saving_low_ns=low_ns, saving_high_ns=max(saving_ns, high_ns - least_ns))

    def values(self) -> dict[str, Any]:
        """The claim as JSON values; `evidence` has its exposure in words."""
        return {name: value for name, value in asdict(self).items() if name != "exposure"}


@dataclass(frozen=True)
class NotSaid:
    """What can't be said.

    Args:
        topic: What is unknown.
        reason: Why.
        action: How to know it; empty where nothing is known to help.
    """

    topic: str
    reason: str
    action: str = ""


@dataclass(frozen=True)
class Number:
    """A key number.

    Args:
        id: `step`, `step_stdev`, `utilization`, `idle`, `mfu`, `tokens_per_s` or `peak_memory`.
        value: Its value.
        unit: `ns`, `fraction`, `tokens/s` or `bytes`.
        of: The device, the phase, or the cause of idle time that it is of; empty for the recording.
        row: The row of a view that has it.
        column: The column.
    """

    id: str
    value: float
    unit: str
    of: str
    row: RowKey
    column: str


@dataclass(frozen=True)
class Question:
    """What to ask next.

    Args:
        question: The question.
        view: The view that answers it.
        command: The command that prints it.
    """

    question: str
    view: str
    command: str


@dataclass(frozen=True)
class Answer:
    """The answer about a recording, or about a run and one of its recordings.

    Args:
        claims: What was found, the verdict first; what is in order last.
        not_said: What can't be said, and why.
        numbers: The key numbers.
        sentences: Facts as sentences, by topic: `tokens`, `mfu`, `peak`, `left_out`, `losses`.
        rows: The first rows of the views that show where the time went, by the view's id.
        environment: The device and versions, in a line.
        steps: How many steps averages are over; 0 if none is marked.
        steps_left_out: How many they leave out since not all of them was recorded; an inference server's don't count.
        step_noun: What a step is called.
        events: Number of events.
        window_ns: From the first event to the last.
        step_ns: Mean length of the steps that claims are about, as recorded.
        usual_step_ns: How long a step takes without the profiler, if recording slows steps; else None.
        uses_device: Whether any work of a device was recorded, as `workers` of a run has it.
        step_work: Of a rank, what takes some time of the host in a step: the inner functions first, then ranges.
        device_work: Of a rank, the device work of each function, the least first.
        operators: Of a rank, how long its host takes for each operator.
        ranks: How many workers the run has; 0 if the answer is about the recording alone.
        run: The run.
        worker: The worker whose recording it is.
        span: The recording.
        path: Where the recordings are, for commands.
    """

    rows: Mapping[str, Rows]
    environment: str
    steps: int
    step_noun: str
    events: int
    window_ns: int
    steps_left_out: int = 0
    uses_device: bool = False
    step_ns: int = 0
    usual_step_ns: int | None = None
    claims: tuple[Claim, ...] = ()
    not_said: tuple[NotSaid, ...] = ()
    numbers: tuple[Number, ...] = ()
    sentences: Mapping[str, str] = field(default_factory=dict)
    step_work: tuple[StepWork, ...] = ()
    device_work: tuple[DeviceWork, ...] = ()
    operators: Mapping[str, OperatorPace] = field(default_factory=dict)
    ranks: int = 0
    run: str = ""
    worker: str = ""
    span: str = ""
    path: str = ""

    def of_file(self, file: TraceFile, path: str) -> Answer:
        """The answer with the names of its recording.

        Args:
            file: The recording's file.
            path: What commands name: the file, or the logdir.
        """
        return replace(self, run=file.run, worker=file.worker, span=file.span, path=path)

    @property
    def verdict(self) -> Claim:
        """The first claim: what costs most, that nothing does, or why that can't be said."""
        return self.claims[0]

    @property
    def next(self) -> tuple[Question, ...]:
        """What to ask next: the views with the evidence, in the order of the claims."""
        targets = {claim.view: claim for claim in reversed(self.claims) if not claim.is_in_order}
        return tuple(self._question(targets[view]) for view in reversed(targets))

    def _question(self, claim: Claim) -> Question:
        names = {"--run": self.run, "--worker": "" if claim.about == "run" else self.worker, "--span": self.span}
        words = [word for option, name in names.items() if name for word in (option, name)]
        words += ["--filter", claim.filter] if claim.filter else []
        command = ["kinetoscope", "view", claim.view, *([self.path] if self.path else []), *words]
        return Question(claim.question, claim.view, shlex.join(command))

    def values(self) -> dict[str, Any]:
        """The answer as JSON values, as docs/http_api.md describes them."""
        of_recording = ("run", "worker", "span", "ranks", "environment", "events", "window_ns")
        of_steps = ("steps", "steps_left_out", "step_noun", "step_ns", "usual_step_ns")
        claims = [claim.values() for claim in self.claims]
        return {
            "state": "ready",
            **{name: getattr(self, name) for name in of_recording + of_steps},
            "verdict": claims[0],
            "also": claims[1:],
            **{name: [asdict(part) for part in getattr(self, name)] for name in ("not_said", "numbers", "next")},
            "sentences": dict(self.sentences),
            "rows": {view: list(rows) for view, rows in self.rows.items()},
        }
