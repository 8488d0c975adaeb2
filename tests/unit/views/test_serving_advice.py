"""The headline for servers: which phase limits tokens per second, and what most of its time is."""

from kinetoscope_tb.names.text import percent
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.server import Server

US = 1_000
MS = 1_000_000


def advice(trace):
    return {row["rule"]: row for row in VIEWS["advice"].run(trace).to_dicts()}


def decodes(*, kernel, gap=0, count=10, function=None, name="nvjet_tst_64x8"):
    """Decodes of one kernel each, in microseconds; between two of them the host is in a function."""
    builder, at = TraceBuilder(), 0
    for number in range(count):
        builder.annotation("step[DECODE bs=4]", at * US, 20 * US).launch((at + 5) * US, 5 * US, number + 1)
        builder.kernel(name, (at + 12) * US, kernel * US, number + 1)
        builder.kernel("kernel_unified_attention_3d", (at + 12 + kernel) * US, 10 * US, number + 1)
        at += 22 + kernel
        if function and number + 1 < count:
            builder.python(function, (at + 1) * US, (gap - 2) * US)
        at += gap
    return builder.build()


def test_matmuls_that_take_most_of_a_decode_are_named_with_the_time_per_token():
    row = advice(decodes(kernel=200))["serving_phase"]
    assert row["title"] == (
        "Matmuls limit tokens per second: 90.1 % of decode; batch more requests or quantize the weights."
    )
    assert (
        "100 % of the steady part is decode, 10 iterations of 4 requests: 222 µs each, 55.5 µs per token."
        in row["evidence"]
    )
    assert "larger batch" in row["action"]
    assert (row["confidence"], row["view"], row["saving_ns"]) == ("high", "limits", None)


def test_matmuls_that_may_be_near_their_roof_are_less_certain_where_the_host_costs_much_too():
    row = advice(decodes(kernel=60, gap=20))["serving_phase"]
    assert row["title"].startswith("Matmuls limit tokens per second: ")
    assert "idle while" in row["evidence"]
    assert row["confidence"] == "medium"


def test_a_third_that_the_host_costs_comes_before_matmuls_that_may_be_near_their_roof():
    row = advice(decodes(kernel=60, gap=50))["serving_phase"]
    assert row["title"].startswith("The host limits tokens per second: the GPU is idle for ")
    assert row["confidence"] == "high"


def test_limits_say_the_phase_before_its_tokens_and_what_other_phases_there_are():
    (row,) = VIEWS["limits_summary"].run(decodes(kernel=200)).rows(named=True)
    assert row["title"].startswith("Decode: 18\u202f018 tokens/s. Matmuls limit tokens per second: 90.1 % of decode; ")
    builder = TraceBuilder()
    for number, (name, ms) in enumerate([("DECODE bs=4", 1), *[("EXTEND bs=1 toks=512", 4)] * 4, ("DECODE bs=4", 1)]):
        at = number * 10 * MS
        builder.annotation(f"step[{name}]", at, 5 * MS).launch(at, 5 * US, number + 1)
        builder.kernel("nvjet_tst_64x8", at + 10 * US, ms * MS, number + 1)
    (row,) = VIEWS["limits_summary"].run(builder.build()).rows(named=True)
    assert row["title"].startswith("Prefill: ")
    assert "4 iterations" in row["evidence"]
    assert row["evidence"].endswith(" Other phase: decode (2 iterations).")


def test_what_the_host_does_between_iterations_is_named():
    scheduler = "vllm/v1/core/sched/scheduler.py(190): schedule"
    trace = decodes(kernel=20, gap=200, function=scheduler)
    rows = advice(trace)
    row = rows["server_function"]
    assert row["title"].startswith("The GPU waits for `schedule (vllm/v1/core/sched/scheduler.py:190)` for ")
    assert row["title"].endswith(" of every iteration: 198 µs in each.")
    assert "--async-scheduling" in row["action"]
    assert not rows.keys() & {"serving_phase", "host_bound", "synchronizing"}
    parts = {r["part"]: r["time_ns"] for r in VIEWS["limits"].run(trace).to_dicts()}
    assert parts["idle: scheduling"] == 9 * 198 * US
    (phase,) = VIEWS["phases"].run(trace).filter(phase="decode").to_dicts()
    assert phase["gap_scheduling_ns"] == 9 * 198 * US


def test_a_cause_of_less_than_half_of_the_idle_time_is_not_called_most_of_it():
    builder = TraceBuilder()
    functions = ("vllm/v1/core/sched/scheduler.py(190): schedule", "vllm/v1/sample/sampler.py(20): forward")
    for number in range(10):
        at = number * 300
        builder.annotation("step[DECODE bs=4]", at * US, 20 * US).launch((at + 5) * US, 5 * US, number + 1)
        builder.kernel("nvjet_tst_64x8", (at + 12) * US, 20 * US, number + 1)
        for place, function in enumerate(functions):
            builder.python(function, (at + 40 + 100 * place) * US, (100 - 10 * place) * US)
    row = advice(builder.build())["serving_phase"]
    assert ", longest while the host schedules;" in row["title"]


def test_without_stacks_the_cause_is_not_recorded():
    parts = {r["part"] for r in VIEWS["limits"].run(decodes(kernel=20, gap=200)).to_dicts()}
    assert "idle: unrecorded" in parts
    assert not parts & {"idle: scheduling", "idle: sampling", "idle: waiting"}


def test_a_training_and_a_loop_of_the_user_get_no_such_headline():
    training = TraceBuilder().step(1, 0, 100 * US).launch(5 * US, 5 * US, 1).kernel("k", 20 * US, 80 * US, 1)
    assert "serving_phase" not in advice(training.build())


def test_no_advice_for_a_server_speaks_of_steps_that_its_owner_marks():
    server = Server(1, "SGLang", graph=False)
    for number in range(12):
        server.serve("decode" if number % 4 else "prefill", 8)
    rows = advice(server.builder.build())
    assert "serving_phase" in rows
    text = " ".join(f"{row['title']} {row['action']}" for row in rows.values())
    assert "profiler.step()" not in text
    assert "losses" not in text


def near_the_roof(sizes, dur):
    """Decodes of one matmul in bf16 each on an H100, in nanoseconds."""
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "numSms": 132}
    builder, at = TraceBuilder(deviceProperties=[device]), 0
    for number in range(1, 11):
        builder.annotation("step[DECODE bs=4]", at, 20 * US)
        builder.op("aten::mm", at + US, 9 * US, **{"Input Dims": sizes, "Input type": ["c10::BFloat16"] * 2})
        builder.launch(at + 5 * US, 2 * US, number).kernel("nvjet_tst_64x8", at + 12 * US, dur, number)
        builder.kernel("kernel_unified_attention_3d", at + 12 * US + dur, US, number)
        at += 22 * US + dur
    return builder.build()


def test_the_bound_of_the_largest_family_is_named_where_it_is_known():
    def title_and_shares(sizes, dur):
        trace = near_the_roof(sizes, dur)
        (row,) = VIEWS["limits"].run(trace).filter(part="gemm").to_dicts()
        return advice(trace)["serving_phase"]["title"], *(percent(row[c]) for c in ("share_frac", "roof_frac"))

    weights, square = [[4, 8192], [8192, 8192]], [[8192, 8192], [8192, 8192]]
    title, share, reached = title_and_shares(weights, 50 * US)
    assert title == (
        f"Memory bandwidth limits tokens per second: matmuls take {share} of decode and reach {reached} of it; "
        "batch more requests or quantize the weights."
    )
    title, share, reached = title_and_shares(weights, 400 * US)
    assert title == (
        f"Matmuls limit tokens per second: {share} of decode, at {reached} of the device's memory bandwidth; "
        "batch more requests or quantize the weights."
    )
    title, share, reached = title_and_shares(square, 1_500 * US)
    assert title == (
        f"Compute rate limits tokens per second: matmuls take {share} of decode and reach {reached} of it; "
        "reuse prefixes or compute in fp8."
    )


def test_a_host_that_launches_too_slowly_is_sent_to_graphs():
    builder, at = TraceBuilder(), 0
    for number in range(1, 11):
        builder.annotation("step[DECODE bs=4]", at, 200 * US).launch(at + 5 * US, 190 * US, number)
        builder.kernel("kernel_unified_attention_3d", at + 198 * US, 10 * US, number)
        at += 220 * US
    row = advice(builder.build())["serving_phase"]
    assert "while the host is in operators and launches; run decodes in graphs." in row["title"]
    assert "--enforce-eager" in row["action"]


def cycles(count, iteration):
    """Decodes in a graph each; `iteration(builder, number, at)` adds to one, and returns how long it takes besides."""
    builder, at = TraceBuilder(), 0
    for number in range(1, count + 1):
        builder.annotation("step[DECODE bs=4]", at * US, 20 * US)
        more = iteration(builder, number, at)
        at += 222 + more
    return builder.build()


def replay(builder, number, at):
    builder.launch((at + 5) * US, 5 * US, number, name="cudaGraphLaunch")
    for row, (name, start, dur) in enumerate((("nvjet_tst_64x8", 12, 190), ("kernel_unified_attention_3d", 202, 10))):
        builder.kernel(name, (at + start) * US, dur * US, number, graph_node_id=row + 1)
    return 0


def test_copies_are_not_called_kernels():
    def swapping(builder, number, at):
        replay(builder, number, at)
        builder.launch((at + 15) * US, 2 * US, 100 + number, name="cudaMemcpyAsync")
        builder.memcpy((at + 213) * US, 800 * US, 100 + number)
        return 800

    trace = cycles(10, swapping)
    row = advice(trace)["serving_phase"]
    assert row["title"].startswith("Copies and fills limit tokens per second: 78")
    (phase,) = VIEWS["phases"].run(trace).filter(phase="decode").to_dicts()
    assert (phase["copy_ns"], phase["other_ns"]) == (10 * 800 * US, 0)


def test_pauses_in_few_iterations_are_not_called_those_of_all():
    def pausing(builder, number, at):
        replay(builder, number, at)
        if number % 8 == 0:
            builder.python("engine/scheduler.py(500): preempt", (at + 215) * US, 2_000 * US)
            return 2_000
        return 0

    rows = advice(cycles(31, pausing))
    row = rows["server_function"]
    assert row["title"].startswith("The GPU waits for `preempt (engine/scheduler.py:500)` for ")
    assert row["title"].endswith(" of the average iteration: 2 ms in 3 of 31 iterations.")
    assert not rows.keys() & {"serving_phase", "host_bound", "longer_host_steps", "synchronizing"}


def test_iterations_without_the_graph_that_the_others_have_are_named():
    def missing(builder, number, at):
        if number % 3:
            return replay(builder, number, at)
        for row in range(20):
            launched, correlation = at + 10 + 50 * row, 1000 * number + row
            builder.launch(launched * US, 5 * US, correlation)
            name = "kernel_unified_attention_3d" if row == 19 else "nvjet_tst_64x8"
            builder.kernel(name, (launched + 8) * US, 10 * US, correlation)
        return 800

    rows = advice(cycles(24, missing))
    row = rows["missing_graphs"]
    assert row["title"].startswith("7 of 23 decode iterations run without a graph, of 4 requests: they take ")
    assert "option that excludes it" in row["action"]  # since others of 4 requests have one
    assert not rows.keys() & {"serving_phase", "host_bound", "launch_bound", "longer_host_steps"}


def test_the_kernel_that_most_of_the_others_are_is_named():
    def sorting(builder, number, at):
        replay(builder, number, at)
        builder.launch((at + 15) * US, 2 * US, 100 + number)
        builder.kernel("radix_sort_pairs", (at + 213) * US, 800 * US, 100 + number)
        return 800

    row = advice(cycles(10, sorting))["serving_phase"]
    assert row["title"].startswith("Other kernels limit tokens per second: 78")
    assert row["title"].endswith("; most of it is `radix_sort_pairs`.")


def queued_decodes(*, call: str = "", event: bool = False):
    """Five decodes of which the second kernel is queued for 500 µs: in a call of the host, or behind an event."""
    builder = TraceBuilder()
    for number in range(5):
        at = number * 1000
        builder.annotation("step[DECODE bs=4]", at * US, 900 * US).launch((at + 5) * US, 5 * US, 3 * number + 1)
        builder.kernel("nvjet_tst_64x8", (at + 12) * US, 300 * US, 3 * number + 1)
        builder.launch((at + 20) * US, 5 * US, 3 * number + 2)
        builder.kernel("nvjet_tst_64x8", (at + 812) * US, 88 * US, 3 * number + 2, stream=20)
        if event:
            wait = {"device": 0, "stream": 20, "cuda_sync_kind": "Stream Wait Event"}
            builder.event("cuda_sync", "Stream Wait Event", (at + 18) * US, 0, pid=0, tid=20, **wait)
        if call:
            builder.launch((at + 30) * US, 782 * US, 3 * number + 3, name=call)
    return builder.build()


def test_idle_time_with_queued_work_is_claimed_once():
    for call in ("", "hipMemcpyWithStream"):
        rows = advice(queued_decodes(call=call))
        assert [rule for rule, row in rows.items() if " idle for " in row["title"]] == ["repeated_gap"]
        assert "serving_phase" not in rows


def test_queued_work_that_waits_for_another_stream_is_said_to():
    row = advice(queued_decodes(event=True))["serving_phase"]
    assert row["title"].endswith(" of decode with work already queued, mostly waiting for another stream.")
