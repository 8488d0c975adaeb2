from kinetoscope_tb.views.device.graphs import graphs
from support.build import TraceBuilder, same


def replay(builder, at, correlation, names="ab", **args):
    """A launch of 5 ns, and kernels of 10 ns with gaps of 2 ns between them."""
    builder.launch(at, 5, correlation, name="cudaGraphLaunch")
    for i, name in enumerate(names):
        builder.kernel(name, at + 10 + 12 * i, 10, correlation, **args)
    return builder


def test_launches_of_the_same_kernels_are_one_graph():
    builder = TraceBuilder().op("fwd", 0, 300)
    for correlation, (at, names) in enumerate([(0, "ab"), (50, "ab"), (100, "ba"), (150, "abc")], start=1):
        replay(builder, at, correlation, names)
    same(
        graphs(builder.launch(200, 5, 9).kernel("alone", 210, 5, 9).build()),
        """
        graph  op   device  first_kernel  launches  mean_device_events  device_total_ns  mean_span_ns  max_span_ns  gap_ns  gap_frac
        #1     fwd  0       a             2         2.0        40               22            22           4       0.09090909090909091
        #3     fwd  0       a             1         3.0        30               34            34           4       0.11764705882352941
        #2     fwd  0       b             1         2.0        20               22            22           2       0.09090909090909091
        """,
    )


def test_a_recorded_number_tells_graphs_of_the_same_kernels_apart():
    builder = replay(replay(TraceBuilder(), 0, 1, **{"graph id": 5}), 50, 2, **{"graph id": 6})
    same(
        graphs(builder.build()),
        """
        graph  op  launches  device_total_ns
        5      -   1         20
        6      -   1         20
        """,
    )


def test_rows_whose_launch_was_lost_are_known_by_their_graph():
    trace = TraceBuilder().kernel("a", 0, 5, 7, **{"graph id": 3}).kernel("b", 9, 5, 7, **{"graph id": 3}).build()
    assert graphs(trace).select("graph", "launches", "gap_ns").rows() == [("3", 1, 4)]


def test_kernels_of_a_graph_that_overlap_leave_no_gap():
    builder = TraceBuilder().launch(0, 5, 1, name="hipGraphLaunch").kernel("a", 10, 50, 1)
    trace = builder.kernel("b", 20, 10, 1, stream=8).kernel("c", 65, 5, 1).build()
    assert graphs(trace).select("device_total_ns", "mean_span_ns", "gap_ns").rows() == [(65, 60, 5)]
