"""Waiting for data while other threads call the runtime."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.build import TraceBuilder
from support.machine import MS, Machine

MAIN, OTHER = 1, 2


def training(thread):
    """The device waits 4 ms of each step for a batch; for 3 ms of that a thread allocates pinned memory."""
    machine = Machine()

    def step(_):
        if thread is not None:
            machine.builder.launch(machine.now, 3 * MS, 0, name="cudaHostAlloc", thread=thread)
        machine.load(4 * MS, "_MultiProcessingDataLoaderIter")
        for _ in range(6):
            machine.kernel(MS)
        machine.wait("cudaDeviceSynchronize", "torch::sync")

    return {claim.rule: claim for claim in advice(Facts(machine.steps(step)))}


@pytest.mark.parametrize("thread", [None, OTHER])
def test_calls_of_a_thread_that_launches_nothing_leave_the_loader_its_share(thread):
    claim = training(thread)["data_loading"]
    assert claim.title == "39.9 % of every step waits for data."
    assert claim.size_ns == claim.saving_ns == 4 * MS


def test_what_the_breakdown_counts_as_calls_is_told():
    sentence = "For 3 ms of it a thread that launches nothing makes calls, such as to pin memory; the breakdown counts "
    assert sentence in training(OTHER)["data_loading"].evidence
    assert sentence not in training(None)["data_loading"].evidence


def test_calls_of_the_thread_that_waits_for_data_are_no_loading():
    assert training(MAIN)["data_loading"].size_ns == pytest.approx(MS, rel=0.01)


def test_without_any_thread_nothing_waits_for_data():
    trace = TraceBuilder().device("kernel", "k", 0, MS, 1).build()
    assert trace.threads.is_empty()
    assert Facts(trace).waits_for_data.tolist() == [0]


def prefetching(first, others):
    """The host loads each batch while the device computes for 20 ms; in the first step nothing hides that."""
    machine = Machine()

    def step(number):
        machine.load(first if number == 0 else others, "_MultiProcessingDataLoaderIter")
        machine.now = max(machine.now, machine.free - 20 * MS)
        for _ in range(20):
            machine.kernel(MS, host=50_000)

    return {claim.rule: claim for claim in advice(Facts(machine.steps(step, 10)))}


def test_a_first_batch_that_takes_as_long_as_the_hidden_ones_is_no_slow_batch():
    claims = prefetching(12 * MS, 12 * MS)
    assert "data_loading" not in claims
    assert "12 ms waiting for data in step 0 alone (later batches take as long" in claims["nothing_to_fix"].evidence
    assert prefetching(20 * MS, 10 * MS)["data_loading"].title.endswith("of step 0 waits for data.")


def starving(batch, own, loader="_MultiProcessingDataLoaderIter", function="data.py(12): build_mask"):
    """Workers have a batch every `batch`; the host then works for `own`, and launches 19 ms for a device."""
    machine = Machine()

    def step(number):
        until = 30 * MS + number * batch
        machine.function("queue.py(154): get", lambda: machine.load(max(until - machine.now, 20_000), loader))
        machine.function(function, lambda: machine.work(own))
        for _ in range(19):
            machine.kernel(MS)

    return {claim.rule: claim for claim in advice(Facts(machine.steps(step, 20)))}


def test_other_work_of_the_host_only_waits_longer_for_workers_if_it_takes_less():
    """Without it, the next batch comes no earlier; with faster workers, a step is as long as the device computes."""
    claims = starving(24 * MS, 9 * MS)
    claim = claims["data_loading"]
    assert "host_bound" not in claims
    assert claim.title == "58.5 % of the average step waits for data, and then launches work too late."
    assert ", most of it while the GPU still works. " in claim.evidence
    assert claim.saving_ns == pytest.approx(4.7 * MS, rel=0.1)
    assert "raise `num_workers`" in claim.action
    assert "without which steps would hardly be shorter" in claims["nothing_to_fix"].evidence


def test_work_of_the_host_that_workers_are_fast_enough_for_is_a_claim():
    claims = starving(2 * MS, 24 * MS)
    assert claims["host_bound"].saving_ns == pytest.approx(5 * MS, rel=0.1)
    assert "data_loading" not in claims


def test_a_loader_in_the_training_process_is_work_and_no_wait():
    """What it takes is the host's own time, so that less of any of it makes the step shorter."""
    claims = starving(24 * MS, 9 * MS, "_SingleProcessDataLoaderIter")
    assert claims["host_bound"].saving_ns == pytest.approx(4.7 * MS, rel=0.1)


def test_what_loading_saves_besides_the_time_that_nothing_overlaps_is_said():
    """The loader runs for 4 ms of each step of 9 ms, 3 of them while the device computes; then the host works."""
    machine = Machine()

    def step(_):
        machine.kernel(3 * MS)
        machine.load(4 * MS)
        machine.work(5 * MS)

    claim = {claim.rule: claim for claim in advice(Facts(machine.steps(step, 20)))}["data_loading"]
    assert claim.title == "11.1 % of every step waits for data, and a third more while the GPU works."
    assert claim.saving_ns == pytest.approx(4 * MS, rel=0.01)
    assert "other work that comes earlier" not in claim.evidence


def test_loading_that_only_hides_behind_the_device_is_not_said_where_it_saves_nothing():
    machine = Machine()

    def step(_):
        machine.kernel(8 * MS)
        machine.load(9 * MS)

    claim = {claim.rule: claim for claim in advice(Facts(machine.steps(step, 20)))}["data_loading"]
    assert claim.title == "11.1 % of every step waits for data."


def test_a_function_of_the_program_that_loads_is_named_once():
    machine = Machine()

    def step(_):
        machine.builder.python("data.py(12): decode", machine.now + 1000, 4 * MS - 2000)
        machine.load(4 * MS)
        for _ in range(6):
            machine.kernel(MS)
        machine.wait()

    claims = {claim.rule: claim for claim in advice(Facts(machine.steps(step)))}
    assert "of that idle time is spent in `decode (data.py:12)`." in claims["data_loading"].evidence
