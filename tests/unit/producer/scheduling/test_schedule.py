import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from kinetoscope import Cyclic, ScheduleError, cyclic
from kinetoscope.scheduling.schedule import WindowLimit, describe_schedule, steps_needed

SMALL = st.integers(0, 4)
CYCLES = st.fixed_dictionaries(
    {
        "wait": SMALL,
        "warmup": SMALL,
        "active": st.integers(1, 4),
        "repeat": st.integers(0, 3),
        "skip_first": SMALL,
        "skip_first_wait": st.booleans(),
    }
)


def torch_schedule(**numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch advises against no warm-up
        return torch.profiler.schedule(**numbers)


@given(CYCLES)
def test_a_cycle_does_what_torch_s_schedule_does(numbers):
    ours, theirs = cyclic(**numbers), torch_schedule(**numbers)
    assert [ours(step) for step in range(60)] == [theirs(step) for step in range(60)]


@given(CYCLES)
def test_the_first_window_is_saved_after_the_steps_that_it_needs(numbers):
    schedule = cyclic(**numbers)
    first = next(step for step in range(60) if schedule(step) is ProfilerAction.RECORD_AND_SAVE)
    assert schedule.steps_needed == first + 1 == steps_needed(torch_schedule(**numbers))


@pytest.mark.parametrize(
    "wrong", [{"wait": -1}, {"active": 0}, {"warmup": 1.5}, {"repeat": None}, {"skip_first": "2"}, {"per": "step"}]
)
def test_a_schedule_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(ScheduleError, match=next(iter(wrong))):
        cyclic(**wrong)


def test_a_schedule_of_the_program_is_not_called_in_advance():
    assert steps_needed(lambda step: pytest.fail("called")) is None
    assert steps_needed(None) is None


def test_a_schedule_is_described_for_the_trace():
    numbers = {"wait": 1, "warmup": 2, "active": 3, "repeat": 4, "skip_first": 5}
    assert describe_schedule(Cyclic(**numbers)) == {**numbers, "skip_first_wait": False, "per": "run"}
    assert describe_schedule(None) is None
    assert "schedule" in describe_schedule(torch_schedule(wait=0, warmup=0, active=1))


def test_a_window_that_lasts_too_long_ends_and_the_next_one_has_its_own_time():
    now = 0.0
    limit = WindowLimit(10, lambda: now)
    none, warmup, record, save = (ProfilerAction(number) for number in range(4))
    done = []
    for now, action in enumerate([warmup, record, record, record, none, record, save, record, none]):
        now *= 6
        done.append((limit.limited_action(action), limit.reason))
    assert [action for action, _ in done] == [warmup, record, record, none, none, record, save, record, none]
    assert [reason for _, reason in done] == [None, None, None, "max_window_s", None, None, None, None, None]
    assert WindowLimit(None).limited_action(record) is record
    with pytest.raises(ScheduleError, match="max_window_s=0"):
        WindowLimit(0)
