"""Paths across ranks of runs whose truth is known."""

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.critical_path.classes import CLASSES
from kinetoscope_tb.critical_path.segments import SEGMENTS
from kinetoscope_tb.distributed.model import CALLS, GROUPS, STEPS, TRAFFIC, Summary
from kinetoscope_tb.distributed.path.paths import PARTS, Paths
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS
from support.simulated import NONE, Truth, run_of, simulated, summary_of, trace_of


def path(run, **given):
    return RUN_VIEWS["path_across_ranks"].run(run, **given)


def adds_up(run):
    paths = Paths.of(run)
    each = paths.segments.group_by("step").agg(pl.col("dur_ns").sum())
    return dict(each.rows()) == dict(enumerate(paths.steps["total_ns"]))


def test_the_straggler_carries_the_path_and_speeding_it_up_saves_until_the_next_one():
    run = run_of(simulated(Truth(late={(2, None): 5_000_000}, noise=0.0)))
    first = path(run, by="rank", percent="100").row(0, named=True)
    assert first["worker"] == "rank2"
    assert first["path_frac"] > 0.85
    assert abs(first["saved_ns"] - 5_000_000) < 20_000  # then the others' work of 10 ms is on the path
    assert adds_up(run)


def test_the_picture_of_ranks_and_steps_holds_all_of_the_path_but_its_transfers():
    run = run_of(simulated(Truth(late={(2, None): 5_000_000}, missing=(1,))))
    paths, frame = Paths.of(run), RUN_VIEWS["path_by_rank"].run(run)
    of_all = paths.segments.filter(pl.col("part") == PARTS.index("transfer"))["dur_ns"].sum()
    assert frame["path_ns"].sum() + of_all == paths.steps["total_ns"].sum()
    assert frame.height == 3 * 6
    assert frame.filter(pl.col("path_frac") > 0.8)["worker"].to_list() == ["rank2"] * 6
    assert set(frame.filter(pl.col("worker") == "rank2")["part"]) == {"computation"}


def test_those_who_wait_for_the_straggler_would_save_nothing():
    run = run_of(simulated(Truth(late={(2, None): 5_000_000})))
    paths = Paths.of(run)
    assert [int(paths.saved_in_segments(None, rank, 100).max()) for rank in (0, 1, 3)] == [0, 0, 0]


def test_a_slow_link_is_transfer_of_its_group():
    groups = (("dp", (0, 1, 2, 3)), ("tp", (0, 1)), ("tq", (2, 3)))
    run = run_of(simulated(Truth(groups=groups, slow={2: 30}, compute_ns=2_000_000)))
    first = path(run, by="collective").row(0, named=True)
    assert first["collective"] == "all_reduce, tq · ranks 2-3"
    assert first["path_frac"] > 0.7
    assert path(run, by="part")["part"][0] == "transfer"
    assert adds_up(run)


def test_the_shorter_segments_of_a_long_path_are_combined_as_the_table_says(monkeypatch):
    monkeypatch.setattr("kinetoscope_tb.views.distributed.path_across_ranks_segments.MOST_ROWS", 5)
    run = run_of(simulated(Truth(ranks=3, late={(0, None): 8_000_000}, noise=0.0, jitter_ns=0)))
    cut, whole = (RUN_VIEWS["path_across_ranks_segments"].run(run, rows=rows) for rows in ("longest 5000", "all"))
    assert (cut.height, cut["dur_ns"].sum()) == (5, whole["dur_ns"].sum())
    assert cut["worker"].to_list()[-1] == f"[{whole.height - 4} shorter ones]"
    assert cut[:4].sort("dur_ns")["dur_ns"].to_list() == whole["dur_ns"].top_k(4).sort().to_list()


def test_a_late_rank_of_another_group_is_followed_over_two_collectives():
    groups = (("tp", (0, 1)), ("dp", (1, 2)))
    run = run_of(simulated(Truth(ranks=3, groups=groups, late={(0, None): 8_000_000}, noise=0.0, jitter_ns=0)))
    frame = RUN_VIEWS["path_across_ranks_segments"].run(run, step="0")
    segments = frame.filter(pl.col("part") != "before the step").select("worker", "part", "until").rows()
    assert segments == [
        ("rank0", "computation", "all_reduce #0, tp · ranks 0-1"),
        ("rank1", "transfer", "all_reduce #0, tp · ranks 0-1"),
        ("rank1", "computation", "all_reduce #0, dp · ranks 1-2"),
        ("rank1", "transfer", "all_reduce #0, dp · ranks 1-2"),
    ]


@pytest.mark.parametrize(
    "truth", [Truth(missing=(2,)), Truth(missing=(0, 3)), Truth(lost=((1, 2, 0),), is_numbered=False)]
)
def test_with_missing_ranks_or_lost_calls_the_path_adds_up_and_says_what_it_cannot_tell(truth):
    run = run_of(simulated(truth))
    assert adds_up(run)
    parts = path(run, per="step").filter(pl.col("part") == "collective")["step"].to_list()
    assert parts == ([str(step) for step in range(truth.steps)] if truth.missing else ["2"])


def test_calls_that_were_matched_across_each_other_decide_for_themselves():
    run = run_of(simulated(Truth(ranks=2, steps=2, groups=(("a", (0, 1)), ("b", (0, 1))), late={(1, None): 3_000_000})))
    crossed = run.calls.with_columns(match=pl.when(pl.col("member") == 1).then(pl.col("match") ^ 1).otherwise("match"))
    vars(run)["calls"] = crossed
    assert adds_up(run)
    assert path(run)["part"].to_list()[0] == "computation"


def test_the_traces_of_a_run_tell_the_same_path_as_the_truth():
    made = simulated(Truth(ranks=3, steps=4, late={(1, None): 5_000_000}, groups=(("0", (0, 1, 2)),)))
    members = [Member(f"rank{r}", "1", 0, summary(trace_of(made, r).build())) for r in range(3)]
    run = Ranks("r", tuple(members))
    assert adds_up(run)
    first = path(run, by="rank and part").row(0, named=True)
    assert (first["worker"], first["part"]) == ("rank1", "computation")
    assert first["path_frac"] > 0.8


def test_legs_that_were_made_up_to_lead_in_a_circle_end_the_path():
    made = simulated(Truth(ranks=2, steps=1, groups=(("a", (0, 1)), ("b", (0, 1)))))
    turned = pl.DataFrame({"since": [1, 1, 0]}, schema={"since": pl.Int32})["since"]
    whole = [summary_of(made, rank) for rank in range(2)]
    nothing = [[0] * len(CLASSES)] * 3
    spent = pl.Series("spent_ns", nothing, dtype=whole[0].segments["spent_ns"].dtype)
    made_up = [replace(one, segments=one.segments.with_columns(turned, spent)) for one in whole]
    made_up = [replace(one, calls=one.calls.with_columns(dur_ns=pl.lit(0, pl.Int64))) for one in made_up]
    assert adds_up(Ranks("r", tuple(Member(f"rank{rank}", "1", 0, one) for rank, one in enumerate(made_up))))


MS = 1_000_000


def of_a_pipeline(rank, ahead, since=1.0):
    """Rank 0 computes for 8 ms and sends; rank 1 has waited since 1 ms, computes for 1.5 ms; both reduce."""
    kinds = [("send", 1, 8.0, 9.5), ("all_reduce", NONE, 9.5, 12.0)]
    spent = [8.0, 0.0, 0.0]
    if rank == 1:
        kinds = [("recv", 0, since, 9.5), ("all_reduce", NONE, 11.0, 12.0)]
        spent = [since, 1.5, 0.0]
    rows, segments = [], []
    for step in range(4):
        base, first = step * 12 * MS + ahead, len(rows)
        rows += [
            (kind, 0, NONE, 4, "Float", peer, base + int(a * MS), int((b - a) * MS), 0, step, 0)
            for kind, peer, a, b in kinds
        ]
        ends = zip([first, first + 1, NONE], [NONE, first, first + 1], spent, strict=True)
        segments += [(step, end, since, 0, [int(ms * MS)] + [0] * (len(CLASSES) - 1)) for end, since, ms in ends]
    steps = pl.DataFrame({"step": list("0123"), "start_ns": [step * 12 * MS + ahead for step in range(4)]})
    steps = steps.with_columns([pl.lit(0).alias(name) for name in list(STEPS)[2:-1]], is_complete=pl.lit(value=True))
    return Summary(
        {"rank": rank, "world_size": 2, "origin_ns": 0, "devices": [[0, "GPU"]]},
        steps.with_columns(total_ns=pl.lit(12 * MS)).select(*STEPS).cast(STEPS),
        pl.DataFrame(rows, schema=CALLS, orient="row"),
        pl.DataFrame([("pp", None, 2, "0-1")], schema=GROUPS, orient="row"),
        pl.DataFrame(schema=TRAFFIC),
        pl.DataFrame(sorted(segments, key=lambda segment: segment[1]), schema=SEGMENTS, orient="row"),
    )


def test_a_receive_leads_to_the_rank_that_sends_late():
    members = [Member(f"rank{r}", "1", 0, of_a_pipeline(r, ahead)) for r, ahead in enumerate((0, 700_000))]
    run = Ranks("r", tuple(members))
    frame = RUN_VIEWS["path_across_ranks_segments"].run(run, step="2")
    assert frame.select("worker", "part", "dur_ns").rows() == [
        ("rank0", "computation", 8 * MS),
        ("rank1", "transfer", 1_500_000),
        ("rank1", "computation", 1_500_000),
        ("rank0", "transfer", MS),
    ]
    ends = frame["common_start_ns"] + frame["segment_ns"]
    assert (ends.head(3) - frame["common_start_ns"].tail(3)).abs().max() <= 2  # rounded, from clocks 0.7 ms apart
    paths = Paths.of(run)
    assert paths.saved_in_segments(0, 0, 50).tolist() == [4 * MS] * 4  # the receive began at 1 ms
    assert paths.saved_in_segments(0, 0, 100).tolist() == [7 * MS] * 4


def test_a_receive_that_began_after_its_send_stays_where_it_is():
    run = Ranks("r", tuple(Member(f"rank{r}", "1", 0, of_a_pipeline(r, 0, since=8.5)) for r in range(2)))
    frame = RUN_VIEWS["path_across_ranks_segments"].run(run, step="2")
    assert frame.select("worker", "part", "dur_ns").rows()[:2] == [
        ("rank1", "computation", 8_500_000),
        ("rank1", "transfer", MS),
    ]
    assert adds_up(run)
