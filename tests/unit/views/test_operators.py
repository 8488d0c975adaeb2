from kinetoscope_tb.measures.recording.contents import has_input_shapes
from kinetoscope_tb.views.host.operators import operators
from kinetoscope_tb.views.host.operators_by_shape import operators_by_shape
from support.build import TraceBuilder, same


def test_self_is_without_children_and_total_with_them():
    trace = (
        TraceBuilder()
        .op("aten::linear", 0, 100)
        .op("aten::addmm", 20, 50)
        .launch(30, 10, 1)
        .kernel("ampere_sgemm", 200, 40, 1)
        .launch(80, 5, 2)
        .memset(240, 3, 2)
        .build()
    )
    same(
        operators(trace),
        """
        name          calls  device_self_ns  device_total_ns  host_self_ns  host_total_ns  tc_eligible  tc_self_frac  tc_total_frac
        aten::addmm   1      40              40               40            50             True         0.0           0.0
        aten::linear  1      3               43               45            100            True         0.0           0.0
        """,
    )


def test_a_wrapped_call_of_the_same_name_counts_once():
    trace = TraceBuilder().op("mm", 0, 100).op("mm", 10, 80).launch(20, 5, 1).kernel("k", 200, 7, 1).build()
    same(
        operators(trace),
        """
        name  calls  device_self_ns  device_total_ns  host_self_ns  host_total_ns
        mm    1      7               7                95            100
        """,
    )


def test_what_a_repeat_did_counts_for_the_shapes_of_its_caller():
    trace = TraceBuilder().op("mm", 0, 100, **{"Input Dims": [[2]]}).op("mm", 10, 80, **{"Input Dims": [[3]]}).build()
    same(
        operators_by_shape(trace),
        """
        name  input_shapes  calls  host_self_ns  host_total_ns
        mm    [[2]]         1      100           100
        """,
    )


def test_annotations_are_no_operators_but_part_the_time():
    trace = TraceBuilder().op("a", 0, 100).annotation("mine", 10, 50).op("b", 20, 10).build()
    same(
        operators(trace),
        """
        name  calls  host_self_ns  host_total_ns
        a     1      50            100
        b     1      10            10
        """,
    )


def test_an_annotation_of_an_operator_s_name_does_not_swallow_it():
    trace = TraceBuilder().annotation("mm", 0, 100).op("mm", 10, 50).launch(20, 5, 1).kernel("k", 200, 7, 1).build()
    same(
        operators(trace),
        """
        name  calls  device_self_ns  host_self_ns
        mm    1      7               45
        """,
    )


def test_unattributed_device_time_has_a_row_of_its_own():
    trace = TraceBuilder().op("a", 0, 10).launch(5, 1, 1).kernel("k", 20, 5, 1).kernel("lost", 30, 9).build()
    same(
        operators(trace).select("name", "calls", "device_self_ns", "device_total_ns", "host_self_ns"),
        """
        name            calls  device_self_ns  device_total_ns  host_self_ns
        [unattributed]  -      9               9                -
        a               1      5               5                9
        """,
    )


def test_operators_split_by_shape():
    builder = TraceBuilder().op("mm", 0, 10, **{"Input Dims": [[2, 2]]}).op("mm", 20, 30, **{"Input Dims": [[4, 4]]})
    same(
        operators_by_shape(builder.op("relu", 60, 5).build()),
        """
        name  input_shapes  calls  host_self_ns
        mm    [[4, 4]]      1      30
        mm    [[2, 2]]      1      10
        relu  -             1      5
        """,
    )


def test_tensor_core_shares_are_of_the_kernels_that_are_known():
    trace = (
        TraceBuilder()
        .op("aten::mm", 0, 10)
        .launch(1, 1, 1)
        .kernel("ampere_fp16_s16816gemm_fp16_64x64", 20, 30, 1)
        .launch(3, 1, 2)
        .kernel("at::native::fill", 60, 10, 2)
        .launch(5, 1, 3)
        .kernel("who_knows", 80, 999, 3)
        .op("aten::add", 100, 10)
        .launch(101, 1, 4)
        .kernel("who_knows", 1100, 5, 4)
        .build()
    )
    same(
        operators(trace),
        """
        name       tc_eligible  tc_self_frac
        aten::mm   True         0.75
        aten::add  -            -
        """,
    )


def test_memory_counts_for_the_operator_and_those_around_it_by_device():
    trace = (
        TraceBuilder()
        .op("outer", 0, 100)
        .memory(100, 5)
        .op("inner", 10, 50)
        .memory(64, 20)
        .memory(-24, 30)
        .memory(512, 40, **{"Device Type": 1, "Device Id": 0})
        .build()
    )
    same(
        operators(trace),
        """
        name   host_self_bytes  host_total_bytes  device_self_bytes  device_total_bytes
        inner  40               40                512                512
        outer  100              140               0                  512
        """,
    )


def test_memory_that_a_device_did_not_have_was_not_taken():
    trace = TraceBuilder().op("a", 0, 10).memory(8, 1, **{"Device Type": 1}).out_of_memory(1 << 40, 2).build()
    assert operators(trace)["device_self_bytes"].to_list() == [8]


def test_memory_and_device_time_that_were_not_recorded_are_missing():
    table = operators(TraceBuilder().op("a", 0, 10).build())
    assert table.select("host_self_bytes", "device_self_ns").rows() == [(None, None)]


def test_operators_by_shape_are_for_recordings_with_shapes():
    builder = TraceBuilder().op("aten::relu", 0, 5)
    assert not has_input_shapes(builder.build())
    assert has_input_shapes(builder.op("aten::relu", 10, 5, **{"Input Dims": [[2, 3]]}).build())
