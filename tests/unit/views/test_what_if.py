"""What-if by rule of advice: the critical path laid out again, with one or several rules' work shortened."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.advice.candidates import percents
from kinetoscope_tb.advice.model import Candidate
from kinetoscope_tb.critical_path.explanation import path_explanation
from kinetoscope_tb.views.overview.advice import advice
from kinetoscope_tb.views.overview.critical_path import critical_path
from kinetoscope_tb.views.overview.what_if import what_if
from support.build import TraceBuilder
from support.machine import MS, US, Machine


def loading(load=6 * MS, kernel=4 * MS):
    """A training that loads each batch in the main process, then copies it and runs one kernel."""
    machine = Machine()

    def step(_):
        machine.load(load)
        machine.copy(2 * MS)
        machine.kernel(kernel)
        machine.wait()

    return machine.steps(step)


def test_half_the_loading_time_is_saved_where_nothing_hides_it():
    trace = loading()
    row = what_if(trace).filter(pl.col("rule") == "data_loading").row(0, named=True)
    assert (row["target"], row["path_ns"], row["saved_ns"]) == ("data loading", 6 * MS, 3 * MS)
    assert row["step_ns"] == row["now_ns"] - 3 * MS
    part = critical_path(trace).filter(pl.col("part") == "data")
    assert part["saved_ns"].to_list() == [row["saved_ns"]]  # the same what-if as that of the critical path


def test_half_of_what_is_partly_hidden_saves_until_the_device_is_always_busy():
    machine = Machine()

    def step(_):
        machine.load(22 * MS)
        machine.kernel(16 * MS)

    row = what_if(machine.steps(step, 100)).row(0, named=True)  # in the first one nothing is hidden
    assert row["rule"] == "data_loading"
    assert row["step_ns"] == pytest.approx(16 * MS, rel=0.01)  # 11 ms of loading are hidden behind 16 ms of the device


def test_no_step_gets_shorter_than_the_host_takes_for_it():
    """The host launches each step in 3 ms, half of it without a profiler; the device, at first behind, takes 8 ms."""
    builder = TraceBuilder().kernel("before", 0, 40 * MS)
    for step in range(4):
        start = MS + step * 3 * MS
        builder.step(step, start, 3 * MS).op("aten::mm", start, 3 * MS).launch(start + MS, 5 * US, step + 1)
        builder.kernel("gemm", (40 + step * 8) * MS, 8 * MS, step + 1)
    parts = critical_path(builder.build(), percent="100")
    assert parts.filter(pl.col("part") == "kernel")["saved_ns"].item() == pytest.approx(6.5 * MS, rel=0.01)


def test_rules_that_are_chosen_together_add_up_on_one_path():
    trace = loading()
    together = what_if(trace, less="data_loading:50,copies:100").row(0, named=True)
    alone = [what_if(trace, less=each)["saved_ns"][0] for each in ("data_loading:50", "copies:100")]
    assert together["rule"] == "data_loading,copies"
    assert together["saved_ns"] == sum(alone) > 4 * MS


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 100), st.integers(0, 100))
def test_more_is_never_saved_by_less(load, kernel, percent, other):
    trace = loading(load * MS, kernel * MS)
    if "data_loading" not in advice(trace)["rule"]:
        return
    fewer, more = sorted((percent, other))
    saved = [what_if(trace, less=f"data_loading:{each}").row(0, named=True) for each in (fewer, more)]
    assert 0 <= saved[0]["saved_ns"] <= saved[1]["saved_ns"] <= saved[1]["path_ns"] * more / 100
    assert what_if(trace, less="data_loading:0")["saved_ns"].to_list() == [0]


def range_of(table):
    return table.select("saved_low_ns", "saved_high_ns").row(0)


def test_all_of_a_rule_has_the_range_of_its_claim_and_less_no_higher_one():
    trace = loading()
    claim = advice(trace).filter(pl.col("rule") == "data_loading").row(0, named=True)
    low, high = claim["saving_low_ns"], claim["saving_high_ns"]
    assert range_of(what_if(trace, less="data_loading:100")) == (low, high)
    assert 0 < low < claim["saving_ns"] < high
    half = what_if(trace, less="data_loading:50")
    assert range_of(half)[0] < low
    assert range_of(half)[0] < half["saved_ns"].item() < range_of(half)[1] < high
    assert range_of(what_if(trace, less="data_loading:0")) == (0, 0)


def test_several_rules_together_have_a_range_around_what_they_save_and_less_of_them_no_higher_one():
    trace = loading()
    together, less = (what_if(trace, less=f"data_loading:{percent},copies:100") for percent in (100, 50))
    (low, high), (least, most) = range_of(together), range_of(less)
    assert 0 < low < together["saved_ns"].item() < high <= together["now_ns"].item()
    assert 0 < least < less["saved_ns"].item() < most
    assert (least, most) < (low, high)
    assert most < high
    alone = [range_of(what_if(trace, less=part)) for part in ("data_loading:100", "copies:100")]
    assert high > max(most for _, most in alone)
    assert range_of(what_if(trace, less="data_loading:100,copies:0")) == alone[0]
    assert range_of(what_if(trace, less="data_loading:0,copies:0")) == (0, 0)
    assert range_of(what_if(trace, less="")) == (None, None)


def test_a_part_of_the_path_has_the_range_of_the_claim_about_it():
    trace = loading()
    claim = advice(trace).filter(pl.col("rule") == "data_loading").row(0, named=True)
    whole, half = (critical_path(trace, percent=percent).filter(pl.col("part") == "data") for percent in ("100", "50"))
    assert range_of(whole) == (claim["saving_low_ns"], claim["saving_high_ns"])
    assert range_of(half) == range_of(what_if(trace, less="data_loading:50"))


def test_parts_of_one_step_waits_and_what_saves_little_have_no_range_and_others_one_around_their_saving():
    trace = loading()
    parts = critical_path(trace)
    known = parts.drop_nulls("saved_low_ns")
    assert known["part"].sort().to_list() == ["copy", "data", "kernel"]  # the host's calls save nearly nothing
    assert known.filter(pl.col("saved_ns").is_between("saved_low_ns", "saved_high_ns")).height == known.height
    assert critical_path(trace, per="step")["saved_low_ns"].null_count() == critical_path(trace, per="step").height


@pytest.mark.parametrize("less", ["data_loading", "data_loading:101", "data_loading:-5", "data_loading:5,", "host:5"])
def test_what_is_no_percentage_of_a_rule_has_no_row(less):
    assert what_if(loading(), less=less).is_empty()


def test_rows_without_a_duration_keep_their_place_on_the_stream():
    builder = TraceBuilder().step(1, 0, 200 * US)
    for i, dur in enumerate((40 * US, 0, 0, 40 * US)):
        builder.op("aten::add", i * 45 * US, 40 * US).launch(i * 45 * US + US, US, i + 1)
        builder.kernel("k", i * 45 * US + 5 * US, dur, i + 1)
    faster = critical_path(builder.build(), percent="100").filter(pl.col("part") == "host_operator")
    assert faster["saved_ns"].max() <= 200 * US - 80 * US  # the two kernels of 40 µs never run at the same time


def with_many_events(usual_ns=None):
    """Steps of 250 operators of 4 µs, and an annotation of 1 ms: 2 ms of the host."""
    top = {"kinetoscope": {"usual_step": {"median_ns": usual_ns, "steps": 40}}} if usual_ns else {}
    machine = Machine(device=None, **top)

    def step(_):
        for _ in range(250):
            machine.op("aten::add", lambda: machine.work(4 * US))
        machine.annotation("tokenize", lambda: machine.work(1 * MS))

    return machine.steps(step)


def saved_of(trace, name):
    """What a step saves without ranges of a name, and how long it is."""
    explained, host = path_explanation(trace), trace.host_events
    rows = host.filter(pl.col("name").cast(pl.String) == name)
    start = rows["start_ns"].to_numpy()
    spans, threads = (start, start + rows["dur_ns"].to_numpy()), tuple(rows["thread"].unique())
    what_if = explained.what_if
    saved = what_if.saved_together(percents(Candidate(name, spans=spans, threads=threads), explained))
    counted = slice(*what_if.counted_range)
    return saved[counted].mean(), what_if.lengths[counted].mean()


def test_what_recording_costs_is_no_saving_and_lies_where_events_are():
    slow, usual = with_many_events(), with_many_events(1_500 * US)
    for name, whole in (("aten::add", 1 * MS), ("tokenize", 1 * MS)):
        assert saved_of(slow, name) == pytest.approx((whole, 2 * MS), rel=0.02)
    assert saved_of(usual, "aten::add") == pytest.approx((0.5 * MS, 1.5 * MS), rel=0.05)
    assert saved_of(usual, "tokenize") == pytest.approx((1 * MS, 1.5 * MS), rel=0.05)


def test_recording_that_costs_more_than_events_slows_all_alike():
    """250 events cost 3 µs at most: of the other 1.25 ms, 0.65 ms are recording, too."""
    trace = with_many_events(600 * US)
    assert saved_of(trace, "tokenize") == pytest.approx((0.48 * MS, 0.6 * MS), rel=0.05)


def test_a_reduction_on_gloo_s_thread_is_slower_alike():
    """Nine of ten ms are a reduction that the main thread waits for; recorded steps take 1.6 times as long as others."""
    machine = Machine(device=None, kinetoscope={"usual_step": {"median_ns": 6_250 * US, "steps": 40}})

    def step(_):
        machine.annotation("tokenize", lambda: machine.work(1 * MS - 50 * US))
        machine.op("c10d::allreduce_", lambda: machine.work(20 * US))
        machine.builder.annotation("gloo:all_reduce", machine.now + 10 * US, 8_990 * US, thread=3)
        machine.work(9_030 * US)

    trace = machine.steps(step)
    assert saved_of(trace, "gloo:all_reduce") == pytest.approx((0.9 * 6.25 * MS, 6.25 * MS), rel=0.02)
    assert saved_of(trace, "tokenize") == pytest.approx((0.1 * 6.25 * MS, 6.25 * MS), rel=0.1)
