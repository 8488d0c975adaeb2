from dataclasses import replace

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views.overview.environment import environment
from kinetoscope_tb.views.overview.health import health
from kinetoscope_tb.views.overview.health_summary import health_summary
from support.build import TraceBuilder, same

COLLECTIVE = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8}
COLLECTIVE |= {"Group size": 2}
STREAM_SYNC = {"cuda_sync_kind": "Stream Sync"}


def waits(record):
    return {"cuda_sync_kind": "Stream Wait Event", "wait_on_cuda_event_record_corr_id": record}


def communicating(**args):
    return healthy(distributedInfo={"rank": 0, "world_size": 2}).op("record_param_comms", 70, 5, **args)


def rules(builder):
    return {row["rule"]: (row["level"], row["count"]) for row in health(builder.build()).rows(named=True)}


def with_backward(builder, *calls):
    """Operators that autograd calls: name, sequence number and thread of the forward operator."""
    for name, sequence, thread in calls:
        args = {"Sequence number": sequence, "Fwd thread id": thread, "Input Dims": [[2]]}
        builder.op(f"autograd::engine::evaluate_function: {name}", 70, 5, **args)
    return builder


def healthy(**top):
    return (
        TraceBuilder(**top)
        .step(1, 0, 100)
        .op("aten::mm", 10, 50, **{"Input Dims": [[2]]})
        .launch(20, 5, 1)
        .kernel("k", 30, 10, 1)
        .memory(8, 15)
        .python("f.py(1): f", 5, 60)
    )


def with_cpu(process_ms, *threads, **top):
    """A recording in which the process and some threads, given as in the file, used so much processor time in ms."""
    listed = [[tid, ms * 1_000_000, name] for tid, ms, name in threads]
    used_ns = sum(ns for _, ns, _ in listed)
    cpu = {"process_ns": process_ms * 1_000_000, "threads_ns": used_ns, "threads": listed}
    return healthy(kinetoscope={"cpu": cpu, **top})


def capturing(dur):
    """A recording in whose step of 100 µs a graph is captured for so long."""
    begin = healthy().launch(20, 1, 8, name="hipStreamBeginCapture")
    return begin.launch(20 + dur - 1, 1, 9, name="hipStreamEndCapture")


def recorded_at(at):
    """A call that records an event, of correlation 8."""
    return healthy().launch(at, 1, 8, name="cudaEventRecord")


def test_a_healthy_recording_has_nothing_to_say():
    assert rules(healthy()) == {}


def test_every_rule_is_listed_once_for_a_trace():
    rows = health(healthy().kernel("lost", 40, 5, 99).kernel("lost", 45, 5).build())
    assert rows["rule"].is_unique().all()


@pytest.mark.parametrize(
    ("rule", "level", "count", "builder"),
    [
        ("device_rows_from_before", "note", 1, healthy().kernel("tail", 2, 5, 99)),
        ("device_rows_without_launch", "warning", 1, healthy().kernel("lost", 41, 5, 99)),
        ("device_rows_without_launch", "warning", 1, healthy().kernel("another stream's", 2, 5, 99, stream=9)),
        ("device_rows_without_correlation", "warning", 2, healthy().kernel("k", 41, 5).memcpy(50, 5)),
        ("launches_not_recorded", "warning", 1, TraceBuilder().op("a", 0, 50).kernel("k", 10, 5, 1)),
        ("launches_outside_operators", "note", 1, healthy().launch(80, 5, 2).kernel("k", 90, 5, 2)),
        ("kernels_lost", "loss", 1, healthy().launch(30, 2, 7).launch(40, 5, 2).kernel("k", 50, 5, 2)),
        ("kernels_after_end", "warning", 2, healthy().launch(40, 2, 7).launch(50, 2, 8)),
        ("device_not_recorded", "warning", 1, TraceBuilder().step(1, 0, 9).launch(1, 1, 1)),
        ("device_off", "warning", 1, TraceBuilder().op("a", 0, 9).memory(8, 5, **{"Device Type": 1})),
        ("device_before_launch", "warning", 1, healthy().launch(5050, 5, 3).kernel("k", 45, 3, 3)),
        ("device_before_launch", "note", 1, healthy().launch(50, 5, 3).kernel("k", 45, 3, 3)),
        ("far_from_window", "warning", 1, healthy().window(0, 100).op("a", 3 * 10**9, 5)),
        ("clock_not_set", "warning", 1, healthy(base_ns=10**9)),
        ("graphs_captured", "warning", 1, capturing(60)),
        ("graphs_captured", "note", 1, capturing(20)),
        ("no_steps", "note", 1, TraceBuilder().op("a", 0, 5)),
        ("no_complete_step", "warning", 1, TraceBuilder().window(0, 50).step(1, 0, 50)),
        ("incomplete_steps", "note", 1, healthy().step(2, 100, 50)),
        ("steps_without_device_work", "note", 1, healthy().step(2, 100, 50)),
        ("steps_not_consecutive", "note", 1, healthy().step(3, 100, 50)),
        ("backward_shares_sequence", "warning", 1, with_backward(healthy(), ("A", 5, 1), ("B", 5, 1))),
        ("waits_without_record", "note", 1, healthy().device("cuda_sync", "w", 50, 5, 9, **waits(-1))),
        ("waits_for_lost_record", "note", 1, healthy().device("cuda_sync", "w", 50, 5, 9, **waits(77))),
        ("waits_for_later_record", "note", 1, recorded_at(60).device("cuda_sync", "w", 50, 5, 9, **waits(8))),
        ("sync_overlaps_kernel", "note", 1, healthy().device("cuda_sync", "w", 35, 9, 9, **STREAM_SYNC)),
        ("collectives_without_metadata", "note", 1, communicating()),
        ("collectives_without_metadata", "note", 1, communicating(**COLLECTIVE | {"Group size": None})),
        ("names_lost", "warning", 2, healthy().annotation("unknown", 60, 5).python("unknown", 70, 5)),
        ("steps_counted_twice", "warning", 8, healthy(kinetoscope={"double_steps": 8})),
        ("threads_not_recorded", "warning", 1, with_cpu(100, [1, 20, "MainThread"], [2, 75, "prefetcher"])),
        ("threads_not_recorded", "warning", 1, with_cpu(100, [1, 20, "MainThread"], [2, 30, None])),
        ("rank_unknown", "note", 1, healthy().op("nccl:all_reduce", 60, 5, **{"Input Dims": [[2]]})),
        ("rank_impossible", "warning", 1, healthy(distributedInfo={"rank": 8, "world_size": 8})),
        ("profiler_overhead", "warning", 1, healthy().event("overhead", "Buffer Flush", 0, 50, pid=-1, tid=0)),
        ("profiler_in_steps", "note", 1, healthy().python("torch/profiler/profiler.py(7): step", 70, 5)),
        ("operators_off", "note", 1, TraceBuilder().launch(0, 5, 1).kernel("k", 10, 5, 1)),
        ("shapes_off", "note", 1, TraceBuilder().op("a", 0, 5)),
        ("memory_off", "note", 1, TraceBuilder().op("a", 0, 5)),
        ("stacks_off", "note", 1, TraceBuilder().op("a", 0, 5)),
        ("shapes_empty", "note", 1, TraceBuilder(record_shapes=1).op("a", 0, 5)),
        ("memory_empty", "note", 1, TraceBuilder(kinetoscope={"options": {"profile_memory": True}}).op("a", 0, 5)),
    ],
)
def test_what_is_wrong_or_missing_is_said(rule, level, count, builder):
    assert rules(builder).get(rule) == (level, count)


def test_work_without_an_operator_is_said_to_have_no_recorded_one():
    """It may have had one that wasn't recorded, or that a cut-off file lacks."""
    rows = health(healthy().launch(80, 5, 2).kernel("k", 90, 5, 2).build()).rows(named=True)
    (words,) = (row["consequence"] for row in rows if row["rule"] == "launches_outside_operators")
    assert words.startswith("No recorded operator launched these GPU events;")


def test_a_wrong_date_leaves_the_alignment_by_collectives():
    (text,) = health(healthy(base_ns=10**9).build()).filter(rule="clock_not_set")["consequence"]
    assert "collectives that ranks have in common still align their traces" in text


def test_a_lost_name_is_one_row():
    builder = healthy().annotation("unknown", 60, 5).launch(70, 5, 7).kernel("unknown", 80, 5, 7)
    assert {rule: count for rule, (_, count) in rules(builder).items() if "name" in rule} == {"names_lost": 2}


@pytest.mark.parametrize(
    "builder",
    [
        healthy().event("overhead", "Buffer Flush", 0, 1, pid=-1, tid=0).window(0, 1000),
        healthy().python("torch/profiler/profiler.py(7): step", 200, 50),
        with_backward(healthy(), ("A", 5, 1), ("A", 5, 1), ("B", 6, 1)),
        with_cpu(100, [1, 20, "MainThread"], [2, 75, None]),  # a library's
        with_cpu(100, [1, 20, "MainThread"], [2, 75, "kinetoscope-free"]),
        with_cpu(100, [1, 90, "MainThread"], [2, 9, "tqdm"]),
        with_cpu(100, [1, 20, "MainThread"], [2, 75, "prefetcher"], options={"all_threads": True}),
        healthy(kinetoscope={"cpu": [1], "double_steps": -1}),
        healthy(kinetoscope={"cpu": {"process_ns": 1e9, "threads_ns": "x", "threads": [[2], [3, "9", "a"], 4]}}),
        with_backward(healthy(), ("A", 5, 1), ("B", 5, 2)),
        healthy().launch(40, 2, 7, name="cudaMemsetAsync").launch(50, 5, 2).kernel("k", 60, 5, 2),
        healthy(distributedInfo={"rank": 7, "world_size": 8}).op("nccl:all_reduce", 60, 5),
        healthy().op("a", 10**9, 5),
        recorded_at(45).device("cuda_sync", "w", 50, 5, 9, **waits(8)),
        healthy().device("cuda_sync", "w", 40, 9, 9, **STREAM_SYNC),
        healthy().device("cuda_sync", "w", 35, 9, 9, stream=9, **STREAM_SYNC),
        communicating(**COLLECTIVE),
    ],
)
def test_what_is_normal_is_not_said(builder):
    assert set(rules(builder)) <= {"shapes_off"}


def test_kernels_launched_while_a_graph_is_captured_are_not_missed():
    captured = (
        healthy()
        .launch(22, 1, 90, name="cudaStreamBeginCapture")
        .launch(24, 1, 91)
        .launch(26, 1, 92, name="cudaStreamEndCapture")
        .launch(40, 5, 2)
        .kernel("k", 50, 5, 2)
    )
    assert rules(captured) == {}


def consequence(builder, rule):
    return dict(health(builder.build()).select("rule", "consequence").rows())[rule]


def test_a_constant_lead_of_the_device_is_told_as_the_offset_of_its_clock():
    builder = TraceBuilder().step(1, 0, 10**9).op("a", 0, 10**9)
    for i in range(1, 101):
        builder.launch(i * 10**6, 5, i).kernel("k", i * 10**6 - 7_000, 10, i)
    assert "at least 7 µs behind" in consequence(builder, "device_before_launch")


def test_an_abbreviation_within_a_sentence_keeps_its_capitals():
    builder = healthy().launch(90_000_000, 5, 3).kernel("k", 45, 3, 3)
    (fault,) = (found.fault for found in diagnose(builder.build()) if found.rule == "device_before_launch")
    assert fault.clause.startswith("1 of 2 GPU events begin up to 90 ms")


def test_overhead_is_told_by_its_kinds_with_what_to_do_about_the_largest():
    builder = healthy().window(0, 1000)
    for name, at, dur in (("Buffer Flush", 0, 50), ("Lazy Function Loading", 100, 40), ("Buffer Flush", 20, 50)):
        builder.event("overhead", name, at, dur, pid=-1, tid=0)
    text = consequence(builder, "profiler_overhead")
    assert "11 % of the recording: Buffer Flush 7 % (2×), Lazy Function Loading 4 % (1×)" in text
    assert "record fewer steps" not in text  # there is one
    assert text.endswith("flushes full buffers: record with fewer options.")
    more = builder.step(2, 100, 100)
    assert consequence(more, "profiler_overhead").endswith("flushes full buffers: record fewer steps at a time.")


def test_the_first_buffer_is_less_of_a_longer_recording():
    request = healthy().window(0, 1000).event("overhead", "Activity Buffer Request", 0, 50, pid=-1, tid=0)
    assert consequence(request, "profiler_overhead").endswith("this is a smaller part of a longer recording.")
    again = request.event("overhead", "Activity Buffer Request", 60, 5, pid=-1, tid=0)
    assert consequence(again, "profiler_overhead").endswith("requests recording buffers: record with fewer options.")


def test_decimals_without_their_zeros_are_told():
    listed = ", ".join(f'{{"ph": "X", "cat": "cpu_op", "name": "a", "ts": {n}.{n}, "dur": 1.5}}' for n in range(300))
    trace = read_blocks([f'{{"traceEvents": [{listed}]}}'.encode()], path="nightly.json")
    assert "bare_fractions" in health(trace)["rule"]


def test_losses_stand_first():
    cut = healthy().text().encode()[:-40]
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
        Steps         1, complete: number 7
        Events        3
        File          built.pt.trace.json
        """,
    )


@pytest.mark.parametrize(
    ("name", "says"), [("rank0.1700000000000.pt.trace.json", True), ("built.pt.trace.json", False)]
)
def test_a_date_of_a_file_whose_clock_was_not_set_comes_from_its_name(name, says):
    unset = healthy()
    unset.base_ns = 10**9
    found = health(replace(unset.build(), path=f"/1700000000001/{name}"))
    (consequence,) = found.filter(rule="clock_not_set")["consequence"]
    assert consequence.startswith("According to its clock the trace is from the year 1970: its date is wrong. ")
    assert (" The date that is shown comes from the file's name. " in consequence) == says


def sentence(builder):
    return health_summary(builder.build()).select("rule", "title", "evidence").rows()


def test_a_sentence_says_how_much_of_the_steps_is_doubtful_and_why():
    usual = {"usual_step": {"median_ns": 6 * 10**6, "steps": 40}}
    slowed = TraceBuilder(kinetoscope=usual).step(1, 0, 8 * 10**6).allocations(500, 0, 8 * 10**6)
    ((rule, title, evidence),) = sentence(slowed.launch(0, 5_000, 1).kernel("k", 10_000, 4 * 10**6, 1))
    assert (rule, title) == ("warning", "Up to 25 % of recorded step 1 is doubtful.")
    assert evidence.startswith("The average recorded step takes 8 ms instead of 6 ms without the profiler, and devices")


def test_the_sentence_begins_with_the_largest_fault_and_so_do_the_findings():
    captures = capturing(60).event("overhead", "Buffer Flush", 85, 12, pid=-1, tid=0)
    ((_, title, evidence),) = sentence(captures)
    assert title == "Up to 72 % of step 1 is doubtful."
    assert evidence.startswith("Graphs are captured for 60 % of the steps, and nothing that is captured runs then; ")
    assert health(captures.build())["rule"].to_list()[:2] == ["graphs_captured", "profiler_overhead"]


def test_faults_that_may_overlap_make_no_more_than_up_to_all_of_a_step_doubtful():
    ((_, title, _),) = sentence(capturing(75).event("overhead", "Buffer Flush", 50, 40, pid=-1, tid=0))
    assert title == "Up to all of step 1 is doubtful."


def slowed(*options):
    """What is said of steps of 6, 6 and 7 ms, which usually take 4 ms."""
    usual = {"usual_step": {"median_ns": 4 * 10**6, "steps": 20}}
    builder = TraceBuilder(kinetoscope=usual, **dict.fromkeys(options, 1))
    for step, ms in enumerate((6, 6, 7)):
        builder.step(step, step * 6 * 10**6, ms * 10**6).op("aten::mm", step * 6 * 10**6, 10**6)
    (found,) = (row for row in diagnose(builder.build()) if row.rule == "recording_slows_steps")
    return found.consequence


def test_averages_of_slowed_steps_are_said_to_come_from_medians_of_both():
    assert slowed().startswith(
        "The average recorded step takes 6.33 ms, and one without the profiler 4.33 ms (on the host, the median of 3 recorded "
        "steps is 6 ms, that of 20 steps timed without it 4 ms): recording costs the host 2 ms per step. "
    )


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["record_shapes"], "Record without shapes (record_shapes=False), which cost time in each operator."),
        (
            ["record_shapes", "profile_memory"],
            "Record with fewer options: shapes and memory cost time in each operator.",
        ),
        ([], "Where host times don't matter, record without ProfilerActivity.CPU; no option that costs much was on."),
    ],
)
def test_only_options_that_were_on_are_said_to_slow_recording(options, remedy):
    assert slowed(*options).endswith(f" {remedy}")


def test_without_doubt_the_sentence_says_what_the_most_serious_level_means():
    overlapping = healthy().op("b", 55, 20)
    assert sentence(overlapping) == [("warning", "Something in this recording is off or missing.", "1 warning below.")]
    both = TraceBuilder().step(1, 0, 100).op("a", 10, 50).op("b", 55, 20)
    assert sentence(both) == [
        ("warning", "Something in this recording is off or missing.", "1 warning and 3 notes below.")
    ]
    assert sentence(TraceBuilder().step(1, 0, 100).op("a", 10, 50)) == [
        ("note", "Nothing of this recording was lost or repaired: its numbers are as recorded.", "3 notes below.")
    ]
    assert sentence(healthy()) == []


def test_where_the_run_has_more_ranks_the_sentence_is_about_this_rank_alone():
    """The page counts what was lost of others, too."""
    of_many = TraceBuilder(distributedInfo={"rank": 0, "world_size": 8}).step(1, 0, 100).op("a", 10, 50)
    ((level, title, _),) = sentence(of_many)
    assert level == "note"
    assert title == "Nothing of this rank's recording was lost or repaired: its numbers are as recorded."
