"""What stands above a view's rows: which part of the recording they are of."""

import pytest

from kinetoscope_tb.engine.notes import note_of_view
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.machine import MS, US

BASE = "These rows are of the whole recording, 20 ms: step 1 is 10 ms of it."


def recording(before_us):
    """A step of 10 ms, and as long before it one of work that belongs to no step."""
    builder = TraceBuilder().window(0, 20 * MS).launch(MS, before_us, 1).kernel("warm_up", 2 * MS, before_us * US, 1)
    return builder.step(1, 10 * MS, 10 * MS).launch(11 * MS, 1000, 2).kernel("k", 12 * MS, 7 * MS, 2).build()


@pytest.mark.parametrize(("before_us", "says"), [(6000, True), (10, False)])
def test_views_of_the_whole_recording_say_so_where_it_has_more_work_than_the_steps(before_us, says):
    trace = recording(before_us)
    found = {name for name, view in VIEWS.items() if note_of_view(trace, view).startswith(BASE)}
    assert {"kernels", "kernels_by_op", "launches"} <= found if says else not found
    assert not {"copies", "python_calls"} & found  # which have no rows
    assert not {"overview", "steps", "advice", "idle", "health", "memory_curve", "rank_steps"} & found
    assert not note_of_view(trace, VIEWS["kernels"], "step")


def test_without_steps_there_is_no_other_base():
    assert not note_of_view(TraceBuilder().launch(1, 1, 1).kernel("k", 5, 10, 1).build(), VIEWS["kernels"])
