"""Pipelines: which stage a rank runs, how long it waits for other stages, and how long the schedule makes it wait.

Stages follow from sends and receives. The first transfer of the first stage is a send, that of all others a receive;
the stage after it is the one that it sends to before that one sends back. Transfers are in the order of their ends: a
receive may be posted long before. In a ring data goes on from the last rank to the first, and nothing goes back, so it
is no pipeline.

A stage's *bubble* is the time in which it waits for another stage's data and computes nothing. What it waits for after
its last transfer no transfer shows, so that isn't counted: it is idle then. With p stages, m
micro-batches in a step and v chunks of layers on each stage, equal stages have a bubble of (p − 1) ÷ (v·m + p − 1) of
the step in GPipe, 1F1B (v = 1) and interleaved schedules (Narayanan et al., SC'21). With chunks, the last stage passes
activations on to the first one, m·(v − 1) times. Between two stages these look like gradients: each sends the other one
m·(2v − 1) messages. There the order shows chunks, if it is that of an interleaved schedule and of no other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from ..names.collectives import PEER_TO_PEER
from .collectives.waits import wait_lengths

STAGES = {"member": pl.Int32, "stage": pl.Int64}
_FEWEST_FOR_CHUNKS = 3  # stages, else the order of transfers shows chunks
_MOST_CHUNKS = 16


@dataclass(frozen=True)
class Pipeline:
    """The pipeline of a run.

    Attributes:
        stages: STAGES, of the members that are in it; empty: there is no pipeline.
        micro_batches: How many a step has, typically; 0 if unknown.
        chunks: How many chunks of layers each stage has.
    """

    stages: pl.DataFrame
    micro_batches: int
    chunks: int

    @classmethod
    def of(cls, calls: pl.DataFrame) -> Pipeline:
        """Return the pipeline that matched calls show.

        Args:
            calls: CALLS with `member`, `place`, `match` and `step_name`.
        """
        pairs = calls.filter(pl.col("match").is_not_null() & pl.col("kind").is_in(PEER_TO_PEER))
        ends = pairs.select("match", other="member", other_kind="kind")
        pairs = pairs.join(ends, "match", maintain_order="left").filter(pl.col("kind") != pl.col("other_kind"))
        stage_of = _stages(pairs)
        stages = pl.DataFrame(list(stage_of.items()), schema=STAGES, orient="row").sort("member")
        last = max(stage_of.values(), default=0)
        sends = _sends_per_step(pairs.join(stages, "member").join(stages.rename({"member": "other"}), "other"))
        if sends.get((last, 0)) and not sends.get((1, 0)):
            stages = stages.clear()
        forward = sends.get((0, 1), 0)
        again = sends.get((last, 0), 0) if last + 1 >= _FEWEST_FOR_CHUNKS else 0
        micro_batches = forward - again if forward > again else forward
        if last == 1 and (chunks := _chunks_of_two_stages(pairs, stage_of)) > 1:
            return cls(stages, forward // (2 * chunks - 1), chunks)
        return cls(stages, micro_batches, forward // micro_batches if micro_batches else 1)

    @property
    def count(self) -> int:
        """Number of stages; 0 if there is no pipeline."""
        return self.stages["stage"].n_unique()

    @property
    def ideal_frac(self) -> float | None:
        """The bubble of equal stages as a share of the step; None if the number of micro-batches is unknown."""
        if not self.micro_batches:
            return None
        return (self.count - 1) / (self.chunks * self.micro_batches + self.count - 1)


def _stages(pairs: pl.DataFrame) -> dict[int, int]:
    """The stage of each member; empty without a pipeline.

    Args:
        pairs: Matched sends and receives with the member at the `other` end.
    """
    ends = pairs.sort(pl.col("start_ns") + pl.col("dur_ns").clip(0))
    first = ends.unique(["member", "other"], keep="first", maintain_order=True)
    kinds = {(member, other): kind for member, other, kind in first.select("member", "other", "kind").rows()}
    after: dict[int, list[int]] = {}
    for (member, other), kind in kinds.items():
        if kind == "send" and kinds.get((other, member)) == "recv":
            after.setdefault(member, []).append(other)
    begins = first.unique("member", keep="first", maintain_order=True)
    row = begins.filter(pl.col("kind") == "send")["member"].to_list()
    stage_of = dict.fromkeys(row, 0)
    while row:
        row = [other for member in row for other in after.get(member, ()) if other not in stage_of]
        stage_of.update(dict.fromkeys(row, max(stage_of.values()) + 1))
    counts = [list(stage_of.values()).count(stage) for stage in set(stage_of.values())]
    is_ring = len(counts) == 2 and len(kinds) > len(stage_of)  # ranks of two stages have one peer each
    return stage_of if len(counts) > 1 and len(set(counts)) == 1 and not is_ring else {}


def _chunks_of_two_stages(pairs: pl.DataFrame, stage_of: dict[int, int]) -> int:
    """How many chunks each of two stages has by the order in which the first one calls transfers; 1 if none shows it.

    The order is that of the calls, not of their ends: data comes when the other stage has sent it.
    """
    first = pairs.filter(pl.col("member").is_in([i for i, stage in stage_of.items() if not stage]))
    of_steps = first.filter(pl.col("step_name").is_not_null()).group_by(
        "member", "place", "step_name", maintain_order=True
    )
    orders = {"".join(kind[0] for kind in kinds) for kinds in of_steps.agg("kind")["kind"].to_list()}
    chunks = {_chunks_of(order) for order in orders}
    return chunks.pop() if len(chunks) == 1 else 1


def _chunks_of(order: str) -> int:
    """The chunks of the interleaved schedule with this order of sends and receives (`s`, `r`) on the first stage."""
    sends = order.count("s")
    plain = {"s" * ahead + "sr" * (sends - ahead) + "r" * ahead for ahead in range(sends + 1)}
    for chunks in range(2, _MOST_CHUNKS + 1) if order not in plain else ():
        micro_batches, rest = divmod(sends, 2 * chunks - 1)
        if not rest and order in _interleaved_orders(chunks, micro_batches):
            return chunks
    return 1


def _interleaved_orders(chunks: int, micro_batches: int) -> Iterator[str]:
    """The orders of sends and receives on the first of two stages in interleaved schedules.

    All chunks work on a group of micro-batches, two or all, before the next group. Backward passes begin after all
    forward passes (GPipe), or alternate with them after those of a group and the next chunk's (1F1B).
    """
    passes = chunks * micro_batches
    for size in {2, micro_batches}:
        groups = [min(size, micro_batches - begin) for begin in range(0, micro_batches, size)]
        of_chunks = [chunk for group in groups for chunk in range(chunks) for _ in range(group)]
        forward = ["rs" if chunk else "s" for chunk in of_chunks]
        backward = ["rs" if chunk < chunks - 1 else "r" for chunk in of_chunks]
        for ahead in (min(2 * chunks, passes), passes):
            pairs = [a + b for a, b in zip(forward[ahead:], backward, strict=False)]
            yield "".join([*forward[:ahead], *pairs, *backward[passes - ahead :]])


def _sends_per_step(pairs: pl.DataFrame) -> dict[tuple[int, int], int]:
    """(stage, stage) → how many messages of the most frequent size a rank of one sends the other in a typical step."""
    sends = pairs.filter((pl.col("kind") == "send") & pl.col("step_name").is_not_null())
    by_size = sends.group_by("stage", "stage_right", "member", "place", "step_name", "bytes").len()
    by_step = by_size.group_by("stage", "stage_right", "member", "place", "step_name").agg(pl.col("len").max())
    typical = by_step.group_by("stage", "stage_right").agg(pl.col("len").median().round().cast(pl.Int64))
    return {(stage, to): count for stage, to, count in typical.rows()}


def bubbles(calls: pl.DataFrame, steps: pl.DataFrame, pipeline: Pipeline) -> pl.DataFrame:
    """The steps of stages with `stage`, `bubble_ns`, and for whom it waits longest, and how long.

    Several receives may wait at the same time, which counts once: no longer than communication is exposed.

    Args:
        calls: CALLS with `member`, `match` and `exposed_wait_ns`.
        steps: STEPS with `member`; rows of a member in order.
        pipeline: Their pipeline.
    """
    waits = calls.filter((pl.col("step") >= 0) & pl.col("kind").is_in(PEER_TO_PEER) & (pl.col("exposed_wait_ns") > 0))
    waits = waits.join(pipeline.stages, "member", "semi")
    waits = waits.rename({"step": "index"})
    longest = wait_lengths(waits, "member", "index", "peer").sort("wait_ns", "peer", descending=[True, False])
    of_peers = longest.group_by("member", "index").agg(
        waits_for=pl.col("peer").first(), waits_for_ns=pl.col("wait_ns").first()
    )
    by_step = wait_lengths(waits, "member", "index").join(of_peers, ["member", "index"])
    of_stages = steps.with_columns(index=pl.int_range(pl.len(), dtype=pl.Int32).over("member"))
    of_stages = of_stages.join(pipeline.stages, "member").join(by_step, ["member", "index"], "left")
    most = pl.col("exposed_communication_ns")
    return of_stages.with_columns(
        bubble_ns=pl.min_horizontal(pl.col("wait_ns").fill_null(0), most),
        waits_for_ns=pl.when(pl.col("waits_for").is_not_null()).then(pl.min_horizontal("waits_for_ns", most)),
    )
