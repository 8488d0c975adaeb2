"""Problems of a run of many ranks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import polars as pl

from ..distributed.process_groups import format_ranks
from ..distributed.run import Ranks, same_rank
from ..names.collectives import PEER_TO_PEER
from ..names.text import time
from ..trace import Diagnostic

_SURE_NS = 1_000_000  # larger errors of clocks hide who was late


def diagnose_run(ranks: Ranks) -> Iterator[Diagnostic]:
    """Everything that affects the run's numbers."""
    yield from _of_members(ranks)
    yield from _of_absent(ranks)
    yield from _of_steps(ranks)
    if {*ranks.workers["world_size"]} != {1}:  # collectives of a job of one rank wait for nobody
        yield from _of_calls(ranks)
    yield from _of_clocks(ranks)


def _of_members(ranks: Ranks) -> Iterator[Diagnostic]:
    if ranks.notes:
        examples = " ".join(ranks.notes[:3])
        yield Diagnostic(
            "summaries_unused",
            len(ranks.notes),
            f"Summaries stored next to the traces are unusable, so the traces are read. {examples} Rebuild them: "
            "kinetoscope index --beside.",
            level="note",
        )
    unusable = [member for member in ranks.members if member.summary is None]
    if unusable:
        examples = "; ".join(f"{member.worker}: {member.problem}" for member in unusable[:3])
        yield Diagnostic("broken_recordings", len(unusable), f"Traces are unusable. {examples}", level="loss")
    if ranks.duplicates.height:
        yield Diagnostic(
            "rank_twice",
            ranks.duplicates["rank"].n_unique(),
            f"{same_rank(ranks)}: traces of several jobs may be in one folder, or each worker recorded without its "
            "process group. None of these workers is compared with another one. Use a separate folder for each job.",
        )
    without_rank = [i for i, summary in ranks.readable if summary.facts.get("rank") is None]
    if without_rank and len(ranks.members) > 1:
        yield Diagnostic(
            "rank_unknown",
            len(without_rank),
            "Traces have no rank, so it comes from the worker's name, or its place in the list. Start the profiler "
            "after torch.distributed.init_process_group.",
            level="note",
        )


def _title(ranks: Collection[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {format_ranks(ranks)}"


def _of_absent(ranks: Ranks) -> Iterator[Diagnostic]:
    """Ranks without a trace."""
    missing = ranks.missing_ranks
    if missing:
        yield Diagnostic(
            "missing_ranks",
            len(missing),
            f"There is no trace of {_title(missing)}. For collectives of their groups it is "
            "unknown who came last and how long the transfer took; waits and bandwidths are lower bounds.",
            level="loss",
        )
    not_chosen = sorted({*ranks.absent_ranks} - {*missing})
    if not_chosen:
        yield Diagnostic(
            "ranks_not_chosen",
            len(not_chosen),
            f"The program chose not to record {_title(not_chosen)}. For collectives of their groups it is "
            "unknown who came last and how long the transfer took; waits and bandwidths are lower bounds.",
            level="note",
        )


def _of_steps(ranks: Ranks) -> Iterator[Diagnostic]:
    """Steps that some ranks lack."""
    steps = _without_duplicates(ranks.steps, ranks)
    readable = steps.group_by("place").agg(all_members=pl.col("member").n_unique())
    partly = (steps.group_by("place", "step").agg(members=pl.col("member").n_unique()).join(readable, "place")).filter(
        pl.col("members") < pl.col("all_members")
    )
    if partly.height:
        yield Diagnostic(
            "steps_apart",
            partly.height,
            f"Not all ranks recorded the same steps ({_name_list(partly['step'].unique().sort().to_list())}). They are "
            "compared where they overlap. Start the schedule of all ranks at the same step.",
        )


def _of_calls(ranks: Ranks) -> Iterator[Diagnostic]:
    calls = ranks.calls
    lost_calls = _lost_calls(calls)
    if lost_calls.height:
        yield Diagnostic(
            "transfers_lost",
            lost_calls.height,
            "Some collectives have a recorded host call, but no kernel. They have no times, and waits are estimated "
            f"without that rank (rank {format_ranks(lost_calls['rank'].to_list())}).",
            level="loss",
        )
    if len(ranks.readable) > 1:
        alone = _without_duplicates(calls, ranks).filter(pl.col("match").is_null())
        if alone.height:
            kinds = ", ".join(f"{kind} {count}" for kind, count in alone["kind"].value_counts(sort=True).head(4).rows())
            yield Diagnostic(
                "calls_alone",
                alone.height,
                f"Calls have no match on other ranks, or an ambiguous one ({kinds}): other traces lack them, or their "
                "number in a step differs between ranks. Their waits are unknown. Torch 2.12 and later number NCCL's "
                "calls, but not gloo's.",
            )
    without_group = calls.filter(pl.col("group") < 0)
    if without_group.height:
        yield Diagnostic(
            "group_unknown",
            without_group.height,
            "The process group of some calls is unknown, and the job has several, so these calls aren't matched.",
        )


def _of_clocks(ranks: Ranks) -> Iterator[Diagnostic]:
    """Clocks that may be wrong by more than the times that they are used for."""
    clocks = ranks.clocks.filter(pl.col("error_ns") > _SURE_NS)
    if clocks.is_empty() or len(ranks.readable) < 2:
        return
    worst = clocks.sort("error_ns", descending=True).row(0, named=True)
    worker = ranks.workers["worker"][worst["member"]]
    yield Diagnostic(
        "clocks_uncertain",
        clocks.height,
        f"Clocks of ranks may be wrong by up to {time(worst['error_ns'])} ({worker}). The timeline of several "
        "ranks, their pace, and transfers between two ranks may be off by that. Times within a rank, and waits in "
        "collectives of whole groups, don't depend on clocks.",
    )


def _lost_calls(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls without times that need a kernel: not empty messages, nor sends and receives that share one kernel.

    Those are of batch_isend_irecv.
    """
    together = calls.filter((pl.col("kind") == "send_recv") & (pl.col("dur_ns") >= 0)).select("member", "step")
    without_time = calls.filter((pl.col("dur_ns") < 0) & (pl.col("bytes") != 0))
    is_pair = pl.col("kind").is_in(PEER_TO_PEER)
    return pl.concat(
        [without_time.filter(~is_pair), without_time.filter(is_pair).join(together, ["member", "step"], "anti")]
    )


def _without_duplicates(rows: pl.DataFrame, ranks: Ranks) -> pl.DataFrame:
    return rows.filter(~pl.col("member").is_in(ranks.duplicates["member"].to_list()))


def _name_list(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
