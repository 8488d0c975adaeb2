from kinetoscope_tb.views.overview.overview import overview
from kinetoscope_tb.views.overview.steps import steps
from support.build import TraceBuilder, same


def test_each_instant_counts_once_for_the_first_category_active():
    trace = (
        TraceBuilder()
        .step(5, 0, 100)
        .annotation("enumerate(DataLoader)#_Iter.__next__", 0, 20)
        .op("aten::mm", 20, 30)
        .launch(30, 10, 1)
        .kernel("k", 35, 25, 1)
        .memcpy(50, 20)
        .memset(65, 10)
        .op("c10d::allreduce_", 70, 15)
        .build()
    )
    same(
        steps(trace),
        """
        step  start_ns  total_ns  kernel_ns  memcpy_ns  memset_ns  communication_ns  runtime_ns  dataloader_ns  cpu_exec_ns  other_ns  is_complete
        5     0         100       25         10         5          10                5           20             10           15        True
        """,
    )


def test_a_device_busy_all_the_time_hides_everything_else():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .op("aten::mm", 0, 90)
        .launch(0, 5, 1)
        .kernel("k", 0, 100, 1)
        .memcpy(10, 10)
        .build()
    )
    same(
        steps(trace),
        """
        total_ns  kernel_ns  memcpy_ns  runtime_ns  cpu_exec_ns  other_ns
        100       100        0          0           0            0
        """,
    )


def test_a_communication_kernel_is_no_computation():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .launch(0, 5, 1)
        .kernel("ncclDevKernel_AllReduce_Sum_f32", 10, 50, 1)
        .kernel("k", 40, 50)
        .build()
    )
    same(
        steps(trace),
        """
        kernel_ns  communication_ns
        50         30
        """,
    )


def test_python_frames_and_profiler_steps_are_no_work():
    trace = TraceBuilder().step(1, 0, 100).python("f.py(1): f", 0, 100).build()
    same(
        steps(trace),
        """
        cpu_exec_ns  other_ns
        0            100
        """,
    )


def test_the_average_leaves_out_what_the_recording_cut_off():
    trace = (
        TraceBuilder().window(0, 450).step(1, 0, 100).step(2, 100, 200).step(3, 300, 150).op("aten::mm", 10, 50).build()
    )
    same(
        overview(trace),
        """
        category       mean_ns  share_frac           stdev_ns  min_ns  max_ns
        Kernel         0        0.0                  0         0       0
        Memcpy         0        0.0                  0         0       0
        Memset         0        0.0                  0         0       0
        Communication  0        0.0                  0         0       0
        Runtime        0        0.0                  0         0       0
        DataLoader     0        0.0                  0         0       0
        CPU Exec       25       0.16666666666666666  35        0       50
        Other          125      0.8333333333333334   106       50      200
        Step           150      1.0                  71        100     200
        """,
    )


def test_the_average_of_a_single_step_has_no_spread():
    assert overview(TraceBuilder().step(1, 0, 100).build())["stdev_ns"].null_count() == 9
