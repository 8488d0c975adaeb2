"""Slow links: named where they are, and nowhere else."""

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.distributed.imbalance.links import SLOW, links
from kinetoscope_tb.distributed.model import FRAMES, Summary
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.views import RUN_VIEWS
from support.simulated import Truth, run_of, simulated

MESH = (
    *((f"tp{i}", tuple(range(4 * i, 4 * i + 4))) for i in range(4)),
    *((f"dp{i}", tuple(range(i, 16, 4))) for i in range(4)),
)


def slow_in(run):
    """(group or pair, how much slower) of the slow ones."""
    slow = links(run).filter(pl.col("verdict") == SLOW)
    names = run.groups["name"].to_list()
    return {
        names[group] if group >= 0 else (sender, receiver): slower
        for group, sender, receiver, slower in slow.select("group", "sender", "receiver", "slower_frac").rows()
    }


def test_a_slow_group_is_named_and_nobody_else():
    for seed in range(10):
        truth = Truth(
            ranks=16, steps=6, groups=MESH, slow={6: 1.5}, jitter_ns=20_000, seed=seed, late={(3, None): 10**7}
        )
        slow = slow_in(run_of(simulated(truth)))
        assert list(slow) == ["dp2"]
        assert abs(slow["dp2"] - 0.5) < 0.1


def test_a_slow_group_is_named_though_calls_and_ranks_are_lost():
    lost = tuple((rank, step, 0) for rank in (8, 9) for step in (1, 2))
    truth = Truth(ranks=16, steps=8, groups=MESH, slow={2: 2}, missing=(5,), lost=lost, jitter_ns=5_000)
    assert list(slow_in(run_of(simulated(truth)))) == ["tp2"]


def test_groups_that_lie_otherwise_are_not_compared():
    near_and_far = Truth(ranks=16, steps=6, groups=MESH, slow=dict.fromkeys(range(4, 8), 8))
    run = run_of(simulated(near_and_far))
    assert slow_in(run) == {}  # all groups over the network are slower than those inside a machine
    assert links(run).height == 8


@pytest.mark.slow
def test_noise_alone_names_a_link_in_less_than_one_run_of_twenty():
    named = 0
    for seed in range(80):
        truth = Truth(ranks=16, steps=5 + seed % 4, groups=MESH, jitter_ns=150_000, bytes=32 << 20, seed=seed)
        named += bool(slow_in(run_of(simulated(truth))))
    assert named <= 3  # one run of a hundred is what the threshold is for


def test_one_group_alone_is_compared_with_none():
    run = run_of(simulated(Truth(ranks=4, steps=6)))
    assert links(run).is_empty()
    assert RUN_VIEWS["links"].run(run).is_empty()


def pipeline(ranks, slow, calls=6, noise=0.02):
    """A run whose ranks send to the next one, and one link is slow; receivers wait for the sender first."""
    rng = np.random.default_rng(1)
    moved = {
        (r, r + 1): 10**6 * (3 if r == slow else 1) * (1 + noise * rng.standard_normal(calls)) for r in range(ranks - 1)
    }

    def rows(rank, kind, pair, wait):
        return [
            {
                "kind": kind,
                "group": 0,
                "nth": -1,
                "bytes": 1 << 20,
                "dtype": "Half",
                "exposed_ns": 0,
                "offset": 0,
                "peer": pair[0] if kind == "recv" else pair[1],
                "step": 0,
                "start_ns": 10**8 * i,
                "dur_ns": round(dur) + wait,
            }
            for i, dur in enumerate(moved[pair])
        ]

    members = []
    for rank in range(ranks):
        calls_of = rows(rank, "send", (rank, rank + 1), 0) if rank + 1 < ranks else []
        calls_of += rows(rank, "recv", (rank - 1, rank), 10**7) if rank else []
        frames = {name: pl.DataFrame(schema=schema) for name, schema in FRAMES.items()}
        frames["calls"] = pl.DataFrame(calls_of, schema=FRAMES["calls"])
        step = ("0", 0, 10**9, *[0] * (len(FRAMES["steps"]) - 4), True)
        frames["steps"] = pl.DataFrame([step], schema=FRAMES["steps"], orient="row")
        group = ("pp", None, ranks, f"0-{ranks - 1}")
        frames["groups"] = pl.DataFrame([group], schema=FRAMES["groups"], orient="row")
        facts = {"rank": rank, "world_size": ranks, "origin_ns": 0, "devices": []}
        members.append(Member(f"rank{rank}", "1", 0, Summary(facts, **frames)))
    return Ranks("r", tuple(members))


def test_a_slow_pair_is_named_by_its_transfers():
    run = pipeline(6, slow=3)
    assert list(slow_in(run)) == [(3, 4)]
    first = RUN_VIEWS["links"].run(run).row(0, named=True)
    assert (first["link"], first["verdict"], first["calls"]) == ("rank 3 → rank 4", "slow", 6)
    assert abs(first["slower_frac"] - 2) < 0.1
    assert slow_in(pipeline(6, slow=None)) == {}
