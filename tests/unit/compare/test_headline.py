"""How the average step changed, in a sentence."""

import numpy as np

from kinetoscope_tb.compare.headline import headline, outliers
from support.build import TraceBuilder


def trace(*lengths_ms):
    """One step per length, without gaps."""
    builder, at = TraceBuilder().window(0, 10_000_000_000), 0
    for number, length in enumerate(lengths_ms):
        dur = round(length * 1e6)
        builder.step(number, at, dur).op("aten::mm", at + 10, 100)
        at += dur
    return builder.build()


# The steps of resnet50 with 0 and with 4 workers of the data loader.
NO_WORKERS = (187.853, 175.212, 179.724, 174.616, 182.211, 165.956)
FOUR_WORKERS = (182.259, 126.199, 127.168, 123.098, 163.481, 124.203)


def test_outliers_are_the_reason_why_a_change_is_not_certain():
    assert headline(trace(*NO_WORKERS), trace(*FOUR_WORKERS)) == (
        "The average step: 177.6 → 141.1 ms, −20.6 %, not certain: 2 of 6 new steps are outliers; "
        "median 177.5 → 126.7 ms."
    )


def test_a_change_beyond_the_variation_is_certain():
    assert headline(trace(100, 101, 99), trace(80, 81, 79)) == (
        "The average step: 100.0 → 80.0 ms, −20.0 %, more than the variation between steps explains; "
        "median 100.0 → 80.0 ms."
    )


def test_a_small_change_of_even_steps_says_how_large_it_would_have_to_be():
    # Variance 1 on both sides of 3 steps: error sqrt(2 / 3) = 0.816; t with 4 degrees of freedom is 4.604: 3.76.
    assert headline(trace(99, 100, 101), trace(100, 101, 102)) == (
        "The average step: 100.0 → 101.0 ms, +1.0 %, not certain: with these steps a change below 3.76 ms can be "
        "chance; median 100.0 → 101.0 ms."
    )


def test_single_steps_are_not_certain():
    assert headline(trace(100), trace(150)).endswith(", not certain: neither side has two complete steps.")


def test_a_whole_recording_is_not_compared_with_a_step():
    stepless = TraceBuilder().op("aten::mm", 0, 100).build()
    assert headline(trace(100), stepless).startswith("Times can't be compared: the new recording marks no steps")
    assert headline(stepless, trace(100)).startswith("Times can't be compared: the base recording marks no steps")
    assert headline(stepless, stepless) == (
        "The whole recording: 100 → 100 ns, 0.0 %. Neither recording marks steps; they may hold different amounts of "
        "work."
    )


def test_steps_of_almost_equal_length_have_no_outliers():
    assert outliers(np.array([100.0, 100, 100, 100, 103])) == 0
    assert outliers(np.array([100.0, 100, 100, 100, 130])) == 1
    assert outliers(np.array([100.0])) == 0
