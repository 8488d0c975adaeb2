"""What is decided, of which recordings, and what can't be."""

import numpy as np
import pytest

from kinetoscope_tb.compare.gate.corrections import benjamini_hochberg, holm
from kinetoscope_tb.compare.gate.decision import Question, Sample, decide
from kinetoscope_tb.compare.gate.power import fewest_recordings, needed_recordings, smallest_change
from kinetoscope_tb.compare.gate.words import reach, sentence

QUESTION = Question()
EVEN = np.array([-1.2, -0.7, -0.2, 0.2, 0.7, 1.2]) / 100  # a spread of 0.92 %


def sample(growth=0.0, spread=1.0, n=6, number="step"):
    """Steps of about 100 ms with a spread of about so many percent, and the same ones longer by `growth`."""
    values = np.resize(EVEN * spread, n)
    return Sample(number, 1e8 * np.exp(values), 1e8 * (1 + growth) * np.exp(values[::-1]))


def outcome(*arguments, question=QUESTION, **options):
    return decide([sample(*arguments, **options)], question)[0].outcome


def test_a_loss_a_gain_and_no_change_are_told_apart():
    assert outcome(0.03) == "regression"
    assert outcome(-0.03) == "improvement"
    assert outcome(0.0) == "no regression"


@pytest.mark.parametrize("growth", [0.0, 0.03, 0.5, -0.5])
def test_fewer_recordings_than_the_rate_needs_tell_nothing(growth):
    for n in (1, 2, 3, 4):
        decision = decide([sample(growth, n=n)], Question())[0]
        assert decision.outcome == "cannot tell"
        assert decision.reason == f"a false-alarm rate of 1 % takes 5 recordings a side; there are {n} and {n}"
    assert outcome(0.5, n=3, question=Question(rate=0.05)) == "regression"


def test_a_wide_spread_says_how_many_find_the_change():
    decision = decide([sample(spread=2.2)], Question())[0]
    assert decision.outcome == "cannot tell"
    assert decision.reason == "the spread is 2 %: 16 a side find 3 %; there are 6 and 6"
    assert outcome(0.2, spread=2.2) == "regression"  # a large loss is found all the same


def test_a_loss_below_half_of_what_should_be_found_is_no_alarm():
    assert outcome(0.01, spread=0.1) == "no regression"
    assert outcome(0.01, spread=0.1, question=Question(find=0.01)) == "regression"


def test_a_decrease_is_the_loss_of_a_throughput():
    question = Question(is_less_worse=True)
    decision = decide([sample(-0.04)], question)[0]
    assert (decision.outcome, round(decision.growth_frac, 3)) == ("regression", -0.04)
    assert outcome(0.04, question=question) == "improvement"


def test_several_numbers_share_the_rate():
    single = sample(0.02)
    base, new = np.sort(single.base), np.sort(single.new)
    alone = Sample("a", base, new)
    p = decide([alone], Question())[0].p_worse
    both = decide([alone, sample(number="b"), sample(number="c")], Question())
    assert both[0].p_worse == pytest.approx(3 * p)
    few = decide([sample(0.5, n=5), sample(0.5, n=5), sample(0.5, n=5)], Question())
    assert {decision.outcome for decision in few} == {"cannot tell"}  # 1 / 252 exceeds a third of 1 %


def test_what_makes_the_sides_incomparable_leaves_nothing_to_tell():
    decision = decide([sample(0.5)], Question(), "the sides ran on different machines (a; b)")[0]
    assert (decision.outcome, decision.reason) == ("cannot tell", "the sides ran on different machines (a; b)")


def test_the_words_say_how_sure_and_what_could_be_found():
    decision = decide([sample(0.03)], Question())[0]
    assert sentence(decision, Question(), "duration") == (
        "The average step: 100 → 103 ms, +3 %, a real regression: as far apart by chance in 0.11 % of the cases."
    )
    assert reach(decision, Question()) == (
        "6 and 6 recordings; the spread between them is 0.89 %. They find 2.5 % or more in 95 of 100 cases; "
        "5 a side find 3 %. False alarms: 1 % at most (exact permutation test)."
    )
    assert "no regression of 3 %: 3 % or more would be seen." in sentence(
        decide([sample()], Question())[0], Question(), "duration"
    )
    assert reach(decide([sample(n=1)], Question())[0], Question()).startswith(
        "1 and 1 recordings, whose spread is unknown."
    )


def test_how_many_recordings_a_rate_needs():
    assert [fewest_recordings(rate) for rate in (0.05, 0.015, 0.01, 0.001)] == [3, 4, 5, 7]
    assert needed_recordings(0.01, 0.03, 0.01) == 6
    assert needed_recordings(0.02, 0.03, 0.01) == 16
    assert needed_recordings(0.0, 0.03, 0.01) == 5
    assert smallest_change(0.01, 4, 4, 0.01) is None
    assert smallest_change(0.01, 6, 6, 0.01) == pytest.approx(0.0272, abs=5e-4)


def test_corrections_of_several_tests():
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.5]).tolist() == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
