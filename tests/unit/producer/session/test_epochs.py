"""What a Tracer counts: batches, epochs, samples, and where windows end with them."""

import gzip
import json

import pytest
import torch

from kinetoscope import Tracer, cyclic
from kinetoscope.progress import Progress


def windows(tracer):
    """Reason, first and last step, and the steps in it, of each window."""
    facts = []
    for path in tracer.saved_traces:
        trace = json.loads(gzip.decompress(path.read_bytes()))
        metadata = trace["kinetoscope"]
        names = [e["name"] for e in trace["traceEvents"] if str(e.get("name")).startswith("ProfilerStep")]
        facts.append((metadata["reason"], metadata["step_first"], metadata["step_last"], sorted(names)))
    return facts


def steps(first, last):
    return [f"ProfilerStep#{n}" for n in range(first, last + 1)]


def train(tracer, loader, epochs):
    for _ in range(epochs):
        for _ in tracer.steps(loader()):
            torch.ones(2).relu()


def test_epochs_samples_and_tokens_are_counted(tmp_path):
    with Tracer(tmp_path, schedule=lambda step: torch.profiler.ProfilerAction.NONE) as tracer:
        for _ in range(2):
            for _ in tracer.steps([[1, 2], [3]], samples=len, tokens=100):
                pass
            tracer.epoch()  # no news
        tracer.step(samples=4)
        now = tracer.progress
    assert (now.epoch, now.batch, now.batch_in_epoch) == (2, 5, 1)
    assert (now.sample, now.sample_in_epoch, now.token, now.token_in_epoch) == (10, 4, 400, 0)


@pytest.mark.parametrize("loader", [lambda: [0, 1, 2], lambda: iter([0, 1, 2])], ids=["length", "no length"])
def test_an_epoch_s_schedule_restarts_and_a_window_ends_with_the_epoch(tmp_path, loader):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=1, active=9, per="epoch")) as tracer:
        train(tracer, loader, epochs=2)
    facts = windows(tracer)
    assert [(reason, first, last) for reason, first, last, _ in facts] == [("epoch", 1, 2), ("epoch", 4, 5)]
    assert [names[:2] for *_, names in facts] == [steps(1, 2), steps(4, 5)]  # without a length a last wait follows


@pytest.mark.parametrize("loader", [lambda: [0, 1], lambda: iter([0, 1])], ids=["length", "no length"])
def test_windows_of_epochs_that_follow_each_other_are_apart_and_none_is_empty(tmp_path, loader):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=0, active=2, repeat=0, per="epoch")) as tracer:
        train(tracer, loader, epochs=2)
    assert [(first, last, names) for _, first, last, names in windows(tracer)] == [
        (0, 1, steps(0, 1)),
        (2, 3, steps(2, 3)),
    ]


def test_a_hand_written_loop_counts_its_epochs(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=0, active=9, per="epoch")) as tracer:
        for _ in range(2):
            for _ in range(3):
                torch.ones(2).relu()
                tracer.step()
            tracer.epoch()
    assert [(reason, first) for reason, first, _, _ in windows(tracer)] == [("epoch", 1), ("epoch", 4)]
    assert all(set(steps(first, first + 1)) <= set(names) for _, first, _, names in windows(tracer))


def test_a_window_of_the_run_goes_on_over_epochs(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=1, active=3)) as tracer:
        train(tracer, lambda: iter([0, 1, 2]), epochs=2)
    assert windows(tracer) == [("schedule", 2, 4, steps(2, 4))]


def test_a_resumed_training_continues_its_step_numbers_and_restarts_its_schedule(tmp_path):
    start = Progress(epoch=3, batch=100, batch_in_epoch=10, sample=400, sample_in_epoch=40)
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=1, active=1), progress=start) as tracer:
        train(tracer, lambda: [0, 1, 2], epochs=1)
    assert windows(tracer) == [("schedule", 101, 101, steps(101, 101))]
    assert tracer.saved_traces[0].name == "rank0.102.pt.trace.json.gz"
    metadata = json.loads(gzip.decompress(tracer.saved_traces[0].read_bytes()))["kinetoscope"]["progress"]
    assert (metadata["epoch"], metadata["batch_in_epoch"], metadata["sample"]) == (3, 12, 400)


def test_a_window_that_lasts_too_long_ends_at_the_next_step(tmp_path):
    with Tracer(tmp_path, run="run", max_window_s=1e-9) as tracer:
        train(tracer, lambda: [0, 1, 2], epochs=1)
    assert windows(tracer) == [("max_window_s", 0, 0, steps(0, 0))]


def test_a_window_that_is_cut_off_in_its_first_step_does_not_replace_the_one_before(tmp_path):
    def training():
        with tracer:
            for step in tracer.steps(range(3)):
                torch.ones(2).relu()
                if step == 1:
                    raise KeyError

    tracer = Tracer(tmp_path, run="run", schedule=cyclic(warmup=0, active=1, repeat=0))
    with pytest.raises(KeyError):
        training()
    assert windows(tracer) == [("schedule", 0, 0, steps(0, 0)), ("exception: KeyError", 1, 1, steps(1, 1))]
    assert [path.name for path in tracer.saved_traces] == ["rank0.1.pt.trace.json.gz", "rank0.2.pt.trace.json.gz"]


def test_a_window_that_begins_with_the_end_of_the_loop_is_not_saved(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=0, active=1, repeat=0)) as tracer:
        train(tracer, lambda: [0, 1], epochs=1)
    assert [(first, last) for _, first, last, _ in windows(tracer)] == [(0, 0), (1, 1)]
