"""Within which bounds a saving lies: what a recording can't show makes the range wider, each on its side."""

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.advice.candidates import percents
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.model import Candidate
from kinetoscope_tb.advice.saving_range import OF_DEVICES, OF_HOST, Change, saving_range
from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.critical_path.explanation import path_explanation
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder
from support.machine import MS, US, Machine


def loading(*lengths, usual_ns=None):
    """Steps that load a batch for so long, and then compute for 4 ms."""
    machine = Machine(**({"kinetoscope": {"usual_step": {"median_ns": usual_ns, "steps": 40}}} if usual_ns else {}))

    def step(number):
        machine.load(lengths[number])
        machine.kernel(4 * MS)
        machine.wait()

    return machine.steps(step, len(lengths), allocations=400 if usual_ns else 0)


def kernels(trace, name=""):
    """The kernels of a name."""
    return Candidate("kernels", rows=np.flatnonzero(trace.device_events["name"].cast(pl.String).str.contains(name)))


def range_of(trace, candidate):
    """The saving of a candidate, its range, and the length of the step, in ns."""
    facts, explanation = Facts(trace), path_explanation(trace)
    saved = explanation.what_if.saved_together(percents(candidate, explanation))
    return facts.mean(saved), saving_range(facts, Change.of(candidate, saved), explanation), facts.usual_step_ns


def test_where_all_is_known_only_the_error_of_timing_a_step_again_is_left():
    """A Tracer timed steps that are as long as the recorded ones, half on the host and half on the device."""
    trace = loading(*[4 * MS] * 6, usual_ns=8 * MS)
    saved, (low, high), whole = range_of(trace, kernels(trace))
    error = (OF_DEVICES + OF_HOST) / 2 * whole
    assert (low, high) == pytest.approx((saved - error, saved + error), rel=0.01)


def test_steps_that_save_more_than_others_make_the_range_wider():
    loader = Candidate("data loading", ("data loading",))
    steady, uneven = (
        range_of(loading(*lengths, usual_ns=8 * MS), loader) for lengths in ([4 * MS] * 4, [2 * MS, 6 * MS] * 2)
    )
    assert steady[0] == pytest.approx(uneven[0], rel=0.01)
    widths = [high - low for _, (low, high), _ in (steady, uneven)]
    quantile, deviation = 2.35, 2.31 * MS  # of 3 degrees of freedom; of 2, 6, 2 and 6
    assert widths[1] - widths[0] == pytest.approx(2 * quantile * deviation / np.sqrt(4), rel=0.05)


@pytest.mark.parametrize("more", [(3,), (3, 7)])
def test_a_cost_of_few_steps_is_as_sure_as_it_is_in_these(more):
    """How often they recur is said by their number, not by the range."""
    lengths = [30 * MS if number in more else 100 * US for number in range(10)]
    mean = 4_100 * US + len(more) * 30 * MS // 10
    saved, (low, high), whole = range_of(loading(*lengths, usual_ns=mean), Candidate("loading", ("data loading",)))
    assert saved == pytest.approx(sum(lengths) / 10, rel=0.05)
    assert high - saved <= OF_HOST * whole
    assert saved - low <= (OF_HOST + 0.05) * whole


def test_what_grows_with_the_steps_is_no_error_of_the_mean():
    lengths = [(1 + number) * MS for number in range(10)]
    loader = Candidate("loading", ("data loading",))
    saved, (low, high), whole = range_of(loading(*lengths, usual_ns=9_500 * US), loader)
    assert high - low <= 2 * OF_HOST * whole + 0.01 * saved


def test_what_recording_costs_may_lie_in_what_is_saved():
    loader = Candidate("data loading", ("data loading",))
    lengths = [4 * MS] * 6
    _, (exact, most), _ = range_of(loading(*lengths, usual_ns=8 * MS), loader)
    _, (little, _), _ = range_of(loading(*lengths, usual_ns=7_500 * US), loader)
    saved, (unknown, same), _ = range_of(loading(*lengths), loader)
    assert exact - little == pytest.approx(0.5 * MS, rel=0.1)
    assert exact - unknown == pytest.approx(saved / 2, rel=0.01)
    assert same == most


def test_kernels_on_a_stream_of_their_own_may_slow_those_of_others():
    builder = TraceBuilder()
    for number in range(4):
        start = number * 10 * MS
        builder.step(number, start, 10 * MS)
        builder.launch(start + 10 * US, 5 * US, 10 * number + 1).kernel(
            "gemm", start + 20 * US, 8 * MS, 10 * number + 1
        )
        builder.launch(start + 20 * US, 5 * US, 10 * number + 2)
        builder.kernel("side", start + 40 * US, 3 * MS, 10 * number + 2, stream=9)
        builder.launch(start + 30 * US, 5 * US, 10 * number + 3).kernel("gemm", start + 8_100 * US, MS, 10 * number + 3)
    trace = builder.build()
    side, main = (range_of(trace, kernels(trace, name)) for name in ("side", "gemm"))
    assert side[0] == 0
    assert side[1][1] == pytest.approx(3 * MS + main[1][1] - main[0], rel=0.01)


def test_an_operator_that_may_not_wait_lowers_the_least():
    """An operator of 5.8 ms while a kernel of 5 ms runs: nothing recorded says that it waits for that."""
    builder = TraceBuilder(kinetoscope={"usual_step": {"median_ns": 10 * MS, "steps": 40}})
    for number in range(4):
        start = number * 10 * MS
        builder.step(number, start, 10 * MS).launch(start + 10 * US, 5 * US, number + 1)
        builder.kernel("gemm", start + 200 * US, 5 * MS, number + 1)
        builder.op("aten::nonzero", start + 100 * US, 5_800 * US).op("aten::add", start + 6 * MS, 3_900 * US)
    trace = builder.build()
    saved, (low, high), _ = range_of(trace, kernels(trace))
    assert saved >= 4 * MS
    assert saved - low > high - saved + 4 * MS


def test_the_answer_and_the_summary_have_the_range():
    trace = loading(*[6 * MS] * 6, usual_ns=10 * MS)
    claim = recording_answer(trace, EVERY_VIEW, cached_frames).verdict
    assert claim.id == "data_loading"
    assert 0 < claim.saving_low_ns < claim.saving_ns < claim.saving_high_ns
    row = EVERY_VIEW["advice"].run(trace).row(0, named=True)
    assert (row["saving_low_ns"], row["saving_high_ns"]) == (claim.saving_low_ns, claim.saving_high_ns)
