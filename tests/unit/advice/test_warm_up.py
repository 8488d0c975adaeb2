"""First steps that take longer than the others, and noise that doesn't."""

import numpy as np
import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.spread import warm_up_steps
from support.build import TraceBuilder
from support.machine import MS, US, Machine


@pytest.mark.parametrize(
    ("lengths", "count"),
    [
        ([660, 59, 61, 58, 60, 59], 1),
        ([900, 300, 60, 61, 59, 60, 58], 2),
        ([60, 59, 61, 58, 60, 59], 0),
        ([63, 60, 60, 60, 60], 0),  # beyond the noise, but too little to matter
        ([90, 50, 70, 60, 40, 80], 0),  # within the noise
        ([600, 60], 0),  # two steps say nothing
        ([600, 60, 61], 0),
        ([60, 600, 60, 61, 59, 60], 0),  # not the first
        ([60, 61, 59, 600], 0),
        ([], 0),
    ],
)
def test_how_many_of_the_first_steps_are_warm_up(lengths, count):
    assert warm_up_steps(*[np.array(lengths, np.int64) * MS] * 2) == count


def test_normal_noise_is_hardly_ever_a_warm_up():
    random = np.random.default_rng(7)
    lengths = (random.normal(100, 25, (4000, 6)).clip(10) * MS).astype(np.int64)
    assert sum(bool(warm_up_steps(row, row)) for row in lengths) <= 12  # 0.1 % expected for each number of steps


def training(first):
    machine = Machine()

    def step(number):
        if number == 0:
            first(machine)
        for _ in range(50):
            machine.kernel((100 + number % 3) * US)

    return machine.steps(step, 6)


def advice_of(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def test_a_cold_first_step_is_left_out_and_reported():
    rows = advice_of(training(lambda machine: machine.call("cuLibraryLoadData", 40 * MS)))
    row = rows["warm_up"]
    assert row.title == "The first step takes 45.1 ms, the others 5.11 ms: the recording holds warm-up."
    assert "averages over all 6 complete steps are 2.3 times as long" in row.evidence
    assert "loading code (40 ms)" in row.evidence
    assert (row.confidence, row.saving_ns) == ("high", None)
    assert set(rows) == {"warm_up", "nothing_to_fix"}  # the other steps are healthy


def test_a_cold_first_step_of_unknown_cause():
    row = advice_of(training(lambda machine: machine.work(40 * MS)))["warm_up"]
    assert row.confidence == "medium"
    assert "What warm-up does" not in row.evidence


def test_steady_steps_hold_no_warm_up():
    assert set(advice_of(training(lambda _: None))) == {"nothing_to_fix"}


def test_calls_that_set_up_the_device_are_warm_up_where_no_steps_are_marked():
    def recording(call, *, marked):
        builder = TraceBuilder().op("aten::mm", 0, 10 * US)
        builder.launch(20 * US, 500 * MS, 0, name=call).launch(501 * MS, 5 * US, 1)
        builder.kernel("gemm", 501 * MS + 4 * US, 100 * MS, 1)
        return (builder.step(1, 0, 502 * MS) if marked else builder).build()

    row = advice_of(recording("cudaStreamCreateWithFlags", marked=False))["warm_up"]
    assert row.title == "The recording holds warm-up: calls that set up the device take 83.2 % of it."
    assert row.saving_ns == 500 * MS
    assert "warm_up" not in advice_of(recording("cudaStreamCreateWithFlags", marked=True))
    assert "warm_up" not in advice_of(recording("cudaHostAlloc", marked=False))  # that may happen in every step


def test_each_rule_has_one_row_though_warm_up_shows_in_several_ways():
    machine = Machine()

    def step(number):
        if number in (0, 3):
            machine.op("compile_inner (dynamo_timed)", lambda: machine.work((60 if number == 0 else 8) * MS))
        for _ in range(50):
            machine.kernel((100 + number % 3) * US)

    rules = [row.rule for row in advice(Facts(machine.steps(step, 9)))]
    assert len(rules) == len(set(rules))
    assert "warm_up" in rules


def with_slow_step(slow, count, operators=("aten::t", "aten::conv")):
    """Steps of ten operators of 1 ms each on the host; in one of them, some of the operators take 6 ms."""
    machine = Machine(None)

    def step(number):
        for name in (*operators, *(f"aten::op{i}" for i in range(8))):
            ms = 6 if number == slow and name in operators else 1
            machine.op(name, lambda ms=ms: machine.work(ms * MS))

    return machine.steps(step, count)


@pytest.mark.parametrize("count", [2, 3])
def test_a_first_step_without_a_device_is_named_with_the_operators_that_take_longer(count):
    row = {row.rule: row for row in advice(Facts(with_slow_step(0, count)))}["warm_up"]
    other = "the other step" if count == 2 else "the median other step"
    assert row.title == (
        f"The first step takes 20 ms, {other} 10 ms, most of the difference in `aten::conv` and `aten::t`: "
        "it may be warm-up."
    )
    assert row.evidence.startswith("`aten::conv` takes 6 ms there, 1 ms elsewhere; `aten::t` takes 6 ms there")
    assert (row.saving_ns, row.size_ns) == (None, round(10 * MS / count))


def test_a_warm_up_without_a_device_names_the_operators_that_take_longer():
    row = {row.rule: row for row in advice(Facts(with_slow_step(0, 5)))}["warm_up"]
    assert "the others 10 ms, most of the difference in `aten::conv` and `aten::t`: the recording holds" in row.title
    assert row.evidence.endswith(
        " `aten::conv` takes 6 ms there, 1 ms elsewhere; `aten::t` takes 6 ms there, 1 ms elsewhere."
    )


def test_another_step_that_stands_out_is_named_with_its_operators():
    row = {row.rule: row for row in advice(Facts(with_slow_step(3, 8)))}["longer_host_steps"]
    assert (
        row.title
        == "Step 3 takes 2 times as long as the median step, most of the difference in `aten::conv` and `aten::t`."
    )
    assert (row.saving_ns, row.culprit.operator) == (None, "aten::conv")


def test_a_step_in_which_all_operators_take_longer_is_not_explained_by_a_few():
    names = tuple(f"aten::other{i}" for i in range(8))
    rules = {row.rule for row in advice(Facts(with_slow_step(0, 3, names)))}
    assert rules.isdisjoint({"warm_up", "longer_host_steps"})
