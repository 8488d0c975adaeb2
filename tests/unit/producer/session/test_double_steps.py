"""A loop over `steps()` that calls `step()` as well: each batch is one step, and the recording says so."""

import gzip
import json

import pytest
import torch

from kinetoscope import Tracer, cyclic
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read

WARNING = (
    "step() was called in a loop over steps(), which counts the batches itself: each batch counts as one step. "
    "Remove one of the two."
)


def work():
    return torch.ones(64, 64).relu().sum()


def step_names(path):
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return sorted(str(e["name"]) for e in events if str(e.get("name")).startswith("ProfilerStep"))


@pytest.mark.parametrize("loader", [[0] * 8, None], ids=["length", "no length"])
def test_each_batch_is_one_step(tmp_path, log, loader):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=2, active=3, repeat=2)) as tracer:
        for _ in tracer.steps(loader or iter([0] * 8), samples=4):
            work()
            tracer.step()
    assert (tracer.completed_steps, tracer.progress.sample, tracer.progress.epoch) == (8, 32, 1)
    assert log().count(WARNING) == 1
    first, *_ = tracer.saved_traces
    assert step_names(first) == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]
    trace = read(str(first))
    assert [d.count for d in diagnose(trace) if (d.rule, d.level) == ("steps_counted_twice", "warning")] == [6]


def test_the_counts_of_both_calls_are_used(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=100)) as tracer:
        for batch in tracer.steps([1, 2, 3], samples=lambda batch: batch, tokens=7):
            tracer.step(samples=10 * batch)
    assert (tracer.progress.batch, tracer.progress.sample, tracer.progress.token) == (3, 60, 21)


def test_a_loop_that_was_left_leaves_its_batch_to_nobody(tmp_path, log):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=100)) as tracer:
        for _ in tracer.steps([1, 2, 3], samples=5):
            break
        tracer.step()
        assert (tracer.progress.batch, tracer.progress.sample) == (1, 0)
        batches = tracer.steps([1, 2, 3])
        next(batches)  # one that isn't finished, and a loop of the program's own beside it
        for _ in range(4):
            tracer.step()
    assert tracer.completed_steps == 5
    assert log().count(WARNING) == 1
