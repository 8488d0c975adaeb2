"""Advice: what costs time in the steps, the evidence, and what to do about it.

host        data loading, synchronizing calls, late launches, small operators, the optimizer, allocation
device      exposed copies and communication, DataParallel, small kernels, nearly full memory
precision   matmuls that could use tensor cores
recording   the profiler's own cost, pauses of Python
faults      what isn't said, since the recording contradicts itself or lacks events

Each rule looks at the counted (complete) steps and reports only costs that recur: a share of the mean step that is
larger than the standard error of that mean. Idle time caused by the host is split between the rules, so that no two of
them claim the same time; a saving is an upper bound. Rules without enough data report `Unknown`, not advice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..trace import Diagnostic
from ..trace.model import Undermined
from . import device, host, precision, recording, text
from .facts import Facts
from .faults import EVERYTHING, NOTED, RECORDING_FAULTS, WITHHELD, Faults
from .model import Advice, Cleared, Unknown

__all__ = ["CATEGORIES", "NOTHING", "Advice", "Facts", "advice"]

NOTHING = "nothing_to_fix"
CATEGORIES = {"communication": "Communication", "copies": "Memcpy", "data_loading": "DataLoader"}
"""Rules about a whole category of slices, and that category."""
_LOOK = "Look at trace health for what the recording lacks."
_MOSTLY = 0.85  # with less computation there must be a cause, known or not
_RULES = (
    host.data_loading,
    host.synchronizing,
    host.host_bound,
    host.launch_calls,
    host.unexplained_idle,
    host.small_operators,
    host.optimizer,
    host.allocation,
    device.copies,
    device.communication,
    device.data_parallel,
    device.filling,
    device.memory,
    precision.mixed_precision,
    precision.channels_last,
    recording.profiler,
    recording.pauses,
)


def advice(facts: Facts, diagnostics: Sequence[Diagnostic] = ()) -> list[Advice]:
    """Advice about the largest part of the step first, then what isn't about time; last, what needs no attention.

    What faults of the recording, among its diagnostics, could flip isn't given; one row before all others says so.
    """
    faults = Faults(facts, diagnostics)
    if not facts.step_ns:
        return [faults.about(EVERYTHING)] if faults.share(EVERYTHING) else []
    results = [each for rule in _RULES for each in rule(facts)]
    ranked = sorted((s for s in results if isinstance(s, Advice)), key=lambda a: -a.weight_ns)
    given = faults.judge(ranked)
    numbers, margin = _rest_bears(facts)
    if not ranked and not faults.bears(numbers, margin):
        given = [faults.about(numbers)]
    if any(each.rule == RECORDING_FAULTS for each in given):
        results = [s for s in results if not isinstance(s, Cleared) or faults.clears(s)]
    return [*given, _rest(facts, results, given)]


def _rest(facts: Facts, results: Sequence[Advice | Cleared | Unknown], given: Sequence[Advice]) -> Advice:
    """What is fine, and what is unknown."""
    cleared = [s for s in results if isinstance(s, Cleared)]
    unknown = [s for s in results if isinstance(s, Unknown)]
    evidence = f"Of {facts.unit}: " + ", ".join(c.evidence for c in cleared) + "." if cleared else ""
    evidence += "".join(f" Unknown: {u.topic} ({u.reason})." for u in unknown)
    title, is_known = _verdict(facts)
    nothing = "The trace has no data for these rules."
    if given:
        is_known = bool(cleared) or all(each.rule != RECORDING_FAULTS for each in given)
        topics = text.listed([c.topic for c in cleared]) if cleared else "what was checked"
        title = f"Nothing to fix in {topics}." if is_known else "Nothing else can be said."
        nothing = nothing if is_known else "What else was checked rests on the same numbers."
    return Advice(
        NOTHING,
        title,
        evidence.strip() or nothing,
        "Nothing." if is_known else _LOOK,
        None,
        "cannot_tell" if not is_known else "medium" if unknown else "high",
        "exposed_time" if facts.has_device else "steps",
    )


def _rest_bears(facts: Facts) -> tuple[frozenset[Undermined], float]:
    """The numbers that the verdict without advice rests on, and by how much of the step they may be wrong.

    That a device computes for most of the step rests on its kernels: what is missing can only add to it.
    """
    if facts.hides_device:
        return frozenset(), 1.0
    if not facts.has_device:
        return frozenset({"host_times", "steps"}), WITHHELD * facts.share(facts.mean(facts.parts["CPU Exec"]))
    computes = facts.share(facts.mean(facts.exposed["computation"]))
    if computes < _MOSTLY:
        return frozenset({"idle", "kernel_times", "launches", "clock", "steps"}), WITHHELD * (1 - computes)
    return frozenset({"kernel_times"}), max(computes - _MOSTLY, NOTED)


def _verdict(facts: Facts) -> tuple[str, bool]:
    """The title if no rule gave advice, and whether it says that all is well."""
    if facts.hides_device:
        return "The trace has no GPU events, so nothing is known about the GPU.", False
    if not facts.has_device and facts.trace.ops.is_empty():
        return "The trace has neither operators nor GPU events.", False
    if not facts.has_device:
        part = facts.share(facts.mean(facts.parts["CPU Exec"]))
        return f"Nothing stands out: operators run on the CPU for {text.percent(part)} of {facts.unit}.", True
    part = facts.share(facts.mean(facts.exposed["computation"]))
    verb = "compute" if facts.waits == "wait" else "computes"
    if part < _MOSTLY:
        return (
            f"No cause stands out, though {facts.device} {verb} for only {text.percent(part)} of {facts.unit}.",
            False,
        )
    return f"Nothing stands out: {facts.device} {verb} for {text.percent(part)} of {facts.unit}.", True
