import pytest

from kinetoscope_tb.views.device.copies import Copies
from kinetoscope_tb.views.device.exposed_time import exposed_time
from kinetoscope_tb.views.device.gpus import gpus
from kinetoscope_tb.views.device.kernel_durations import kernel_durations
from kinetoscope_tb.views.device.kernel_efficiency import KernelEfficiency
from kinetoscope_tb.views.device.kernels import kernels
from kinetoscope_tb.views.device.kernels_by_op import KernelsByOp, kernels_by_op
from support.build import TraceBuilder, same


def test_calls_that_overlap_count_twice():
    trace = (
        TraceBuilder()
        .kernel("gemm", 0, 10)
        .kernel("gemm", 5, 15, stream=8)
        .kernel("relu", 30, 5)
        .memcpy(40, 99)
        .build()
    )
    same(
        kernels(trace),
        """
        name  calls  total_ns  mean_ns  max_ns  min_ns  is_communication
        gemm  2      25        12       15      10      False
        relu  1      5         5        5       5       False
        """,
    )


def test_means_are_weighted_by_duration_and_leave_out_what_is_missing():
    trace = (
        TraceBuilder()
        .kernel("k", 0, 30, **{"blocks per SM": 1.0, "est. achieved occupancy %": 20})
        .kernel("k", 40, 10, **{"blocks per SM": 5.0, "est. achieved occupancy %": 60})
        .kernel("k", 60, 60)
        .kernel("bare", 200, 5)
        .build()
    )
    same(
        kernels(trace),
        """
        name  mean_blocks_per_sm  mean_occupancy_frac
        k     2.0                 0.3
        bare  -                   -
        """,
    )


def test_an_occupancy_of_zero_is_a_value():
    table = kernels(TraceBuilder().kernel("k", 0, 5, **{"est. achieved occupancy %": 0}).build())
    assert table["mean_occupancy_frac"].to_list() == [0.0]


def test_an_occupancy_of_zero_is_unknown_where_the_profiler_cannot_estimate_it():
    at_limit, above = ({"est. achieved occupancy %": 0, "shared memory": 49_152 + more} for more in (0, 1))
    known = {"est. achieved occupancy %": 25, "shared memory": 49_153}
    trace = TraceBuilder().kernel("a", 0, 5, **at_limit).kernel("b", 5, 5, **above).kernel("b", 10, 5, **known).build()
    assert dict(kernels(trace).select("name", "mean_occupancy_frac").rows()) == {"a": 0.0, "b": 0.25}


def test_kernels_split_by_operator_and_launch_properties():
    shape = {"grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}
    trace = (
        TraceBuilder()
        .op("aten::mm", 0, 10)
        .launch(1, 1, 1)
        .kernel("k", 20, 30, 1, **shape)
        .launch(5, 1, 2)
        .kernel("k", 60, 10, 2, **{**shape, "grid": [8, 1, 1]})
        .kernel("k", 80, 5)
        .build()
    )
    same(
        kernels_by_op(trace),
        """
        name  op        grid       block        registers_per_thread  shared_memory_bytes  calls  total_ns
        k     aten::mm  [4, 1, 1]  [128, 1, 1]  32                    1024                 1      30
        k     aten::mm  [8, 1, 1]  [128, 1, 1]  32                    1024                 1      10
        k     -         -          -            -                     -                    1      5
        """,
    )


@pytest.mark.parametrize(
    ("table", "first"),
    [
        (KernelsByOp, ["name", "op", "grid", "block", "calls", "total_ns"]),
        (KernelEfficiency, ["operator", "time_ns", "roof_frac", "gap_ns", "bound_by", "main_kernel", "input_shapes"]),
        (Copies, ["name", "direction", "device", "from_device", "to_device", "calls", "moved_bytes"]),
    ],
)
def test_costs_stand_before_what_only_describes_them(table, first):
    assert list(table.schema())[: len(first)] == first


def test_how_busy_a_gpu_was():
    trace = (
        TraceBuilder(
            deviceProperties=[{"id": 1, "name": "H100", "totalGlobalMem": 80, "computeMajor": 9, "computeMinor": 0}]
        )
        .step(1, 0, 100)
        .launch(5, 1, 1)
        .kernel(
            "ampere_fp16_s16816gemm_fp16",
            10,
            40,
            1,
            device=1,
            **{"blocks per SM": 0.75, "est. achieved occupancy %": 50},
        )
        .launch(7, 1, 2)
        .kernel(
            "at::native::fill",
            30,
            40,
            2,
            device=1,
            stream=8,
            **{"blocks per SM": 0.5, "est. achieved occupancy %": 100},
        )
        .build()
    )
    # 10–30: 0.75, 30–50: 1.25 → 1, 50–70: 0.5
    same(
        gpus(trace),
        """
        device  name  utilization_frac  sm_efficiency_frac  occupancy_frac  tc_time_frac  tc_known_frac  kernel_total_ns  memory_bytes  compute_capability
        1       H100  0.6               0.45                0.75            0.5           1.0            80               80            9.0
        """,
    )


def test_how_much_of_kernel_time_shows_whether_it_is_of_tensor_cores():
    builder = TraceBuilder().step(1, 0, 100).kernel("ampere_fp16_s16816gemm_fp16_64x64", 0, 60)
    table = gpus(builder.kernel("who_knows", 60, 20).build())
    assert table.select("tc_time_frac", "tc_known_frac").rows() == [(1.0, 0.75)]


def test_an_occupancy_says_of_how_much_of_the_kernel_time_it_is():
    builder = TraceBuilder().step(1, 0, 100).kernel("k", 0, 20, **{"est. achieved occupancy %": 40})
    table = gpus(builder.kernel("k", 20, 60).build())
    assert table.select("occupancy_frac", "occupancy_known_frac").rows() == [(0.4, 0.25)]
    without = gpus(TraceBuilder().step(1, 0, 100).kernel("k", 0, 20).build())
    assert without.select("occupancy_frac", "occupancy_known_frac").rows() == [(None, None)]


def test_the_matrix_units_of_an_unknown_vendor_have_no_name():
    builder = TraceBuilder().kernel("who_knows", 60, 20, 1)
    assert gpus(builder.build())["matrix_units"].to_list() == [None]
    assert gpus(builder.launch(10, 5, 1).build())["matrix_units"].to_list() == ["tensor cores"]


def test_kernels_outside_the_steps_leave_a_gpu_idle():
    trace = TraceBuilder().step(1, 0, 100).kernel("k", 200, 40).build()
    same(
        gpus(trace),
        """
        utilization_frac  sm_efficiency_frac  occupancy_frac  tc_time_frac
        0.0               -                   -               -
        """,
    )


def test_kernels_are_counted_by_how_long_they_last():
    trace = TraceBuilder().kernel("a", 0, 99).kernel("b", 200, 101).kernel("c", 400, 400).kernel("d", 900, 400)
    same(
        kernel_durations(trace.memcpy(2000, 5000).build()),
        """
        from_ns  to_ns  calls  total_ns  calls_up_to_here_frac  total_up_to_here_frac
        0        100    1      99        0.25                   0.099
        100      200    1      101       0.5                    0.2
        200      500    2      800       1.0                    1.0
        """,
    )


def test_all_kernel_time_is_the_whole_of_it_exactly():
    builder = TraceBuilder()
    for start, dur in ((0, 14_720), (20_000, 41_281), (70_000, 54_880)):
        builder.kernel("a", start, dur)
    assert kernel_durations(builder.build())["total_up_to_here_frac"][-1] == 1.0


def test_kernels_that_last_no_time_have_no_share_of_it():
    table = kernel_durations(TraceBuilder().kernel("a", 0, 0).build())
    assert table.rows() == [(0, 100, 1, 0, 1.0, None)]


def test_a_device_that_only_copies_is_idle_but_there():
    same(
        gpus(TraceBuilder().step(1, 0, 100).kernel("k", 10, 40).memcpy(60, 30).memcpy(20, 7, device=1).build()),
        """
        device  utilization_frac  kernel_total_ns  device_total_ns
        0       0.4               40               70
        1       -                 0                7
        """,
    )


def test_what_the_driver_says_of_a_device_stands_beside_what_its_maker_does():
    properties = {
        "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "computeMajor": 9, "computeMinor": 0,
        "numSms": 132, "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32,
        "sharedMemPerMultiprocessor": 233472,
    }  # fmt: skip
    same(
        gpus(TraceBuilder(deviceProperties=[properties]).kernel("k", 0, 5).build()),
        """
        multiprocessors  threads_per_sm  registers_per_sm  shared_memory_per_sm_bytes  warp_size  peak_half_flop_per_s  peak_fp32_flop_per_s  peak_bytes_per_s
        132              2048            65536             233472                      32         989400000000000.0     66900000000000.0      3352000000000.0
        """,
    )


def test_an_unlisted_index_is_one_of_the_devices_if_all_are_alike():
    def names(*listed):
        properties = [{"id": i, "name": name, "numSms": 304} for i, name in enumerate(listed)]
        return gpus(TraceBuilder(deviceProperties=properties).kernel("k", 0, 5, device=2).build())["name"].to_list()

    assert names("MI300X", "MI300X") == ["MI300X"]
    assert names("MI300X", "MI250") == [None]
    assert names("MI300X", "MI300X", "other") == ["other"]
    assert names() == [None]


def test_the_exporter_in_python_has_multiprocessors_in_the_place_of_their_threads():
    properties = {"id": 0, "name": "GPU", "maxThreadsPerMultiprocessor": 132}
    table = gpus(TraceBuilder(deviceProperties=[properties]).kernel("k", 0, 5).build())
    assert table.select("multiprocessors", "threads_per_sm").rows() == [(132, None)]


def test_what_tells_that_a_kernel_moves_data_between_ranks():
    trace = (
        TraceBuilder()
        .op("sglang::outplace_all_reduce", 0, 40)
        .op("aten::copy_", 20, 10)
        .launch(5, 1, 1)
        .launch(22, 1, 2)
        .kernel("push_and_reduce", 50, 30, 1)
        .kernel("copy_kernel", 80, 20, 2)
        .kernel("void dpsk::ep::internode::dispatch<false, 8>(int4*)", 100, 15, 3)
        .kernel("allgather_of_a_vendor", 120, 10, 4, **{"Collective name": "all_gather", "Group size": 2})
        .build()
    )
    same(
        kernels(trace),
        """
        name                                                 total_ns  is_communication  communication_rule
        push_and_reduce                                      30        True              launched by a collective
        copy_kernel                                          20        False             -
        void dpsk::ep::internode::dispatch<false, 8>(int4*)  15        True              DeepEP
        allgather_of_a_vendor                                10        True              collective metadata
        """,
    )


def test_a_transport_of_experts_is_communication_that_computation_hides():
    trace = (
        TraceBuilder()
        .kernel("void dpsk::ep::internode::combine<8, __nv_bfloat16>", 0, 100, stream=16)
        .kernel("void dpsk::gemm::fp8_gemm_kernel<4096u, 7168u>", 10, 80)
        .build()
    )
    same(
        exposed_time(trace).head(1),
        """
        computation_ns  exposed_communication_ns  communication_ns
        80              20                        100
        """,
    )
