"""Which calls of a DataLoader wait for its workers."""

import pytest

from kinetoscope_tb.measures.time.worker_waits import worker_waits
from support.machine import MS, US, Machine

BY_WORKERS, ON_MAIN = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"


def waits(batches, loader=BY_WORKERS, frame=None):
    """The numbers of the steps that wait, of steps that compute for 10 ms after they have their batch."""
    machine = Machine(None)

    def step(number):
        load = lambda: machine.load(batches[number], loader)  # noqa: E731
        machine.function(frame, load) if frame else load()
        machine.op("aten::mm", lambda: machine.work(10 * MS))

    trace = machine.steps(step, len(batches))
    return trace.host_events["step"].gather(worker_waits(trace)).to_list()


def test_batches_that_were_fetched_ahead_come_at_once_and_then_all_are_waited_for():
    assert waits([20 * US] * 2 + [5 * MS] * 8) == list(range(2, 10))


@pytest.mark.parametrize("batches", [[5 * MS, *[20 * US] * 9], [20 * US] * 6 + [5 * MS] * 4, [MS] * 10, [5 * MS] * 2])
def test_few_slow_batches_and_such_that_only_take_their_time_are_no_waits(batches):
    assert not waits(batches)


def test_a_loader_in_the_training_process_waits_for_nobody():
    assert not waits([5 * MS] * 10, ON_MAIN)


def test_stacks_say_whether_a_call_waits():
    assert len(waits([MS] * 10, frame="queue.py(154): get")) == 10
    assert not waits([5 * MS] * 10, frame="torch/utils/data/_utils/pin_memory.py(90): pin_memory")
