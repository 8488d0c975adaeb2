"""What claims about the host are worth without the profiler, which slows the host alone."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.critical_path.explanation import path_explanation
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.measures.recording.usual_step import timed_step, usual_step
from support.machine import MS, US, Machine


def training(usual_ns, *, wait_ns=4 * MS, steps=6, count=4):
    """Steps of 10 ms whose device computes for 6 ms and waits for the host for the rest; a recorder timed others."""
    machine = Machine(kinetoscope={"usual_step": {"median_ns": usual_ns, "steps": count}})

    def step(_):
        for _ in range(6):
            machine.kernel(MS)
        machine.wait()
        machine.work(wait_ns)

    return machine.steps(step, steps, allocations=600)


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace), tuple(diagnose(trace)))}


def test_a_wait_that_is_there_without_the_profiler_too_is_claimed_with_what_it_can_save_then():
    claim = rows(training(8 * MS))["host_bound"]
    assert claim.saving_ns == pytest.approx(2 * MS, rel=0.05)
    assert claim.confidence == "high"
    assert "Without the profiler a step takes 8" in claim.evidence


def test_other_jobs_that_slow_some_recorded_steps_are_not_what_recording_costs():
    """As on a machine that others use: the fast recorded steps take as long as those without the profiler."""
    machine = Machine(None, kinetoscope={"usual_step": {"median_ns": 37 * MS, "steps": 6}})
    lengths = (68, 36, 42, 35, 98, 47)

    def step(number):
        machine.op("aten::mm", lambda: machine.work(lengths[number] * MS // 2))
        machine.work(lengths[number] * MS // 2)

    trace = machine.steps(step, 6)
    assert usual_step(trace) is None
    assert "recording_slows_steps" not in {diagnostic.rule for diagnostic in diagnose(trace)}
    assert rows(trace).keys() & {"unexplained_idle"}


def test_where_other_jobs_slow_most_steps_recording_costs_what_the_fast_ones_take_longer():
    machine = Machine(None, kinetoscope={"usual_step": {"median_ns": 50 * MS, "steps": 6}})
    lengths = (235, 70, 261, 70, 146, 212, 193, 368)
    trace = machine.steps(
        lambda number: machine.op("aten::mm", lambda: machine.work(lengths[number] * MS)), 8, allocations=3_000
    )
    usual = usual_step(trace)
    assert (usual.sure_ns - usual.host_ns, usual.is_steady) == (20 * MS, False)
    assert usual.mean_ns(194 * MS) == 174 * MS
    (found,) = (diagnostic for diagnostic in diagnose(trace) if diagnostic.rule == "recording_slows_steps")
    assert found.fault.clause == ("The average recorded step takes 194 ms instead of 174 ms without the profiler")
    assert (
        "174 ms (on the host, the tenth percentile of 8 recorded steps is 70 ms, the median of 6 steps timed without it 50 ms): "
        "recording costs"
    ) in found.consequence
    assert "recording_faults" not in rows(trace)


def test_a_wait_for_the_profiler_alone_is_no_claim():
    found = rows(training(6_100 * US))
    assert not {"host_bound", "recording_faults"} & found.keys()
    assert next(iter(found)) == "nothing_to_fix"
    assert "for host bound while the profiler runs" in found["nothing_to_fix"].evidence
    assert Facts(training(6_100 * US)).computing_share == pytest.approx(0.98, abs=0.01)


def test_a_host_that_ran_ahead_took_less_time_than_a_step_can_in_the_long_run():
    trace = training(2 * MS)
    assert timed_step(trace).mean_of_host_ns(10 * MS) == 2 * MS
    assert usual_step(trace).mean_ns(10 * MS) == pytest.approx(6 * MS, rel=0.01)


@pytest.mark.parametrize(("count", "is_known"), [(2, False), (3, True)])
def test_a_few_steps_without_the_profiler_are_enough(count, is_known):
    assert (usual_step(training(8 * MS, count=count)) is not None) == is_known


def test_a_step_is_never_longer_without_the_profiler():
    usual = timed_step(training(8 * MS))
    assert [usual.mean_ns(ns * MS) for ns in (7, 9, 10, 12)] == [
        7 * MS,
        8 * MS,
        8 * MS,
        pytest.approx(10 * MS, rel=0.01),
    ]


def test_the_simulated_step_is_as_long_as_the_timed_one():
    """Also where recording costs more than graphs can show."""
    for usual_ns in (6_100 * US, 8 * MS):
        trace = training(usual_ns)
        lengths = path_explanation(trace).what_if.lengths
        assert lengths.mean() == Facts(trace).usual_step_ns == pytest.approx(usual_ns, rel=0.01)


def with_loader(allocations):
    """Steps of 40 ms, 35 of which wait for a loader; the ones before found 3 batches that had been loaded ahead."""
    machine = Machine(None, kinetoscope={"usual_step": {"median_ns": 5 * MS, "steps": 3}})

    def step(_):
        machine.load(35 * MS)
        machine.op("aten::mm", lambda: machine.work(5 * MS))

    return machine.steps(step, 6, allocations=allocations)


def test_recording_costs_no_more_than_its_events_can():
    few, many = with_loader(10), with_loader(900)
    assert usual_step(few) is None
    assert next(iter(rows(few))) == "data_loading"
    usual = usual_step(many)
    assert (usual.is_explained, usual.mean_ns(40 * MS)) == (False, pytest.approx(26.5 * MS, rel=0.01))
    (found,) = (diagnostic for diagnostic in diagnose(many) if diagnostic.rule == "recording_slows_steps")
    assert (
        "or more: recording an event of the host costs at most 15 µs; the median of 3 steps timed without it is 5 ms, "
        "for other reasons too)"
    ) in found.consequence
    assert "40 ms instead of 26.5 ms or more without the profiler" in found.fault.clause
    assert next(iter(rows(many))) == "data_loading"


def on_a_processor(python_ns):
    """Steps of 40 ms on a CPU, 30 without the profiler: Python and a product; other processes take a fifth of it."""
    machine = Machine(None, kinetoscope={"usual_step": {"median_ns": 30 * MS, "steps": 10}})

    def step(_):
        machine.function("train.py(9): log", lambda: machine.work(python_ns))
        machine.op("aten::mm", lambda: machine.work(40 * MS - python_ns))

    machine.steps(step, 6, allocations=3_000)
    for name, series, value in (("process cpu", "cores", 0.8), ("cpu", "used", 1.0)):
        machine.builder.event("", name, 0, None, ph="C", **{series: value})
    return machine.builder.build()


def test_what_the_host_alone_costs_without_the_profiler_is_claimed():
    trace = on_a_processor(python_ns=20 * MS)
    found = rows(trace)
    assert "recording_faults" not in found
    assert next(iter(found)) == "host_bound"
    assert found["host_bound"].saving_ns < Facts(trace).usual_step_ns == 30 * MS


def test_other_processes_take_as_large_a_share_of_a_step_without_the_profiler():
    held_up = rows(on_a_processor(python_ns=0))["host_threads"]
    assert (held_up.size_ns, held_up.saving_ns) == (pytest.approx(8 * MS, rel=0.01), pytest.approx(6 * MS, rel=0.01))
