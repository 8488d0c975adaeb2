"""What limits a server's tokens per second in the phase that takes most time: the host or a family of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import map_categories
from ..measures.recording.contents import has_graphs
from ..measures.recording.options import was_on
from ..measures.serving.costs import LAUNCHING, QUEUED, families
from ..measures.serving.iterations import server_iterations
from ..measures.serving.limits import IDLE, phase_parts
from ..measures.serving.steadiness import FEWEST_PEERS
from ..measures.time.idle_causes import NOT_IN_RECORDING, NOT_SHOWN
from ..names import text
from ..names.iterations import SERVERS
from ..names.kernel_labels import kernel_label
from ..names.server_work import receives_from_scheduler
from .copies import COPY_LESS_OF_CACHE
from .facts import LARGE_SHARE, Facts
from .faults import BLOCKED
from .model import Advice, Confidence
from .server_host import late_of_server

_NAMED = 3
_MOST = 0.5  # of the time that the host limits
_MUCH = 1 / 3  # of a phase
_NEAR = 0.6  # of a limit: from there on kernels can't become much faster
_NOTABLE = 0.05  # of the phase: how near smaller parts come to the device's limits isn't said
_PHASES = {"other": "iterations of unknown phase", "mixed": "mixed iterations", "idle": "empty iterations"}
_BY_DESIGN = ("capture", "diffusion")  # phases without tokens
_DOING = {
    "synchronizing": "the host waits for the device",
    "waiting": "the server waits for requests or another process",
    "sampling": "the host samples",
    "detokenizing": "the host turns tokens into answers",
    "input preparation": "the host prepares inputs",
    "scheduling": "the host schedules",
    LAUNCHING: "the host is in operators and launches",
    "other": "the host runs other code",
    "unrecorded": "nothing is recorded on the host",
}
_WAITING = f"{IDLE}waiting"
_NOT_THE_HOST = (f"{IDLE}{QUEUED}", _WAITING)
PART_WORDS = {
    "attention": "attention kernels",
    "gemm": "matmuls",
    "moe": "experts",
    "communication": "exposed collectives",
    "normalization": "normalization kernels",
    "sampling": "sampling kernels",
    "other": "other kernels",
    "copy": "copies and fills",
    NOT_SHOWN: NOT_IN_RECORDING,
    f"{IDLE}{QUEUED}": "idle with work already queued",
    **{f"{IDLE}{cause}": f"idle while {activity}" for cause, activity in _DOING.items()},
}
"""What the parts of a phase's time are in a sentence."""
_FEWER_BYTES = "batch more requests or quantize the weights"
_READS = (
    "In a decode this mostly reads weights: a larger batch reads the same for more tokens, and quantized weights are "
    "fewer bytes."
)
_OVERLAP = "overlap the host's work with the device's"
_OVERLAPPING = (
    "Let the host prepare the next iteration while this one runs: `--async-scheduling` (vLLM), no "
    "`--disable-overlap-schedule` (SGLang)."
)
_CHANGES = {
    "gemm": (_FEWER_BYTES, _READS),
    "moe": (_FEWER_BYTES, _READS),
    "attention": (
        "store the KV cache in fp8",
        "In a decode this mostly reads the KV cache: store it in fp8, and reuse prefixes.",
    ),
    "communication": (
        "use fewer ranks per replica",
        "Use fewer ranks per replica, or the server's custom all-reduce; overlap batches.",
    ),
    "copy": ("copy less", COPY_LESS_OF_CACHE),
    f"{IDLE}{LAUNCHING}": (
        "run decodes in graphs",
        "Let decodes run in graphs: no `--enforce-eager` (vLLM), no `--disable-cuda-graph` (SGLang).",
    ),
    f"{IDLE}unrecorded": ("record Python stacks to see why", "Record Python stacks, to see what the host does."),
}
"""What raises tokens per second, for the title and as the action."""
_IN_GRAPHS = (
    "put more of the iteration into graphs",
    "Graphs are in use; put more of the iteration into them, such as sampling or what runs between their pieces.",
)
_IN_FEW = (
    "Look at what the host does in these iterations alone, such as to make room in the KV cache: do it less often, or "
    "in a thread of its own."
)
_NO_LOAD = (
    "Nothing in the engine, which has nothing to run then: send more requests at a time, if more are to be served."
)
_NO_MESSAGE = (
    "Look at what sends it work: if no requests are left there, the load is low and nothing is to mend; else another "
    "process, such as a scheduler, hands them over too late."
)
_COMPUTES = (
    "reuse prefixes or compute in fp8",
    "This computes: reuse prefixes, and use fp8 where the device has it.",
)
_LOOK = ("look at its kernels", "Look at the kernels.")


def serving_phase(facts: Facts) -> Iterator[Advice]:
    """What limits tokens per second in the phase that takes most of the time; the recording must have iterations."""
    if not facts.has_device or facts.server not in (*SERVERS, "vLLM", "SGLang"):
        return
    parts = phase_parts(facts.trace, of="steady")
    rows = parts.filter((pl.col("whole") == parts["whole"].max()) & ~pl.col("phase").is_in(_BY_DESIGN)).rows(named=True)
    if not rows or rows[0]["part"] == NOT_SHOWN:  # unexplained_idle says so
        return
    first, size_ns = limiting_part(rows)
    of_phase = (facts.trace.steps["phase"] == first["phase"]).to_numpy() & facts.is_counted
    if first["part"] == f"{IDLE}{QUEUED}" and not _waits_for_streams(facts, of_phase):  # the same
        return
    idle_ns = sum(row["time_ns"] for row in rows if row["part"].startswith(IDLE))
    if first["part"] == _WAITING:
        yield _load(facts, rows, idle_ns)
        return
    is_host = _is_on_host(first)
    claims, stalls = (int(late[of_phase].sum()) for late in (late_of_server(facts).claims, facts.stalls))
    if is_host and claims >= _MOST * size_ns:  # of server_host, which says what takes the host so long
        return
    change, action, where = *_change(facts, first), ""
    if is_host and stalls >= _MOST * size_ns:
        where = f", most of it in {facts.steps_of(facts.stalls)}"
        change, action = "see what the host does there", _IN_FEW
    yield Advice(
        "serving_phase",
        f"{_limit(facts, first, idle_ns if is_host else size_ns)}{where}{f'; {change}' if change else ''}.",
        f"{_evidence(facts, rows)}{_roof(rows)}",
        action + ("" if facts.count >= FEWEST_PEERS else " Record more iterations: one or two say little of a load."),
        None,
        _confidence(rows, first),
        "limits",
        size_ns=round(size_ns / facts.count),
    )


def _waits_for_streams(facts: Facts, of_phase: NDArray[np.bool_]) -> bool:
    """Whether what is queued while devices are idle in a phase's steps waits for another stream most of the time."""
    idle = facts.idle_shares(pl.col("window").is_in(np.flatnonzero(of_phase)))
    return idle.get("dependency", 0.0) > idle.get(BLOCKED, 0.0) + idle.get("unexplained", 0.0)


def _load(facts: Facts, rows: list[dict[str, Any]], idle_ns: int) -> Advice:
    """That a server waits for requests, as far as that is known, for the longest part of a phase."""
    first = rows[0]
    busy = 1 - (idle_ns - first["time_ns"]) / max(1, first["whole"] - first["time_ns"])
    idle = f"{facts.device} {_is(facts)} idle for {text.percent(first['share_frac'])} of {phase_words(first)}"
    is_load = _prompts_follow(facts)
    return Advice(
        "server_load",
        f"The load limits tokens per second: {idle} while the server waits for requests."
        if is_load
        else f"The server waits for requests or another process: {idle} meanwhile.",
        f"{_evidence(facts, rows)} Without that wait {facts.device} {_is(facts)} busy for {text.percent(busy)} of the "
        f"time.{_roof(rows)}",
        _NO_LOAD if is_load else _NO_MESSAGE,
        None,
        _confidence(rows, first) if is_load else "medium",
        "limits",
        size_ns=round(first["time_ns"] / facts.count),
    )


def _prompts_follow(facts: Facts) -> bool:
    """Whether most of the time that a server waits is before iterations with a prompt: then it had no request left.

    Where most iterations have one, or another process of the server hands work over, that says nothing.
    """
    steps, frames = facts.trace.steps.select("phase", "host_start_ns"), facts.trace.python_calls["name"]
    has_prompt = np.append(steps["phase"].is_in(["prefill", "mixed"]).fill_null(value=False).to_numpy(), False)
    if has_prompt[facts.is_counted.nonzero()].mean() >= _MOST or map_categories(frames, receives_from_scheduler).any():
        return False
    start, end = facts.request_waits
    is_before_prompt = has_prompt[np.searchsorted(steps["host_start_ns"].to_numpy(), end)]
    return bool((end - start)[is_before_prompt].sum() >= _MOST * (end - start).sum())


def limiting_part(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], int]:
    """The part that limits a phase, of its parts with the longest first, and its time.

    That is the longest one, or the longest of what the host does, if all of that takes longer; or a third of the phase,
    since that is lost for sure, while kernels may be near the device's limits.
    """
    on_host, first = [row for row in rows if _is_on_host(row)], rows[0]
    late_ns = sum(row["time_ns"] for row in on_host)
    most_ns = first["time_ns"] if _is_loss_known(first) else min(first["time_ns"], _MUCH * first["whole"])
    return (on_host[0], late_ns) if late_ns > most_ns else (first, first["time_ns"])


def _is_loss_known(row: dict[str, Any]) -> bool:
    """Whether it is known how much of a part's time is lost: all idle time, and what kernels take above their roof."""
    return row["part"].startswith(IDLE) or row["roof_frac"] is not None


def _is_on_host(row: dict[str, Any]) -> bool:
    return row["part"].startswith(IDLE) and row["part"] not in _NOT_THE_HOST


def _limit(facts: Facts, first: dict[str, Any], size_ns: int) -> str:
    """What limits tokens per second, and for how much of the phase; such words that they end a sentence.

    Where the host does, `size_ns` is all idle time, as in the view Idle.
    """
    part, of = first["part"], f"{text.percent(size_ns / first['whole'])} of {phase_words(first)}"
    idle = f"{facts.device} {_is(facts)} idle for {of}"
    if part == f"{IDLE}{QUEUED}":
        return f"{facts.subject} {_is(facts)} idle for {of} with work already queued, mostly waiting for another stream"
    if part.startswith(IDLE):
        mostly = "" if size_ns == first["time_ns"] else "mostly " if 2 * first["time_ns"] >= size_ns else "longest "
        return f"The host limits tokens per second: {idle}, {mostly}while {_DOING[part.removeprefix(IDLE)]}"
    family = PART_WORDS[part]
    if first["bound_by"] is None:
        return f"{text.capitalize(family)} limit tokens per second: {of}"
    limit = "memory bandwidth" if first["bound_by"] == "memory" else "compute rate"
    roof_share = text.percent(first["roof_frac"])
    if first["roof_frac"] >= _NEAR:
        return f"{text.capitalize(limit)} limits tokens per second: {family} take {of} and reach {roof_share} of it"
    return f"{text.capitalize(family)} limit tokens per second: {of}, at {roof_share} of the device's {limit}"


def _change(facts: Facts, first: dict[str, Any]) -> tuple[str, str]:
    """What raises tokens per second: in a few words, and as the action."""
    part = first["part"]
    if part == f"{IDLE}{QUEUED}":
        return "", "Look at the longest gaps, and at what else used the device."
    if part == f"{IDLE}{LAUNCHING}" and has_graphs(facts.trace):
        return _IN_GRAPHS
    if part == "other" and (label := _largest_kernel(facts)):
        return f"most of it is `{label}`", f"Look at what calls this kernel (`{label}`), and whether a faster one does."
    if part == f"{IDLE}unrecorded" and was_on(facts.trace, "with_stack"):
        return _OVERLAP, _OVERLAPPING
    computes = first["bound_by"] == "compute" if first["bound_by"] else first["phase"] == "prefill"
    if part in ("gemm", "moe", "attention") and computes:
        return _COMPUTES
    return _CHANGES.get(part, (_OVERLAP, _OVERLAPPING) if part.startswith(IDLE) else _LOOK)


def _largest_kernel(facts: Facts) -> str:
    """The kernel that most of the time of kernels without a family is, as its label; empty if none is."""
    rows = facts.kernel_rows
    is_other = pl.Series(families(facts.trace)[rows] == "other", dtype=pl.Boolean)
    sums = facts.kernels.filter(is_other).group_by("name").agg(pl.col("dur_ns").sum()).sort("dur_ns", "name")
    if sums.is_empty() or sums["dur_ns"][-1] < _MOST * int(sums["dur_ns"].sum()):
        return ""
    return kernel_label(str(sums["name"][-1]))


def phase_words(row: dict[str, Any]) -> str:
    """The phase in a sentence."""
    return _PHASES.get(row["phase"], str(row["phase"]))


def _is(facts: Facts) -> str:
    return "are" if facts.waits == "wait" else "is"


def _evidence(facts: Facts, rows: list[dict[str, Any]]) -> str:
    """The phase with its time per iteration and per token, and its largest parts."""
    first = rows[0]
    bounds = server_iterations(facts.trace).bounds
    of_steady, of_recording = (
        text.percent(first["whole"] / whole)
        for whole in (int(facts.length[facts.is_counted].sum()), max(1, bounds[1] - bounds[0]))
    )
    of = f"{of_steady} of the steady part is"
    if of_recording != of_steady:
        of = f"{of_steady} of the steady part and {of_recording} of the recording are"
    batch = "" if first["batch"] is None else f" of {text.times(first['batch'], 'request')}"
    token = "" if first["tokens"] in (None, 0) else f", {text.time(first['whole'] / first['tokens'])} per token"
    largest_parts = [f"{text.percent(row['share_frac'])} {PART_WORDS[row['part']]}" for row in rows[:_NAMED]]
    return (
        f"{of} {phase_words(first)}, {text.times(first['iterations'], 'iteration')}{batch}: {mean_time(first)}{token}. "
        f"{text.enumeration(largest_parts)}."
    )


def mean_time(row: dict[str, Any]) -> str:
    """How long an iteration of the phase takes, after their number: 7.11 ms each."""
    return f"{text.time(row['whole'] / row['iterations'])}{' each' if row['iterations'] > 1 else ''}"


def _roof(rows: list[dict[str, Any]]) -> str:
    """How near the kernels with known work come to the device's limits."""
    rated_rows = [row for row in rows if row["roof_frac"] is not None and row["share_frac"] >= _NOTABLE]
    return "".join(
        f" {text.capitalize(PART_WORDS[row['part']])}: {text.percent(row['roof_frac'])} of the device's "
        f"{row['bound_by']} limit, known for {text.percent(row['known_frac'])} of the time."
        for row in rated_rows
    )


def _confidence(rows: list[dict[str, Any]], first: dict[str, Any]) -> Confidence:
    """High if the cause is recorded and several iterations agree.

    Not that of kernels that may be near the device's limits while the host, too, costs much.
    """
    if first["part"] == f"{IDLE}{QUEUED}":
        return "cannot_tell"
    late_ns = sum(row["time_ns"] for row in rows if _is_on_host(row))
    is_sure = _is_loss_known(first) or late_ns < LARGE_SHARE * first["whole"]
    return "high" if is_sure and first["iterations"] >= FEWEST_PEERS else "medium"
