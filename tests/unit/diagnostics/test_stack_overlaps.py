"""Annotations and Python calls that overlap partially."""

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from support.build import TraceBuilder


@pytest.mark.parametrize(
    ("start", "end", "crosses"),
    [
        (0, 200, False),
        (10, 90, False),
        (20, 30, False),
        (20, 40, False),
        (20, 60, False),
        (25, 60, True),
        (5, 30, True),
        (60, 150, True),
    ],
)
def test_annotations_that_cross_a_call_are_counted(start, end, crosses):
    builder = TraceBuilder().python("a", 10, 80).python("b", 20, 20).python("other thread's", 25, 90, thread=2)
    builder.annotation("Optimizer.step", start, end - start)
    counts = [d.count for d in diagnose(builder.build()) if d.rule == "stacks_overlap_annotations"]
    assert counts == [1] * crosses
