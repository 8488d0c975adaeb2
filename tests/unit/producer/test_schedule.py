import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from kinetoscope import Cyclic, ScheduleError, cyclic
from kinetoscope.schedule import description, steps_needed

SMALL = st.integers(0, 4)
CYCLES = st.fixed_dictionaries(
    {"wait": SMALL, "warmup": SMALL, "active": st.integers(1, 4), "repeat": st.integers(0, 3), "skip_first": SMALL}
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


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"active": 0}, {"warmup": 1.5}, {"repeat": None}, {"skip_first": "2"}])
def test_a_schedule_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(ScheduleError, match=next(iter(wrong))):
        cyclic(**wrong)


def test_a_schedule_of_the_program_is_not_asked_ahead():
    assert steps_needed(lambda step: pytest.fail("asked")) is None
    assert steps_needed(None) is None


def test_a_trace_can_tell_its_schedule():
    numbers = {"wait": 1, "warmup": 2, "active": 3, "repeat": 4, "skip_first": 5}
    assert description(Cyclic(**numbers)) == numbers
    assert description(None) is None
    assert "schedule" in description(torch_schedule(wait=0, warmup=0, active=1))
