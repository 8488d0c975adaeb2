"""Candidates: what a claim saves is what its slider shows, and a part never saves more than the whole."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.views.overview.what_if import what_if
from support.machine import MS, US, Machine


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def saved(trace, rule, percent):
    return what_if(trace, less=f"{rule}:{percent}")["saved_ns"].to_list()


def reading(machine):
    """Reads a result on the host after each kernel, so that the device runs dry."""

    def step(_):
        for _ in range(5):
            machine.kernel(2 * MS)
            machine.wait()
            machine.work(500 * US)

    return machine.steps(step)


def test_a_claim_saves_what_its_slider_shows():
    trace = reading(Machine())
    row = rows(trace)["synchronizing"]
    assert saved(trace, "synchronizing", 100) == [row.saving_ns]
    assert row.saving_ns == pytest.approx(2.5 * MS, rel=0.05)  # the host goes on while the device works
    half = saved(trace, "synchronizing", 50)[0]
    assert 0 < half <= row.saving_ns


@pytest.mark.parametrize("is_on_autograd", [False, True], ids=["main", "autograd"])
def test_a_gap_saves_as_much_whichever_thread_launches_after_it(is_on_autograd):
    machine = Machine()

    def step(_):
        machine.kernel(4 * MS)
        machine.wait()
        machine.work(4 * MS)
        (machine.backward if is_on_autograd else lambda body: body())(lambda: machine.kernel(8 * MS))

    trace = machine.steps(step, 8)
    assert rows(trace)["host_bound"].saving_ns == pytest.approx(4 * MS, rel=0.05)


def waiting_longer(ns):
    """Reads a result on the host after each kernel, `ns` later than the device has it by what was recorded."""
    machine = Machine()

    def step(_):
        for _ in range(5):
            machine.kernel(2 * MS)
            machine.op(
                "aten::_local_scalar_dense",
                lambda: machine.call("cudaStreamSynchronize", machine.free - machine.now + ns),
            )
            machine.work(500 * US)

    return machine.steps(step)


def test_waiting_for_work_that_is_not_recorded_saves_nothing():
    assert rows(waiting_longer(5 * US))["synchronizing"].saving_ns == pytest.approx(2.5 * MS, rel=0.1)
    assert "synchronizing" not in rows(waiting_longer(4 * MS))


def test_half_of_partly_hidden_work_saves_nearly_as_much_as_all():
    machine = Machine()

    def step(_):
        machine.load(22 * MS)
        machine.kernel(16 * MS)

    trace = machine.steps(step, 8)
    row = rows(trace)["data_loading"]
    assert (
        0.8 * row.saving_ns <= saved(trace, "data_loading", 50)[0] <= row.saving_ns
    )  # half of the first step's isn't hidden
    assert saved(trace, "data_loading", 100) == [row.saving_ns]


def test_work_that_others_hide_is_no_advice():
    """Convolutions in float take half of the step, and the host as long: faster ones would wait for it."""
    machine = Machine()

    def step(_):
        for _ in range(50):
            machine.kernel(90 * US, "volta_sgemm_128x64_nn", host=100 * US, types=["float", "float"])

    row = rows(machine.steps(step, 5))
    assert "mixed_precision" not in row
    assert " % in full precision, without which steps would hardly be shorter" in row["nothing_to_fix"].evidence
