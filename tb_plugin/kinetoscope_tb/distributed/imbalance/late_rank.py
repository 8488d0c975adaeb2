"""A rank that the others wait for, in words: what it does longer, in which steps, what that costs, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...names import text
from .stragglers import CAUSES

_LEAST_MORE_FRAC = 0.02  # of work
_LEAST_OTHER_FRAC = 0.05  # of a difference or a saving: what else it consists of
_FEW_STEPS = _FEW_RANKS = 3  # that a sentence lists
_ALL_STEPS = 5  # that it lists where there are no more
PAIR = 2
"""Ranks, one of which has no typical time to compare with."""
_DOES = dict(
    zip(
        CAUSES.values(),
        (
            "computes {} longer",
            "moves data {} longer",
            "copies {} longer",
            "loads data {} longer",
            "collects garbage {} longer",
            "spends {} longer on the host",
        ),
        strict=True,
    )
)
_ACTIONS = dict(
    zip(
        CAUSES.values(),
        (
            "Check whether its device is as fast as that of {others} (clock, temperature, power, other jobs), and "
            "whether it has more work: longer sequences, larger batches, more experts or layers.",
            "Its transfers are slower than those of other ranks: check its link, network card and location.",
            "Check what it copies that others don't, and how its GPU is connected.",
            "Check what its data loader reads, from where, and with how many processes and cores.",
            "Collect on all ranks in the same steps: `gc.disable()` after `gc.freeze()`, and `gc.collect()` every "
            "hundredth step.",
            "Check what runs on its host: other processes, fewer or slower cores, pauses of Python, logging.",
        ),
        strict=True,
    )
)
_MORE_WORK = "Give all ranks as much to do: batches of equal numbers of tokens, layers and experts spread evenly."
_PIN = "Pin its host memory (`DataLoader(pin_memory=True)`), and copy with `non_blocking=True`, one batch ahead."
_MOSTLY = 0.5  # of what it takes longer
_WITHOUT_DEVICE = (
    "Check whether its cores are as fast as those of {others}, and as free (clock, temperature, `numactl --show`, "
    "other processes), and whether it has more work: longer sequences, larger batches."
)
_SLOWER = "Compare its device's clock, temperature and power with those of {others}, and look for other jobs on it."


@dataclass(frozen=True)
class CommunicationOfOthers:
    """Exposed communication of the other ranks, in their average complete step.

    Args:
        exposed_ns: All of it.
        wait_ns: How much of it is waiting for other ranks; all of it if that is unknown.
    """

    exposed_ns: int
    wait_ns: int

    @classmethod
    def of(cls, rows: pl.DataFrame, worker: str) -> CommunicationOfOthers:
        """That of the workers besides one; `rows` are `step_rows`."""
        others = rows.filter(pl.col("worker") != worker, pl.col("is_complete"))
        exposed_ns = round(others["exposed_communication_ns"].mean() or 0)  # type: ignore[arg-type]
        wait = others["wait_ns"].mean()
        return cls(exposed_ns, exposed_ns if wait is None else round(wait))  # type: ignore[arg-type]


def name_of(row: Mapping[str, Any]) -> str:
    """The rank, with its stage if that is late, its worker's name if that differs, and its host."""
    name = f"rank {row['rank']}"
    others = [f"stage {row['stage']}"] if row.get("stage") is not None else []
    others += [row["worker"]] if row["worker"] not in (f"rank{row['rank']}", name) else []
    others += [f"on {row['host']}"] if row["host"] and str(row["host"]) not in row["worker"] else []
    return f"{name} ({', '.join(others)})" if others else name


def title(row: Mapping[str, Any], communication: CommunicationOfOthers) -> str:
    """What the rank does longer, in which steps, and how much of the communication waits for it.

    Args:
        row: A row of VERDICTS with `worker`, `rank`, `host` and `device`; its rank is slow in some steps. `evidence`
            takes it with the `operator` that has more to do, if that is known.
        communication: That of the other ranks.
    """
    name = name_of(row)
    waits = f"{text.time(row['cost_ns'])} of each step wait for it"
    if row["cost_ns"] <= communication.exposed_ns:
        wait_ns = min(row["cost_ns"], communication.wait_ns)
        waits = f"{_of_two(wait_ns, communication.exposed_ns)} of communication wait for it"
    average = "on average " if row["slow_steps"] < row["steps"] else ""
    return f"{text.capitalize(name)} {does(row)} in {_when(row)}: {average}{waits}."


def does(row: Mapping[str, Any]) -> str:
    """What the rank does longer than the others, as a predicate."""
    return _DOES[row["cause"]].format(text.time(max(0, row["part_ns"])))


def others_late(rows: Sequence[Mapping[str, Any]], saved_ns: int | None) -> str:
    """That other ranks are late, too, and what all of them save together, as a clause.

    Args:
        rows: As in `title`, of the others.
        saved_ns: What a step would be shorter by if all of them were as fast as the rest; None: unknown.
    """
    names = [f"{row['rank']}" for row in rows[:_FEW_RANKS]]
    rest = [f"{len(rows) - len(names)} more"] if len(rows) > len(names) else []
    numbers = text.enumeration([*names, *rest])
    late = f"rank {numbers} is late, too" if len(rows) == 1 else f"ranks {numbers} are late, too"
    if saved_ns is None:
        return late
    all_of = "both" if len(rows) == 1 else f"all {len(rows) + 1}"
    rest_of = "the other rank" if rows[0]["ranks"] == len(rows) + PAIR else "the others"
    return f"{late}, and {all_of} as fast as {rest_of} save {text.time(saved_ns)} per step"


def evidence(row: Mapping[str, Any]) -> str:
    """The numbers behind the title, and whether the rank has more work, or works slower."""
    own, usual = _own_times(row)
    others = others_of(row) + (" typically" if row["ranks"] > PAIR else "")
    return (
        f"Without waiting it takes {text.time(own)} in {_there(row)}, {others} "
        f"{text.time(usual)}; {_cause_of_difference(row, own - usual)}. In the "
        f"typical step noise alone stays below {text.time(row['threshold_ns'])}.{of_work(row)}{of_copies(row)}"
        + (f" Spread evenly over all {row['ranks']} ranks, a part of it stays on each." if can_be_spread(row) else "")
    )


def others_of(row: Mapping[str, Any]) -> str:
    """The ranks that a rank is compared with, of which there may be one."""
    return "the other rank" if row["ranks"] == PAIR else "the others"


def of_saving(row: Mapping[str, Any], saved_ns: int | None, communication: CommunicationOfOthers) -> str:
    """What else is saved than the waits of the title, as a sentence.

    What the others compute takes as long as before, so that is communication, too: data that they move meanwhile.
    """
    if saved_ns is None or row["cost_ns"] > communication.exposed_ns:
        return ""
    rest_ns = saved_ns - min(row["cost_ns"], communication.wait_ns)
    if not _LEAST_OTHER_FRAC * saved_ns <= rest_ns <= communication.exposed_ns - communication.wait_ns:
        return ""
    return f" {_of_two(rest_ns, saved_ns)} saved is moving data that computation could hide then."


def _own_times(row: Mapping[str, Any]) -> tuple[int, int]:
    """How long it takes without waiting, and the others: as in the table of ranks where it is slow in each step."""
    if row["slow_steps"] == row["steps"]:
        return row["without_waiting_ns"], row["others_ns"]
    return row["late_own_ns"], row["late_own_ns"] - row["late_excess_ns"]


def _cause_of_difference(row: Mapping[str, Any], longer_ns: int) -> str:
    """How much of the longer time is the cause's, which is more than all of it where other parts are shorter."""
    part = max(0, row["part_ns"])
    shorter_ns = part - longer_ns
    if text.time(part) != text.time(longer_ns) and shorter_ns < 0:
        return f"of the difference {text.time(part)} is {_cause(row)}"
    less = f"; other parts take {text.time(shorter_ns)} less" if shorter_ns >= _LEAST_OTHER_FRAC * longer_ns else ""
    return f"all of the difference is {_cause(row)}{less}"


def action(row: Mapping[str, Any]) -> str:
    """What to do."""
    return _action(row).format(others=others_of(row))


def _action(row: Mapping[str, Any]) -> str:
    """The same, with `{others}` for the ranks that the rank is compared with."""
    if row["cause"] == CAUSES["computation_ns"] and _has_more_work(row):
        return _MORE_WORK
    if row["cause"] == CAUSES["computation_ns"] and not row["device"]:
        return _WITHOUT_DEVICE
    if row["cause"] == CAUSES["computation_ns"] and None not in (row["threads_frac"], row["elements_frac"]):
        return _SLOWER
    if row["cause"] == CAUSES["copies_ns"] and _is_pageable(row):
        return _PIN
    return _ACTIONS[row["cause"]]


def _when(row: Mapping[str, Any]) -> str:
    if row["slow_steps"] == row["steps"]:
        return "each step"
    if row["slow_steps"] == 1:
        return f"step {row['late_steps'][0]}, one of {row['steps']}"
    return f"{row['slow_steps']} of {row['steps']} steps"


def _there(row: Mapping[str, Any]) -> str:
    """The steps of the title, with their names."""
    steps = sorted(row["late_steps"], key=lambda name: (len(name), name))  # as numbers
    if row["slow_steps"] in (1, row["steps"]):
        return "each step" if row["slow_steps"] == row["steps"] else "this step"
    names = steps if len(steps) <= _ALL_STEPS else [*steps[:_FEW_STEPS], "…"]
    return f"these steps ({', '.join(names)})"


def _of_two(part_ns: int, whole_ns: int) -> str:
    """Such as `4.96 of the 5.86 ms`."""
    part, whole = text.time(part_ns), text.time(whole_ns)
    number, unit = part.rsplit(" ", 1)
    return f"{number if whole.endswith(f' {unit}') else part} of the {whole}"


def _cause(row: Mapping[str, Any]) -> str:
    """The cause; of the host, with what doesn't run meanwhile."""
    if row["cause"] != CAUSES["idle_ns"]:
        return str(row["cause"])
    return f"{row['cause']}: " + ("nothing runs on the device" if row["device"] else "no operator runs")


def _has_more_work(row: Mapping[str, Any]) -> bool:
    fractions = (row["launches_frac"], row["threads_frac"], row["elements_frac"])
    return any(part is not None and part > 1 + _LEAST_MORE_FRAC for part in fractions)


def _is_pageable(row: Mapping[str, Any]) -> bool:
    return bool(row["pageable_ns"] and row["pageable_ns"] >= _MOSTLY * row["part_ns"])


def of_copies(row: Mapping[str, Any]) -> str:
    """Whether a rank that copies longer has more to copy, or does so from other memory."""
    if row["cause"] != CAUSES["copies_ns"] or row["copied_bytes_frac"] is None:
        return ""
    more = row["copied_bytes_frac"] - 1
    amount = "as much as" if more <= _LEAST_MORE_FRAC else f"{text.percent(more)} more than"
    memory = ""
    if _is_pageable(row):
        memory = f", but to or from pageable memory, for {text.time(row['pageable_ns'])} longer"
    return f" It copies {amount} {others_of(row)}{memory}."


def can_be_spread(row: Mapping[str, Any]) -> bool:
    """Whether a rank computes longer since it has more work in as many kernels, such as more tokens than the others."""
    if row["cause"] != CAUSES["computation_ns"] or row["launches_frac"] is None:
        return False
    return bool(row["launches_frac"] <= 1 + _LEAST_MORE_FRAC and _has_more_work(row))


def of_work(row: Mapping[str, Any]) -> str:
    """Whether a rank that computes longer has more to compute."""
    if row["cause"] != CAUSES["computation_ns"] or row["launches_frac"] is None:
        return ""
    what = "kernels" if row["device"] else "operators"
    if row["launches_frac"] > 1 + _LEAST_MORE_FRAC:
        return f" It runs {text.percent(row['launches_frac'] - 1)} more {what} than {others_of(row)}: it has more work."
    if row["threads_frac"] is not None and row["threads_frac"] > 1 + _LEAST_MORE_FRAC:
        more = text.percent(row["threads_frac"] - 1)
        return f" It runs as many kernels as {others_of(row)}, with {more} more threads: it has more work."
    if row["elements_frac"] is not None and row["elements_frac"] > 1 + _LEAST_MORE_FRAC:
        where = f" in `{row['operator']}`" if row.get("operator") else ""
        more = text.percent(row["elements_frac"] - 1)
        on = f"on inputs with {more} more elements{where}"
        return f" It runs as many {what} as {others_of(row)}, {on}: it has more work."
    if row["threads_frac"] is None:
        return f" It runs as many {what} as {others_of(row)}."
    if row["elements_frac"] is None:
        return (
            f" It runs as many kernels as {others_of(row)}, in grids of the same size: its device is slower, or its "
            "inputs are larger, which their shapes would show."
        )
    return f" It runs as many kernels of the same size as {others_of(row)}, on inputs as large: its device is slower."
