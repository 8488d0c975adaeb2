"""What candidates save: the steps, simulated again with their delays shortened.

So the number of a claim and that of its slider are one: the slider shows a part of the candidate, and a part never
saves more than the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Ints
from ..critical_path.explanation import Explanation, path_explanation
from ..names import text
from .candidates import partly, percents
from .facts import LARGE_SHARE, LEAST_SHARE, Facts
from .model import Advice, ClearedTopic, Result
from .saving_range import Change, saving_range

_AT_ONCE = 4  # candidates: each needs a byte of a node
_HALF = 50  # percent
_NEARLY = 0.8  # of what a claim saves
_OF_KERNELS = ("casts", "layout_changes", "elementwise", "unfused_attention")
"""Rules about kernels that would be gone with what launches them."""
_COSTS = {
    "mixed_precision": "in full precision",
    "channels_last": "for changes of the memory layout",
}
"""What rules are about that are called after their remedy."""
_MORE = 1.05  # times the time that is known to be saved: what else is saved is said


def simulate(facts: Facts, results: Sequence[Result]) -> list[Result]:
    """The results, each with what its candidate saves; one whose steps would be as long as now is no advice.

    What is saved isn't known where launches aren't recorded.
    """
    if not facts.are_launches_known:
        return list(results)
    advice = [a for a in results if isinstance(a, Advice) and a.candidate and a.candidate.less is not None]
    if not advice:
        return list(results)
    explanation = path_explanation(facts.trace)
    groups = [advice[first : first + _AT_ONCE] for first in range(0, len(advice), _AT_ONCE)]
    per_step = [ns for group in groups for ns in _savings_per_step(group, explanation)]
    by_rule = {a.rule: _judge(facts, a, explanation, ns) for a, ns in zip(advice, per_step, strict=True)}
    remedies = {
        a.rule: remedy
        for a in by_rule.values()
        if isinstance(a, Advice) and (remedy := _with_remedy(facts, a, explanation)) is not a
    }
    topics = {advice.remedy.topic for advice in remedies.values() if advice.remedy}
    results = [r for r in results if not (isinstance(r, ClearedTopic) and r.topic in topics)]
    results = [_with_saving(facts, r, explanation) if isinstance(r, ClearedTopic) else r for r in results]
    return [{**by_rule, **remedies}.get(r.rule, r) if isinstance(r, Advice) else r for r in results]


def _savings_per_step(advice: Sequence[Advice], explanation: Explanation) -> NDArray[np.int64]:
    """What each step saves by the candidate of some advice: [advice, step]."""
    changes = np.empty((len(advice), explanation.graph.nodes.time.size), np.uint8)
    for number, candidate in enumerate(claim.candidate for claim in advice if claim.candidate):
        changes[number] = percents(candidate, explanation)
    return explanation.what_if.saved_by_change(changes)


def _with_saving(facts: Facts, result: ClearedTopic, explanation: Explanation) -> ClearedTopic:
    """What isn't acted on, but for what less of it would save: that may be much, though it costs little by itself."""
    if result.candidate is None or result.lost_ns:
        return result
    changes = partly(percents(result.candidate, explanation), _HALF)
    saved_ns = facts.mean(explanation.what_if.saved_together(changes))
    if saved_ns < LARGE_SHARE * facts.usual_step_ns:
        return result
    words, share = result.candidate.words, text.percent(saved_ns / facts.usual_step_ns)
    scope = ", data loading included," if facts.is_worth(facts.waits_for_data) else ""
    saves = f"half of {words}{scope} would save {share}, as other work could then start earlier"
    evidence = f"{result.evidence}, though {saves}"
    return replace(result, evidence=evidence, lost_ns=saved_ns)


def _judge(facts: Facts, advice: Advice, explanation: Explanation, per_step: Ints) -> Advice | ClearedTopic:
    saved_ns = facts.mean(per_step)
    if advice.candidate and (saved_ns >= LEAST_SHARE * facts.usual_step_ns or facts.is_of_usual_step(advice)):
        saving_ns = min(saved_ns, facts.usual_step_ns)
        bounds = saving_range(facts, Change.of(advice.candidate, per_step), explanation)
        return replace(_with_rest(facts, advice, saved_ns), saving_ns=saving_ns, saving_range=bounds)
    part = facts.percent(advice.size_ns or 0)
    words = advice.rule.replace("_", " ")
    cost = _COSTS.get(advice.rule, f"for {words}")
    return ClearedTopic(words, f"{part} {cost}, without which steps would hardly be shorter")


def _with_rest(facts: Facts, advice: Advice, saved_ns: int) -> Advice:
    """The advice, with what is saved besides the time that it gives: what other work overlaps, and other work."""
    less = advice.candidate.less if advice.candidate else None
    given_ns = (advice.size_ns or saved_ns) * (less if isinstance(less, float) else 1.0)
    if saved_ns <= _MORE * given_ns:
        return _with_pauses(facts, advice, saved_ns, given_ns)
    more_time = advice.hidden_time
    if more_time and more_time.ns > 0 and facts.share(saved_ns - given_ns) >= LEAST_SHARE:
        advice = replace(advice, title=f"{advice.title.removesuffix('.')}{more_time.clause}.")
        given_ns += more_time.ns
    if saved_ns <= _MORE * given_ns:
        return advice
    rest = f"{text.time(saved_ns - given_ns)} {_of_all(facts, saved_ns)} comes from other work, which could then"
    return replace(advice, evidence=f"{advice.evidence.rstrip()} {rest} start earlier.")


def _of_all(facts: Facts, saved_ns: int) -> str:
    """What a part of a saving is of: other ranks may leave less of the whole, so that it is said."""
    return f"of the {text.time(min(saved_ns, facts.usual_step_ns))} saved"


def _with_pauses(facts: Facts, advice: Advice, saved_ns: int, given_ns: float) -> Advice:
    """The advice, with what is saved between kernels that go with their launches, if it gives a smaller share."""
    size_ns, pauses_ns = advice.size_ns or 0, saved_ns - given_ns
    if advice.rule not in _OF_KERNELS or facts.percent(size_ns + max(pauses_ns, 0)) == facts.percent(size_ns):
        return advice
    whole = _of_all(facts, saved_ns)
    pauses = f"{text.time(pauses_ns)} {whole} are pauses before these kernels, which go with their launches."
    return replace(advice, evidence=f"{advice.evidence.rstrip()} {pauses}")


def _with_remedy(facts: Facts, advice: Advice, explanation: Explanation) -> Advice:
    """The advice with its remedy, if that saves nearly as much."""
    if advice.remedy is None:
        return advice
    changes = percents(advice.remedy.candidate, explanation)
    saved_ns = facts.mean(explanation.what_if.saved_together(changes))
    if saved_ns < _NEARLY * (advice.saving_ns or 0):
        return advice
    others = ", with other gaps that are hidden then" if saved_ns > _MORE * (advice.saving_ns or 0) else ""
    sentence = advice.remedy.evidence.format(saved=f"{text.time(saved_ns)}{others}")
    evidence = f"{advice.evidence.rstrip()} {sentence}"
    if not advice.remedy.clause:
        return replace(advice, evidence=evidence, action=f"{advice.action} Or {text.as_clause(advice.remedy.action)}")
    title = f"{advice.title.removesuffix('.')}{advice.remedy.clause}."
    action = f"{advice.remedy.action} Or {text.as_clause(advice.action)}"
    return replace(advice, title=title, evidence=evidence, action=action)
