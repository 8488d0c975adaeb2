"""The cost of a step outside a window, as the number of functions it calls: times vary on a busy machine."""

import sys

from kinetoscope import Tracer, cyclic

MOST = 10
"""Each costs some microseconds in a training, whose own data has driven it from the caches."""


def calls(function):
    """The Python functions that a call makes."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


def test_a_step_that_is_not_recorded_calls_few_functions(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=1000)) as tracer:
        tracer.step()
        names = min((calls(tracer.step) for _ in range(20)), key=len)  # some times a second it looks around
        assert tracer.completed_steps == 21
    assert len(names) <= MOST, names
    assert "Supervisor.end_step" in names
