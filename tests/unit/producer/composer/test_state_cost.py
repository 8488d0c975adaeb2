"""What the progress costs a marker, as the functions that it calls: times vary on a busy machine."""

import sys
from datetime import timedelta

from kinetoscope.composer import Count, Profiler, ProfilerAction, State, Timestamp, TraceHandler

MARKER = {"sys_prof_cpu": False, "torch_prof_profile_memory": False, "torch_prof_with_flops": False}


def calls(function):
    """The Python functions that a call makes."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names[1:]  # without `function` itself


def test_the_timestamp_is_made_once_a_batch():
    state = State("run")
    first = state.timestamp
    assert state.timestamp is first
    assert calls(lambda: state.timestamp) == ["State.timestamp", "ProgressCounter.progress"]
    state.step(samples=4, tokens=8)
    second = state.timestamp
    assert (second.batch, second.sample, second.token, second.batch_in_epoch) == (1, 4, 8, 1)
    state.epoch()
    assert (state.timestamp.epoch, state.timestamp.batch_in_epoch, second.epoch) == (1, 0, 0)


def test_a_timestamp_has_composer_s_types():
    state = State("run", timestamp=Timestamp(epoch=Count(1), batch=Count(3), total_wct=timedelta(seconds=2)))
    for name, value in vars(state.timestamp).items():
        assert isinstance(value, timedelta if name.endswith("_wct") else Count), name
    assert state.timestamp.batch.value == 3
    assert state.timestamp.total_wct == timedelta(seconds=2)
    assert Timestamp.of(state.timestamp.progress) == state.timestamp


def test_an_edge_of_a_marker_calls_few_functions():
    profiler = Profiler(lambda state: ProfilerAction.ACTIVE, TraceHandler(), **MARKER)
    with State("run", profiler=profiler) as state:
        marker = profiler.marker("m")
        _ = state.timestamp
        names = calls(marker.start)
    assert len(names) <= 9, names
