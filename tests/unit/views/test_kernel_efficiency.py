"""Kernel efficiency: the roofline of every kernel, by the work of its operator."""

import pytest

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
    assert table.select("kernel", "operator", "family", "time_ns", "bound_by").rows() == [
        (ELEMENTWISE, "aten::relu", "elementwise", 100_000, "memory"),
        ("nvjet_tst_192x192", "aten::mm", "matmul", 200_000, "compute"),
        ("mystery", None, "other", 70_000, None),
    ]
    assert table["why_unknown"].to_list() == [None, None, "The operators that launched them weren't recorded."]
    # 2 · 2 · 4096² bytes at 3352 GB/s; 2 · 4096³ operations at 989.4 TFLOP/s
    assert table["gap_ns"].to_list() == [100_000 - 20_021, 200_000 - 138_911, None]


def test_the_kernel_of_a_row_is_the_one_with_the_most_time_in_all_its_calls():
    builder = TraceBuilder(deviceProperties=[H100])
    for number, (name, dur) in enumerate([("rare", 9_000), *[("frequent", 4_000)] * 3]):
        builder.launch(10 * number, 5, number).kernel(name, 1000 + 10_000 * number, dur, number)
    table = kernel_efficiency(builder.build())
    assert table.select("kernel", "calls", "time_ns").rows() == [("frequent", 4, 21_000)]


def test_elementwise_work_has_bytes_but_no_flops():
    first = kernel_efficiency(trace()).row(0, named=True)
    assert first["achieved_bytes_per_s"] == pytest.approx(671.1e9, rel=1e-3)
    assert (first["intensity"], first["achieved_flop_per_s"]) == (None, None)


def test_each_row_leads_to_its_kernels():
    recorded = trace()
    rows = kernel_efficiency(recorded).select(VIEW.table.key).rows(named=True)
    assert [VIEW.events_of_row(recorded, row)["device_events"].tolist() for row in rows] == [[1], [0], [2]]
