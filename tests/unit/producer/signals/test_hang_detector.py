"""When a step is reported."""

import pytest

from kinetoscope import UsageError
from kinetoscope.signals.hang_detector import Excess, HangDetector

SECOND = 1_000_000_000


class Reports:
    """What a detector asks for."""

    def __init__(self):
        self.reasons, self.excesses, self.looks = [], [], 0

    def watch(self):
        self.looks += 1

    def write(self, reason, excess=None):
        self.reasons.append(reason)
        self.excesses.append(excess)


class Step:
    """A step that lasts as long as a test says, and its detector."""

    def __init__(self, usual_s=0.1, after_s=30.0):
        self.number, self.seconds, self.reports = 7, 0.0, Reports()
        usual_ns = None if usual_s is None else round(usual_s * SECOND)
        self.detector = HangDetector(
            self.reports, lambda: (self.number, 0), lambda: usual_ns, lambda: round(self.seconds * SECOND)
        )
        self.detector.set_limit(after_s)

    def report_times(self, *seconds):
        """The durations at which a report is written."""
        times = []
        for self.seconds in seconds:
            count = len(self.reports.reasons)
            self.detector.check()
            times += [self.seconds] * (len(self.reports.reasons) - count)
        return times


def test_a_step_is_reported_at_the_limit_and_whenever_it_has_lasted_twice_as_long():
    step = Step()
    assert step.report_times(*range(300)) == [31, 61, 121, 241]
    step.number = 8
    assert step.report_times(*range(40)) == [31]
    assert set(step.reports.reasons) == {"step"}
    assert step.reports.excesses == [*(Excess(s, s) for s in (30, 60, 120, 240)), Excess(30, 30)]


@pytest.mark.parametrize(("usual_s", "limit_s"), [(0.1, 30), (3, 30), (20, 200), (None, 120)])
def test_slow_steps_and_the_first_one_have_time(usual_s, limit_s):
    assert Step(usual_s).report_times(limit_s - 1, limit_s, limit_s + 1) == [limit_s + 1]


def test_a_step_counts_as_reported_until_it_ends():
    step = Step()
    for seconds, is_reported in [(29, False), (31, True), (32, True)]:
        step.report_times(seconds)
        assert step.detector.has_reported_step == is_reported
    step.number = 8
    assert not step.detector.has_reported_step


def test_a_step_is_watched_after_a_second():
    step = Step()
    step.report_times(0.2, 0.9)
    assert step.reports.looks == 0
    step.report_times(1, 2, 3)
    assert step.reports.looks == 3


def test_a_signal_is_reported_at_any_time():
    step = Step()
    step.report_times(2, 31)
    step.detector.report_signal("sigterm")
    assert step.reports.reasons == ["step", "sigterm"]


def test_without_a_limit_nothing_is_reported():
    step = Step(after_s=None)
    step.detector.report_signal("sigterm")
    assert step.report_times(31, 10_000) == step.reports.reasons == []
    assert step.reports.looks == 0


def test_a_limit_is_positive():
    with pytest.raises(UsageError, match=r"hang_after_s=0: how many seconds a step may take, such as 30\."):
        Step(after_s=0)
