"""Two of 128 ranks: nothing is said of what the other 126 did."""

import pytest

import kinetoscope_tb
from support.real_traces import FOLDER, MISSING

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)


@pytest.fixture(scope="module")
def profile():
    return kinetoscope_tb.open(FOLDER / "claims" / "hta_sampled_2_of_128_ranks")


def test_collectives_of_different_sizes_are_not_one(profile):
    """384 elements were matched with 339 738 624 once: a wait, a transfer and a clock offset that never were."""
    calls = profile.view("communication")
    alone = calls.filter(message_bytes=339_738_624)
    assert alone.select("calls", "ranks", "unmatched").rows() == [(1, 1, 1)]


def test_nobody_was_last_and_no_bandwidth_is_that_of_a_transfer(profile):
    assert not profile.view("communication")["is_transfer_known"].any()
    collectives = profile.view("collectives")
    sizes = {"all_reduce": 128, "all_to_all": 128, "all_gather": 64}  # the output of all-gathers is 64 times the input
    assert collectives["missing"].to_list() == [sizes[kind] - 2 for kind in collectives["operation"]]
    assert collectives.select("transfer_ns", "last", "first").null_count().row(0) == (collectives.height,) * 3


def test_the_clocks_are_together(profile):
    """False matches put them 29.7 ms apart."""
    clock = profile.view("clocks").row(1, named=True)
    assert abs(clock["offset_ns"]) <= clock["error_ns"] < 1_000_000
