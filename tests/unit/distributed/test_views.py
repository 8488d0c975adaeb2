"""What holds of every view of a run, and what the numbers are where the truth is known."""

import json

import polars as pl
import pytest

from kinetoscope_tb.compare.comparison import compare
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.engine.answers import Missing, compute
from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.pictures import Lines
from kinetoscope_tb.table import COUNT, DURATION, FRACTION, INSTANT
from kinetoscope_tb.text_table import aligned_lines, text_columns
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS, VIEWS
from kinetoscope_tb.web import encode
from kinetoscope_tb.web.json_text import json_text
from support.build import TraceBuilder, same
from support.simulated import Truth, run_of, simulated, summary_of

each = pytest.mark.parametrize("view", RUN_VIEWS.values(), ids=RUN_VIEWS)


def with_all_to_all(rank):
    arguments = {"Collective name": "all_to_allv", "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8}
    group = {"Process Group Name": "0", "Group size": 2, "In split size": "[6, 2]"}
    config = [{"pg_name": "0", "pg_desc": "x", "pg_size": 2, "ranks": [0, 1]}]
    trace = TraceBuilder(distributedInfo={"rank": rank, "world_size": 2, "pg_config": config}).step(0, 0, 100)
    return summary(trace.op("record_param_comms", 5, 5, **arguments, **group).build())


def broken(number):
    return Member(f"rank{number}", "1", 0, None, "rank.json: it holds no trace.")


RUNS = {
    "four ranks": lambda: run_of(simulated(Truth(late={(2, None): 5_000_000}))),
    "one rank": lambda: run_of(simulated(Truth(ranks=1))),
    "lost and missing": lambda: run_of(simulated(Truth(ranks=5, missing=(1,), lost=((0, 2, 0),), is_numbered=False))),
    "a broken rank": lambda: Ranks("r", (*run_of(simulated(Truth(ranks=3))).members[:2], broken(2))),
    "all broken": lambda: Ranks("r", (broken(0), broken(1))),
    "no communication": lambda: Ranks(
        "r", tuple(Member(f"w{i}", "1", 0, summary(TraceBuilder().step(1, 0, 9).build())) for i in range(2))
    ),
    "empty traces": lambda: Ranks("r", (Member("a", "1", 0, summary(TraceBuilder().build())),)),
    "all to all": lambda: Ranks("r", tuple(Member(f"rank{r}", "1", 0, with_all_to_all(r)) for r in range(2))),
    "two spans": lambda: Ranks(
        "r",
        tuple(
            Member(f"rank{rank}", str(span), span, summary_of(simulated(Truth(ranks=2, steps=3, seed=span)), rank))
            for rank in range(2)
            for span in range(2)
        ),
        place=1,
    ),
    "nothing": lambda: Ranks("r", ()),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    return RUNS[request.param]()


def test_views_of_runs_and_of_recordings_have_names_of_their_own():
    assert not set(VIEWS) & set(RUN_VIEWS)
    assert all(view.scope != "recording" for view in RUN_VIEWS.values())
    assert all(view.scope == "recording" for view in VIEWS.values())
    assert [entry["id"] for entry in json.loads(json.dumps([view.describe() for view in EVERY_VIEW.values()]))]


@each
def test_the_id_is_the_name_of_module_and_function(view):
    assert RUN_VIEWS[view.id] is view
    assert view.run.__module__.startswith("kinetoscope_tb.views.")
    assert view.run.__module__.endswith(f".{view.id}")


@each
def test_a_view_answers_or_says_what_to_record(view, run):
    if view.scope == "span":
        run = Ranks(run.run, tuple(member for member in run.members if member.place == run.place))
    for given in [{}, *({p.name: value} for p in view.parameters for value in p.choices)]:
        frame = compute(view, run, view.arguments(given))
        json_text(encode.view_answer(view, frame))
        if isinstance(frame, Missing):
            assert view.hint.endswith(".")
            continue
        assert not frame.select(view.table.key).is_duplicated().any()
        assert not any(c.is_nan().any() or c.is_infinite().any() for c in frame.select(pl.col(pl.Float64)))
        for column in view.table.columns:
            values = frame[column.name].drop_nulls()
            if column.kind in (DURATION, COUNT, FRACTION) and values.len() and "negative" not in column.doc:
                assert values.min() >= 0, column.name
        if isinstance(view.table.picture, Lines):
            when = next(c.name for c in view.table.columns if c.kind is INSTANT)
            assert all(group[when].is_sorted() for group in frame.partition_by(view.table.picture.series))
        assert len(aligned_lines(text_columns(view.table.columns, frame)).splitlines()) == frame.height + 1


@each
def test_a_view_of_a_run_is_compared_with_nothing(view):
    trace = TraceBuilder().build()
    with pytest.raises(BadParameter, match="can't be compared"):
        compare(view, trace, trace)


@each
def test_only_what_cannot_be_told_is_missing_of_a_good_run(view):
    frame = compute(view, RUNS["four ranks"](), {})
    assert isinstance(frame, Missing) == (view.id in ("traffic", "pipeline"))


def test_the_straggler_and_those_who_wait_for_it_are_named():
    frame = RUN_VIEWS["stragglers"].run(RUNS["four ranks"]())
    assert frame.select("worker", "verdict", "cause").rows() == [
        ("rank2", "straggler", "computation"),
        *((f"rank{r}", "waits", None) for r in frame["rank"].to_list()[1:]),
    ]
    assert abs(frame["typical_excess_ns"][0] - 5_000_000) < 400_000
    assert abs(frame["mean_cost_ns"][0] - 5_000_000) < 400_000


def test_what_a_rank_sends_to_whom_adds_up():
    same(
        RUN_VIEWS["traffic"].run(RUNS["all to all"]()),
        """
        sender  receiver  operation   sent_bytes  calls
        0       0         all_to_all  24          1
        0       1         all_to_all  8           1
        1       0         all_to_all  24          1
        1       1         all_to_all  8           1
        """,
    )


def test_steps_consist_of_own_time_and_wait_and_of_their_parts(run):
    rows = RUN_VIEWS["rank_steps"].run(run)
    parts = ["computation_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns"]
    assert rows.filter(pl.sum_horizontal(parts) != pl.col("total_ns")).is_empty()
    assert rows.filter(pl.col("without_waiting_ns") + pl.col("exposed_wait_ns") != pl.col("total_ns")).is_empty()


def test_the_wait_of_a_rank_that_was_recorded_alone_is_unknown():
    alone = Ranks("r", run_of(simulated(Truth(ranks=2))).members[:1])
    rows = RUN_VIEWS["rank_steps"].run(alone)
    assert rows["exposed_communication_ns"].sum() > 0
    assert rows["exposed_wait_ns"].null_count() == rows["without_waiting_ns"].null_count() == rows.height
    assert rows["exposed_transfer_ns"].to_list() == rows["exposed_communication_ns"].to_list()


def test_bandwidth_is_that_of_the_link():
    made = simulated(Truth(ranks=8, steps=5, jitter_ns=0, late={(3, 2): 10**7}))
    row = RUN_VIEWS["communication"].run(run_of(made)).row(0, named=True)
    assert row["algorithm_bytes_per_s"] == pytest.approx(40e9, rel=1e-5)
    assert row["bus_bytes_per_s"] == pytest.approx(70e9, rel=1e-5)
    assert row["mean_ns"] == pytest.approx(row["mean_wait_ns"] + row["mean_transfer_ns"], abs=2)


def test_alone_a_rank_tells_at_least_how_fast_the_link_is():
    made = simulated(Truth(ranks=2, missing=(1,), jitter_ns=0, late={(1, None): 10**6}))
    row = RUN_VIEWS["communication"].run(run_of(made)).row(0, named=True)
    assert row["is_transfer_known"] is False
    assert row["mean_transfer_ns"] is None
    assert row["algorithm_bytes_per_s"] < 40e9


def test_ranks_that_were_not_to_record_are_not_missing():
    made = simulated(Truth(ranks=5, missing=(1, 3, 4)))
    members = run_of(made).members
    for member in members:
        member.summary.facts["ranks"] = [0, 2, 3]
    run = Ranks("run", members)
    rows = RUN_VIEWS["run_health"].run(run).select("rule", "level", "count").rows()
    assert rows == [("missing_ranks", "loss", 1), ("ranks_not_chosen", "note", 2)]
    lines = RUN_VIEWS["topology"].run(run).filter(pl.col("worker").is_null())
    assert lines.select("rank", "problem").rows() == [
        (None, "Rank 3: no trace."),
        (None, "Ranks 1,4: not recorded: the program chose other ranks."),
    ]


def test_what_is_missing_is_said():
    lost = run_of(simulated(Truth(ranks=5, missing=(1, 3), lost=((0, 2, 0),), is_numbered=False)))
    rules = dict(RUN_VIEWS["run_health"].run(lost).select("rule", "count").rows())
    assert rules == {"missing_ranks": 2}  # the lost call is one that nobody knows of
    rows = RUN_VIEWS["topology"].run(lost)
    assert rows.filter(pl.col("worker").is_null())["problem"].to_list() == ["Ranks 1,3: no trace."]
    counts = dict(RUN_VIEWS["run_health"].run(RUNS["a broken rank"]()).select("rule", "count").rows())
    assert counts == {"broken_recordings": 1}


def test_a_hundred_absent_ranks_are_one_line():
    made = simulated(Truth(ranks=128, steps=1, missing=tuple(range(2, 128))))
    rows = RUN_VIEWS["topology"].run(run_of(made))
    assert rows.select("rank", "problem").rows() == [(0, None), (1, None), (None, "Ranks 2-127: no trace.")]


@pytest.mark.parametrize("name", ["four ranks", "lost and missing", "two spans", "no communication"])
def test_the_parts_of_a_rank_s_bar_add_up_to_its_step(name):
    rows = RUN_VIEWS["rank_steps"].run(RUNS[name]())
    parts = RUN_VIEWS["rank_steps"].table.picture.parts
    assert rows.select(pl.sum_horizontal(pl.col(parts).fill_null(0))).to_series().equals(rows["total_ns"])


def test_who_waits_at_each_collective_is_what_the_collectives_say():
    run = RUNS["four ranks"]()
    waits, collectives = RUN_VIEWS["rank_waits"].run(run), RUN_VIEWS["collectives"].run(run)
    number = waits["collective"].str.split(" ").list.first().cast(pl.Int64)
    sums = waits.group_by(number.alias("number")).agg(
        pl.col("wait_ns").sum().alias("total_wait_ns"), last=pl.col("worker").filter("is_last").first()
    )
    joined = sums.join(collectives, "number", how="left")
    assert joined["total_wait_ns"].equals(joined["total_wait_ns_right"])
    assert joined["last"].equals(joined["last_right"], null_equal=True)
    assert waits["is_last"].sum() > 0
    unknown = set(collectives.filter(pl.col("last").is_null())["number"])
    assert set(number.filter(waits["is_last"].is_null())) <= unknown
    assert waits["noise_ns"].equals(waits.select(number=number).join(collectives, "number", "left")["noise_ns"])


def test_where_nothing_says_who_was_last_no_rank_is_said_not_to_be():
    waits = RUN_VIEWS["rank_waits"].run(run_of(simulated(Truth(ranks=3, missing=(2,), late={(1, None): 5_000_000}))))
    assert waits.height > 0
    assert waits["is_last"].null_count() == waits.height


def test_the_late_one_starts_its_steps_no_later_than_the_collective_lets_it():
    rows = RUN_VIEWS["pace"].run(RUNS["four ranks"]())
    assert rows["worker"].n_unique() == 4
    assert rows["start_lag_ns"].max() < 50_000  # they leave the collective together, within the jitter


def test_waits_for_a_rank_that_is_slow_at_times_show_in_the_average_step():
    truth = Truth(ranks=2, steps=8, late={(1, 2): 50_000_000, (1, 5): 50_000_000}, by="garbage collection", noise=0.0)
    run = run_of(simulated(truth))
    rows = {row["worker"]: row for row in RUN_VIEWS["stragglers"].run(run).rows(named=True)}
    assert [rows[name]["verdict"] for name in ("rank0", "rank1")] == ["waits", "slow at times"]
    assert rows["rank0"]["mean_exposed_wait_ns"] == pytest.approx(100_000_000 / 8, rel=0.01)
    assert rows["rank1"]["part_in_slow_steps_ns"] == pytest.approx(50_000_000, rel=0.01)
    assert rows["rank1"]["mean_cost_ns"] == pytest.approx(rows["rank0"]["mean_exposed_wait_ns"], rel=0.01)
    assert "; all of the difference is garbage collection." in RUN_VIEWS["run_advice"].run(run)["evidence"][0]


def test_starts_of_steps_are_on_one_clock_as_the_lags_are():
    run = run_of(simulated(Truth(ranks=3, steps=4, late={(1, None): 5_000_000}, offset_ns=(0, 7_000_000, -9_000_000))))
    steps, lags = (RUN_VIEWS[name].run(run).sort("worker", "step") for name in ("rank_steps", "pace"))
    assert steps["common_start_ns"].equals(lags["common_start_ns"])
    late = lags.filter(pl.col("start_lag_ns") > 0)
    errors = dict(RUN_VIEWS["clocks"].run(run).select("worker", pl.col("error_ns").fill_null(0)).rows())
    assert (late["clock_error_ns"] >= pl.Series([errors[worker] for worker in late["worker"]])).all()
    assert lags.filter(start_lag_ns=0)["clock_error_ns"].null_count() == 4
    first = (steps["worker"] == "rank0").to_list()
    assert [a == b for a, b in zip(steps["common_start_ns"], steps["own_start_ns"], strict=True)] == first
