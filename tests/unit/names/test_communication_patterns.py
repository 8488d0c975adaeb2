"""Users' own patterns: parsed line by line, bounded, and matched in linear time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.names.communication_patterns import (
    MOST_LENGTH,
    MOST_PATTERNS,
    CommunicationPatterns,
    parse_patterns,
)


def test_a_line_is_a_pattern_of_kernels_or_of_ranges():
    patterns, bad = parse_patterns(["# ours", "", "  my_all_?reduce ", "range: mylib::", "range:^send$"])
    assert (patterns, bad) == (CommunicationPatterns(("my_all_?reduce",), ("mylib::", "^send$")), [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("my_(", "isn't a regular expression: unclosed group"),
        ("(?=my)", "isn't a regular expression: look-around"),
        (r"\w{900}{900}", "exceeds size limit"),
        ("range:", "no pattern after"),
        ("x" * (MOST_LENGTH + 1), f"Shorten it to {MOST_LENGTH}"),
        (".*", "matches every name"),
    ],
)
def test_a_line_that_is_no_pattern_is_reported_and_the_others_count(line, reason):
    patterns, bad = parse_patterns(["one", line, "two"])
    assert patterns.kernels == ("one", "two")
    assert [problem.line for problem in bad] == [2]
    assert reason in bad[0].reason


def test_too_many_patterns_are_cut_with_a_report():
    patterns, bad = parse_patterns([f"kernel_{i}" for i in range(MOST_PATTERNS + 10)])
    assert len(patterns.kernels) == MOST_PATTERNS
    assert [problem.line for problem in bad] == [MOST_PATTERNS + 1]


def test_the_first_pattern_that_matches_is_the_rule():
    patterns, _ = parse_patterns(["all_reduce", "reduce"])
    assert patterns.kernel_rules(["my_reduce", "my_all_reduce", "add"]) == {
        "my_reduce": "pattern reduce",
        "my_all_reduce": "pattern all_reduce",
    }


def test_patterns_that_stall_other_engines_take_linear_time():
    patterns, bad = parse_patterns(["(a+)+$", "(a|a)*b$"])
    assert not bad
    assert patterns.kernel_rules(["a" * 100_000 + "!"] * 100) == {}  # an engine that tries all ways never ends


@given(st.lists(st.text(max_size=40), max_size=10))
def test_any_text_gives_patterns_or_reports(lines):
    patterns, bad = parse_patterns(lines)
    patterns.kernel_rules(["ncclKernel", ""])
    patterns.matching_ranges(["aten::mm", ""])
    assert len(patterns.kernels) + len(patterns.ranges) + len(bad) <= len(lines)
    assert all(1 <= problem.line <= len(lines) for problem in bad)


@given(st.lists(st.sampled_from(["a", "b", "range: a", "range: b"]), unique=True))
def test_the_digest_is_the_patterns(lines):
    patterns, _ = parse_patterns(lines)
    assert bool(patterns.digest) == bool(lines)
    assert (parse_patterns(["range: a", "b"])[0].digest == patterns.digest) == (
        patterns == CommunicationPatterns(("b",), ("a",))
    )
