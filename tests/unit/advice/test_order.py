"""Which claim comes first: the largest loss that was measured, not a larger one that an estimate bounds."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, Machine

SLOW = {"shapes": [[8192, 4096], [4096, 4096]], "types": ["c10::BFloat16"] * 2}
"""0.9 ms at the roof of an A100."""


@pytest.mark.parametrize(
    ("waits_ns", "rules"),
    [(3 * MS, ["data_loading", "matmul_below_roof"]), (MS // 2, ["matmul_below_roof", "data_loading"])],
)
def test_a_large_measured_loss_comes_before_a_larger_estimate(waits_ns, rules):
    machine = Machine()

    def step(_):
        machine.load(waits_ns)
        for _ in range(3):
            machine.kernel(3 * MS, **SLOW)
        machine.wait()

    claims = advice(Facts(machine.steps(step, 8)))
    assert [claim.rule for claim in claims[:2]] == rules
    estimate = next(claim for claim in claims if claim.rule == "matmul_below_roof")
    assert estimate.saving_ns > 5 * MS


def test_few_kernels_count_if_their_roof_is_far_away():
    """They take 8 % of the step, and nearly all of that could be saved."""
    machine = Machine()
    elementwise = {"shapes": [[1 << 20]] * 2, "types": ["float"] * 2}

    def step(_):
        for _ in range(10):
            machine.kernel(MS, **SLOW)
        machine.kernel(9 * MS // 10, "void at::native::elementwise_kernel<128, 4>", "aten::add", **elementwise)
        machine.wait()

    claim = advice(Facts(machine.steps(step, 8)))[0]
    assert claim.rule == "elementwise_below_roof"
    assert claim.saving_ns == pytest.approx(0.9 * MS, rel=0.05)
