"""Windows that the program itself asks its Tracer for."""

import gzip
import json
import threading

import pytest
import torch

from kinetoscope import ScheduleError, Tracer, UsageError, on_request


def test_a_window_on_request_has_its_own_options(tmp_path):
    with Tracer(tmp_path, run="run", schedule=on_request, record_shapes=False) as tracer:
        for step in range(12):
            torch.ones(8, 8).relu().sum()
            if step == 2:
                tracer.request(steps=2, profile_memory=True, record_shapes=True)
            if step == 7:
                other = threading.Thread(target=tracer.request, kwargs={"steps": 1, "warmup": 0})
                other.start()
                other.join()
            tracer.step()
    traces = [json.loads(gzip.decompress(path.read_bytes()))["kinetoscope"] for path in tracer.saved_traces]
    assert [(t["reason"], t["step_first"], t["step_last"], t["options"]["profile_memory"]) for t in traces] == [
        ("request", 4, 5, True),
        ("request", 8, 8, False),
    ]


def test_a_tracer_that_takes_no_requests_says_so(tmp_path):
    with (
        Tracer(tmp_path, run="run", schedule=on_request, requests=False) as tracer,
        pytest.raises(UsageError, match="requests=False"),
    ):
        tracer.request(steps=1)
    with (
        Tracer(tmp_path, run="run2", schedule=on_request) as tracer,
        pytest.raises(UsageError, match="steps=0"),
    ):
        tracer.request(steps=0)


def test_the_schedule_that_waits_for_requests_says_that_it_is_one_itself():
    with pytest.raises(ScheduleError, match="schedule=on_request, without parentheses"):
        on_request()
