"""The path across ranks on the timeline: what of it lies on each worker, against runs whose truth is known."""

import itertools
from dataclasses import replace
from functools import cache

import polars as pl
import pytest

from kinetoscope_tb.critical_path.classes import CLASSES
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.distributed.path.path_segments import PathSegments
from kinetoscope_tb.distributed.path.paths import PARTS, Paths
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read
from kinetoscope_tb.timeline.core.build import timeline as timeline_of
from kinetoscope_tb.timeline.critical_path.cross_rank_pieces import CrossRankPieces
from support.real_traces import FOLDER, MISSING
from support.simulated import Truth, simulated, trace_of

MS = 1_000_000
PAIRS = (("tp", (0, 1)), ("dp", (1, 2)))
TRUTHS = {
    "a straggler": Truth(ranks=3, steps=3, late={(1, None): 5 * MS}),
    "late in turns": Truth(ranks=4, steps=4, late={(step, step): 4 * MS for step in range(4)}, noise=0.05),
    "over two groups": Truth(ranks=3, steps=3, groups=PAIRS, late={(0, None): 8 * MS}),
    "a rank is missing": Truth(ranks=3, steps=3, groups=PAIRS, late={(0, 1): 8 * MS}, missing=(1,)),
    "a call is lost": Truth(ranks=3, steps=3, late={(1, None): 5 * MS}, lost=((2, 1, 0),), is_numbered=False),
    "clocks run apart": Truth(ranks=3, steps=3, late={(2, None): 5 * MS}, drift=(0.0, 2e-5, -2e-5)),
}


@cache
def run_of(name):
    """The run, its traces by member, and its path segments."""
    truth = TRUTHS[name]
    made = simulated(truth)
    traces = {rank: trace_of(made, rank).build() for rank in range(truth.ranks) if rank not in truth.missing}
    run = Ranks("r", tuple(Member(f"rank{rank}", "1", 0, summary(trace)) for rank, trace in traces.items()))
    return run, list(traces.values()), PathSegments.of(run)


def pieces_of(run, traces, path_segments):
    """All pieces of all members, each with its member, as told in full."""
    pieces = []
    for member, trace in enumerate(traces):
        timeline = timeline_of(trace)
        path = CrossRankPieces.of(trace, timeline, path_segments, member)
        pieces += [{**piece, "member": member} for piece in path.within(timeline, -(10**15), 10**15, 10**15)]
    return pieces


def fail_unless_whole(run, path_segments, pieces):
    """Each segment consists of its pieces, one after the other, on its own rank, of the parts that the summaries tell.

    Of a segment that began before the step did, summaries tell its parts as a whole alone.
    """
    paths = Paths.of(run)
    parts = paths.segments.with_columns(segment=pl.struct("step", "number").rle_id().cast(pl.Int64))
    merged_graph, rows = paths.merged_graph, paths.steps["row"]
    assert [piece["first"] for piece in pieces] == [piece["last"] for piece in pieces]
    checked = 0
    for number, row in enumerate(path_segments.frame.rows(named=True)):
        mine = [piece for piece in pieces if piece["first"] == number]
        assert {piece["member"] for piece in mine} == {row["member"]}
        assert mine[0]["from_ns"] == row["start_ns"]
        assert mine[-1]["to_ns"] == row["start_ns"] + row["dur_ns"]
        assert all(one["to_ns"] == after["from_ns"] for one, after in itertools.pairwise(mine))
        assert all(piece["from_ns"] < piece["to_ns"] for piece in mine)
        lengths = {}
        for piece in mine:
            lengths[piece["part"]] = lengths.get(piece["part"], 0) + piece["to_ns"] - piece["from_ns"]
        rows_of_segment = parts.filter(pl.col("segment") == number)
        step, until = rows_of_segment.select("step", "until").row(0)
        segment = merged_graph.of_call[until] if until >= 0 else merged_graph.of_step[rows[step]]
        if row["part"] < len(CLASSES) and merged_graph.length[segment] > row["dur_ns"]:
            continue
        checked += 1
        assert lengths == {PARTS[part]: length for part, length in rows_of_segment.select("part", "dur_ns").rows()}
    assert checked > 0
    whole = sum(piece["to_ns"] - piece["from_ns"] for piece in pieces)
    assert whole == paths.steps["total_ns"].sum()


@pytest.mark.parametrize("name", list(TRUTHS))
@pytest.mark.slow  # runs of many ranks
def test_the_pieces_of_each_segment_follow_each_other_and_add_up_to_it(name):
    run, traces, path_segments = run_of(name)
    fail_unless_whole(run, path_segments, pieces_of(run, traces, path_segments))


def test_the_path_runs_through_the_straggler_s_kernel_and_the_collective_that_all_wait_in():
    run, traces, path_segments = run_of("a straggler")
    step = [piece for piece in pieces_of(run, traces, path_segments) if piece["step"] == "1"]
    step.sort(key=lambda piece: (piece["first"], piece["from_ns"]))
    longest = [
        piece for piece in step if piece["to_ns"] - piece["from_ns"] > 100_000 and piece["part"] != "before the step"
    ]
    assert [(piece["part"], piece["slice"]["name"].split("_")[0]) for piece in longest] == [
        ("computation", "gemm"),
        ("transfer", "ncclDevKernel"),
    ]
    assert longest[0]["member"] == 1
    assert longest[0]["until"] == "all_reduce #1, 0 · ranks 0-2"
    assert longest[1]["since"] == longest[1]["until"] == "all_reduce #1, 0 · ranks 0-2"


def test_short_pieces_are_told_as_one_only_where_the_path_stays_on_the_worker():
    _run, traces, path_segments = run_of("over two groups")
    for member, trace in enumerate(traces):
        timeline = timeline_of(trace)
        path = CrossRankPieces.of(trace, timeline, path_segments, member)
        of_member = path_segments.frame["member"].to_list()
        for piece in path.within(timeline, 0, 10**9, 5):
            assert set(of_member[piece["first"] : piece["last"] + 1]) == {member}


@pytest.mark.parametrize("member", range(3))
def test_the_shares_of_the_ranks_are_those_of_the_path_in_the_time_of_the_one_that_asks(member):
    run, _, path_segments = run_of("clocks run apart")
    everything = path_segments.shares(member, -(10**15), 10**15)
    assert sum(one["path_ns"] for one in everything) == Paths.of(run).steps["total_ns"].sum()
    assert everything[0]["worker"] == "rank2"
    begin, total = run.steps.filter(pl.col("member") == member).select("start_ns", "total_ns").row(1)
    step = path_segments.shares(member, begin, begin + total)
    assert abs(sum(one["path_ns"] for one in step) - total) < 100_000  # on clocks that are told by collectives
    assert step[0]["rank"] == 2
    assert path_segments.shares(member, 10**14, 10**15) == []


def test_what_the_path_lacks_is_said():
    run, _, path_segments = run_of("a rank is missing")
    assert path_segments.notes == ["1 rank has no recording (1): the path can't be followed to them."]
    unread = [Member(f"rank{rank}", "1", 0, None, "it is no trace.") for rank in (9, 10, 11, 12, 13)]
    broken = Ranks("r", (*run.members, *unread))
    assert PathSegments.of(broken).notes[0] == "rank9 is left out: it is no trace."
    assert PathSegments.of(broken).notes[3] == "2 more are left out; see Run health."
    assert path_segments.member("rank2", "1") == 1
    assert PathSegments.of(broken).member("rank9", "1") is None


def test_summaries_of_another_recording_are_said_to_be_so():
    _run, traces, path_segments = run_of("a straggler")
    timeline = timeline_of(traces[1])
    moved = replace(path_segments, frame=path_segments.frame.with_columns(pl.col("start_ns") + 5))
    longer = replace(
        path_segments,
        frame=path_segments.frame.with_columns(pl.when(pl.col("call") >= 0).then(999).otherwise(-1).alias("call")),
    )
    for wrong in (moved, longer):
        with pytest.raises(TraceError, match=r"rank1: .* computed from the summary of another recording"):
            CrossRankPieces.of(traces[1], timeline, wrong, 1)


REAL = FOLDER / "runs" / "dlrm_8gpu_nccl"


@pytest.mark.skipif(not REAL.is_dir(), reason=MISSING)
def test_the_path_of_a_real_run_of_eight_ranks_is_whole():
    listing = list_path(str(REAL))
    traces = [read(file.path) for file in listing.files]
    run = Ranks(
        "dlrm", tuple(Member(f.worker, f.span, 0, summary(t)) for f, t in zip(listing.files, traces, strict=True))
    )
    path_segments = PathSegments.of(run)
    fail_unless_whole(run, path_segments, pieces_of(run, traces, path_segments))
