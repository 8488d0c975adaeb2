"""The rules in order, and what is said of their results.

Each rule looks at the counted (complete) steps and reports only costs that recur: a share of the mean step that is
larger than the standard error of that mean. Idle time caused by the host is split between the rules, and so are
kernels, so that no two of them claim the same time. What a rule's candidate would save is what the re-simulated steps
save; it is an upper bound. Rules without enough data report an `OpenQuestion`, not advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ..arrays.intervals import merge
from ..measures.calls.roofline import Limits
from ..measures.recording.contents import has_communication, has_snapshot
from ..measures.recording.options import was_on
from ..measures.recording.server import RECORD_REPLAYS, how_to_mark_steps
from ..measures.recording.torch_version import may_lack_compile
from ..measures.recording.unrecorded_device import UnrecordedDevice, unrecorded_device
from ..measures.time.breakdown import loading_ranges
from ..names import text
from ..names.regex import regex
from ..trace import Diagnostic, Trace
from ..trace.results import once_per_trace
from .facts import LEAST_SHARE, Facts, launched_within
from .faults import EVERYTHING, RECORDING_FAULTS, UNKNOWN_PART, Faults
from .lost_rows import lost_rows
from .model import Advice, ClearedTopic, Confidence, Culprit, OpenQuestion, Result
from .witnesses import examine

NOTHING = "nothing_to_fix"
CATEGORIES = {"communication": "Communication", "copies": "Memcpy", "data_loading": "DataLoader"}
"""Rules about a whole category of slices, and that category."""
_MOST = 0.5  # of the step: what is unknown of it is the largest part, whatever else there is
_COMPILE = regex(r"`torch\.compile(?:\([^`]*\))?`")
_MOSTLY = 0.85  # with less computation, on the device or without one on the host, there must be a cause, known or not
_LARGE = 0.1  # of the step: a measured loss comes before an estimate that is larger
_ESTIMATES = frozenset(
    (
        *("mixed_precision", "unfused_attention", "elementwise", "elementwise_below_roof", "matmul_below_roof"),
        *("convolution_below_roof", "attention_below_roof", "channels_last", "small_kernels"),
        *("host_operator", "double_precision"),
    )
)
_GENERAL = ("launch_bound", "host_bound")
"""Rules about the host in general, unless they name a function or an operator."""
_OF_HOST = frozenset(
    ("data_loading", "optimizer", "host_optimizer", "synchronizing", "allocation", "garbage_collection", "recompiles")
)
"""Rules about a cause on the host whose end would shorten what the host does in general."""
_OF_SERVER = ("server_load", "server_function", "missing_graphs")
_GENERAL_OF_SERVER = ("serving_phase", "synchronizing", *_GENERAL)
"""Rules about a server in general: what is known of its load and its host, if that is large, comes before them."""
_PART = 1 / 3  # of what limits in general: a cause that is so large is what to begin with
_COVERED = 0.5  # of a loss
_LESS, _MUCH_LESS = 0.9, 0.7  # times what it is of a recorded step
_LITTLE = 0.2  # of the step: if so much can't be rated, the rest decides
_NO_STEPS = " No steps are marked, so it isn't known whether some take longer than others."
_LOOK = "Look at the longest gaps, and at the critical path."
_NEXT_TO_REPLAYS = (
    "Put this file into a folder `capture_traces` next to that recording: it says which operators its graphs launch."
)
_NAME_DEVICE = "Name the device with `--device`."
_RECORD_SHAPES = "Record with `record_shapes=True`."
_LOOK_AT_REASONS = "Look at *Operators: Efficiency*, which says why of each."
_RECORD = "Look at trace health; record Python stacks (`with_stack=True`) to see what runs between operators."
_ANNOTATE = "Look at trace health; annotate parts of the loop (`torch.profiler.record_function`)."
_LOOK_AT_PYTHON = "Look at trace health, and in *Python* at what runs between operators."


_RULES = (
    "serving.serving_phase",
    "server_host.server_function",
    "server_host.iterations_without_graphs",
    "data_loading.data_loading",
    "host.synchronization",
    "host.host_bound",
    "host.launch_calls",
    "repetition.repeated_gap",
    "host.unexplained_idle",
    "cpu.small_operators",
    "host.optimizer",
    "host.host_optimizer",
    "extra_work.grouped_optimizer",
    "host.allocation",
    "contention.core_waits",
    "cpu.main_thread_waits",
    "cpu.host_threads",
    "operator_pace.slow_operators",
    "cpu.operator_loop",
    "cpu.python_operator",
    "cpu.outside_operators",
    "cpu.double_precision",
    "cpu.host_operator",
    "copies.copies",
    "copies.device_copies",
    "copies.peer_copies",
    "copies.fills",
    "communication.communication",
    "device.uneven_devices",
    "device.data_parallel",
    "device.small_kernels",
    "device.memory",
    "kernels.kernels",
    "extra_work.recomputation",
    "anomaly.anomaly_detection",
    "extra_work.longer_steps",
    "extra_work.longer_host_steps",
    "extra_work.growing_inputs",
    "experts.expert_imbalance",
    "recording.profiler",
    "recording.pauses",
    "compiled_code.recompiles",
    "compiled_code.graph_breaks",
    "warm_up.warm_up",
)
"""The rules, each by its module and its name, in the order in which they are asked."""

_NEEDED_IF: dict[str, Callable[[Facts], bool]] = {
    "serving": lambda facts: facts.has_iterations,
    "cpu": lambda facts: facts.has_operators and not facts.has_device,
    "operator_pace": lambda facts: facts.has_operators and not facts.has_device,
    "communication": lambda facts: has_communication(facts.trace),
    "data_loading": lambda facts: bool(loading_ranges(facts.trace).any()),
}
"""Which recordings the rules of a module are about; it isn't imported for the others."""


def _rules(facts: Facts) -> Iterator[Callable[[Facts], Iterator[Result]]]:
    """The rules that a recording may break."""
    for rule in _RULES:
        module = rule.partition(".")[0]
        if module not in _NEEDED_IF or _NEEDED_IF[module](facts):
            yield _function(rule)


def _function(name: str) -> Callable[..., Any]:
    """A function of this package by its module and its name; few recordings need all modules."""
    module, _, attribute = name.partition(".")
    function: Callable[..., Any] = getattr(import_module(f".{module}", __package__), attribute)
    return function


def advice(facts: Facts, diagnostics: Sequence[Diagnostic] = ()) -> list[Advice]:
    """Advice about the largest part of the step first, then what isn't about time; last, what needs no attention.

    What faults of the recording, among its diagnostics, could flip isn't given; one row before all others says so.
    """
    faults = Faults(facts, diagnostics)
    if not _do_rules_apply(facts):
        return _without_rules(facts, faults, diagnostics)
    results: list[Result] = [*findings(facts)]
    sizes_ns = {
        result.rule: result.size_ns or result.saving_ns or 0 for result in results if isinstance(result, Advice)
    }
    if any(isinstance(result, Advice) and result.candidate for result in results):
        results = _function("savings.simulate")(facts, results)  # for advice that saves something
    results = [_of_usual_step(facts, s, sizes_ns[s.rule]) if isinstance(s, Advice) else s for s in results]
    ranked_claims = _by_weight(facts, [examine(facts, s) for s in results if isinstance(s, Advice)])
    claims = faults.judge([*_unknown_part(facts, results, ranked_claims), *ranked_claims], _MOSTLY)
    loss = [*lost_rows(facts, diagnostics)]
    is_doubtful = any(claim.rule == RECORDING_FAULTS for claim in claims)
    if loss or is_doubtful:
        sure = [s for s in results if not isinstance(s, ClearedTopic) or faults.clears(s)]
        results, is_doubtful = sure, is_doubtful or len(sure) < len(results)
    rest = _rest(facts, results, claims)
    rest = rest if claims else examine(facts, rest)
    if is_doubtful:
        rest = faults.judge_rest(rest, [s for s in results if isinstance(s, ClearedTopic) and not s.lost_ns])
    return [_of_later_torch(facts, row) for row in (*loss, *claims, rest)]


def _of_later_torch(facts: Facts, row: Advice) -> Advice:
    """The advice, with the version that torch.compile needs where the recorded one may be older."""
    if not may_lack_compile(facts.trace):
        return row
    return replace(row, action=_COMPILE.sub(r"\g<0> (PyTorch 2)", row.action, count=1))


@once_per_trace
def findings(facts: Facts) -> tuple[Result, ...]:
    """What the rules find, in order. It doesn't depend on the faults of the recording."""
    if not _do_rules_apply(facts):
        return ()
    results: list[Result] = []
    for rule in _rules(facts):
        results += rule(facts)
        facts.trace.release_free_memory()
    facts.release()  # what follows needs as much memory
    facts.trace.release_free_memory()
    return tuple(results)


def _do_rules_apply(facts: Facts) -> bool:
    is_of_torch = facts.trace.meta.foreign_writer is None and unrecorded_device(facts.trace) is None
    return is_of_torch and bool(facts.step_ns) and not facts.are_of_captures


def _without_rules(facts: Facts, faults: Faults, diagnostics: Sequence[Diagnostic]) -> list[Advice]:
    """What is said of a trace that the rules can't judge."""
    if facts.trace.meta.foreign_writer is not None:
        is_snapshot = has_snapshot(facts.trace)
        return [] if is_snapshot else [_about_foreign_file(facts.trace.meta.foreign_writer)]
    device = unrecorded_device(facts.trace)
    if device is not None:
        return [faults.about(EVERYTHING) if faults.hide_an_end else _about_unrecorded_device(device)]
    if not facts.step_ns:
        return faults.without_steps() or [_about_no_time(facts.trace)]
    return [*lost_rows(facts, diagnostics), _about_captures(facts)]


def _by_weight(facts: Facts, claims: Sequence[Advice]) -> list[Advice]:
    """The claims, the largest part of the step first; no estimate comes before a large loss that was measured.

    Nor does the host in general, if no function or operator is named, before a cause on the host that is part of it;
    nor what limits a server's tokens per second in general before what its host takes too long for. What is sure to be
    wrong counts with what of it may not be recorded.
    """
    losses = (claim for claim in claims if claim.confidence in ("high", "medium") and claim.rule not in _ESTIMATES)
    most_ns = max((claim.weight_ns for claim in losses), default=0)
    bound_ns = most_ns if most_ns >= _LARGE * facts.usual_step_ns else facts.step_ns
    is_known = ("high", "medium")
    causes = [claim for claim in claims if claim.confidence in is_known and claim.rule in _OF_HOST]
    lengths = [min(claim.weight_ns, claim.size_ns or claim.weight_ns) for claim in causes]
    cause_ns = max((ns for ns in lengths if ns >= _LARGE * facts.usual_step_ns), default=0)
    of_server = [claim.weight_ns for claim in claims if claim.rule in _OF_SERVER and claim.confidence in is_known]
    server_ns = max((ns for ns in of_server if ns >= _LARGE * facts.usual_step_ns), default=0)

    def order(claim: Advice) -> tuple[int, int]:
        weight_ns = claim.weight_ns + (claim.candidate.more_ns if claim.fact and claim.candidate else 0)
        if claim.rule in _ESTIMATES:
            return -min(weight_ns, bound_ns), 2
        if claim.rule in _GENERAL_OF_SERVER and server_ns:
            return -min(weight_ns, server_ns), 1
        is_general = claim.rule in _GENERAL and claim.culprit == Culprit() and cause_ns >= _PART * weight_ns
        return -(min(weight_ns, cause_ns) if is_general else weight_ns), int(is_general)

    return sorted(claims, key=order)


def _of_usual_step(facts: Facts, claim: Advice, size_ns: int) -> Advice | ClearedTopic:
    """A claim about the host or idle devices, with what it saves of a step without the profiler, in words.

    None if that is next to nothing.

    Args:
        facts: Of the trace.
        claim: The claim, with its saving.
        size_ns: How much of a recorded step it is about.
    """
    if claim.saving_ns is None or not facts.is_of_usual_step(claim):
        return claim
    usual_ns = facts.usual_step_ns
    of_idle = facts.has_device and claim.candidate is None
    most_ns = min(claim.saving_ns, facts.usual_idle_ns) if of_idle else claim.saving_ns
    takes = f"{facts.step} takes {text.time(usual_ns)}"
    if most_ns < LEAST_SHARE * usual_ns:
        words = claim.rule.replace("_", " ")
        return ClearedTopic(words, f"{facts.percent(size_ns)} for {words} while the profiler runs (without it {takes})")
    title, evidence = claim.title, claim.evidence
    if most_ns < _LESS * size_ns:
        evidence += f" Without the profiler {takes}: about {text.time(most_ns)} of it can be saved."
    if (usual_share := most_ns / usual_ns) < _MUCH_LESS * facts.share(size_ns):
        title = f"{title.removesuffix('.')}; without the profiler about {text.percent(usual_share)} of {facts.step}."
    return replace(claim, title=title, evidence=evidence, saving_ns=most_ns, is_of_usual_step=True)


def _about_foreign_file(writer: str) -> Advice:
    return Advice(
        "foreign_writer",
        f"This file was written by {writer}, not by torch.profiler: there is no advice about it.",
        "It has no operators of PyTorch. Busy time by lane says which thread or stream worked for how long.",
        "Look at the lanes and at the timeline.",
        None,
        "cannot_tell",
        "lanes",
    )


def _about_no_time(trace: Trace) -> Advice:
    """A recording that is empty, or holds allocations alone."""
    events = text.times(trace.meta.events, "event")
    return Advice(
        "nothing_timed",
        "Nothing in this recording took time: what costs most can't be said.",
        f"It holds {text.times(trace.memory.height, 'memory event')} and nothing with a duration."
        if trace.memory.height
        else f"It holds {events}, none with a duration.",
        "Pass `ProfilerActivity.CPU` among the activities, and run the work while the profiler records.",
        None,
        "cannot_tell",
        "memory_curve" if trace.memory.height else "health",
        doubt=("cannot_tell", "cannot_tell"),
    )


def _about_unrecorded_device(device: UnrecordedDevice) -> Advice:
    title = f"The job ran on {device.name or 'a GPU'}, of which nothing was recorded: what costs most can't be said."
    if not device.was_used:
        title = f"Nothing of {device.name} was recorded: if the job ran on it, what costs most can't be said."
    return Advice(
        "device_not_recorded",
        title,
        f"{device.evidence}; there is no kernel, copy or fill. Times of the host don't show what the device did.",
        f"Pass `{device.activity}` among the activities, on a machine whose driver permits tracing.",
        None,
        "cannot_tell",
        "health",
        doubt=("cannot_tell", "cannot_tell"),
    )


def _about_captures(facts: Facts) -> Advice:
    return Advice(
        "graph_capture",
        f"This recording is of a graph capture, for {facts.of_steps(facts.graph_captures)}: nothing that is captured "
        "runs.",
        f"Graphs are captured for {facts.part_of(facts.graph_captures)}{facts.recurs(facts.graph_captures)}. What the "
        "host launches meanwhile runs later, when a graph is replayed, so idle time, kernels and launches of this "
        "recording say nothing of that.",
        f"{RECORD_REPLAYS} {_NEXT_TO_REPLAYS}",
        None,
        "high",
        "health",
        size_ns=facts.mean(facts.graph_captures),
    )


def _unknown_part(facts: Facts, results: Sequence[Result], ranked_claims: Sequence[Advice]) -> list[Advice]:
    """That most of the step is unknown, if all that is known besides is uncertain and less than half as large.

    If it is in one operator of whose work there is no model, also if that is certain and less than a third as large.
    """
    question = max((s for s in results if isinstance(s, OpenQuestion)), key=lambda u: u.size_ns, default=None)
    if question is None or facts.share(question.size_ns) < _MOST or not ranked_claims:
        return []
    has_no_model = question.culprit.operator is not None and bool(question.action)
    part = 1 / 2 if ranked_claims[0].confidence == "low" else 1 / 3 if has_no_model else 0
    if not part or ranked_claims[0].weight_ns > part * question.size_ns:
        return []
    return [
        Advice(
            UNKNOWN_PART,
            f"For {facts.percent(question.size_ns)} of {facts.unit} it is unknown {question.words}.",
            f"{text.capitalize(question.reason)}.",
            question.action or _how_to_rate(facts),
            None,
            "cannot_tell",
            question.view,
            size_ns=question.size_ns,
            culprit=question.culprit,
        )
    ]


def _how_to_rate(facts: Facts) -> str:
    """What lets operators be rated, of what the recording lacks."""
    is_named = all(limits.is_named for limits in Limits.of(facts.trace).values())
    lacks = [] if is_named else [_NAME_DEVICE]
    lacks += [] if was_on(facts.trace, "record_shapes") else [_RECORD_SHAPES]
    return " ".join(lacks) or _LOOK_AT_REASONS


def _where_to_look(facts: Facts) -> tuple[str, str]:
    """What to do where nothing explains the step, and the view to begin with."""
    if facts.has_device:
        return _LOOK, "gaps"
    if not facts.trace.python_calls.is_empty():
        return _LOOK_AT_PYTHON, "python_calls"
    return _ANNOTATE if was_on(facts.trace, "with_stack") else _RECORD, "health"


def _rest(facts: Facts, results: Sequence[Result], claims: Sequence[Advice]) -> Advice:
    """What is fine, and what is unknown."""
    questions = [s for s in results if isinstance(s, OpenQuestion)]
    has_advice = any(isinstance(s, Advice) for s in results)
    cleared_topics = [s for s in results if isinstance(s, ClearedTopic) and not (has_advice and s.lost_ns)]
    evidence = f"Of {facts.unit}: " + ", ".join(c.evidence for c in cleared_topics) + "." if cleared_topics else ""
    evidence += _losses(facts, [s for s in results if isinstance(s, ClearedTopic) and s not in cleared_topics], claims)
    evidence += "".join(f" Unknown: {u.topic}, because {u.reason}." for u in questions)
    rates_nothing = facts.has_operators and not facts.has_device
    evidence += " How fast these operators could be on this processor isn't known." if rates_nothing else ""
    topics = text.enumeration([c.topic for c in cleared_topics]) if cleared_topics else "what was checked"
    is_known: Confidence = "medium" if questions or rates_nothing else "high"
    title, confidence = (f"Nothing to fix in {topics}.", is_known) if has_advice else _verdict(facts, results, is_known)
    evidence += facts.annotated_words if confidence == "cannot_tell" else ""
    evidence += _NO_STEPS if confidence == "low" else ""
    largest = max(questions, key=lambda u: u.size_ns, default=OpenQuestion("", ""))
    action, view = "Nothing.", "exposed_time" if facts.has_device else "steps"
    if confidence == "low":
        action = f"Nothing; marked steps would show whether they differ. {how_to_mark_steps(facts.server)}"
    if confidence == "cannot_tell":
        action, view = (largest.action, largest.view) if largest.action else _where_to_look(facts)
    return Advice(
        NOTHING,
        title,
        evidence.strip() or "The trace has no data for these rules.",
        action,
        None,
        confidence,
        view,
        culprit=largest.culprit if confidence == "cannot_tell" else Culprit(),
        open_questions=tuple(questions),
    )


def _losses(facts: Facts, losses: Sequence[ClearedTopic], claims: Sequence[Advice]) -> str:
    """Large parts of the step without a claim of their own: those that claims cover, and the others; as sentences."""
    parts = [loss for loss in losses if _is_covered(facts, loss, claims)]
    others = [loss for loss in losses if loss not in parts]
    kinds = (("Part of the above", parts), ("Costs that no advice covers", others))
    return "".join(f" {words}: {', '.join(loss.evidence for loss in kind)}." for words, kind in kinds if kind)


def _is_covered(facts: Facts, loss: ClearedTopic, claims: Sequence[Advice]) -> bool:
    """Whether most of a loss is of rows that a claim is about, or that are launched by what it is about.

    A loss on the host is covered by what saves as much of the host's operators and calls.
    """
    if loss.candidate is not None:
        return any(
            (claim.candidate.spans is not None or set(claim.candidate.classes) & set(loss.candidate.classes))
            and (claim.saving_ns or 0) >= _COVERED * loss.lost_ns
            for claim in claims
            if claim.candidate
        )
    if loss.rows is None or loss.row_ns is None:
        return False
    candidates = [claim.candidate for claim in claims if claim.candidate]
    covers = launched_within(facts.trace, merge([candidate.spans for candidate in candidates if candidate.spans]))
    rows = [candidate.rows for candidate in candidates if candidate.rows is not None]
    covers[np.concatenate([[], *rows]).astype(np.int64)] = True
    return bool(loss.row_ns[covers[loss.rows]].sum() >= _COVERED * loss.row_ns.sum())


def _verdict(facts: Facts, results: Sequence[Result], is_known: Confidence) -> tuple[str, Confidence]:
    """The title and its confidence if no rule gave advice."""
    if not facts.has_device and not facts.has_operators:
        return "The trace has neither operators nor GPU events.", "cannot_tell"
    part = facts.computing_share
    unit = f"{facts.step} without the profiler" if facts.usual_step and facts.has_device else facts.unit
    verb = "compute" if facts.waits == "wait" else "computes"
    what = f"{facts.device} {verb}" if facts.has_device else "operators run on the CPU"
    question = max((u for u in results if isinstance(u, OpenQuestion)), key=lambda u: u.size_ns, default=None)
    is_much = question is not None and facts.share(question.size_ns) > _LITTLE
    if question and is_much and part - facts.share(question.size_ns) < _MOSTLY <= part:
        title = f"What costs most can't be said: for {facts.percent(question.size_ns)} of {facts.unit} it is unknown"
        return f"{title} {question.words}.", "cannot_tell"
    if part < _MOSTLY:
        return f"No cause stands out, though {what} for only {text.percent(part)} of {unit}.", "cannot_tell"
    dominant = "".join(f", {s.dominant}" for s in results if isinstance(s, ClearedTopic) and s.dominant)
    return (
        f"Nothing stands out: {what} for {text.percent(part)} of {unit}{dominant}.",
        "low" if facts.is_whole else is_known,
    )
