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
    assert claim.title == "40 % of every step waits for data."
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
