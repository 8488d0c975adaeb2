"""Why a rank is late: the code, the operator or the host in which it takes longer than a rank that is on time.

What a late rank spends most of its time in may take as long on all ranks, so no name is given without that comparison
where both recordings have what it needs. One recording alone names code only by the steps in which the rank isn't late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any

from ..distributed.imbalance.stragglers import CAUSES
from ..names import text
from ..names.python_frames import function_name
from .device_work import DeviceWork
from .host_pace import calls_more, slowness
from .model import Answer, Claim, Rows
from .recording import MOST
from .step_work import LEAST_FRAC, StepWork

LATE = ("straggler", "slow_at_times")
OF_HOST = (
    *("host_bound", "launch_bound", "synchronizing", "allocation", "optimizer", "host_optimizer"),
    *("data_loading", "main_thread_waits", "small_operators", "operator_loop", "garbage_collection", "repeated_gap"),
    *("longer_host_steps", "server_function", "missing_graphs"),
)
MOSTLY = 0.5  # of what a rank is late by
_LESS_THERE = "Run `{}` less often, on less data, or in another thread or process, or as much of it on all ranks."
_OF_LAUNCHES = ("launch_bound", "optimizer", "host_optimizer", "small_operators", "operator_loop")
_MORE = 1.02  # times the calls of another rank
_ON_HOST = (CAUSES["idle_ns"], CAUSES["dataloader_ns"])
_OF_HOSTS_PACE = (
    "Compare its host with the others': the clock and power settings of its CPU, the NUMA node and the cores that the "
    "process is bound to (`numactl --show`), and what else runs there."
)


@dataclass(frozen=True)
class Lateness:
    """A late rank.

    Args:
        claim: What the run says of it.
        late: The answer about its recording.
        on_time: The answer about the recording of a rank with the same work that isn't late; None: there is none.
        row: Its row of the view `stragglers`; empty if it has none.
        rank_steps: The view `rank_steps`.
    """

    claim: Claim
    late: Answer
    on_time: Answer | None
    row: Mapping[str, Any]
    rank_steps: Rows

    @property
    def late_ns(self) -> float:
        """By how much its cause makes it late in the average step; it saves less where others are late, too."""
        often = (self.row.get("slow_steps") or 0) / (self.row.get("steps") or 1)
        return max(self.claim.saving_ns or 0, (self.row.get("part_in_slow_steps_ns") or 0) * often)

    @property
    def cause(self) -> str | None:
        """The part of its own time that is longer."""
        return self.row.get("cause")

    @property
    def is_of_host(self) -> bool:
        """Whether the part that is longer is the host's: without a device, operators compute there, too."""
        return self.cause in _ON_HOST or (self.cause == CAUSES["computation_ns"] and not self.late.uses_device)

    @cached_property
    def pace(self) -> float:
        """How many times as long its host takes for equal operators as the host of the rank on time; 1: as long."""
        return slowness(self.late.operators, self.on_time.operators) if self.on_time else 1.0

    @cached_property
    def longer(self) -> list[tuple[StepWork, str]]:
        """The code that takes as much longer as the rank does, inner functions first, each with how much, in words.

        That is more than a slower host explains.
        """
        least_ns = MOSTLY * (self.row.get("part_in_slow_steps_ns") or 0)
        if self.cause not in _ON_HOST or least_ns <= 0:
            return []
        is_longer = longer_steps(self.rank_steps, self.late.worker, 2 * least_ns)
        there = [step for step, is_late in is_longer.items() if is_late]
        elsewhere = [step for step, is_late in is_longer.items() if not is_late]
        if not there:
            return []
        if self.on_time is not None and self.is_compared:
            return _longer_than(self.late, self.on_time, there, least_ns, self.pace, self._where(there, elsewhere))
        return longer_there(self.late, there, elsewhere, least_ns, self._where(there, elsewhere))

    def _where(self, there: Sequence[str], elsewhere: Sequence[str]) -> str:
        """In which steps it takes longer: by their number where no sentence names them, since it is late in each."""
        if not elsewhere:
            return "In each step"
        is_late_in_each = self.row.get("slow_steps") is not None and self.row["slow_steps"] == self.row.get("steps")
        if is_late_in_each and len(there) > 1:
            return f"In {len(there)} of {len(there) + len(elsewhere)} steps"
        return _where(there)

    @property
    def is_compared(self) -> bool:
        """Whether both ranks recorded what takes time in the late one's steps; annotations need no option for that."""
        if self.on_time is None:
            return False
        needs_stacks = any(work.culprit.function for work in self.late.step_work)
        return bool(self.late.step_work) and (bool(self.on_time.step_work) or not needs_stacks)


def with_cause(lateness: Lateness) -> Claim:
    """What the run says of a late rank, with the cause that recordings show."""
    rules = (_with_core_waits, _with_own_cause, _with_longer_work, _with_slow_host, _with_more_work, _with_own_operator)
    for rule in rules:
        claim = rule(lateness)
        if claim is not lateness.claim:
            return claim
    return lateness.claim


def _with_core_waits(lateness: Lateness) -> Claim:
    """With its main thread's waits for a core, where they are as much longer than on the rank on time."""
    claim, own = lateness.claim, _core_waits(lateness.late)
    other = _core_waits(lateness.on_time) if lateness.on_time else None
    more_ns = ((own.saving_ns or 0) if own else 0) - ((other.saving_ns or 0) if other else 0)
    if own is None or not lateness.is_of_host or more_ns < MOSTLY * lateness.late_ns:
        return claim
    title = f"{claim.title} Its main thread waits for a core."
    evidence = f"{claim.evidence} Its own recording says: {own.title} {own.evidence}"
    return replace(claim, title=title, evidence=evidence, action=own.action)


def less_there(name: str) -> str:
    """What is to do about code that takes some ranks longer."""
    return _LESS_THERE.format(name)


def _core_waits(recording: Answer) -> Claim | None:
    return next((claim for claim in recording.claims if claim.id == "core_waits"), None)


def _with_own_cause(lateness: Lateness) -> Claim:
    """With what its own recording says of as much of the host's time; not with what isn't longer than elsewhere."""
    claim, recording = lateness.claim, lateness.late
    least_ns = MOSTLY * lateness.late_ns
    large = [own for own in recording.claims if (own.saving_ns or 0) >= least_ns]
    own = next((own for own in large if own.id in OF_HOST or _is_only_in_some_steps(own)), None)
    if own is None or not _is_of_this_rank(own, lateness):
        return claim
    code = replace(own.culprit, rank=claim.culprit.rank, worker=claim.culprit.worker)
    title = _with_place(claim, code.function) if code.function else claim.title
    says = own.title if code.function else f"{own.title} {own.evidence}"  # which may say where the host was
    evidence = f"{claim.evidence} Its own recording says: {says}"
    return replace(claim, title=title, evidence=evidence, action=own.action, culprit=code)


def _is_only_in_some_steps(own: Claim) -> bool:
    """Whether a claim names code that only longer steps run, on the device too."""
    return own.id == "longer_steps" and (own.culprit.function or own.culprit.range) is not None


def _is_of_this_rank(own: Claim, lateness: Lateness) -> bool:
    """Whether nothing shows that what a rank's own recording says holds for the rank on time as well."""
    if _is_only_in_some_steps(own):
        return True
    if lateness.cause == CAUSES["computation_ns"]:
        return False
    if own.culprit.function is not None and lateness.is_compared:
        return own.culprit.function in [work.name for work, _ in lateness.longer]
    if own.id in _OF_LAUNCHES and lateness.on_time is not None:
        return calls_more(lateness.late.operators, lateness.on_time.operators)
    return True


def _with_longer_work(lateness: Lateness) -> Claim:
    """With the innermost function that takes as much longer as the rank does.

    Its steps needn't be longer than its others: it waits less in them.
    """
    claim = lateness.claim
    if not lateness.longer:
        return claim
    work, words = lateness.longer[0]
    code = replace(work.culprit, rank=claim.culprit.rank, worker=claim.culprit.worker)
    title, evidence = _with_place(claim, work.name), f"{claim.evidence} {words}"
    return replace(claim, title=title, evidence=evidence, action=less_there(function_name(work.name)), culprit=code)


def _longer_than(
    late: Answer, on_time: Answer, there: Sequence[str], least_ns: float, pace: float, where: str
) -> list[tuple[StepWork, str]]:
    """What takes so much longer in these steps of a rank than in those of another one, by its host's pace."""
    of_other = {work.name: work for work in on_time.step_work}
    matches = []
    for work in late.step_work:
        own_ns = work.typical_ns(there)
        other_ns = of_other[work.name].typical_ns(there) if work.name in of_other else 0
        if own_ns - max(1.0, pace) * other_ns >= least_ns:
            rest = text.time(other_ns) if work.name in of_other else f"less than {text.percent(LEAST_FRAC)} of any step"
            matches.append((work, f"{where} `{work.words}` takes {text.time(own_ns)}, on {on_time.worker} {rest}."))
    return matches


def longer_there(
    late: Answer, there: Sequence[str], elsewhere: Sequence[str], least_ns: float, where: str = ""
) -> list[tuple[StepWork, str]]:
    """What takes so much longer in some steps of a rank than in others of it, each with how much, in words.

    Args:
        late: The answer about the rank's recording.
        there: Some of its steps.
        elsewhere: Its other steps.
        least_ns: How much longer at least.
        where: In which steps, in words; empty: in these.
    """
    matches = []
    for work in late.step_work if there and elsewhere else ():
        own_ns, else_ns = work.typical_ns(there), work.typical_ns(elsewhere)
        if own_ns - else_ns >= least_ns:
            words = f"{where or _where(there)} `{work.words}` takes {text.time(own_ns)}, else {text.time(else_ns)}."
            matches.append((work, words))
    return matches


def _where(steps: Sequence[str]) -> str:
    return "In this step" if len(steps) == 1 else "In these steps"


def _with_slow_host(lateness: Lateness) -> Claim:
    """With a host that takes longer for equal operators, where that explains most of what the rank is late by."""
    claim, pace = lateness.claim, lateness.pace
    own_ns, part_ns = (lateness.row.get(name) or 0 for name in ("mean_without_waiting_ns", "part_in_slow_steps_ns"))
    explained_ns = own_ns * (1 - 1 / pace)
    if lateness.on_time is None or not lateness.is_of_host or explained_ns < MOSTLY * part_ns or pace == 1.0:
        return claim
    title = f"{claim.title} Its host is slower: equal operators take {text.digits(pace)} times as long there."
    evidence = f"{claim.evidence} It calls these operators as often as {lateness.on_time.worker} does."
    return replace(claim, title=title, evidence=evidence, action=_OF_HOSTS_PACE)


def _with_more_work(lateness: Lateness) -> Claim:
    """With the innermost function that only it runs, or runs more often, for as much of the device's time."""
    claim, late, other = lateness.claim, lateness.late, lateness.on_time
    if other is None or not other.device_work or lateness.cause != CAUSES["computation_ns"]:
        return claim
    of_other = {work.name: work for work in other.device_work}
    for work in late.device_work:
        there = of_other.get(work.name, DeviceWork(work.name, 0, 0))
        if work.calls > _MORE * there.calls and work.ns - there.ns >= MOSTLY * lateness.late_ns:
            takes = f"`{work.words}` launches {text.time(work.ns)} of device work in {text.times(work.calls, 'call')}"
            rest = f"{text.time(there.ns)} in {text.times(there.calls, 'call')}" if there.calls else "it isn't called"
            evidence = f"{claim.evidence} In its average step {takes}; on {other.worker} {rest}."
            code = replace(claim.culprit, function=work.name)
            return replace(claim, title=_with_place(claim, work.name), evidence=evidence, culprit=code)
    return claim


def _with_place(claim: Claim, name: str) -> str:
    """The title of a late rank, with what most of its lateness is in."""
    rank, worker = claim.culprit.rank, claim.culprit.worker
    who = worker if rank is None else f"rank {rank}"
    return f"{claim.title} Most of what {who} takes longer is in `{function_name(name)}`."


def longer_steps(rank_steps: Rows, worker: str, part_ns: float) -> dict[str, bool]:
    """The complete steps of a rank, and whether it takes longer there than the others, by what it is late by."""
    own, others = times_without_waiting(rank_steps, worker)
    before = f"{worker} "
    return {
        step.removeprefix(before): ns - median(others[step]) >= MOSTLY * part_ns
        for step, ns in own.items()
        if step in others
    }


def times_without_waiting(rank_steps: Rows, worker: str) -> tuple[dict[str, int], dict[str, list[int]]]:
    """How long a rank, and each other one, takes for its complete steps without waiting, by the name of the step."""
    own: dict[str, int] = {}
    others: dict[str, list[int]] = {}
    for row in rank_steps:
        if row["is_complete"] and row["without_waiting_ns"] is not None:
            if row["worker"] == worker:
                own[row["step"]] = row["without_waiting_ns"]
            else:
                others.setdefault(row["step"], []).append(row["without_waiting_ns"])
    return own, others


def _with_own_operator(lateness: Lateness) -> Claim:
    """With the operator that it calls more often than the rank on time does, for as much of its time."""
    claim, late, other = lateness.claim, lateness.late, lateness.on_time
    if other is None or not late.steps:
        return claim
    operators, of_other = (
        {row["name"]: row for row in answer.rows.get("top", ()) if row["kind"] == "operator" and row["calls"]}
        for answer in (late, other)
    )
    # What isn't among the other's first ones takes no longer than these.
    unlisted_ns = min((row["mean_ns"] for row in of_other.values()), default=0) if len(of_other) == MOST else 0
    more_ns = {
        name: row["mean_ns"] - of_other.get(name, {"mean_ns": unlisted_ns})["mean_ns"]
        for name, row in operators.items()
        if not row["is_communication"]
        and (name not in of_other or row["calls"] / late.steps > _MORE * of_other[name]["calls"] / max(1, other.steps))
    }
    name = max(more_ns, key=more_ns.__getitem__, default="")
    if not name or more_ns[name] < MOSTLY * lateness.late_ns:
        return claim
    title = _with_place(claim, name)
    row, often = operators[name], operators[name]["calls"] / late.steps
    takes = "takes" if often == 1 else "take"
    own = f"{text.times(often, 'call')} of `{name}` {takes} {text.time(row['mean_ns'])}"
    if name in of_other:
        often, ns = of_other[name]["calls"] / max(1, other.steps), of_other[name]["mean_ns"]
        rest = f"on {other.worker} {text.times(often, 'call')} {text.time(ns)}"
    else:
        rest = (
            f"on {other.worker} less than {text.time(unlisted_ns)}" if unlisted_ns else f"on {other.worker} none runs"
        )
    evidence = f"{claim.evidence} In its average step {own}, {rest}."
    return replace(claim, title=title, evidence=evidence, culprit=replace(claim.culprit, operator=name))
