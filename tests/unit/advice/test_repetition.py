"""Gaps that recur in every step, and the ones that don't."""

import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.faults import UNKNOWN
from kinetoscope_tb.advice.repetition import gaps_of_unknown_cause, repeated_gaps
from support.machine import MS, US, Machine
from support.strategies import builders


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def busy(machine, name="gemm", count=20):
    for _ in range(count):
        machine.kernel(200 * US, name)


def held_up(machine, dur, name="Memset (Device)"):
    """A row that is queued early and begins late, for no recorded reason."""
    machine.free += dur
    machine.kernel(100 * US, name)


def graph_of(lengths, names=None):
    machine = Machine()

    def step(number):
        busy(machine)
        held_up(machine, lengths[number], names[number] if names else "Memset (Device)")
        busy(machine, "gelu", 5)

    return machine.steps(step, len(lengths))


def test_the_same_gap_in_every_step_is_named_by_the_row_that_follows_it():
    by_rule = rows(graph_of([3 * MS, 3 * MS + 50 * US, 3 * MS - 40 * US, 3 * MS]))
    row = by_rule["repeated_gap"]
    assert next(iter(by_rule)) == "repeated_gap"
    assert "the largest lasts 3 ms, before `Memset (Device)` of `aten::mm`" in row.title
    assert "in 4 of 4 steps" in row.evidence
    assert "launched by `cudaLaunchKernel`" in row.evidence
    assert (row.confidence, row.saving_ns) == ("cannot_tell", None)
    assert "unexplained_idle" not in by_rule


def test_a_gap_of_one_step_or_of_changing_length_or_place_recurs_nowhere():
    for trace in (
        graph_of([0, 12 * MS, 0, 0]),
        graph_of([1 * MS, 9 * MS, 3 * MS, 6 * MS]),
        graph_of([3 * MS] * 4, ["a", "b", "c", "d"]),
    ):
        by_rule = rows(trace)
        assert "repeated_gap" not in by_rule
        assert "unexplained_idle" in by_rule


@pytest.mark.parametrize("kernels", [20, 60])
def test_a_recurring_gap_that_the_host_is_late_for_stays_with_the_host_however_long_it_waited_before(kernels):
    machine = Machine()

    def step(_):
        busy(machine, count=kernels)
        machine.wait()
        start = machine.now
        machine.work(6 * MS)
        machine.builder.python("train.py(40): log_images", start, 6 * MS)
        machine.kernel(200 * US, "first")

    row = rows(machine.steps(step))["host_bound"]
    assert (
        "before `first` of `aten::mm` recurs in every step, with the host in `log_images (train.py:40)`" in row.evidence
    )


@settings(max_examples=60, deadline=None)
@given(builders())
def test_recurring_gaps_are_parts_of_the_idle_time_and_no_two_rules_claim_the_same(builder):
    facts = Facts(builder.build())
    if not facts.has_device:
        return
    for causes in (UNKNOWN, ("host late",)):
        whole = sum(facts.idle.get(cause, 0.0) for cause in causes)
        gaps = repeated_gaps(facts, causes)
        assert facts.share(sum(gap.lengths[facts.is_counted].mean() for gap in gaps)) <= whole + 1e-6
        numbers = [number for gap in gaps for number in gap.numbers]
        assert len(numbers) == len(set(numbers)) or facts.count > 1
    idle = facts.exposure_parts["idle"]
    late = facts.late
    parts = (
        late.loading,
        late.allocating,
        late.compiling,
        late.collecting,
        late.starting,
        late.setting_up,
        late.breaking,
    )
    host = sum((*parts, late.synchronizing, late.optimizer, late.host), np.zeros_like(idle))
    recurring = sum((gap.lengths for gap in gaps_of_unknown_cause(facts)), np.zeros_like(idle))
    assert (host + recurring <= idle)[facts.is_counted].all()


def claim_about_host(step):
    machine = Machine()
    return rows(machine.steps(partial(step, machine), 8))["host_bound"]


def test_the_host_is_said_to_be_where_it_is_in_all_of_the_gaps():
    def step(machine, number, names):
        machine.kernel(6 * MS)
        machine.wait()
        machine.function(f"callbacks.py({number % names}): on_step_{number % names}", lambda: machine.work(4 * MS))

    same, in_turns = (claim_about_host(partial(step, names=names)) for names in (1, 4))
    assert "with the host in `on_step_0 (callbacks.py:0)`. " in same.evidence
    assert "One gap of " in in_turns.evidence
    assert "with the host in" not in in_turns.evidence


def test_a_gap_that_recurs_within_steps_has_its_number_per_step():
    def step(machine, _):
        for _ in range(3):
            machine.kernel(2 * MS)
            machine.wait()
            machine.work(1 * MS)

    evidence = claim_about_host(step).evidence
    assert re.search(
        "A gap of 1.0[0-9]* ms before `[^`]*` of `aten::mm` recurs, [23](.[0-9])? times per step", evidence
    )


def test_a_gap_that_another_claim_is_about_is_not_quoted():
    def step(machine, number):
        machine.load(9 * MS)
        machine.kernel(6 * MS)
        machine.wait()
        machine.work(4 * MS)
        machine.kernel(2 * MS, "other")
        machine.wait()

    evidence = claim_about_host(step).evidence
    assert "DataLoader" not in evidence
    assert "One gap of 4.01 ms before `other` of `aten::mm` recurs in every step" in evidence
