"""Kernel efficiency: the roofline of every kernel, by the work of its operator."""

import pytest

from kinetoscope_tb.measures.calls.kernel_work import COMMUNICATION
from kinetoscope_tb.measures.calls.roofline import PARTLY_READ
from kinetoscope_tb.views.device.kernel_efficiency import VIEW, kernel_efficiency
from support.build import TraceBuilder

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
MM = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 2}
RELU = {"Input Dims": [[4096, 4096]], "Input type": ["c10::BFloat16"]}
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)"


def trace():
    builder = TraceBuilder(deviceProperties=[H100])
    builder.op("aten::mm", 0, 50, **MM).launch(10, 5, 1).kernel("nvjet_tst_192x192", 1000, 200_000, 1)
    builder.op("aten::relu", 100, 50, **RELU).launch(110, 5, 2).kernel(ELEMENTWISE, 300_000, 100_000, 2)
    return builder.launch(210, 5, 3).kernel("mystery", 500_000, 70_000, 3).build()


def test_every_kernel_has_its_time_and_those_with_known_work_a_gap():
    table = kernel_efficiency(trace())
    assert table.select("operator", "main_kernel", "family", "time_ns", "bound_by").rows() == [
        ("aten::relu", ELEMENTWISE, "elementwise", 100_000, "memory"),
        ("aten::mm", "nvjet_tst_192x192", "matmul", 200_000, "compute"),
        ("[unattributed]", "mystery", "other", 70_000, None),
    ]
    assert table["why_unknown"].to_list() == [None, None, "The operators that launched the kernels weren't recorded."]
    # 2 · 2 · 4096² bytes at 3352 GB/s; 2 · 4096³ operations at 989.4 TFLOP/s
    assert table["gap_ns"].to_list() == [100_000 - 20_021, 200_000 - 138_911, None]


def test_a_row_is_named_after_the_operator_whose_kernels_it_sums_up():
    """Splitting k takes a second kernel, whose time is the operator's as well."""
    builder = TraceBuilder(deviceProperties=[H100]).op("aten::mm", 0, 50, **MM)
    builder.launch(10, 5, 1).kernel("nvjet_tst_192x192", 1000, 200_000, 1)
    builder.launch(20, 5, 2).kernel("splitKreduce_kernel", 300_000, 30_000, 2)
    (row,) = kernel_efficiency(builder.build()).rows(named=True)
    assert (row["operator"], row["calls"], row["kernels"], row["time_ns"]) == ("aten::mm", 1, 2, 230_000)


@pytest.mark.parametrize(
    ("operator", "family"),
    [
        ("aten::sum", "reduction"),
        ("aten::mean", "reduction"),
        ("aten::cudnn_batch_norm_backward", "normalization"),
        ("aten::_softmax", "softmax"),
        ("aten::add", "elementwise"),
    ],
)
def test_reductions_and_normalization_are_families_of_their_own(operator, family):
    builder = TraceBuilder(deviceProperties=[H100]).op(operator, 0, 50, **RELU)
    builder.launch(10, 5, 1).kernel("void at::native::reduce_kernel<512, 1, int>(int)", 1000, 200_000, 1)
    assert kernel_efficiency(builder.build())["family"].to_list() == [family]


def test_less_time_than_its_inputs_take_to_move_means_that_it_reads_only_a_part_of_them():
    """An embedding that a compiler fused reads some rows of the table, and only the whole table's shape is recorded."""
    inputs = {"Input Dims": [[8192], [201088, 2880]], "Input type": ["long int", "c10::BFloat16"]}
    builder = TraceBuilder(deviceProperties=[H100]).op("triton_poi_fused_embedding_0", 0, 50, **inputs)
    builder.launch(10, 5, 1).kernel("triton_poi_fused_embedding_0", 1000, 43_000, 1)
    (row,) = kernel_efficiency(builder.build()).rows(named=True)
    assert (row["roof_frac"], row["achieved_bytes_per_s"], row["why_unknown"]) == (None, None, PARTLY_READ)


def test_the_main_kernel_of_a_row_is_the_one_with_the_most_time_in_all_its_calls():
    builder = TraceBuilder(deviceProperties=[H100])
    for number, (name, dur) in enumerate([("rare", 9_000), *[("frequent", 4_000)] * 3]):
        builder.launch(10 * number, 5, number).kernel(name, 1000 + 10_000 * number, dur, number)
    table = kernel_efficiency(builder.build())
    assert table.select("main_kernel", "calls", "kernels", "time_ns").rows() == [("frequent", None, 4, 21_000)]


def test_communication_has_no_roof_and_no_lack_of_a_model_is_to_blame():
    """How much time has known FLOPs is said without it."""
    builder = TraceBuilder(deviceProperties=[H100])
    builder.op("record_param_comms", 0, 50, **RELU).launch(10, 5, 1)
    builder.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1000, 90_000, 1).launch(70, 5, 2)
    builder.kernel("ncclDevKernel_SendRecv", 100_000, 40_000, 2)
    table = kernel_efficiency(builder.build())
    assert table.select("operator", "time_ns", "why_unknown").rows() == [
        ("record_param_comms", 90_000, COMMUNICATION),
        ("[unattributed]", 40_000, COMMUNICATION),
    ]


def test_elementwise_work_has_bytes_but_no_flops():
    first = kernel_efficiency(trace()).row(0, named=True)
    assert first["achieved_bytes_per_s"] == pytest.approx(671.1e9, rel=1e-3)
    assert (first["intensity"], first["achieved_flop_per_s"]) == (None, None)


def test_each_row_leads_to_its_kernels():
    recorded = trace()
    rows = kernel_efficiency(recorded).select(VIEW.table.key).rows(named=True)
    assert [VIEW.events_of_row(recorded, row)["device_events"].tolist() for row in rows] == [[1], [0], [2]]
