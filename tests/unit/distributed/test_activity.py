"""What a rank does in each window."""

import pytest

from kinetoscope_tb.distributed.summary import summary
from support.build import TraceBuilder


def threads(grid):
    """The threads of the kernels in the only step."""
    builder = TraceBuilder().step(1, 0, 1000)
    builder.launch(10, 5, 1).device("kernel", "gemm", 20, 100, 1, grid=grid, block=[128, 1, 1])
    return summary(builder.build()).steps["threads"].to_list()


def test_threads_are_those_of_all_blocks():
    assert threads([4, 2, 1]) == [8 * 128]


@pytest.mark.parametrize("side", [float("inf"), float("nan"), "4", None, -1, [1]])
def test_a_grid_of_something_else_is_unknown(side):
    assert threads([4, 2, side]) == [0]
