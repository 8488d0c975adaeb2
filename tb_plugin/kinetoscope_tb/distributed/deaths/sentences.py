"""The verdict on the end of a job as one sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...names.text import enumeration
from ..hangs.titles import ranks_title
from ..hangs.whereabouts import short_line
from .deaths import ABORT, CRASH, EXIT, GONE, KILLED, OUT_OF_MEMORY, STOPPED, UNKNOWN, Death
from .exceptions import DEVICE_ERROR, DEVICE_FAULT, DEVICE_MEMORY, DISK, HOST_MEMORY, PEER_LOST, TIMEOUT, WORKER, WRITE
from .titles import end_title, moment
from .verdict import ABSENT, CANNOT_TELL, LEFT, NEVER_STARTED, STOPPED_FROM_OUTSIDE, DeathVerdict

_MOST_PARTS = 4
_ADVICE = {
    KILLED: "A user, the scheduler (a time limit, a preemption) or a watchdog sends SIGKILL; their logs say who did.",
    OUT_OF_MEMORY: "Its machine or container had no memory left: fewer loader workers, less prefetching, fewer pinned "
    "buffers, or a higher limit. Memory of the host in the trace shows what grew.",
    CRASH: "Code in C or CUDA crashed: PYTHONFAULTHANDLER=1 prints the line of each thread when that happens.",
    EXIT: "It did not say good-bye: os._exit, exit() in C or a library ended the process. Its output may say more.",
    UNKNOWN: "Its writer process hasn't written how. Either it is about to, or it is gone, too: everything in its "
    "container was killed, or the machine went down.",
    GONE: "Its machine or container is gone, or the process is stopped: look there, and at the scheduler's log.",
    DEVICE_MEMORY: "Tracer(memory_history='always') saves a memory snapshot when an allocation fails, and `kinetoscope "
    "summary` says who held the memory.",
    DEVICE_ERROR: "A kernel that was launched before failed, so that line is where it was noticed. With "
    "CUDA_LAUNCH_BLOCKING=1 (HIP: AMD_SERIALIZE_KERNEL=3) it is the line of the kernel. The output of the process has "
    "the text of a device-side assert, mostly an index out of range; compute-sanitizer finds illegal accesses.",
    DEVICE_FAULT: "The GPU itself failed, or its link: `nvidia-smi -q` and the Xid lines of `dmesg` say more. Take the "
    "machine out of the job.",
    HOST_MEMORY: "The host had no memory left: fewer loader workers, smaller prefetching, or a higher limit.",
    DISK: "Free space there. `kinetoscope recover RUN` then writes the traces for which there was no room.",
    WRITE: "The disk of that file is full, over its quota, or doesn't answer.",
    WORKER: "Workers of a DataLoader are mostly killed for lack of memory or /dev/shm: fewer workers, or more of it.",
    ABORT: "Code in C or CUDA called abort, as NCCL's watchdog does after a timeout: its output has the reason.",
    TIMEOUT: "Tracer(hang_after_s=…) shorter than that timeout says where each rank is before the job ends.",
    LEFT: "It had no more batches than these: give each rank as many, or use join() of torch.distributed.algorithms.",
    NEVER_STARTED: "It ended before its Tracer began, or can't write to the run's folder: its output says more.",
    STOPPED: "A user, a scheduler (a time limit, a preemption) or a launcher sends such signals; their logs say who.",
}


def sentence(verdict: DeathVerdict) -> str:
    """The verdict in one sentence."""
    text = _text(verdict)
    return f"Cannot tell: {text}" if verdict.outcome == CANNOT_TELL else text[:1].upper() + text[1:]


def advice(verdict: DeathVerdict) -> str:
    """What to do; empty if an exception says it."""
    if verdict.kind == EXIT and verdict.first and verdict.first.ending.exception:
        return ""
    return _ADVICE.get(verdict.kind, "")


def what_followed(verdict: DeathVerdict) -> str:
    """How the ranks of a job that hung ended, as a sentence."""
    return f"Then the job ended{_others(replace(verdict, ranks=()), '')}."


def _text(verdict: DeathVerdict) -> str:
    who, first = ranks_title(verdict.ranks), verdict.first
    if verdict.outcome == CANNOT_TELL:
        return _without_culprit(verdict)
    if verdict.outcome == STOPPED_FROM_OUTSIDE and first is not None:
        how = end_title(first)
        return (
            f"the job was stopped from outside: {who} {_plural(how, verdict.ranks)}{moment(first)}{_others(verdict)}."
        )
    if verdict.kind == LEFT:
        return f"{who} closed the recording and left the loop, while others went on{_others(verdict, '')}."
    if verdict.kind == NEVER_STARTED:
        return f"{who} left nothing at all{_others(verdict, '')}."
    if verdict.kind == ABSENT:
        was = (
            f": it was {_end(_location(first), '').removeprefix(', ')} when it was stopped" if _location(first) else ""
        )
        return f"{who} didn't come{was}{_others(verdict, '')}."
    if first is None:
        return f"{who} ended{_others(verdict)}."
    how = _plural(end_title(first), verdict.ranks)
    step = "" if verdict.kind == GONE else _step(first)
    return f"{who}{_host(verdict)} {how}{step}{_end(_location(first), moment(first))}{_others(verdict)}."


def _without_culprit(verdict: DeathVerdict) -> str:
    who = ranks_title(verdict.ranks) if verdict.ranks else ""
    if verdict.kind == "order":
        first = [death for death in verdict.deaths if death.rank in verdict.ranks]
        ends = "; ".join(
            f"rank {death.rank} {end_title(death)}{_end(_location(death), '')}" for death in first[:_MOST_PARTS]
        )
        return f"{who} ended by themselves at about the same time, and their clocks don't say who was first: {ends}."
    if verdict.kind == TIMEOUT:
        suspects = f"; {who} {_were(verdict.ranks)} stopped then" if who else ""
        return (
            f"ranks waited for others until a timeout, and none wrote where it was before{suspects}{_others(verdict)}."
        )
    if verdict.kind == ABORT:
        return f"{who} crashed with SIGABRT, as after a timeout of NCCL's watchdog{_others(verdict)}."
    return f"ranks lost their connections, and none ended by itself: look at the network{_others(verdict)}."


def _were(ranks: Sequence[int]) -> str:
    return "was" if len(ranks) == 1 else "were"


def _plural(clause: str, ranks: Sequence[int]) -> str:
    verb, _, rest = clause.partition(" ")
    plural = {"was": "were", "has": "have"}.get(verb, verb)
    return clause if len(ranks) == 1 else f"{plural} {rest}"


def _host(verdict: DeathVerdict) -> str:
    """Such as " (all of node1)", if nothing of a machine is left of several."""
    hosts = {status.host for status in verdict.statuses if status.rank in verdict.ranks}
    on_host = {status.rank for status in verdict.statuses if status.host in hosts}
    is_all = len(hosts) == 1 and on_host == set(verdict.ranks) and len(on_host) < len(verdict.statuses)
    return f" (all of {next(iter(hosts))})" if is_all and len(on_host) > 1 else ""


def _step(death: Death) -> str:
    return "" if death.status.completed is None else f" in step {death.status.completed}"


def _location(death: Death | None) -> str:
    """Such as ", in torch.load (train.py:88)"; empty if it isn't known."""
    activity = death.activity if death else None
    if activity is None:
        return ""
    verb = "noticed " if death and death.kind == DEVICE_ERROR else ""
    if activity.function == "<module>":
        return f", {verb}at {short_line(activity)},"
    return f", {verb}in {activity.function} ({short_line(activity)}),"


def _end(location: str, when: str) -> str:
    """Place and time, with a comma between them alone."""
    return f"{location}{when}" if when else location.removesuffix(",")


def _others(verdict: DeathVerdict, then: str = "then ") -> str:
    """What the others did then, such as "; ranks 0 and 2 then lost the connection to another rank"."""
    ranks_of: dict[str, list[int]] = {}
    for death in verdict.others:
        ranks_of.setdefault(_brief(death), []).append(death.rank)
    clauses = [f"{ranks_title(ranks)} {_plural(how, ranks)}" for how, ranks in [*ranks_of.items()][:_MOST_PARTS]]
    return f"; {then}{enumeration(clauses)}" if clauses else ""


def _brief(death: Death) -> str:
    if death.kind in (PEER_LOST, TIMEOUT) or death.ending.exception is None or death.kind in (STOPPED, EXIT):
        return end_title(death)
    return f"raised {death.ending.exception.type}"
