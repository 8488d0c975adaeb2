"""Advice: what costs time in the steps, the evidence, and what to do about it.

host        data loading, synchronizing calls, late launches, small operators, the optimizer, allocation
cpu         without a device: waits of the main thread, contended cores, Python code, dominant operators
experts     uneven numbers of tokens per expert
device      exposed copies and communication, DataParallel, small kernels, nearly full memory
repetition  the same gap in every step
warm_up     first steps that take longer
compiled_code   torch.compile that compiles again, or whose code falls apart
precision   matmuls that could use tensor cores
recording   the profiler's own cost, pauses of Python

Each rule looks at the counted (complete) steps and reports only costs that recur: a share of the mean step that is
larger than the standard error of that mean. Idle time caused by the host is split between the rules, so that no two of
them claim the same time; a saving is an upper bound. Rules without enough data report `Unknown`, not advice.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import compiled_code, cpu, device, experts, host, precision, recording, repetition, text, warm_up
from .facts import Facts
from .model import Advice, Cleared, Unknown

__all__ = ["CATEGORIES", "NOTHING", "Advice", "Facts", "advice"]

NOTHING = "nothing_to_fix"
CATEGORIES = {"communication": "Communication", "copies": "Memcpy", "data_loading": "DataLoader"}
"""Rules about a whole category of slices, and that category."""
_MOSTLY = 0.85  # with less computation there must be a cause, known or not
_RULES = (
    host.data_loading,
    host.synchronizing,
    host.host_bound,
    host.launch_calls,
    repetition.repeated_gap,
    host.unexplained_idle,
    host.small_operators,
    host.optimizer,
    host.allocation,
    cpu.main_thread_waits,
    cpu.host_threads,
    cpu.outside_operators,
    cpu.host_operator,
    device.copies,
    device.communication,
    device.data_parallel,
    device.filling,
    device.memory,
    experts.expert_imbalance,
    precision.mixed_precision,
    precision.channels_last,
    recording.profiler,
    recording.pauses,
    compiled_code.recompiles,
    compiled_code.graph_breaks,
    warm_up.warm_up,
)


def advice(facts: Facts) -> list[Advice]:
    """Advice about the largest part of the step first, then what isn't about time; last, what needs no attention."""
    if not facts.step_ns:
        return []
    results = [each for rule in _RULES for each in rule(facts)]
    ranked = [s for s in results if isinstance(s, Advice)]
    ranked.sort(key=lambda a: -a.weight_ns)
    return [*ranked, _rest(facts, results)]


def _rest(facts: Facts, results: Sequence[Advice | Cleared | Unknown]) -> Advice:
    """What is fine, and what is unknown."""
    cleared = [s for s in results if isinstance(s, Cleared)]
    unknown = [s for s in results if isinstance(s, Unknown)]
    evidence = f"Of {facts.unit}: " + ", ".join(c.evidence for c in cleared) + "." if cleared else ""
    evidence += "".join(f" Unknown: {u.topic} ({u.reason})." for u in unknown)
    topics = text.listed([c.topic for c in cleared]) if cleared else "what was checked"
    is_fine = True
    title = f"Nothing to fix in {topics}."
    if len(results) == len(cleared) + len(unknown):
        title, is_fine = _verdict(facts)
    return Advice(
        NOTHING,
        title,
        evidence.strip() or "The trace has no data for these rules.",
        "Nothing.",
        None,
        "cannot_tell" if not is_fine else "medium" if unknown else "high",
        "exposed_time" if facts.has_device else "steps",
    )


def _verdict(facts: Facts) -> tuple[str, bool]:
    """The title if no rule gave advice, and whether it says that the steps are fine."""
    if facts.hides_device:
        return "The trace has no GPU events, so nothing is known about the GPU.", False
    if not facts.has_device and facts.trace.ops.is_empty():
        return "The trace has neither operators nor GPU events.", False
    if facts.has_device:
        part = facts.share(facts.mean(facts.exposed["computation"]))
        who, run = facts.device, "compute" if facts.waits == "wait" else "computes"
    else:
        part = facts.share(facts.mean(facts.host_time.operating))
        who, run = "the CPU", "runs operators"
    if part < _MOSTLY:
        return f"No cause stands out, though {who} {run} for only {text.percent(part)} of {facts.unit}.", False
    return f"Nothing stands out: {who} {run} for {text.percent(part)} of {facts.unit}.", True
