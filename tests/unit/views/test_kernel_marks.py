"""Kernel marks: GPU work of graphs by the mark around its launch."""

import polars as pl

from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.device.kernel_marks import events_of_row
from support.build import TraceBuilder, same
from support.graphs import joined

VIEW = VIEWS["kernel_marks"]


def test_marked_work_of_torchs_writer_is_summed_by_mark(torch_2_15):
    for form in ("json", "pftrace"):
        trace = read(torch_2_15 / f"cuspy/cuspy_graphs.{form}.gz")
        same(
            VIEW.run(trace),
            """
            mark              calls  nodes  total_ns  gpu_ns
            all_reduce        4      2      120000    120000
            block.0/mlp       4      2      80000     80000
            block.0/residual  4      2      20000     20000
            zero_grad         4      2      4000      4000
            """,
        )
        chosen = trace.device_events[events_of_row(trace, {"mark": "zero_grad"})["device_events"]]
        assert chosen["dur_ns"].sum() == 4000


def test_overlapping_work_counts_once_and_shares_are_of_all_work():
    builder = TraceBuilder()
    graph = {"graph id": 5, "graph node id": 5 << 32 | 1}
    for at in (0, 50):
        builder.device("kernel", "k", at, 100, 1, stream=7 + at, **graph).marked("m")
    builder.kernel("other", 500, 200, 2)
    same(
        VIEW.run(builder.build()),
        """
        mark  calls  nodes  total_ns  gpu_ns  mean_ns  total_frac
        m     2      1      200       150     100      0.5
        """,
    )


def test_side_car_files_name_marks_too():
    trace = TraceBuilder().kernel("k", 0, 100, 1, **{"graph id": 5, "graph node id": 5 << 32 | 1}).build()
    assert VIEW.is_missing(trace)
    notes = pl.DataFrame({"node": [5 << 32 | 1], "mark": ["from a side-car"], "stack": [None]})
    noted = joined(trace, node_notes=notes)
    assert not VIEW.is_missing(noted)
    assert VIEW.run(noted)["mark"].to_list() == ["from a side-car"]
