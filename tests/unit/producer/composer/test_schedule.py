"""Composer's schedule, which restarts in each epoch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope import ScheduleError, cyclic
from kinetoscope.composer import Count, ProfilerAction, State, Timestamp, cyclic_schedule
from kinetoscope.composer.schedule import action_of

SKIP, WARMUP, ACTIVE, SAVE = ProfilerAction


def at(batch, *, epoch=0, length=None, start=None):
    counts = {"epoch": epoch, "batch": epoch * 100 + batch, "batch_in_epoch": batch}
    state = State("run", dataloader_len=length, timestamp=Timestamp(**{k: Count(v) for k, v in counts.items()}))
    state.start = start or Timestamp()
    return state


def actions(schedule, batches, **where):
    return "".join(
        schedule(at(batch, **where)).name[0:1] + ("!" if schedule(at(batch, **where)) is SAVE else "")
        for batch in range(batches)
    )


def test_the_defaults_are_those_of_the_document():
    assert actions(cyclic_schedule(), 8) == "WAAAA!SSS"


def test_one_cycle_is_one_and_zero_are_as_many_as_the_epoch_has_room_for():
    assert actions(cyclic_schedule(wait=1, warmup=1, active=2, repeat=1), 9) == "SWAA!SSSSS"
    assert actions(cyclic_schedule(wait=1, warmup=1, active=2, repeat=0), 9) == "SWAA!SWAA!S"
    assert actions(cyclic_schedule(skip_first=2, wait=0, warmup=0, active=1, repeat=2), 5) == "SSA!A!S"


def test_the_last_batch_of_an_epoch_saves_if_its_number_is_known():
    assert actions(cyclic_schedule(active=9), 4, length=4) == "WAAA!"
    assert actions(cyclic_schedule(active=9), 4) == "WAAA"


def test_a_resumed_training_counts_from_where_it_goes_on_in_that_epoch_only():
    start = Timestamp(epoch=Count(2), batch=Count(53), batch_in_epoch=Count(3))
    schedule = cyclic_schedule(skip_first=1, warmup=1, active=2)
    assert actions(schedule, 9, epoch=2, start=start) == "SSSSWAA!SS"
    assert actions(schedule, 9, epoch=3, start=start) == "SWAA!SSSSS"


@given(*[st.integers(0, 4)] * 3, st.integers(1, 4), st.integers(0, 3), st.integers(1, 30))
def test_it_does_what_a_list_of_the_batches_does(skip_first, wait, warmup, active, repeat, length):
    cycle = [SKIP] * wait + [WARMUP] * warmup + [ACTIVE] * (active - 1) + [SAVE]
    planned = ([SKIP] * skip_first + cycle * (repeat or 99) + [SKIP] * 99)[:length]
    if planned[-1] is ACTIVE:
        planned[-1] = SAVE
    schedule = cyclic_schedule(skip_first, wait, warmup, active, repeat)
    assert [schedule(at(batch, length=length)) for batch in range(length)] == planned


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -2}, {"warmup": -1}])
def test_a_schedule_that_can_t_be_is_refused(wrong):
    with pytest.raises(ScheduleError):
        cyclic_schedule(**wrong)


def test_schedules_of_numbers_will_do_as_well():
    for schedule in (torch.profiler.schedule(wait=1, warmup=1, active=1), cyclic(wait=1, warmup=1, active=1, repeat=0)):
        assert [action_of(schedule, at(batch)) for batch in range(4)] == [SKIP, WARMUP, SAVE, SKIP]
    assert action_of(lambda state: "active", at(0)) is ACTIVE
    with pytest.raises(ScheduleError, match="returned 7"):
        action_of(lambda state: 7, at(0))


def test_an_action_is_its_documented_text():
    assert [action.value for action in ProfilerAction] == ["skip", "warmup", "active", "active_and_save"]
