"""The cost of a step outside a window, as the number of functions it calls: times vary on a busy machine."""

import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from kinetoscope import Tracer, cyclic
from kinetoscope.job.selection import Selection
from kinetoscope.progress import ProgressCounter
from kinetoscope.scheduling.schedule import WindowLimit
from kinetoscope.session.window_controller import StepActions

STEP = [
    "Tracer.step",
    "StepLoop.end_step",
    "ProgressCounter.end_batch",
    "_adder.<locals>.add",
]
"""Each function costs some microseconds in a training, whose own data has driven it from the caches."""


def calls(function):
    """The Python functions that a call makes."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize(
    "schedule", [cyclic(wait=1000), torch.profiler.schedule(wait=1000, warmup=1, active=1)], ids=["ours", "torch's"]
)
def test_a_step_that_is_not_recorded_calls_few_functions(tmp_path, schedule):
    with Tracer(tmp_path, run="run", schedule=schedule) as tracer:
        tracer.step()
        names = min((calls(tracer.step) for _ in range(20)), key=len)  # some times a second it looks around
        assert tracer.completed_steps == 21
    assert names == STEP


def test_a_schedule_that_may_count_is_called_once_a_step(tmp_path):
    steps = []

    def schedule(step):
        steps.append(step)
        return ProfilerAction.NONE

    with Tracer(tmp_path, run="run", schedule=schedule) as tracer:
        names = min((calls(tracer.step) for _ in range(20)), key=len)
    assert steps == list(range(21))
    assert len(names) <= 11, names


class Quiet:
    """A supervisor without requests."""

    asks_from = 0

    def idle_until(self, step):
        self.asks_from = step

    def action(self, _step, scheduled):
        return scheduled


@given(
    wait=st.integers(0, 70),
    warmup=st.integers(0, 2),
    active=st.integers(1, 3),
    repeat=st.integers(0, 2),
    skip_first=st.integers(0, 40),
)
def test_steps_that_a_schedule_leaves_out_are_known_ahead(wait, warmup, active, repeat, skip_first):
    schedule = cyclic(wait, warmup, active, repeat, skip_first)
    counter = ProgressCounter()
    recording = SimpleNamespace(counter=counter, trace_writer=SimpleNamespace(selection=Selection()))
    supervisor = Quiet()
    actions = StepActions(schedule, WindowLimit(), recording, supervisor)
    asked = 0
    for step in range(150):
        if step >= supervisor.asks_from:
            assert actions.next() is schedule(step)
            asked += 1
        else:
            assert schedule(step) is ProfilerAction.NONE
        counter.end_batch()
    active_steps = sum(schedule(step) is not ProfilerAction.NONE for step in range(150))
    assert asked <= active_steps * 2 + 150 / 32 + 1
