from build import TraceBuilder, same
from kinetoscope_tb.analyses.environment import environment
from kinetoscope_tb.analyses.health import health


def rules(builder):
    return {row["rule"]: (row["level"], row["count"]) for row in health(builder.build()).rows(named=True)}


def healthy():
    return (
        TraceBuilder()
        .step(1, 0, 100)
        .op("aten::mm", 10, 50, **{"Input Dims": [[2]]})
        .launch(20, 5, 1)
        .kernel("k", 30, 10, 1)
        .memory(8, 15)
        .python("f.py(1): f", 5, 60)
    )


def test_a_healthy_recording_has_nothing_to_say():
    assert rules(healthy()) == {}


def test_device_rows_without_a_launch_and_launches_without_an_operator_are_counted():
    builder = healthy().kernel("lost", 40, 5, 99).launch(80, 5, 2).kernel("k", 90, 5, 2)
    assert rules(builder) == {"device_rows_without_launch": ("warning", 1), "launches_outside_operators": ("note", 1)}


def test_kernels_before_their_launch_are_counted():
    assert rules(healthy().launch(50, 5, 3).kernel("k", 45, 3, 3)) == {"device_before_launch": ("warning", 1)}


def test_steps_are_said_to_be_missing_cut_off_or_idle():
    assert rules(healthy().step(2, 100, 50))["incomplete_steps"] == ("note", 1)
    assert rules(healthy().step(2, 100, 50))["steps_without_device_work"] == ("note", 1)
    assert rules(TraceBuilder().op("a", 0, 5))["no_steps"] == ("note", 1)
    assert rules(TraceBuilder().window(0, 50).step(1, 0, 50))["no_complete_step"] == ("warning", 1)


def test_options_that_were_off_are_named():
    found = rules(TraceBuilder().step(1, 0, 10).op("a", 0, 5))
    assert set(found) == {"shapes_off", "memory_off", "stacks_off"}


def test_the_profiler_s_own_cost_is_said_when_it_matters():
    cost = healthy().window(0, 1000).event("overhead", "Buffer Flush", 0, 50, pid=-1, tid=0)
    assert rules(cost)["profiler_overhead"] == ("warning", 1)
    assert "profiler_overhead" not in rules(healthy().window(0, 1000).event("overhead", "Buffer Flush", 0, 5))


def test_losses_stand_first():
    cut = healthy().text().encode()[:-40]
    from kinetoscope_tb.reader import read_blocks

    table = health(read_blocks([cut], path="cut.json"))
    assert table["level"].to_list()[0] == "loss"


def test_the_environment_says_what_the_file_says():
    top = {
        "deviceProperties": [{"id": 0, "name": "H100"}, {"id": 1, "name": "H100"}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "cuda_runtime_version": 12040,
        "host_name": "node7",
    }
    builder = TraceBuilder(**top).step(7, 0, 100).launch(20, 5, 1).kernel("k", 30, 10, 1)
    same(
        environment(builder.build()),
        """
        fact          value
        Device        H100
        Devices used  1
        torch         ≈ 2.12
        CUDA          12.4
        Host          node7
        Rank          3
        World size    8
        Backend       nccl
        Recorded      2023-11-14 22:13:20 UTC
        Steps         7, 1 complete
        Events        3
        File          built.pt.trace.json
        """,
    )
