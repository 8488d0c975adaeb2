"""What limits a server's tokens per second: the phase that takes most of the time, and the largest part of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ..measures.serving.costs import NOT_SHOWN, QUEUED
from ..measures.serving.limits import IDLE, phase_parts
from ..measures.serving.steadiness import FEWEST_PEERS
from ..names.iterations import SERVERS
from . import text
from .facts import Facts
from .model import Advice, Confidence

_NAMED = 3
_PHASES = {"other": "iterations of unknown phase", "mixed": "mixed iterations", "idle": "empty iterations"}
_BY_DESIGN = ("capture", "diffusion")  # phases without tokens
_WORDS = {
    "attention": "attention",
    "gemm": "matmuls",
    "moe": "experts",
    "communication": "exposed communication",
    "normalization": "normalization",
    "sampling": "sampling",
    "other": "other kernels",
    NOT_SHOWN: "not shown",
    f"{IDLE}{QUEUED}": "idle with work already queued",
    f"{IDLE}synchronizing": "idle while the host waits for the device",
    f"{IDLE}waiting": "idle while the host waits for a request",
    f"{IDLE}sampling": "idle while the host samples",
    f"{IDLE}detokenizing": "idle while the host turns tokens into answers",
    f"{IDLE}input preparation": "idle while the host prepares inputs",
    f"{IDLE}scheduling": "idle while the host schedules",
    f"{IDLE}launching": "idle while the host launches work",
    f"{IDLE}other": "idle while the host runs other code",
    f"{IDLE}unrecorded": "idle while nothing is recorded on the host",
}
_READS = (
    "In a decode this mostly reads weights: a larger batch reads the same for more tokens, and quantized weights are "
    "fewer bytes."
)
_ACTIONS = {
    "gemm": _READS,
    "moe": _READS,
    "attention": "In a decode this mostly reads the KV cache: store it in fp8, and reuse prefixes.",
    "communication": "Use fewer ranks per replica, or the server's custom all-reduce; overlap batches.",
    f"{IDLE}waiting": "Send more requests at a time: the server has none to run.",
    f"{IDLE}launching": "Let decodes run in graphs: no `--enforce-eager` (vLLM), no `--disable-cuda-graph` (SGLang).",
    f"{IDLE}{QUEUED}": "Look at the longest gaps, and at what else used the device.",
    f"{IDLE}unrecorded": "Record Python stacks, to see what the host does.",
}
_OVERLAP = (
    "Let the host prepare the next iteration while this one runs: `--async-scheduling` (vLLM), no "
    "`--disable-overlap-schedule` (SGLang)."
)
_IN_PREFILL = "In a prefill this computes: reuse prefixes, and use fp8 where the device has it."


def serving_phase(facts: Facts) -> Iterator[Advice]:
    """Which phase limits tokens per second, and what most of its time is."""
    if not facts.has_iterations or not facts.has_device or facts.server not in (*SERVERS, "vLLM", "SGLang"):
        return
    parts = phase_parts(facts.trace, of="steady")
    rows = parts.filter((pl.col("whole") == parts["whole"].max()) & ~pl.col("phase").is_in(_BY_DESIGN)).rows(named=True)
    if not rows or rows[0]["part"] == NOT_SHOWN:  # unexplained_idle says so
        return
    first = rows[0]
    phase, largest = first["phase"], first["part"]
    of_phase = first["whole"] / int(facts.length[facts.counted].sum())
    part = text.percent(first["share_frac"])
    goes = f"{facts.device} {_is(facts)}" if largest.startswith(IDLE) else "goes to"
    yield Advice(
        "serving_phase",
        f"{text.percent(of_phase)} of the steady part is {_PHASES.get(phase, phase)}; {part} of that {goes} "
        f"{_WORDS[largest]}.",
        f"{_evidence(rows)}{_roof(rows)}",
        _action(facts, phase, largest),
        None,
        _confidence(first),
        "limits",
        size_ns=round(first["time_ns"] / facts.count),
    )


def _is(facts: Facts) -> str:
    return "are" if facts.waits == "wait" else "is"


def _evidence(rows: list[dict[str, Any]]) -> str:
    """The time per iteration and per token, and the largest parts."""
    first = rows[0]
    mean = first["whole"] / first["iterations"]
    batch = "" if first["batch"] is None else f" of {text.times(first['batch'], 'request')}"
    token = "" if first["tokens"] in (None, 0) else f", {text.time(first['whole'] / first['tokens'])} per token"
    named = [f"{text.percent(row['share_frac'])} {_WORDS[row['part']]}" for row in rows[:_NAMED]]
    return (
        f"{text.times(first['iterations'], 'iteration')}{batch}: {text.time(mean)} each{token}. {text.listed(named)}."
    )


def _roof(rows: list[dict[str, Any]]) -> str:
    """How near the kernels with known work come to the device's limits."""
    known = [row for row in rows if row["roof_frac"] is not None]
    return "".join(
        f" {_WORDS[row['part']].capitalize()}: {text.percent(row['roof_frac'])} of the device's {row['bound_by']} limit"
        f", known for {text.percent(row['known_frac'])} of the time."
        for row in known
    )


def _action(facts: Facts, phase: str, part: str) -> str:
    more = "" if facts.count >= FEWEST_PEERS else " Record more iterations: one or two say little of a load."
    if part in ("gemm", "moe", "attention") and phase != "decode":
        return _IN_PREFILL + more if phase == "prefill" else _ACTIONS[part] + more
    return _ACTIONS.get(part, _OVERLAP if part.startswith(IDLE) else "Look at the kernels.") + more


def _confidence(first: dict[str, Any]) -> Confidence:
    """High if the cause is recorded and several iterations agree."""
    if first["part"] == f"{IDLE}{QUEUED}":
        return "cannot_tell"
    return "high" if first["iterations"] >= FEWEST_PEERS else "medium"
