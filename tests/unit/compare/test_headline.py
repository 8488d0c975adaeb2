"""How the average step changed, in a sentence."""

from dataclasses import replace

import numpy as np

from kinetoscope_tb.compare import headline as sentences
from kinetoscope_tb.compare.headline import outliers
from kinetoscope_tb.trace import Diagnostic
from support.build import TraceBuilder
from support.snapshots import small_snapshot, with_snapshot


def trace(*lengths_ms):
    """One step per length, without gaps."""
    builder, at = TraceBuilder().window(0, 10_000_000_000), 0
    for number, length in enumerate(lengths_ms):
        dur = round(length * 1e6)
        builder.step(number, at, dur).op("aten::mm", at + 10, 100)
        at += dur
    return builder.build()


def headline(base, new, why_uncertain="", why_only_shares=""):
    return sentences.headline(base, new, why_uncertain, why_only_shares)


# The steps of resnet50 with 0 and with 4 workers of the data loader.
NO_WORKERS = (187.853, 175.212, 179.724, 174.616, 182.211, 165.956)
FOUR_WORKERS = (182.259, 126.199, 127.168, 123.098, 163.481, 124.203)


def test_outliers_are_the_reason_why_a_change_is_not_certain():
    assert headline(trace(*NO_WORKERS), trace(*FOUR_WORKERS)) == (
        "The average step: 178 → 141 ms, −20.6 %, not certain: 2 of 6 new steps are outliers; median 177 → 127 ms."
    )


def test_a_change_beyond_the_variation_is_certain():
    assert headline(trace(100, 101, 99), trace(80, 81, 79)) == (
        "The average step: 100 → 80 ms, −20 %, more than the steps vary; a second recording of the same code "
        "may differ as much; median 100 → 80 ms."
    )


def test_a_small_change_of_even_steps_says_how_large_it_would_have_to_be():
    # The standard error of the mean of three steps 1 ms apart is 0.98, as in test_statistics.py. Student's t with
    # 4 degrees of freedom is 4.604: 4.604 * sqrt(2) * 0.98 = 6.38.
    assert headline(trace(99, 100, 101), trace(100, 101, 102)) == (
        "The average step: 100 → 101 ms, +1 %, not certain: with these steps a change below 6.38 ms can be "
        "chance; median 100 → 101 ms."
    )


def test_slightly_longer_first_steps_hide_no_clean_change():
    base = trace(14.69, 14.7, 14.673, 14.547, 14.576, 14.605, 14.608, 14.613)
    new = trace(15.957, 16.098, 16.004, 16.133, 16.178, 16.06, 16.141, 16.153)
    assert headline(base, new).startswith("The average step: 14.6 → 16.1 ms, +10 %, more than the steps vary;")


def test_a_manifold_change_is_a_ratio():
    assert headline(trace(10, 11, 9), trace(250, 251, 249)).startswith("The average step: 10 → 250 ms, ×25, more than")


def test_single_steps_are_not_certain():
    assert headline(trace(100), trace(150)).endswith(
        ", not certain: both sides have only one complete step, so how much steps vary is unknown."
    )
    assert headline(trace(100, 101), trace(150)).endswith(
        ", not certain: the new side has only one complete step, so how much steps vary is unknown."
    )


def test_steps_of_different_work_are_not_certain():
    assert headline(trace(100, 101, 99), trace(80, 81, 79), "the sides are of different machines (a; b)") == (
        "The average step: 100 → 80 ms, −20 %, not certain: the sides are of different machines (a; b)."
    )


def test_what_is_missing_of_a_side_may_be_what_changed():
    lost, noted = (Diagnostic("damaged", 1, f"Events are {level}.", level=level) for level in ("loss", "note"))
    base, new = trace(100, 101, 99), trace(80, 81, 79)
    whole = headline(base, new)
    assert headline(replace(base, diagnostics=(noted,)), new) == whole
    assert headline(base, replace(new, diagnostics=(noted, lost))) == (
        f"{whole} Data of the new recording is gone, so what changed may be what is missing: Events are loss."
    )
    assert " Data of the base recording is gone" in headline(replace(base, diagnostics=(lost,)), new)


def test_a_whole_recording_is_not_compared_with_a_step():
    stepless = TraceBuilder().op("aten::mm", 0, 100).build()
    reason = "the new recording marks no steps"
    sentence = headline(trace(100), stepless, why_only_shares=reason)
    assert sentence == f"Times can't be compared: {reason}. Shares and means per call can."
    assert headline(stepless, stepless) == (
        "The whole recording: 100 → 100 ns, 0 %. Neither recording marks steps; they may hold different amounts of "
        "work."
    )


def test_memory_snapshots_are_compared_by_their_peaks():
    allocators = [small_snapshot() for _ in range(2)]
    base, new = (with_snapshot(TraceBuilder().build(), allocator) for allocator in allocators)
    sentence = headline(base, new)
    assert sentence.startswith("Allocated at the peak: ")
    assert ", 0 %. " in sentence
    assert (
        headline(base, trace(100)) == "One side is a memory snapshot, the other a trace: they have nothing to compare."
    )


def test_steps_of_almost_equal_length_have_no_outliers():
    assert outliers(np.array([100.0, 100, 100, 100, 103])) == 0
    assert outliers(np.array([100.0, 100, 100, 100, 130])) == 1
    assert outliers(np.array([100.0])) == 0
