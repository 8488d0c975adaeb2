"""Top kernels and operators: time per complete step, who launches most of it, and the module that it belongs to."""

from kinetoscope_tb.views.overview.top import MOST_ROWS, top
from support.build import TraceBuilder, same


def training(steps):
    """Each step runs gemm for 60 ns from aten::mm and 20 ns from aten::add, and add for 10 ns."""
    builder = TraceBuilder()
    for step in range(1, steps + 1):
        at, number = step * 1000, step * 10
        builder.step(step, at, 900).op("aten::mm", at + 10, 100).op("aten::add", at + 200, 100)
        builder.launch(at + 20, 5, number + 1).kernel("gemm", at + 100, 60, number + 1)
        builder.launch(at + 210, 5, number + 2).kernel("add", at + 300, 10, number + 2)
        builder.launch(at + 220, 5, number + 3).kernel("gemm", at + 320, 20, number + 3)
    return builder.build()


def test_time_is_per_step_and_the_owner_is_who_launches_most():
    same(
        top(training(2)),
        """
        kind      name       owner      other_owners  calls  mean_ns  measure      whole_ns
        kernel    gemm       aten::mm   1             4      80       kernel time  90
        kernel    add        aten::add  0             2      10       kernel time  90
        operator  aten::mm   -          -             2      60       device time  90
        operator  aten::add  -          -             2      30       device time  90
        """,
    )


def test_what_moves_data_between_ranks_is_told_from_what_computes():
    builder = TraceBuilder().op("c10d::allreduce_", 0, 50).launch(10, 5, 1).kernel("ncclDevKernel_AllReduce", 60, 30, 1)
    builder.op("aten::mm", 100, 50).launch(110, 5, 2).kernel("gemm", 160, 20, 2)
    same(
        top(builder.build()),
        """
        kind      name                     is_communication
        kernel    ncclDevKernel_AllReduce  True
        kernel    gemm                     False
        operator  c10d::allreduce_         True
        operator  aten::mm                 False
        """,
    )


def test_work_without_an_operator_is_a_row():
    rows = top(TraceBuilder().op("aten::mm", 0, 10).kernel("k", 60, 30, 1).build()).rows(named=True)
    assert [(row["name"], row["share_frac"]) for row in rows] == [("k", 1.0), ("[unattributed]", 1.0)]


def test_the_owner_is_a_graph_where_that_launches_most_of_a_kernel():
    builder = TraceBuilder().op("aten::add", 0, 50).launch(10, 5, 1).kernel("add", 60, 30, 1)
    builder.launch(100, 5, 2, name="cudaGraphLaunch").kernel("add", 200, 40, 2).kernel("add", 300, 40, 2)
    kernel = top(builder.build()).row(0, named=True)
    assert (kernel["name"], kernel["owner"], kernel["other_owners"]) == ("add", "cudaGraphLaunch", 1)


def test_there_is_no_owner_where_most_of_a_kernel_has_none():
    builder = TraceBuilder().op("aten::add", 0, 50).launch(10, 5, 1).kernel("add", 60, 30, 1).kernel("add", 200, 40)
    kernel = top(builder.build()).row(0, named=True)
    assert (kernel["owner"], kernel["other_owners"]) == (None, 1)


def test_an_operator_names_the_class_of_its_module():
    builder = TraceBuilder().module("Linear_0", 0, 100).op("aten::mm", 10, 50).launch(20, 5, 1).kernel("k", 60, 30, 1)
    rows = top(builder.build()).rows(named=True)
    assert [(row["kind"], row["owner"]) for row in rows] == [("kernel", "aten::mm"), ("operator", "Linear")]


def test_without_a_device_operators_rank_by_host_time():
    builder = TraceBuilder().op("a", 0, 100).op("b", 20, 70)
    for i in range(10):
        builder.op(f"op{i}", 1000 + 100 * i, 10 + i)
    rows = top(builder.build())
    assert rows.select("kind", "measure").unique().rows() == [("operator", "host time")]
    assert rows.height == MOST_ROWS
    assert rows["name"].to_list()[0] == "b"


def test_operators_rank_by_host_time_where_the_device_works_outside_of_the_steps_alone():
    builder = TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 50).memset(200, 30)
    same(
        top(builder.build()),
        """
        kind      name      mean_ns  measure
        operator  aten::mm  50       host time
        """,
    )


def test_what_other_code_launched_is_not_of_the_step_though_it_runs_in_its_time():
    builder = TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 50).launch(20, 5, 1).kernel("gemm", 60, 300, 1)
    builder.op("aten::add", 200, 50).launch(210, 5, 2).kernel("add", 260, 50, 2, stream=8)
    rows = top(builder.build())
    assert rows.select("name", "measure", "whole_ns").rows() == [
        ("gemm", "kernel time launched", 300),
        ("aten::mm", "device time launched", 300),
    ]
