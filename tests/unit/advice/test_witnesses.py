"""The contradiction gate: a claim that another view contradicts isn't made."""

from dataclasses import replace

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.witnesses import WITNESSES, examine
from kinetoscope_tb.views import EVERY_VIEW
from support.machine import MS, Machine

NEAR_ROOF = {"shapes": [[8192, 8192], [8192, 8192]], "types": ["c10::BFloat16", "c10::BFloat16"]}


def waiting(load=4 * MS):
    machine = Machine()

    def step(_):
        machine.load(load)
        machine.kernel(4 * MS, **NEAR_ROOF)
        machine.wait()

    return Facts(machine.steps(step))


def test_a_true_claim_stays_as_it_is():
    facts = waiting()
    for claim in advice(facts):
        assert examine(facts, claim) == claim


@pytest.mark.parametrize(
    ("size", "view"), [(20 * MS, "steps"), (6 * MS, "exposed_time")], ids=["longer than the step", "longer than idle"]
)
def test_a_contradicted_claim_is_never_above_cannot_tell(size, view):
    facts = waiting()
    claim = replace(advice(facts)[0], size_ns=size)
    stopped = examine(facts, claim)
    assert (claim.confidence, stopped.confidence, stopped.saving_ns) == ("high", "cannot_tell", None)
    assert f"The view `{view}` contradicts this: " in stopped.evidence


def test_one_long_step_is_not_all_well():
    """It is one of so many that it costs no 3 % of the average step, and yet it is longer."""
    machine = Machine()
    larger = {**NEAR_ROOF, "shapes": [[14000, 14000], [14000, 14000]]}

    def step(number):
        for _ in range(4):
            machine.kernel(20 * MS if number == 3 else 4 * MS, **(larger if number == 3 else NEAR_ROOF))

    last = advice(Facts(machine.steps(step, 160)))[-1]
    assert last.confidence == "cannot_tell"
    assert "`steps` contradicts this: step 3 lasts 8" in last.evidence


def test_witnesses_are_views():
    assert {witness.view for witnesses in WITNESSES.values() for witness in witnesses} <= set(EVERY_VIEW)
