import re

import pytest

from kinetoscope import UsageError
from kinetoscope.progress import Progress, ProgressCounter


class ClockSync:
    """Seconds that the test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return round(self.now * 1e9)


def test_a_counter_counts_batches_epochs_samples_tokens_and_seconds():
    clock = ClockSync()
    counter = ProgressCounter(clock_ns=clock)
    clock.now = 5
    counter.begin()
    for seconds in (1, 2):
        clock.now += seconds
        counter.end_batch(samples=32, tokens=1000)
    assert counter.progress == Progress(
        batch=2, batch_in_epoch=2, sample=64, sample_in_epoch=64, token=2000, token_in_epoch=2000,
        total_wct=3.0, epoch_wct=3.0, batch_wct=2.0,
    )  # fmt: skip
    assert counter.end_epoch()
    clock.now += 0.5
    counter.end_batch(samples=8)
    assert counter.progress == Progress(
        epoch=1, batch=3, batch_in_epoch=1, sample=72, sample_in_epoch=8, token=2000, token_in_epoch=0,
        total_wct=3.5, epoch_wct=0.5, batch_wct=0.5,
    )  # fmt: skip


def test_an_epoch_without_a_batch_is_none():
    counter = ProgressCounter()
    assert not counter.end_epoch()
    counter.end_batch()
    assert [counter.end_epoch(), counter.end_epoch()] == [True, False]
    assert counter.progress.epoch == 1


def test_a_resumed_training_goes_on_where_it_was():
    clock = ClockSync()
    start = Progress(epoch=2, batch=21, batch_in_epoch=1, total_wct=90.0, epoch_wct=4.0)
    counter = ProgressCounter(start, clock)
    clock.now = 3
    counter.end_batch()
    assert counter.start is start
    now = counter.progress
    assert (now.epoch, now.batch, now.batch_in_epoch, now.total_wct, now.epoch_wct) == (2, 22, 2, 93.0, 7.0)


def test_a_schedule_counts_from_where_a_training_goes_on_and_epochs_from_their_start():
    counter = ProgressCounter(Progress(epoch=2, batch=25, batch_in_epoch=5))
    counted = [(counter.here, counter.here_in_epoch)]
    for _ in range(2):
        counter.end_batch()
    counted.append((counter.here, counter.here_in_epoch))
    counter.end_epoch()
    for _ in range(3):
        counter.end_batch()
    counted.append((counter.here, counter.here_in_epoch))
    assert counted == [(0, 0), (2, 2), (5, 3)]
    assert (counter.batch, counter.batch_in_epoch, counter.progress.epoch) == (30, 3, 3)


def test_a_batch_of_less_than_nothing_is_refused_and_not_counted():
    counter = ProgressCounter(Progress(sample=100))
    for counts in ({"samples": -1}, {"tokens": -1, "samples": 1}):
        with pytest.raises(UsageError, match="can't be negative"):
            counter.end_batch(**counts)
    assert counter.progress == Progress(sample=100)


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"batch": -1}, "batch=-1"), ({"batch": 3, "batch_in_epoch": 4}, "batch_in_epoch=4 is more than batch=3")],
)
def test_a_progress_that_can_not_be_is_refused(fields, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        Progress(**fields)
