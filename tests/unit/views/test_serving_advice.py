"""The headline for servers: which phase limits tokens per second, and what most of its time is."""

from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.server import Server

US = 1_000


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
    assert row["title"] == "100.0 % of the steady part is decode; 90.1 % of that goes to matmuls."
    assert "10 iterations of 4 requests: 222 µs each, 55.5 µs per token." in row["evidence"]
    assert "larger batch" in row["action"]
    assert (row["confidence"], row["view"], row["saving_ns"]) == ("high", "limits", None)


def test_what_the_host_does_between_iterations_is_named():
    scheduler = "vllm/v1/core/sched/scheduler.py(190): schedule"
    trace = decodes(kernel=20, gap=200, function=scheduler)
    row = advice(trace)["serving_phase"]
    assert "is idle while the host schedules." in row["title"]
    assert "--async-scheduling" in row["action"]
    parts = {r["part"]: r["time_ns"] for r in VIEWS["limits"].run(trace).to_dicts()}
    assert parts["idle: scheduling"] == 9 * 198 * US
    (phase,) = VIEWS["phases"].run(trace).filter(phase="decode").to_dicts()
    assert phase["gap_scheduling_ns"] == 9 * 198 * US


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
    said = " ".join(f"{row['title']} {row['action']}" for row in rows.values())
    assert "profiler.step()" not in said
    assert "losses" not in said
