"""Advice: what costs time in the steps, what shows it, and what to do about it.

host        data, synchronising calls, late launches, small operators, the optimizer, asking for memory
device      copies and communication that nothing hides, DataParallel, small kernels, memory that is nearly full
precision   matrix work that could use tensor cores
recording   the profiler's own cost, pauses of Python

Each rule looks at the steps that count (the complete ones) and speaks only of what recurs: of a share of the mean step
that is also larger than the error of that mean. Idle time that the host is to blame for is split between the rules, so
no two of them claim the same; a saving is the most that the cause could give back. What isn't known gives no advice.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import device, host, precision, recording, text
from .facts import Facts
from .model import Advice, Cleared, Unknown

__all__ = ["CATEGORIES", "NOTHING", "Advice", "Facts", "advice"]

NOTHING = "nothing_to_fix"
CATEGORIES = {"communication": "Communication", "copies": "Memcpy", "data_loading": "DataLoader"}
"""The category of the slices that a rule is about as a whole."""
_MOSTLY = 0.85  # with less computation there is a cause, known or not
_RULES = (
    host.data_loading,
    host.synchronising,
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


def advice(facts: Facts) -> list[Advice]:
    """What to do, the largest part of the step first; then what isn't a matter of time, then what is in order."""
    if not facts.step_ns:
        return []
    said = [each for rule in _RULES for each in rule(facts)]
    found = [s for s in said if isinstance(s, Advice)]
    found.sort(key=lambda a: -a.weight_ns)
    return [*found, _rest(facts, said)]


def _rest(facts: Facts, said: Sequence[Advice | Cleared | Unknown]) -> Advice:
    """What was looked at and is in order, and what this recording can't tell."""
    cleared = [s for s in said if isinstance(s, Cleared)]
    unknown = [s for s in said if isinstance(s, Unknown)]
    evidence = f"Of {facts.unit}: " + ", ".join(c.evidence for c in cleared) + "." if cleared else ""
    evidence += "".join(f" It can't be told {u.topic}: {u.reason}." for u in unknown)
    topics = text.listed([c.topic for c in cleared]) if cleared else "what was looked at"
    return Advice(
        NOTHING,
        f"Nothing to fix in {topics}." if len(said) > len(cleared) + len(unknown) else _verdict(facts),
        evidence.strip() or "Nothing was recorded that these rules look at.",
        "Nothing.",
        None,
        "medium" if unknown else "high",
        "exposed_time" if facts.has_device else "steps",
    )


def _verdict(facts: Facts) -> str:
    """The answer when no rule found anything."""
    if facts.hides_device:
        return "Nothing can be told of the device: its work wasn't recorded."
    if not facts.has_device and facts.trace.ops.is_empty():
        return "Nothing can be told: neither operators nor work of a device were recorded."
    if not facts.has_device:
        part = facts.share(facts.mean(facts.parts["CPU Exec"]))
        return f"Nothing stands out: operators run on the CPU for {text.percent(part)} of {facts.unit}."
    part = facts.share(facts.mean(facts.exposed["computation"]))
    verb = "compute" if facts.waits == "wait" else "computes"
    if part < _MOSTLY:
        return f"No cause stands out, though {facts.device} {verb} for only {text.percent(part)} of {facts.unit}."
    return f"Nothing stands out: {facts.device} {verb} for {text.percent(part)} of {facts.unit}."
