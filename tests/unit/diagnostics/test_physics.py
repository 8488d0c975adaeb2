"""Each check of physics on the smallest recording that breaks it, and on the one next to it that doesn't."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.faults import Faults
from kinetoscope_tb.diagnostics import physics
from kinetoscope_tb.diagnostics.diagnose import diagnose
from support.build import TraceBuilder
from support.machine import MS, US, Machine


def faults(trace):
    return {found.rule: found for found in physics.diagnose(trace) if found.fault}


def launched(*kernels, builder=None, **args):
    """Kernels as (call, start, duration) in µs, each launched by a call of 5 µs."""
    builder = builder or TraceBuilder()
    for number, (call, start, dur) in enumerate(kernels, len(builder.events) + 1):
        builder.launch(int(call * US), 5 * US, number).kernel("k", int(start * US), int(dur * US), number, **args)
    return builder


def steady(count=100, every=100, delay=10, dur=20):
    return [(i * every, i * every + delay, dur) for i in range(count)]


def test_a_healthy_stream_breaks_nothing():
    assert faults(launched(*steady()).build()) == {}


@pytest.mark.parametrize(("end", "is_found"), [(60, False), (65, False), (80, True), (5000, True)])
def test_a_kernel_has_ended_when_a_wait_for_its_device_returns(end, is_found):
    builder = launched((0, 10, end - 10)).launch(20 * US, 40 * US, 99, name="cudaDeviceSynchronize")
    diagnostics = faults(builder.build())
    assert ("kernel_outlives_wait" in diagnostics) == is_found
    if is_found:
        assert diagnostics["kernel_outlives_wait"].fault.affected_ns == (end - 60) * US


def test_a_wait_for_one_stream_says_nothing_of_another():
    wait = {"cuda_sync_kind": "Stream Sync"}
    for stream, is_found in ((7, True), (9, False)):
        builder = launched((0, 10, 300), stream=stream).launch(20 * US, 40 * US, 99, name="cudaStreamSynchronize")
        launched((500, 510, 5), builder=builder, stream=7)
        builder.device("cuda_sync", "Stream Sync", 20 * US, 40 * US, 99, stream=7, **wait)
        assert ("kernel_outlives_wait" in faults(builder.build())) == is_found


def test_a_wait_right_behind_a_copy_of_the_same_operator_is_for_its_stream():
    builder = launched((0, 10, 300)).op("aten::item", 15 * US, 60 * US)
    builder.launch(16 * US, 4 * US, 98, name="cudaMemcpyAsync").memcpy(30 * US, 2 * US, 98)
    builder.launch(21 * US, 40 * US, 99, name="cudaStreamSynchronize")
    assert "kernel_outlives_wait" in faults(builder.build())


def test_a_kernel_does_not_outlast_a_later_one_of_its_stream():
    covering = faults(launched((0, 10, 500), (20, 30, 10), (900, 910, 5)).build())["kernel_covers_others"]
    assert covering.fault.affected_ns == 480 * US
    assert "kernel_covers_others" not in faults(launched((0, 10, 500), (20, 30, 490)).build())


@pytest.mark.parametrize(
    ("missing", "rule"),
    [(range(40), "kernels_lost"), (range(30, 50), "kernels_lost"), (range(60, 100), "kernels_after_end")],
)
def test_launches_without_events_are_counted_with_the_time_that_they_hide(missing, rule):
    builder = launched(*steady())
    builder.events = [e for e in builder.events if e["cat"] != "kernel" or e["args"]["correlation"] - 1 not in missing]
    diagnostic = faults(builder.build())[rule]
    assert diagnostic.count == len(missing)
    assert diagnostic.fault.affected_ns == pytest.approx(len(missing) * 100 * US, rel=0.1)
    assert f"{len(missing)} of 100 launches" in diagnostic.consequence


def test_a_graph_without_events_was_lost_like_a_kernel():
    builder = launched((0, 10, 5)).launch(100 * US, 5 * US, 98, name="cudaGraphLaunch")
    launched((900, 910, 5), builder=builder)
    lost = faults(builder.build())["kernels_lost"]
    assert (lost.count, lost.fault.affected_ns) == (1, 810 * US)


def test_a_stream_is_a_queue():
    assert faults(launched((0, 60, 5), (20, 30, 5)).build())["stream_out_of_order"].count == 1
    assert faults(launched((0, 30, 5), (20, 36, 5)).build()) == {}


def test_a_device_that_is_late_by_more_and_more_has_a_clock_that_drifts():
    kernels = [(i * 1000, i * 1000 + 10 + i, 20) for i in range(200)]
    drift = faults(launched(*kernels).build())["clock_drifts"]
    assert "changes by 176 µs" in drift.consequence
    assert faults(launched(*((c, c + 10 + i % 100, d) for i, (c, _, d) in enumerate(kernels))).build()) == {}


def test_an_idle_device_does_not_take_milliseconds():
    slow = faults(launched(*steady(50, every=10_000, delay=2000)).build())
    assert slow["launch_latency_impossible"].fault.affected_ns is None
    assert "starts_amid_work" in slow


def test_a_window_that_begins_amid_work():
    cut = faults(launched((0, 3000, 50), (100, 3060, 50)).build())["starts_amid_work"]
    assert cut.fault.affected_ns == 3000 * US
    assert "the device may have been busy with work from before the recording" in cut.consequence


@pytest.mark.parametrize(("factor", "rule"), [(0.001, "times_too_short"), (1, None), (1000, "times_too_long")])
def test_units(factor, rule):
    builder = TraceBuilder()
    for i in range(30):
        builder.op("aten::view", int(i * 100_000 * factor), int(3000 * factor))
        builder.launch(int((i * 100_000 + 5000) * factor), int(5000 * factor), i + 1)
        builder.kernel("k", int((i * 100_000 + 15_000) * factor), int(20_000 * factor), i + 1)
    rules = set(faults(builder.build())) & {"times_too_short", "times_too_long"}
    assert rules == ({rule} if rule else set())


def test_calls_of_a_thread_do_not_overlap_and_copies_obey_their_link():
    builder = launched(*steady())
    for event in builder.events:
        if event["cat"] == "cuda_runtime":
            event["dur"] = 500
    assert "calls_overlap" in faults(builder.build())
    fast = launched((0, 10, 5)).memcpy(20 * US, 10 * US, bytes=1 << 30)
    assert faults(fast.build())["copies_too_fast"].count == 1


def test_what_recording_takes_of_the_steps():
    busy = launched(*steady()).event("overhead", "Buffer Flush", 1 * MS, 4 * MS, pid=-1, tid=0)
    assert faults(busy.build())["profiler_overhead"].fault.affected_ns == pytest.approx(3.2 * MS, rel=0.05)
    traced = launched(*steady())
    for i in range(9000):
        traced.python("f.py(1): f", i * US, 500)
    slow = faults(traced.build())["stacks_slow_host"]
    assert slow.fault.clause.startswith("Tracing 9000 Python calls takes 13")
    assert slow.fault.clause.endswith(" % of the steps at 150 ns each")  # "up to" stands before it: no "at least"
    assert "at 150 ns each, as on a fast machine; others need more." in slow.consequence


@pytest.mark.parametrize(
    ("usual_step", "affected_ms"),
    [
        ({"median_ns": 6 * MS, "steps": 40}, 8 * (4 / 8 - 2 / 6)),
        ({"median_ns": 1 * MS, "steps": 40}, 4.0),  # all of the time in which nothing runs
        ({"median_ns": 7.9 * MS, "steps": 40}, None),
        ({"median_ns": 6 * MS, "steps": 2}, None),
        ({"median_ns": 6 * MS, "steps": 3}, 8 * (4 / 8 - 2 / 6)),
        ({"median_ns": -1, "steps": 40}, None),
        ({"median_ns": True, "steps": "40"}, None),
        ([1], None),
        (None, None),
    ],
)
def test_steps_that_recording_slows(usual_step, affected_ms):
    builder = TraceBuilder(kinetoscope={"usual_step": usual_step}).step(1, 0, 8 * MS)
    builder.launch(0, 5 * US, 1).kernel("k", 10 * US, 4 * MS, 1).allocations(500, 0, 8 * MS)
    found = faults(builder.build()).get("recording_slows_steps")
    if affected_ms is None:
        assert found is None
    else:
        assert "takes 8 ms, and one without the profiler" in found.consequence
        assert found.fault.affected_ns == round(affected_ms * MS)
        assert ", and devices are idle for 50 % of these steps instead of about " in found.fault.clause


def slowed_steps(usual_ns):
    """Steps of 3.4 ms, of which the device computes for 0.8 ms, in a recording with Python stacks."""
    machine = Machine(kinetoscope={"usual_step": {"median_ns": usual_ns, "steps": 40}})

    def step(_):
        for _ in range(20):
            machine.kernel(40 * US)
            machine.work(160 * US)
        for i in range(3000):
            machine.builder.python("f.py(1): f", machine.now - 3000 * US + i * US, 500)

    return machine.steps(step)


def test_the_cost_of_recording_counts_once():
    trace = slowed_steps(usual_ns=3 * MS)
    found = faults(trace)
    doubted = [found[rule].fault.affected_ns for rule in ("stacks_slow_host", "recording_slows_steps")]
    facts = Facts(trace)
    share = Faults(facts, diagnose(trace)).share(frozenset({"idle"}))
    assert share == pytest.approx(facts.share(max(doubted) / facts.count))


def test_a_saving_is_of_the_recorded_step_and_bounded_by_the_usual_one():
    trace = slowed_steps(usual_ns=round(3.3 * MS))
    assert "recorded" not in advice(Facts(trace))[0].title
    first = advice(Facts(slowed_steps(usual_ns=2 * MS)))[0]
    assert first.title.endswith("of every recorded step.")
    assert "Without the profiler a step takes 2 ms: about 1.2 ms of it can be saved." in first.evidence
    assert first.saving_ns == pytest.approx(1.2 * MS, rel=0.002)


def test_a_usual_step_says_nothing_of_a_recording_without_steps():
    builder = launched(*steady(), builder=TraceBuilder(kinetoscope={"usual_step": {"median_ns": MS, "steps": 40}}))
    assert "recording_slows_steps" not in faults(builder.build())


def test_the_cost_of_recording_comes_before_what_it_undermines():
    machine = Machine()

    def step(_):
        for _ in range(20):
            machine.kernel(40 * US)
            machine.work(160 * US)
        machine.builder.event("overhead", "Buffer Flush", machine.now - 2 * MS, 2 * MS, pid=-1)

    trace = machine.steps(step)
    assert advice(Facts(trace))[0].rule in ("host_bound", "launch_bound")
    first, second, *_ = advice(Facts(trace), diagnose(trace))
    assert (first.rule, second.rule) == ("profiler_overhead", "recording_faults")


def test_an_event_that_was_recorded_twice_counts_once():
    once = launched(*steady()).op("aten::mm", 0, 50 * US, **{"External id": 7})
    twice = launched(*steady()).op("aten::mm", 0, 50 * US, **{"External id": 7})
    twice.events += twice.events
    first, second = once.build(), twice.build()
    assert first.device_events.drop("offset", "length").equals(second.device_events.drop("offset", "length"))
    assert first.launches.drop("offset", "length").equals(second.launches.drop("offset", "length"))
    assert next(d for d in second.diagnostics if d.rule == "events_twice").count == len(once.events)
    assert not [d for d in first.diagnostics if d.rule == "events_twice"]


def test_two_kernels_that_are_too_short_for_the_clock_are_two():
    same = TraceBuilder().kernel("k", 10 * US, US, 1).kernel("k", 10 * US, US, 1).build()
    assert same.device_events.height == 2


def test_a_verdict_that_a_fault_could_flip_is_not_given():
    machine = Machine()

    def step(_):
        for _ in range(50):
            machine.kernel(40 * US)
            machine.work(60 * US)

    trace = machine.steps(step)
    assert [a.rule for a in advice(Facts(trace), diagnose(trace))] == ["host_bound", "nothing_to_fix"]
    kernels = [e for e in machine.builder.events if e["cat"] == "kernel"]
    gone = {id(e) for e in kernels[:100]}
    machine.builder.events = [e for e in machine.builder.events if id(e) not in gone]
    cut = machine.builder.build()
    assert [a.rule for a in advice(Facts(cut))] == ["lost_rows", "host_bound", "nothing_to_fix"]
    lost, first, rest = advice(Facts(cut), diagnose(cut))
    assert lost.title == "100 of 250 launches (40 %) have no GPU event: much device work is lost."
    assert (first.rule, first.confidence, first.view) == ("recording_faults", "cannot_tell", "health")
    assert "100 of 250 launches (40 %) have no GPU event" in first.evidence
    assert "Advice withheld for that reason: host bound." in first.evidence
    assert "Record fewer steps at a time" in first.action
    assert rest.rule == "nothing_to_fix"
    assert "stands out" not in rest.title


def test_a_fault_of_a_thousandth_silences_nothing():
    machine = Machine()
    trace = machine.steps(lambda _: [(machine.kernel(40 * US), machine.work(60 * US)) for _ in range(200)])
    machine.builder.events.remove(next(e for e in machine.builder.events if e["cat"] == "kernel"))
    cut = machine.builder.build()
    before, after = (advice(Facts(t), diagnose(t)) for t in (trace, cut))
    assert [(a.rule, a.confidence) for a in before] == [(a.rule, a.confidence) for a in after]


def test_that_computing_costs_most_is_said_where_a_fault_only_hides_what_the_rest_is():
    machine = Machine()

    def step(_):
        for _ in range(10):
            machine.kernel(800 * US)
            machine.now = machine.free  # the host waits for it, unseen
            machine.work(200 * US)

    machine.steps(step)
    for at in range(0, machine.now, US):
        machine.builder.python("f.py(1): f", at, 500)
    trace = machine.builder.build()
    first = advice(Facts(trace), diagnose(trace))[0]
    assert (first.rule, first.confidence) == ("recording_faults", "cannot_tell")
    assert first.title.startswith("The GPU computes for 7")
    assert "what the rest goes to can't be said" in first.title


def test_nothing_stands_out_is_not_said_beside_a_kernel_that_cannot_be():
    machine = Machine()
    machine.steps(lambda _: [machine.kernel(10 * US, host=20 * US) for _ in range(100)])
    longest = next(e for e in machine.builder.events if e["cat"] == "kernel")
    longest["dur"] = 3_400_000
    trace = machine.builder.build()
    assert advice(Facts(trace))[-1].title.startswith("What costs most can't be said: for 99.9 %")
    first, rest = advice(Facts(trace), diagnose(trace))
    assert first.rule == "recording_faults"
    assert "covers later ones of the same stream" in first.evidence
    assert (rest.title, rest.confidence) == ("Nothing else can be said.", "cannot_tell")


@pytest.mark.parametrize(
    ("length", "odd", "words"),
    [
        (3 * US, 0, "Half of the kernels take 3 µs or less, and 4.8 % of them take 0: "),
        (3 * US, 1, None),  # one of them has nanoseconds
        (90 * US, 0, None),  # a microsecond is nothing to such kernels
    ],
)
def test_times_in_whole_microseconds_are_noted_where_kernels_are_short(length, odd, words):
    builder = TraceBuilder().step(1, 0, 8 * MS)
    for number in range(20):
        builder.launch(number * 100 * US, US, number).kernel("k", number * 100 * US + 5 * US, length, number)
    builder.kernel("k", 3 * MS, odd, 99)
    rows = {found.rule: found for found in physics.diagnose(builder.build())}
    found = rows.get("whole_microseconds")
    assert (found is None) == (words is None)
    assert found is None or (found.level == "note" and found.fault is None and words in found.consequence)
