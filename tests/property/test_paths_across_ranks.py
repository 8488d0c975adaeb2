"""Paths across ranks against small programs of several ranks, each laid out by an obvious search of its own."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.critical_path.classes import CLASSES
from kinetoscope_tb.critical_path.segments import SEGMENTS
from kinetoscope_tb.distributed.model import CALLS, GROUPS, STEPS, TRAFFIC, Summary
from kinetoscope_tb.distributed.path.paths import PARTS, Paths
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.views import RUN_VIEWS
from support.examples import examples

few = examples(40)
NONE = -1
USED = (CLASSES.index("computation"), CLASSES.index("data loading"))
lengths = st.integers(0, 5_000)


@dataclass(frozen=True)
class Program:
    """What ranks do in a step that all begin at 0, each on a clock of its own.

    Args:
        ahead: By how much each clock is.
        who: The ranks of each collective.
        moves: How long each one moves data.
        work: (rank, collective or NONE: the step's end) → (collective or NONE: the step's begin, what is done since).
    """

    ahead: list
    who: list
    moves: list
    work: dict

    def laid_out(self, less=lambda rank, part: 0, less_data=lambda collective: 0):
        """(when each rank comes to each collective, when each is over, when each rank ends), with per cents off."""
        come, over = {}, {}

        def reached(rank, target):
            return max(
                (over[since] if since >= 0 else 0)
                + sum(length - length * less(rank, part) // 100 for part, length in zip(USED, spent, strict=True))
                for since, spent in self.work[rank, target]
            )

        for c, ranks in enumerate(self.who):
            come |= {(rank, c): reached(rank, c) for rank in ranks}
            over[c] = max(come[rank, c] for rank in ranks) + self.moves[c] - self.moves[c] * less_data(c) // 100
        return come, over, [reached(rank, NONE) for rank in range(len(self.ahead))]


@st.composite
def programs(draw):
    ranks = draw(st.integers(2, 4))
    everyone = list(range(ranks))
    who = [everyone, *draw(st.lists(st.sampled_from([everyone, [0, 1]]), max_size=4))]
    work = {}
    for rank in everyone:
        mine = [c for c, members in enumerate(who) if rank in members]
        for target in [*mine, NONE]:
            earlier = [NONE, *(c for c in mine if c < target or target == NONE)]
            chosen = draw(st.lists(st.sampled_from(earlier), unique=True, min_size=1, max_size=3))
            spent = {since: [draw(lengths), draw(lengths)] for since in chosen}
            spent.setdefault(earlier[-1], [0, 0])  # calls follow each other on one stream
            work[rank, target] = list(spent.items())
    moves = [draw(st.integers(1, 3_000)) for _ in who]
    return Program([draw(st.integers(-9_000, 9_000)) for _ in everyone], who, moves, work)


def run_of(program):
    come, over, ends = program.laid_out()
    return Ranks(
        "r", tuple(Member(f"rank{r}", "1", 0, summary_of(program, r, come, over, ends)) for r in range(len(ends)))
    )


def summary_of(program, rank, come, over, ends):
    mine = [c for c, ranks in enumerate(program.who) if rank in ranks]
    groups = [sorted({tuple(program.who[c]) for c in mine}).index(tuple(program.who[c])) for c in mine]
    segments = []
    for target in [NONE, *mine]:
        at = come[rank, target] if target >= 0 else ends[rank]
        for since, spent in program.work[rank, target]:
            early = at - sum(spent) - (over[since] if since >= 0 else 0)
            vector = [dict(zip(USED, spent, strict=True)).get(part, 0) for part in range(len(CLASSES))]
            number = mine.index(target) if target >= 0 else NONE
            segments.append((0, number, mine.index(since) if since >= 0 else NONE, early, vector))
        segments.sort(key=lambda segment: (segment[1], segment[3]))
    start = [come[rank, c] + program.ahead[rank] for c in mine]
    calls = pl.DataFrame(
        {
            "kind": ["all_reduce"] * len(mine),
            "group": groups,
            "nth": mine,
            "start_ns": start,
            "dur_ns": [over[c] - come[rank, c] for c in mine],
            **dict.fromkeys(("bytes", "peer", "exposed_ns", "offset"), [0] * len(mine)),
            "dtype": ["Float"] * len(mine),
            "step": [0] * len(mine),
        }
    ).select(*CALLS)
    told = [
        (f"{len(ranks)}", None, len(ranks), f"0-{len(ranks) - 1}")
        for ranks in sorted({tuple(program.who[c]) for c in mine})
    ]
    steps = pl.DataFrame({"step": ["0"], "start_ns": [program.ahead[rank]], "total_ns": [ends[rank]]})
    steps = steps.with_columns([pl.lit(0).alias(name) for name in list(STEPS)[3:-1]], is_complete=pl.lit(value=True))
    return Summary(
        {"rank": rank, "world_size": len(ends), "origin_ns": 0},
        steps.cast(STEPS),
        calls.cast(CALLS),
        pl.DataFrame(told, schema=GROUPS, orient="row"),
        pl.DataFrame(schema=TRAFFIC),
        pl.DataFrame(segments, schema=SEGMENTS, orient="row"),
    )


def longest(program, rank, target):
    """The longest way from the step's begin to where a rank comes to a collective, or to its end, of all there are."""
    return max(
        sum(spent)
        + (
            0
            if since < 0
            else program.moves[since] + max(longest(program, other, since) for other in program.who[since])
        )
        for since, spent in program.work[rank, target]
    )


@few
@given(programs(), st.sampled_from([10, 50, 100]), st.data())
def test_what_holds_of_the_path_of_any_program(program, percent, data):
    run = run_of(program)
    paths = Paths.of(run)
    assert_it_is_as_long_as_the_longest_way_and_as_the_step(program, paths)
    assert_it_follows_what_each_rank_waited_for(program, paths)
    assert_what_would_be_saved_is_what_the_faster_ranks_take_less(program, paths, percent, data)
    assert_the_rows_of_each_view_add_up_to_the_step(program, run)


def assert_it_is_as_long_as_the_longest_way_and_as_the_step(program, paths):
    whole = max(longest(program, rank, NONE) for rank in range(len(program.ahead)))
    assert paths.steps["total_ns"].to_list() == [whole]
    assert paths.segments["dur_ns"].sum() == whole
    assert PARTS.index("before the step") not in paths.segments["part"].to_list()
    each = paths.segments.group_by("number").agg(pl.col("dur_ns").sum(), pl.col("segment_ns").first())
    assert each["dur_ns"].equals(each["segment_ns"].rename("dur_ns"))


def assert_it_follows_what_each_rank_waited_for(program, paths):
    _, over, _ = program.laid_out()
    at = 0
    for row in paths.segments.unique("number", maintain_order=True).rows(named=True):
        assert row["start_ns"] - program.ahead[row["member"]] == at
        at += row["segment_ns"]
        if row["part"] == PARTS.index("transfer"):
            call = paths.merged_graph.ranks.calls.row(row["since"], named=True)
            assert at == over[call["nth"]]
            assert row["segment_ns"] == program.moves[call["nth"]]


def assert_what_would_be_saved_is_what_the_faster_ranks_take_less(program, paths, percent, data):
    whole = max(program.laid_out()[2])
    rank = data.draw(st.sampled_from([None, *range(len(program.ahead))]))
    part = data.draw(st.sampled_from([None, *USED]))
    less = lambda r, p: percent * (rank in (None, r)) * (part in (None, p))  # noqa: E731
    assert paths.saved_in_segments(part, rank, percent).tolist() == [whole - max(program.laid_out(less)[2])]
    chosen = data.draw(st.integers(0, len(program.who) - 1))
    calls = (paths.merged_graph.ranks.calls["nth"] == chosen).to_numpy()
    faster = program.laid_out(less_data=lambda c: percent * (c == chosen))
    assert paths.saved_in_calls(calls, percent).tolist() == [whole - max(faster[2])]


def assert_the_rows_of_each_view_add_up_to_the_step(program, run):
    whole = max(program.laid_out()[2])
    for by in ("part", "rank", "rank and part", "collective"):
        assert RUN_VIEWS["path_across_ranks"].run(run, by=by)["path_ns"].sum() == whole
    assert RUN_VIEWS["path_across_ranks_segments"].run(run)["dur_ns"].sum() == whole
    assert np.isclose(RUN_VIEWS["path_across_ranks_segments"].run(run)["share_frac"].sum(), 1 if whole else 0)


@few
@given(programs(), st.sampled_from(["10", "50", "100"]), st.data())
def test_no_row_saves_more_than_its_share_of_the_path_in_the_step_of_the_last_rank(program, percent, data):
    """Also where a rank began the step earlier than the one that ended last, and where ends are noisy."""
    noisy = [data.draw(st.integers(0, 500)) for _ in program.ahead]
    late = [data.draw(st.integers(0, 4_000)) for _ in program.ahead]
    whole = run_of(program)
    members = tuple(
        replace(member, summary=begun_later(member.summary, noise, late))
        for member, noise, late in zip(whole.members, noisy, late, strict=True)
    )
    run = Ranks("r", members)
    for by in ("part", "rank", "rank and part", "collective"):
        for per in ("recording", "step"):
            rows = RUN_VIEWS["path_across_ranks"].run(run, by=by, per=per, percent=percent).drop_nulls("saved_ns")
            assert (rows["saved_ns"] >= 0).all()
            assert (rows["saved_ns"] <= rows["mean_ns"] * int(percent) / 100 + 1).all()


def begun_later(summary, noise, late):
    """A summary whose step is cut at its beginning, and whose collectives end later than those of other ranks."""
    steps = summary.steps.with_columns(
        start_ns=pl.col("start_ns") + pl.min_horizontal("total_ns", pl.lit(late)),
        total_ns=pl.max_horizontal(pl.col("total_ns") - late, pl.lit(0)),
    )
    return replace(summary, steps=steps.cast(STEPS), calls=summary.calls.with_columns(dur_ns=pl.col("dur_ns") + noise))
