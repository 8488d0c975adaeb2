"""Rules: what they mean, what breaks them, and what isn't a rule."""

import pytest

from kinetoscope_tb.compare.comparison import compare
from kinetoscope_tb.compare.rules import compared_column, judge, parse_rule
from kinetoscope_tb.errors import BadParameter, NotFound
from kinetoscope_tb.views import VIEWS
from support.compare_traces import steps


def rule(text):
    parsed = parse_rule(text, VIEWS, "operators")
    column = compared_column(parsed, VIEWS[parsed.view])
    return (
        parsed.view,
        column.name,
        parsed.row,
        parsed.grows,
        [(limit.amount, limit.is_relative) for limit in parsed.limits],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step>5%", ("overview", "mean_ns", "Step", True, [(0.05, True)])),
        ("overview[Kernel] < 2 ms", ("overview", "mean_ns", "Kernel", False, [(2e6, False)])),
        ("operators.device_self_ns>10%", ("operators", "device_self_ns", None, True, [(0.1, True)])),
        ("operators.calls[aten::mm]>3", ("operators", "calls", "aten::mm", True, [(3, False)])),
        ("aten::mm>1ms", ("operators", "device_self_ns", "aten::mm", True, [(1e6, False)])),
        ("kernels>10% and 50us", ("kernels", "total_ns", None, True, [(0.1, True), (5e4, False)])),
        ("kernels[void f<int>(long)]>1.5s", ("kernels", "total_ns", "void f<int>(long)", True, [(1.5e9, False)])),
        ("void f<4, int> >7%", ("operators", "device_self_ns", "void f<4, int>", True, [(0.07, True)])),
        ("gpus.utilization_frac<5pp", ("gpus", "utilization_frac", None, False, [(0.05, False)])),
    ],
)
def test_a_rule_names_a_view_a_column_a_row_and_limits(text, expected):
    assert rule(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("step", "isn't a rule"),
        ("step>fast", "isn't a rule"),
        (">5%", "isn't a rule"),
        ("step>5MiB", "mean_ns is a duration; give the limit in its unit or in %"),
        ("operators.device_self_ns>5", "give the limit in its unit"),
        ("operators.nothing>5%", "name a column of 'operators'"),
        ("environment>5%", "name a column of 'environment'"),
    ],
)
def test_what_is_no_rule_says_why(text, why):
    with pytest.raises(BadParameter, match=why):
        rule(text)


def verdict(text, base, new, *, ignores_noise=False, is_within_recording=True):
    parsed = parse_rule(text, VIEWS, "operators")
    comparison = compare(VIEWS[parsed.view], base, new, columns=[compared_column(parsed, VIEWS[parsed.view]).name])
    verdict = judge(parsed, comparison, ignores_noise=ignores_noise, is_within_recording=is_within_recording)
    return list(verdict.names), verdict.in_noise


def test_growth_beyond_the_limit_breaks_a_rule_and_growth_up_to_it_does_not():
    assert verdict("aten::mm>100%", steps(10, 10), steps(20, 20)) == ([], 0)
    assert verdict("aten::mm>99%", steps(10, 10), steps(20, 20)) == (["aten::mm"], 0)
    assert verdict("aten::mm>9ns", steps(10, 10), steps(20, 20)) == (["aten::mm"], 0)
    assert verdict("aten::mm<1ns", steps(10, 10), steps(20, 20)) == ([], 0)
    assert verdict("aten::mm<1ns", steps(20, 20), steps(10, 10)) == (["aten::mm"], 0)


def test_every_limit_must_be_passed():
    assert verdict("aten::mm>10% and 1us", steps(10, 10), steps(20, 20)) == ([], 0)
    assert verdict("aten::mm>10% and 9ns", steps(10, 10), steps(20, 20)) == (["aten::mm"], 0)


def test_a_row_that_the_base_does_not_have_grew_by_more_than_any_share():
    new = steps(10, 10, extra="aten::add", extra_in=(0, 1))
    assert verdict("operators.device_self_ns>500%", steps(10, 10), new) == (["aten::add"], 0)


def test_noise_breaks_no_rule_unless_it_is_ignored():
    base, new = steps(80, 100, 120), steps(90, 110, 130)
    assert verdict("aten::mm>5%", base, new) == ([], 1)
    assert verdict("aten::mm>5%", base, new, ignores_noise=True) == (["aten::mm"], 0)


def test_a_time_of_unknown_noise_breaks_no_rule():
    assert verdict("aten::mm>5%", steps(10), steps(20)) == ([], 0)
    assert verdict("aten::mm>5%", steps(10), steps(20), ignores_noise=True) == (["aten::mm"], 0)


def test_a_time_of_one_recording_a_side_breaks_no_rule_unless_asked_for():
    base, new = steps(10, 10), steps(20, 20)
    assert verdict("aten::mm>5%", base, new, is_within_recording=False) == ([], 0)
    assert verdict("aten::mm>5%", base, new) == (["aten::mm"], 0)


def test_a_count_breaks_a_rule_since_it_is_of_the_code():
    new = steps(10, 10, extra="aten::add", extra_in=(0, 1))
    assert verdict("operators.calls>0", steps(10, 10), new, is_within_recording=False) == (["aten::add"], 0)
    assert verdict("operators.calls>0", steps(10), steps(10, extra="aten::add", extra_in=(0,))) == (["aten::add"], 0)


def test_a_row_of_neither_side_is_not_found():
    with pytest.raises(NotFound, match="no row in either side of 'operators' 'aten::mn'"):
        verdict("aten::mn>5%", steps(10), steps(20))
