"""The main thread that waits for a core: what the recorder's counts of the kernel say of it."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import A100, MS, US, Machine

MAIN = 1  # the thread of Machine


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def training(device, used_ms, waited_ms, tid=MAIN, **cpu):
    """Steps whose host takes much longer than their device, in a process of that use of cores in a window of 100 ms."""
    threads = [[tid, 60 * MS, "MainThread", waited_ms * MS]]
    machine = Machine(
        device,
        kinetoscope={"cpu": {"window_ns": 100 * MS, "process_ns": used_ms * MS, "threads": threads, **cpu}},
    )

    def step(_):
        for _ in range(5):
            machine.op("aten::mm", lambda: machine.kernel(10 * US, "k") if device else machine.work(2 * MS))
            machine.work(2 * MS if device else 0)

    return machine.steps(step)


@pytest.mark.parametrize(
    ("used_ms", "cpu", "evidence", "action"),
    [
        (
            190,
            {"cores": 2},
            "It was ready to run, but had no core, for 40 % of the recording, by the kernel's count: 4",
            "Run fewer threads at once",
        ),
        (190, {"cores": 2}, "The process used 1.9 of the 2 cores that it may use.", "OMP_NUM_THREADS"),
        (
            *(90, {"cores": 2, "shared_cores": 2, "processes": 2}),
            "The process used 0.9 of the 2 cores that it may use, as each of the job's 2 processes on this machine may.",
            "Give each rank cores of its own",
        ),
        (
            60,
            {"cores": 1.5},
            "The process used 0.6 of the 1.5 cores that it may use: other processes had the rest, or a limit holds it back.",
            "`limits.cpu`",
        ),
        (60, {}, "The process used 0.6 cores.", "DataLoader"),
    ],
)
@pytest.mark.parametrize("device", [None, A100], ids=["host", "device"])
def test_who_has_the_cores_is_said_with_what_to_do(device, used_ms, cpu, evidence, action):
    row = rows(training(device, used_ms, 40, **cpu))["core_waits"]
    assert row.title == "The main thread waits for a core for 40 % of every step."
    assert evidence in row.evidence
    assert action in row.action
    assert row.saving_ns == pytest.approx(4 * MS, rel=0.03)  # of 10 ms: all that holds the step up
    assert row.confidence == "medium"


def test_waits_that_a_device_hides_save_nothing():
    machine = Machine(
        A100,
        kinetoscope={"cpu": {"window_ns": 100 * MS, "process_ns": 60 * MS, "threads": [[1, 60 * MS, "", 40 * MS]]}},
    )

    def step(_):
        for _ in range(20):
            machine.op("aten::mm", lambda: machine.kernel(2 * MS, "k"))

    assert "core_waits" not in rows(machine.steps(step))


@pytest.mark.parametrize(
    "cpu", [{"tid": 7}, {"waited_ms": 4}, {"window_ns": 0}, {"threads": [[1, 60 * MS, "MainThread"]]}]
)
def test_without_a_count_or_with_short_waits_nothing_is_said(cpu):
    assert "core_waits" not in rows(training(None, 60, **{"waited_ms": 40, **cpu}))


def test_waits_for_a_core_are_no_other_cause():
    """The counters say that the process ran for 60 % of the time; for the other 40 %, it is known, it waited."""
    machine = Machine(None, kinetoscope=training(None, 60, 40, cores=4).meta.top["kinetoscope"])
    machine.steps(lambda _: machine.op("aten::mm", lambda: machine.work(10 * MS)), 50)
    for name, series, value in (("process cpu", "cores", 0.6), ("cpu", "used", 0.2)):
        machine.builder.event("", name, 0, None, ph="C", **{series: value})
    by_rule = rows(machine.builder.build())
    assert "core_waits" in by_rule
    assert "host_threads" not in by_rule
    assert not any("processor cores" in row.title + row.evidence for row in by_rule.values())
