"""The step times of all ranks on one clock."""

from dataclasses import replace

from kinetoscope.output.ring import LastMinutes
from kinetoscope_tb.distributed.step_curves import step_curves

SECOND = 1_000_000_000
BEGAN_NS = 1_795_650_000 * SECOND


def steps(*durations_s, at_s=0.0):
    """Steps one after another."""
    found, now_ns = [], BEGAN_NS + round(at_s * SECOND)
    for number, duration_s in enumerate(durations_s):
        found.append((number, now_ns, now_ns + round(duration_s * SECOND)))
        now_ns = found[-1][2]
    return LastMinutes(tuple(found))


def test_a_curve_per_rank_ends_where_its_last_step_does():
    curves = step_curves({1: steps(1, 2), 0: steps(1, 1, 1)})
    assert curves.begin_ns == BEGAN_NS
    assert curves.times_ns[-1] == 3 * SECOND
    assert [*curves.curves] == ["rank 0", "rank 1"]
    values = curves.curves["rank 1"]
    assert (values[0], values[150], values[-1]) == (SECOND, 2 * SECOND, 2 * SECOND)
    early = step_curves({0: steps(1, 1, 1), 1: steps(1)}).curves["rank 1"]
    assert (early[99], early[150], early[-1]) == (SECOND, None, None)


def test_a_short_slow_step_is_seen_among_many():
    durations_s = [0.1] * 5999
    durations_s[3000] = 0.4
    (values,) = step_curves({7: steps(*durations_s)}).curves.values()
    assert len(values) == 301
    assert max(values) == round(0.4 * SECOND)


def test_only_the_last_ten_minutes_are_shown():
    curves = step_curves({0: steps(*[10] * 100), 1: steps(5, at_s=2)})
    assert curves.begin_ns == BEGAN_NS + 400 * SECOND
    assert set(curves.curves["rank 1"]) == {None}


def test_of_many_ranks_the_spread_is_shown():
    curves = step_curves({rank: steps(1 + rank) for rank in range(9)}).curves
    assert {name: values[0] for name, values in curves.items()} == {
        "slowest": 9 * SECOND,
        "median": 5 * SECOND,
        "fastest": SECOND,
    }


def test_without_steps_there_are_no_curves():
    assert step_curves({}) is None
    assert step_curves({0: LastMinutes()}) is None


def test_ranges_of_the_program_are_marked_where_they_began_once_for_all_ranks():
    def last_minutes(*markers):
        return replace(steps(1, 1, 1), memory=((BEGAN_NS + 2 * SECOND, 1, 1),), markers=markers)

    seen_ns = BEGAN_NS + 2 * SECOND
    checkpoint = (BEGAN_NS + SECOND, BEGAN_NS + SECOND, "checkpoint")
    marks = step_curves(
        {0: last_minutes(checkpoint), 1: last_minutes(checkpoint, (BEGAN_NS - SECOND, seen_ns, "evaluate"))}
    ).marks
    assert {nth: mark for nth, mark in enumerate(marks) if mark} == {
        0: "evaluate (open) on rank 1:",
        100: "checkpoint on ranks 0 and 1:",
    }
