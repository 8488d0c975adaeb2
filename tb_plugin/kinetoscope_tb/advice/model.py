"""The results of rules, and the candidates of what they would change.

A candidate covers delays of the dependency graph: whole classes of the path, GPU events, what threads do at some times,
or the host's waits for devices. `savings` simulates the steps without them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Intervals, Ints
from ..names import text

Confidence = Literal["high", "medium", "low", "cannot_tell"]
CONFIDENCE_WORDS = {"cannot_tell": "can't tell"}
Certainty = tuple[Confidence, Confidence]

_CERTAINTY: dict[Confidence, Certainty] = {
    "high": ("high", "high"),
    "medium": ("high", "medium"),
    "low": ("low", "medium"),
    "cannot_tell": ("high", "cannot_tell"),
}
"""What a rule's word says of the measurement and of the cause."""

_MAY_WAIT = " It may include waiting for other ranks."
_WAITS_AT_LEAST = (
    " At least {} of it{} is waiting for other ranks: even at 0.5 GB/s plus 100 µs per call, or at twice the time of "
    "the fastest equal call, moving the data takes no longer than the rest."
)


@dataclass(frozen=True)
class Culprit:
    """Who is behind a claim, as far as it is known.

    Attributes:
        rank: The rank, in a run.
        worker: Its worker's name.
        device: The device, if it is one of several.
        function: The Python function, as `train.py(12): log`.
        operator: The operator.
        module: The class of the module that most of the operator's time is in.
        kernel: The kernel, copy or fill, by its full name.
        range: The annotation, or other host code, by its name.
    """

    rank: int | None = None
    worker: str | None = None
    device: int | None = None
    function: str | None = None
    operator: str | None = None
    module: str | None = None
    kernel: str | None = None
    range: str | None = None


@dataclass(frozen=True)
class Candidate:
    """Work that could take less time.

    Attributes:
        words: What it is, as in: if … took 50 % less.
        classes: The classes of the path (critical_path/classes.py) that it is, whole.
        rows: The rows of device_events that it is.
        less: By which share of its time each of these rows could be shorter; None: unknown, so nothing bounds a saving.
        spans: When the threads do it; they could be shorter by the same share.
        threads: Which threads do; their rows of `threads`.
        waits: Whether it is the host's waits for devices: the host would go on without them.
        unrecorded_work: When devices may run work that isn't recorded: a call that returns after such a time waited
            for that work, so what the steps would be without the wait isn't known, and nothing of it is claimed.
        more_ns: How much more of the average step it may take, of which nothing is recorded.
    """

    words: str
    classes: tuple[str, ...] = ()
    rows: NDArray[np.integer] | None = field(default=None, repr=False)
    less: NDArray[np.float64] | float | None = 1.0
    spans: Intervals | None = field(default=None, repr=False)
    threads: NDArray[np.integer] | tuple[int, ...] = ()
    waits: bool = False
    unrecorded_work: Intervals | None = field(default=None, repr=False)
    more_ns: int = 0

    @property
    def mean_less(self) -> float:
        """By which share of their time its rows could be shorter, on average; all of it if that is unknown."""
        return 1.0 if self.less is None else float(np.mean(self.less))

    @property
    def is_of_launches(self) -> bool:
        """Whether it is rows with what launches them: without these, nothing waits for a launch or the row before."""
        return self.rows is not None and self.spans is not None

    @property
    def is_of_host(self) -> bool:
        """Whether it is work of the host alone."""
        return self.rows is None


@dataclass(frozen=True)
class Remedy:
    """Another change that may save as much as the one that a claim is about.

    Attributes:
        topic: What isn't fine then: a topic of ClearedTopic.
        candidate: What would be different.
        evidence: What is said if it saves nearly as much, with `{saved}` for how much.
        action: What is to do then, too.
        clause: What ends the title then, where what would be different is why the claim holds: it is to do first.
    """

    topic: str
    candidate: Candidate
    evidence: str
    action: str
    clause: str = ""


@dataclass(frozen=True)
class Fact:
    """What of a claim is recorded as such, and is wrong however long it takes: no fault of the recording flips that.

    Attributes:
        title: What it is, as a sentence.
        evidence: How it shows, without times.
    """

    title: str
    evidence: str


@dataclass(frozen=True)
class HiddenTime:
    """Time of a claim's cause that other work overlaps: less of it saves something where that work waits for it.

    Attributes:
        ns: How much that is in the average step.
        clause: What the title says of it, if more is saved than the time that it gives.
    """

    ns: int
    clause: str


DATA_LOADING = Candidate("data loading", ("data loading",))
COMMUNICATING = Candidate("communication", ("device communication", "host communication"))
LAUNCHING = Candidate("all host code and launches", ("operator", "between operators", "runtime call", "launch latency"))


@dataclass(frozen=True)
class KindOfCalls:
    """The kind of calls that most of the exposed time is in.

    Args:
        name: Such as `all_reduce`.
        share: How much of the exposed time it is, in words.
        often: How often it is called, in words.
        others: The other kinds, in words.
        fastest: Bytes and time of its fastest large call; None if none is large, or its size is unknown.
    """

    name: str
    share: str
    often: str
    others: str
    fastest: tuple[int, int] | None


@dataclass(frozen=True)
class Transfers:
    """What all ranks of a run know of a rank's exposed communication.

    Args:
        wait_ns: How much of it is waiting for other ranks, in the average step.
        transfer_ns: How much is moving data.
        fastest: Bytes of the kind's fastest large call, and how long it takes once all ranks have come; None: unknown.
    """

    wait_ns: float
    transfer_ns: float
    fastest: tuple[int, int] | None


@dataclass(frozen=True)
class Exposure:
    """The parts of the evidence of a claim about exposed communication.

    Args:
        start: How much is exposed, and how much is hidden.
        kind: The kind of calls that most of it is in; None if none is.
        least_wait_ns: How much of it must be waiting, by this recording; None if that is less than half of it.
        per: Behind a mean, that it is one.
        end: The way that the data take, if that is worth a word.
        more: What else there is to say of the claim.
    """

    start: str
    kind: KindOfCalls | None
    least_wait_ns: float | None
    per: str
    end: str = ""
    more: str = ""

    def evidence(self, of_ranks: Transfers | None = None) -> str:
        """The evidence as text, by this recording alone, or by all ranks."""
        if of_ranks is not None:
            transfer = f"moving data {text.time(of_ranks.transfer_ns)}"
            waits = f" Waiting for other ranks takes {text.time(of_ranks.wait_ns)} of it, {transfer}."
        else:
            waits = _MAY_WAIT
            if self.least_wait_ns is not None:
                waits = _WAITS_AT_LEAST.format(text.time(self.least_wait_ns), self.per)
        return f"{self.start}{self._calls(of_ranks)}{waits}{self.end}{self.more}"

    def _calls(self, of_ranks: Transfers | None) -> str:
        """Which calls it is, and how fast the fastest large one is."""
        if self.kind is None:
            return ""
        fastest = self.kind.fastest if of_ranks is None else of_ranks.fastest
        pace = "" if fastest is None else _pace(*fastest, is_transfer=of_ranks is not None)
        kind = self.kind
        return f" {kind.share} of the exposed time is {kind.name} ({kind.often}){pace}{kind.others}."


def _pace(size: int, ns: int, *, is_transfer: bool) -> str:
    """How fast a call is, as a clause: its size by its time, as nccl-tests' algorithm bandwidth is.

    Args:
        size: Bytes of its message.
        ns: How long it takes.
        is_transfer: Whether that is how long it takes once all ranks have come.
    """
    amount, rate = f"{text.digits(size / 1e6)} MB", f"({text.digits(size / ns)} GB/s)"
    if is_transfer:
        return f", which moves {amount} in {text.time(ns)} once all ranks have come {rate}"
    return f", whose fastest large call takes {text.time(ns)} for {amount} {rate}"


@dataclass(frozen=True)
class Advice:
    """A cause of lost time, with evidence and what to do about it.

    Args:
        rule: Its id.
        title: The problem, as one plain sentence.
        evidence: The numbers behind it, in words; behind those of `exposure`, if it has that.
        action: What to do.
        saving_ns: Upper bound on the saving per step, never more than the step: with a candidate that of the
            re-simulated steps, which `advice` fills in, else a union of exposed time. None if it isn't about time, or
            has no bound.
        confidence: high: measured; medium: measured, with a likely cause; low: an estimate; cannot_tell: the time
            is measured, but not its cause.
        view: Id of the view with the rows behind it.
        filter: Filter for that view.
        size_ns: How much of the step it is about, if that isn't what it could save.
        candidate: What could take less time.
        culprit: The code that the title or the evidence names.
        remedy: Another change that may save as much.
        doubt: How certain the measurement and the cause are, if a witness or a fault of the recording lowers that.
        open_questions: What is unknown besides, of the row that says what is fine.
        is_of_usual_step: Whether that much can be saved of a step without the profiler, too.
        exposure: Of exposed communication, the numbers behind it of which other ranks may know more.
        saving_range: Between which bounds the saving lies, if it is simulated.
        hidden_time: More time of the cause, which other work overlaps.
        fact: What stays true of it where its time is doubtful.
    """

    rule: str
    title: str
    evidence: str
    action: str
    saving_ns: int | None
    confidence: Confidence
    view: str
    filter: str = ""
    size_ns: int | None = None
    candidate: Candidate | None = field(default=None, compare=False, repr=False)
    culprit: Culprit = Culprit()
    remedy: Remedy | None = field(default=None, compare=False, repr=False)
    doubt: Certainty | None = None
    open_questions: tuple[OpenQuestion, ...] = ()
    is_of_usual_step: bool = False
    exposure: Exposure | None = None
    saving_range: tuple[int, int] | None = None
    hidden_time: HiddenTime | None = None
    fact: Fact | None = None

    @property
    def whole_exposure(self) -> Exposure | None:
        """Of exposed communication, all its evidence."""
        return None if self.exposure is None else replace(self.exposure, more=self.evidence)

    @property
    def words(self) -> str:
        """All its evidence, as text."""
        return self.evidence if self.whole_exposure is None else self.whole_exposure.evidence()

    @property
    def certainty(self) -> Certainty:
        """How certain the measurement is, and the cause; `confidence` is the word that is shown."""
        return self.doubt or _CERTAINTY[self.confidence]

    @property
    def kernels(self) -> NDArray[np.integer] | None:
        """The rows of device_events that it is about, if it is about some."""
        return self.candidate.rows if self.candidate else None

    @property
    def weight_ns(self) -> int:
        """By how much of the step it comes before others; 0 where it isn't a matter of time."""
        return self.saving_ns or self.size_ns or 0


@dataclass(frozen=True)
class ClearedTopic:
    """Something that was checked and isn't acted on: it costs too little, nothing, or what others are said of.

    Args:
        topic: What was checked, in a word or two.
        evidence: Its cost, in words.
        dominant: What most of the time is in that nothing is known to be wrong with, as a clause; empty if nothing.
        lost_ns: How much of the average step is lost to it, if that is too much to say that nothing is to fix.
        rows: The rows of device_events that lose it, if they are known; a row may occur several times.
        row_ns: How much each of these loses.
        candidate: What could take less time: what that saves may be too much to say so, though it costs little by
            itself.
    """

    topic: str
    evidence: str
    dominant: str = ""
    lost_ns: int = 0
    rows: NDArray[np.integer] | None = field(default=None, compare=False, repr=False)
    row_ns: Ints | None = field(default=None, compare=False, repr=False)
    candidate: Candidate | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class OpenQuestion:
    """Something that is unknown from this trace.

    Args:
        topic: What is unknown.
        reason: Why, and what to record to know it.
        size_ns: How much of the step it is about, if it is a matter of time.
        action: What to do to know it; empty: nothing particular.
        view: The view that shows the rows.
        culprit: What most of it is in.
    """

    topic: str
    reason: str
    size_ns: int = 0
    action: str = ""
    view: str = "operator_efficiency"
    culprit: Culprit = Culprit()

    @property
    def words(self) -> str:
        """What is unknown, and what most of it is in, as the end of a sentence."""
        return f"{self.topic}, most of it in `{self.culprit.operator}`" if self.culprit.operator else self.topic


Result = Advice | ClearedTopic | OpenQuestion
