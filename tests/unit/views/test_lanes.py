"""Lanes: how long each thread and each stream was busy."""

from kinetoscope_tb.views.overview.lanes import lanes
from support.build import TraceBuilder, same


def test_no_name_runs_longer_than_its_lane_is_busy():
    """Nested calls of one name count once, as those of autograd's functions do."""
    builder = TraceBuilder().op("aten::backward", 0, 100).op("aten::backward", 10, 80).op("aten::backward", 20, 60)
    same(
        lanes(builder.op("aten::add", 200, 110).kernel("k", 0, 30).kernel("k", 20, 30).build()),
        """
        lane       events  busy_ns  recording_share_frac  largest_name  largest_ns
        thread 1   4       210      0.6774193548387096    aten::add     110
        stream 7   2       50       0.16129032258064516   k             50
        """,
    )
