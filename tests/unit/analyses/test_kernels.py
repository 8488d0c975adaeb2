from build import TraceBuilder, same
from kinetoscope_tb.analyses.gpus import gpus
from kinetoscope_tb.analyses.kernel_durations import kernel_durations
from kinetoscope_tb.analyses.kernels import kernels
from kinetoscope_tb.analyses.kernels_by_op import kernels_by_op


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
        device  name  memory_bytes  compute_capability  utilization_frac  sm_efficiency_frac  occupancy_frac  tc_time_frac
        1       H100  80            9.0                 0.6               0.45                0.75            0.5
        """,
    )


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


def test_kernels_that_last_no_time_have_no_share_of_it():
    table = kernel_durations(TraceBuilder().kernel("a", 0, 0).build())
    assert table.rows() == [(0, 100, 1, 0, 1.0, None)]
