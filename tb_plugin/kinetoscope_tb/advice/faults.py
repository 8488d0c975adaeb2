"""Which verdicts a faulty recording can bear: those that its faults can't flip.

Every rule rests on some of the numbers that a fault may undermine. A verdict about a share of the step is withheld if
the time that faults may have made wrong is a quarter of that share or more: then its size says nothing, and neither
does its place among the others. If it is less but noticeable, the confidence is lower. What is withheld is replaced by
one row, `recording_faults`, that says why, and how to record without the fault.

Where work has no recorded launch, most idle time may be around it, and nothing says why: that has words of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from ..arrays.gather import NONE
from ..measures.recording.lost_launches import is_work_missing, kernel_launches, lone_rows
from ..measures.recording.options import how_to_record_less
from ..names import text
from ..trace import Diagnostic
from ..trace.model import Fault, NumberKind
from .facts import LEAST_SHARE, Facts
from .model import Advice, ClearedTopic, Confidence

RECORDING_FAULTS = "recording_faults"
PROFILER_OVERHEAD = "profiler_overhead"
UNKNOWN_PART = "unknown_part"

WITHHELD = 0.25
"""Of a verdict's share: a claim of 40 % that may be 30 % is another claim, and may no longer be the largest."""
NOTED = 0.05
"""Of a verdict's share: less doesn't change its digits that matter."""

_MOST = 0.5
"""Of the step: what takes more costs most."""

_LOWER: dict[Confidence, Confidence] = {"high": "medium", "medium": "low"}
_MOST_NAMED = 3
BLOCKED = "blocked copy"
UNKNOWN = (BLOCKED, "unexplained", "not shown")
"""Causes of parts of gaps that say what is known, but not why the device didn't work."""
_WITH_CALLS = (
    "torch.profiler does with `ProfilerActivity.CPU` and the device's activity together, unless a filter leaves them "
    "out."
)
_WORDS_OF_KINDS = {"memcpy": "copies", "memset": "fills"}
_LINK_LAUNCHES = (
    "Check what wrote or converted the file: its GPU events and the calls that launch them don't have the same "
    "`correlation`."
)
_MOSTLY = 0.5
_END_MISSING = "Part of the recording is missing"  # which, lost_rows says in the row above
_WHEN_WHOLE = "Look again when all of the recording is there."

_NOT_SHOWN = ("unexplained_idle", "not shown")
_Numbers = frozenset[NumberKind]
_KERNELS: _Numbers = frozenset({"kernel_times", "steps"})
_HOST: _Numbers = frozenset({"host_times", "steps"})
_DEVICES: _Numbers = frozenset({"idle", "kernel_times", "steps"})
EVERYTHING: _Numbers = frozenset({"idle", "kernel_times", "host_times", "launches", "clock", "steps"})
_NOTHING: _Numbers = frozenset()

RESTS_ON: dict[str, _Numbers] = {
    **dict.fromkeys(
        ("data_parallel", "growing_inputs", "memory", PROFILER_OVERHEAD, RECORDING_FAULTS, UNKNOWN_PART), _NOTHING
    ),
    **dict.fromkeys(
        (
            *("small_kernels", "mixed_precision", "channels_last", "unfused_attention", "matmul_below_roof"),
            *("convolution_below_roof", "attention_below_roof", "elementwise_below_roof", "elementwise", "casts"),
            *(
                "layout_changes",
                "kernel_times_vary",
                "growing_kernels",
                "expert_imbalance",
                "grouped_optimizer",
                "recomputation",
                "longer_steps",
                "SM efficiency",
                "precision",
            ),
        ),
        _KERNELS,
    ),
    **dict.fromkeys(("copies", "device_copies", "peer_copies", "fills", "communication", "uneven_devices"), _DEVICES),
    **dict.fromkeys(
        (
            *(
                "small_operators",
                "host_operator",
                "slow_operators",
                "host_threads",
                "core_waits",
                "main_thread_waits",
                "recompiles",
                "graph_breaks",
            ),
            *(
                "small operators",
                "double_precision",
                "longer_host_steps",
                "operator_loop",
                "python_operator",
                "anomaly_detection",
            ),
        ),
        _HOST,
    ),
}
"""The numbers that each rule, and each topic that was cleared, rests on; the others rest on all: they relate idle time
of devices to what the host did."""


class Faults:
    """The faults of a recording, as far as they undermine what is said of its steps."""

    def __init__(self, facts: Facts, diagnostics: Sequence[Diagnostic]) -> None:
        self._facts = facts
        faults = [diagnostic.fault for diagnostic in diagnostics if diagnostic.fault]
        self._faults = sorted(((fault, self._share_of(fault)) for fault in faults), key=lambda pair: -pair[1])

    @property
    def hide_an_end(self) -> bool:
        """Whether one of them does."""
        return any(fault.hides_an_end for fault, _ in self._faults)

    def _share_of(self, fault: Fault) -> float:
        if fault.affected_ns is None or not self._facts.step_ns:
            return 1.0
        return min(self._facts.share(fault.affected_ns / self._facts.count), 1.0)

    def share(self, numbers: _Numbers, *, counts_recording: bool = True) -> float:
        """How much of the steps may be wrong in some of the numbers; the cost of recording counts once, if at all."""
        return self._sum(self._faults, numbers, counts_recording=counts_recording)

    def _share_of_time(self, numbers: _Numbers) -> float:
        """The same with all that recording costs, also where idle time is as large a share without it."""
        return self._sum(self._shares_of_time, numbers)

    @property
    def _shares_of_time(self) -> list[tuple[Fault, float]]:
        steps_ns = self._facts.step_ns * self._facts.count
        return [(fault, max(share, fault.cost_ns / steps_ns if steps_ns else 0.0)) for fault, share in self._faults]

    @staticmethod
    def _sum(faults: Sequence[tuple[Fault, float]], numbers: _Numbers, *, counts_recording: bool = True) -> float:
        shares = [(fault.is_recording, share) for fault, share in faults if fault.undermines & numbers]
        recording = max((share for is_recording, share in shares if is_recording and counts_recording), default=0.0)
        return min(recording + sum(share for is_recording, share in shares if not is_recording), 1.0)

    def bears(self, numbers: _Numbers, margin: float) -> bool:
        """Whether what rests on some numbers stays true if it may be wrong by less than a share of the steps."""
        doubtful = self.share(numbers)
        return not doubtful or doubtful < margin

    def doubt(self, numbers: _Numbers) -> str:
        """Which part of some numbers is doubtful, and why, in a sentence; empty if too little is to matter."""
        share = self._share_of_time(numbers)
        if share < NOTED:
            return ""
        is_all = any(share >= 1 and fault.undermines & numbers for fault, share in self._shares_of_time)
        part = text.capitalize(self._part(numbers)) if is_all else f"Up to {self._part(numbers)}"
        return f"{part} is doubtful: {text.as_clause(self._clauses(numbers))}."

    def judge(self, ranked_claims: Sequence[Advice], mostly: float) -> list[Advice]:
        """The advice that can be given, with the confidence that it deserves, and a row in place of what can't be.

        It comes below the row of lost_rows, which says what hides an end.

        Args:
            ranked_claims: All advice, the largest first.
            mostly: The share of the step that a device must compute for if there is none.
        """
        numbers, margin = self._without_advice(mostly)
        if not ranked_claims and not self.bears(numbers, margin):
            return [self.about(numbers, is_end_said=True)]
        withheld_claims = [claim for claim in ranked_claims if self._is_withheld(claim)]
        claims = [self._with_doubt(claim) for claim in ranked_claims if claim not in withheld_claims]
        if withheld_claims:
            position = ranked_claims.index(withheld_claims[0])
            # The cost of recording is measured and can be avoided: that says more than what it undermines.
            costs = [claim for claim in claims if claim.rule == PROFILER_OVERHEAD]
            claims = [claim for claim in claims if claim.rule != PROFILER_OVERHEAD]
            replacement = self._replacement(withheld_claims, is_headline=position == 0)
            claims[position:position] = [*self._without_times(withheld_claims), *costs, replacement]
        return claims

    def _without_times(self, withheld_claims: Sequence[Advice]) -> Iterator[Advice]:
        """What stays true of claims that are withheld: what they are about is recorded as such."""
        for claim in withheld_claims:
            if claim.fact:
                doubtful = self._part(self._rests_on(claim))
                evidence = f"{claim.fact.evidence} What that takes can't be said: {doubtful} is doubtful."
                without_saving = replace(claim, saving_ns=None, saving_range=None, size_ns=None, candidate=None)
                yield replace(without_saving, title=claim.fact.title, evidence=evidence, confidence="high", doubt=None)

    def judge_rest(self, rest: Advice, cleared_topics: Sequence[ClearedTopic]) -> Advice:
        """The row of what is fine where something can't be judged: then it isn't all of the rest."""
        if cleared_topics:
            return replace(rest, title=f"Nothing to fix in {text.enumeration([c.topic for c in cleared_topics])}.")
        evidence = "What else was checked rests on the same numbers."
        action = "Mend what *Trace health* lists, then look again."
        title = "Nothing else can be said."
        return replace(rest, title=title, evidence=evidence, action=action, confidence="cannot_tell")

    def without_steps(self) -> list[Advice]:
        """The only advice about a recording whose steps last no time."""
        return [self.about(EVERYTHING)] if self.share(EVERYTHING) else []

    def _without_advice(self, mostly: float) -> tuple[_Numbers, float]:
        """The numbers that the verdict without advice rests on, and by how much of the step they may be wrong.

        That a device computes for most of the step rests on its kernels: what is missing can only add to it.
        """
        facts = self._facts
        if not facts.has_device:
            return _HOST, WITHHELD * facts.share(facts.mean(facts.operator_time))
        computes = facts.computing_share
        if computes < mostly:
            return EVERYTHING - _HOST | _DEVICES, WITHHELD * (1 - computes)
        return frozenset({"kernel_times"}), max(computes - mostly, NOTED)

    def clears(self, cleared_topic: ClearedTopic) -> bool:
        """Whether it stays true that something costs too little."""
        return self.bears(RESTS_ON.get(cleared_topic.topic, EVERYTHING), LEAST_SHARE)

    def about(self, numbers: _Numbers, *, is_end_said: bool = False) -> Advice:
        """That nothing can be said that rests on some numbers, why, and how to record it.

        Args:
            numbers: Those that it rests on.
            is_end_said: Whether a row above says which faults hide an end.
        """
        faults = [fault for fault, share in self._faults if share and fault.undermines & numbers]
        remedies = [fault.remedy for fault in faults if not (is_end_said and fault.hides_an_end)] or [_WHEN_WHOLE]
        return Advice(
            RECORDING_FAULTS,
            f"What costs most can't be said: {self._part(numbers)} is doubtful.",
            f"{self._clauses(numbers, is_end_said=is_end_said)}.",
            " ".join(dict.fromkeys(remedies)),
            None,
            "cannot_tell",
            "health",
            size_ns=round(self.share(numbers) * self._facts.step_ns),
            doubt=("cannot_tell", "cannot_tell"),
        )

    def _replacement(self, withheld_claims: Sequence[Advice], *, is_headline: bool) -> Advice:
        numbers: _Numbers = frozenset().union(*map(self._rests_on, withheld_claims))
        row = self.about(numbers, is_end_said=True)
        names = text.enumeration([_withheld_part(claim) for claim in withheld_claims])
        doubtful = f"{self._part(numbers)} is doubtful."
        title = (self._computes(doubtful) or row.title) if is_headline else f"No advice on {names}: {doubtful}"
        return replace(row, title=title, evidence=f"{row.evidence} Advice withheld for that reason: {names}.")

    def _computes(self, doubtful: str) -> str:
        """That computing costs most, if no fault can flip that; else nothing."""
        facts = self._facts
        computes = facts.share(facts.mean(facts.computation)) if facts.has_device else 0.0
        if computes < _MOST or not self.bears(_KERNELS, computes - _MOST):
            return ""
        verb = "compute" if facts.waits == "wait" else "computes"
        what = f"{facts.subject} {verb} for {text.percent(computes)} of {facts.unit}"
        return f"{what}; what the rest goes to can't be said: {doubtful}"

    def _is_withheld(self, advice: Advice) -> bool:
        doubtful = self.share(self._rests_on(advice), counts_recording=not advice.is_of_usual_step)
        return bool(doubtful) and doubtful >= WITHHELD * self._share_of_step(advice)

    def _share_of_step(self, advice: Advice) -> float:
        """What a claim is about, as a share of the step; at most all of it, as for a first step that lasts longer."""
        return min(self._facts.share(advice.weight_ns), 1.0)

    def _with_doubt(self, advice: Advice) -> Advice:
        numbers, least = self._rests_on(advice), NOTED * self._share_of_step(advice)
        if self.bears(numbers, least) or self.share(numbers, counts_recording=not advice.is_of_usual_step) < least:
            return advice
        doubt = f" Up to {self._part(numbers)} is doubtful: {self._clauses(numbers)}."
        lower = _LOWER.get(advice.confidence, advice.confidence)
        return replace(advice, evidence=advice.evidence + doubt, confidence=lower, doubt=(lower, advice.certainty[1]))

    def _part(self, numbers: _Numbers) -> str:
        share = self._share_of_time(numbers)
        return f"all of {self._facts.unit}" if share >= 1 else f"{text.percent(share)} of {self._facts.unit}"

    def _clauses(self, numbers: _Numbers, *, is_end_said: bool = False) -> str:
        faults = [fault for fault, share in self._faults if share and fault.undermines & numbers]
        texts = (_END_MISSING if is_end_said and fault.hides_an_end else fault.clause for fault in faults)
        clauses = list(dict.fromkeys(texts))[:_MOST_NAMED]
        return "; ".join([*clauses[:1], *map(text.as_clause, clauses[1:])])

    def _rests_on(self, advice: Advice) -> _Numbers:
        """The numbers that advice rests on; none if it isn't about time, or only says what isn't shown."""
        is_claim = advice.weight_ns > 0 and (advice.rule, advice.filter) != _NOT_SHOWN
        numbers = RESTS_ON.get(advice.rule, EVERYTHING) if is_claim else _NOTHING
        return _HOST if numbers == _KERNELS and not self._facts.has_device else numbers


def _withheld_part(claim: Advice) -> str:
    """What isn't said of a claim that is withheld, in words: what it is about, or only how long that takes."""
    words = claim.rule.replace("_", " ")
    return f"what {words} takes" if claim.fact else words


def lacks_launches(facts: Facts) -> bool:
    """Whether most of the idle time of unknown cause is around work whose launch isn't recorded.

    Not where even more launches have no work: then work is missing, too, and the device may not be idle.
    """
    if is_work_missing(facts.trace):
        return False
    return facts.share(facts.mean(facts.unlinked_idle)) > _MOSTLY * sum(facts.idle.get(cause, 0.0) for cause in UNKNOWN)


def link_launches(facts: Facts) -> str:
    """How to know which calls launch work."""
    rows, kinds = facts.trace.device_events, _unlinked_kinds(facts)
    is_linked = rows["launch"] != NONE
    if kinds and not (is_linked & rows["kind"].is_in(kinds)).any():
        return f"Record the runtime calls that make {_work_of(kinds)}, too: {_WITH_CALLS}"
    if not kinds and not kernel_launches(facts.trace).any():
        return f"Record the runtime calls that launch work, too: {_WITH_CALLS}"
    if not is_linked.any():
        return _LINK_LAUNCHES
    record_less = text.capitalize(how_to_record_less(facts.trace))
    return f"{record_less}, so that the profiler's buffers hold all runtime calls."


def why_unknown(facts: Facts, part: str) -> str:
    """That nothing can be said of such idle time, as a sentence; `part` says how much it is."""
    is_busy, its = ("are", "their") if facts.waits == "wait" else ("is", "its")
    return f"Why {facts.device} {is_busy} idle for {part} isn't known: {_calls_unknown(facts, its)} isn't recorded."


def why_not_recorded(facts: Facts, part: str) -> str:
    """The same of time in which devices may be idle or not."""
    return f"For {part} it isn't known why {facts.device} ran nothing: {_calls_unknown(facts, 'the')} isn't recorded."


def _calls_unknown(facts: Facts, whose: str) -> str:
    """What isn't recorded of such work, such as: which calls launched its copies."""
    return f"which calls launched {whose} {_work_of(_unlinked_kinds(facts))}"


def lone_work(facts: Facts) -> str:
    """Such work with its number, such as: 22 361 copies."""
    count, kinds = int(lone_rows(facts.trace).sum()), _unlinked_kinds(facts)
    return f"{text.digits(count)} {_work_of(kinds) if kinds else 'GPU events'}"


def _unlinked_kinds(facts: Facts) -> list[str]:
    """The kinds of work whose launch isn't recorded, if that is nothing but copies and fills; else none."""
    kinds = facts.trace.device_events["kind"].filter(pl.Series(lone_rows(facts.trace)))
    names = sorted(kinds.unique().cast(pl.String))
    return names if set(names) <= _WORDS_OF_KINDS.keys() else []


def _work_of(kinds: Sequence[str]) -> str:
    """Such work in words."""
    return text.enumeration([_WORDS_OF_KINDS[kind] for kind in kinds]) if kinds else "work"
