"""The contradiction gate: what other views say against a claim. A claim that one of them contradicts isn't made.

WITNESSES lists for each rule the views that hold the same quantity, or one that refutes it. Each looks at the numbers
behind its view, not at other rules. A contradicted claim stays in its place, with the contradiction in its evidence,
and its confidence is `cannot_tell`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..names import text
from .accumulation import periodic_updates, update_lengths
from .facts import Facts
from .model import Advice, Certainty

_NEAR = 1.1  # times: rounding, and times of two clocks
_MOST = 0.5
_OUTLIER = 2.0  # times the median step
_OF_HOST = ("host late", "launch latency", "graph launch", "blocked copy")
"""The causes of idle time that what the host does can explain."""
_NOT_KNOWN = ("not shown", "unexplained")


class Witness(NamedTuple):
    """What a view holds against claims of a rule.

    Attributes:
        view: Its id.
        objection: What contradicts a claim, as a clause; empty if nothing does.
    """

    view: str
    objection: Callable[[Facts, Advice], str]


def _more_than_the_step(facts: Facts, claim: Advice) -> str:
    """No step spends more on one thing than it lasts."""
    if claim.size_ns is None or claim.size_ns <= _NEAR * facts.step_ns:
        return ""
    return f"{facts.unit} lasts {text.time(facts.step_ns)}, less than the {text.time(claim.size_ns)} of this"


def _more_than_idle(facts: Facts, claim: Advice) -> str:
    """A device that waits is idle."""
    idle = facts.mean(facts.exposure_parts["idle"]) if facts.has_device else facts.step_ns
    if claim.size_ns is None or claim.size_ns <= _NEAR * idle:
        return ""
    return f"{facts.device} {'are' if facts.waits == 'wait' else 'is'} idle for only {facts.percent(idle)}"


def _idle_for_other_reasons(facts: Facts, claim: Advice) -> str:
    """Where most idle time has a reason on the device, what the host does meanwhile isn't why."""
    if not facts.has_device or not claim.size_ns:
        return ""
    idle = sum(facts.idle.values())
    late = sum(facts.idle.get(cause, 0.0) for cause in (*_OF_HOST, *_NOT_KNOWN))
    if _NEAR * late >= facts.share(claim.size_ns) or late >= _MOST * idle:
        return ""
    return f"{facts.device} {facts.waits} for the host for only {text.percent(late)}; else its work waits on the device"


def _less_communication(facts: Facts, claim: Advice) -> str:
    """What is exposed is part of all communication."""
    if not facts.has_device or not facts.trace.device_events["is_communication"].any():
        return ""
    whole = facts.mean(facts.exposure_parts["communication"])
    return f"all communication takes {text.time(whole)}" if (claim.size_ns or 0) > _NEAR * whole else ""


def _less_copying(facts: Facts, claim: Advice) -> str:
    """Those between host and device are some of all."""
    whole = facts.mean(facts.exposure_parts["exposed copies"])
    return f"copies that nothing hides take {text.time(whole)}" if (claim.size_ns or 0) > _NEAR * whole else ""


def _less_computation(facts: Facts, claim: Advice) -> str:
    """No kernels run for longer than all of them."""
    if not facts.has_device:
        return ""
    whole = facts.mean(facts.exposure_parts["computation"])
    return f"all kernels run for {text.time(whole)}" if (claim.size_ns or 0) > _NEAR * whole else ""


def _some_device_is_idle(facts: Facts, _: Advice) -> str:
    """All is well only if it is on each device."""
    if not facts.has_device:
        return ""
    shares = {device: facts.share(facts.mean(ns)) for device, ns in facts.computation_of_devices.items()}
    least = min(shares, key=lambda device: shares[device])
    if shares[least] >= _MOST * max(shares.values()):
        return ""
    return f"{facts.noun_of_devices} {least} computes for only {text.percent(shares[least])}"


def _some_step_is_longer(facts: Facts, _: Advice) -> str:
    """All is well only if it is in each step; a server's iterations differ on purpose, and so do periodic updates."""
    if facts.count < 3 or facts.has_iterations:
        return ""
    lengths = np.where(facts.is_counted, facts.length, 0)
    median = float(np.median(facts.length[facts.is_counted]))
    if lengths.max() >= _OUTLIER * median:
        lengths = lengths - update_lengths(facts, periodic_updates(facts))
    longest = int(lengths.argmax())
    if lengths[longest] < _OUTLIER * median:
        return ""
    name = facts.windows.names[longest]
    return f"{facts.noun} {name} lasts {text.time(facts.length[longest])}, the median {facts.noun} {text.time(median)}"


_STEPS = Witness("steps", _more_than_the_step)
_IDLE, _CULPRITS = Witness("exposed_time", _more_than_idle), Witness("idle_culprits", _idle_for_other_reasons)
_KERNELS = (_STEPS, Witness("kernels", _less_computation))
_OF_WAITS = (_STEPS, _IDLE, _CULPRITS)

WITNESSES: dict[str, tuple[Witness, ...]] = {
    **dict.fromkeys(("host_bound", "launch_bound", "synchronizing", "allocation", "slow_launch"), _OF_WAITS),
    **dict.fromkeys(("server_function", "missing_graphs"), _OF_WAITS),
    **dict.fromkeys(("data_loading", "garbage_collection", "worker_start", "graph_breaks", "recompiles"), _OF_WAITS),
    **dict.fromkeys(
        (
            *("unfused_attention", "matmul_below_roof", "convolution_below_roof", "attention_below_roof"),
            *("elementwise_below_roof", "elementwise", "casts", "layout_changes", "mixed_precision", "channels_last"),
            *(
                "kernel_times_vary",
                "growing_kernels",
                "small_kernels",
                "expert_imbalance",
                "grouped_optimizer",
                "recomputation",
                "longer_steps",
            ),
        ),
        _KERNELS,
    ),
    **dict.fromkeys(("small_operators", "host_operator", "main_thread_waits", "host_threads", "core_waits"), (_STEPS,)),
    **dict.fromkeys(
        ("double_precision", "longer_host_steps", "operator_loop", "python_operator", "slow_operators"), (_STEPS,)
    ),
    "optimizer": (_STEPS,),
    "communication": (_STEPS, Witness("exposed_time", _less_communication)),
    "gloo": (_STEPS,),
    **dict.fromkeys(
        ("copies", "device_copies", "peer_copies", "fills"), (_STEPS, Witness("exposed_time", _less_copying))
    ),
    **dict.fromkeys(("small_copies", "host_optimizer"), (_STEPS,)),
    "uneven_devices": (_STEPS,),
    "nothing_to_fix": (Witness("gpus", _some_device_is_idle), Witness("steps", _some_step_is_longer)),
}
"""For each rule the views that hold the same quantity, or a witness against it. The others are about no time of a step,
or say themselves that they can't tell."""


def examine(facts: Facts, claim: Advice) -> Advice:
    """The claim, which isn't above `cannot_tell` if a witness contradicts it."""
    if claim.confidence == "cannot_tell":
        return claim
    for view, objection in WITNESSES.get(claim.rule, ()):
        if because := objection(facts, claim):
            evidence = f"{claim.evidence} The view `{view}` contradicts this: {because}."
            doubt: Certainty = ("cannot_tell", claim.certainty[1])
            without_saving = replace(claim, saving_ns=None, saving_range=None)
            return replace(without_saving, evidence=evidence, confidence="cannot_tell", doubt=doubt)
    return claim
