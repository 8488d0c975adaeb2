"""Windows that a budget chooses in a real training: which, why, and what is known of their cost."""

import gzip
import itertools
import json
import sys
import time

import pytest
import torch

from kinetoscope import Tracer, UsageError, cyclic, on_request
from kinetoscope.error_log import ErrorLog
from kinetoscope.scheduling.request import Request, request_from_json
from kinetoscope.scheduling.step_times import LEARNED
from kinetoscope.session.budgeted_windows import _Sizes, compilations, sizes_of
from support.waiting import wait_for

from .test_idle_step import STEP, calls

PLENTY = "90%"
STEP_S = 0.1


def windows(folder):
    """Reason and sentence of each window, from the traces and from run.json."""
    run = json.loads((folder / "run/run.json").read_text())
    outcomes = [window["ranks"]["0"] for window in run["windows"]]
    traces = [
        json.loads(gzip.decompress((folder / "run" / outcome["file"]).read_bytes()))["kinetoscope"]
        for outcome in outcomes
    ]
    assert [(trace["reason"], trace["why"]) for trace in traces] == [(o["reason"], o["why"]) for o in outcomes]
    return run, [(trace["reason"], trace["why"], trace["step_last"] - trace["step_first"] + 1) for trace in traces]


def chooser_of(tracer):
    return tracer._supervisor.budgeted_windows._chooser


def last(tracer, step_s):
    """Let the next steps last so long for the budget, however busy the machine is."""
    chooser = chooser_of(tracer)
    tracer._supervisor.budgeted_windows.look()  # earlier steps lasted as they did
    chooser.add_step = lambda _, later: type(chooser).add_step(chooser, int(step_s * 1e9), later)


def train(tracer, steps, step_s=STEP_S):
    last(tracer, step_s)
    for _ in range(steps):
        time.sleep(0.001)
        torch.ones(2) + 1
        tracer.step()


def until(tracer, is_true):
    """Take steps until something is true."""
    wait_for(lambda: train(tracer, 1) or is_true())


def record_first(tracer):
    """Take steps until the first steady ones are recorded, and the budget allows two more windows."""
    until(tracer, lambda: tracer.saved_traces)
    until(tracer, lambda: chooser_of(tracer).ledger.affords(0.1, 2))


def test_first_steady_steps_and_a_slow_down_are_recorded_with_their_reason(tmp_path):
    with Tracer(tmp_path, run="run", budget=PLENTY) as tracer:
        record_first(tracer)
        slow_from = tracer.completed_steps
        train(tracer, 30, 3 * STEP_S)
    run, (first, slow) = windows(tmp_path)
    assert run["schedule"] == "90%"
    assert first[0] == "first_steps"
    assert first[1].startswith("the first steady steps, of 1")
    assert first[2] == slow[2] == 3
    assert slow[0] == "slow_down"
    assert f"since step {slow_from}," in slow[1]
    assert slow_from < run["windows"][1]["step_first"] <= slow_from + 20


def test_inputs_of_a_new_size_are_recorded_if_they_stay(tmp_path):
    sizes = []
    with Tracer(tmp_path, run="run", budget=PLENTY) as tracer:
        record_first(tracer)
        batches = tracer.steps([torch.ones(size, 2) for size in (4, 4, 7, 4, 4, *[8] * 20)])
        sizes.extend((tracer.completed_steps, len(batch)) for batch in batches)
    _, found = windows(tmp_path)
    first = next(step for step, size in sizes if size == 8)
    sentence = f"the inputs have new sizes since step {first}: (8, 2)"
    assert [why for reason, why, _ in found if reason == "new_sizes"] == [sentence]


def test_steps_after_another_compilation_are_recorded(tmp_path, monkeypatch):
    count = itertools.count()
    with Tracer(tmp_path, run="run", budget=PLENTY) as tracer:
        record_first(tracer)
        monkeypatch.setattr("kinetoscope.session.budgeted_windows.compilations", lambda: next(count) > 0)
        until(tracer, lambda: len(tracer.saved_traces) > 1)
    assert "recompilation" in [reason for reason, _, _ in windows(tmp_path)[1]]


def test_compilations_are_those_of_torch():
    torch._dynamo.reset()
    function = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    function(torch.ones(2))
    before = compilations()
    function(torch.ones(3))
    assert compilations() == before + 1


def test_a_small_budget_says_when_it_allows_the_first_window(tmp_path, log):
    with Tracer(tmp_path, run="run", budget="1%, 1 GB/day") as tracer:
        train(tracer, LEARNED + 5)
    assert not tracer.saved_traces
    (message,) = log()
    assert message.startswith(
        "0 windows: a budget of 1%, 1 GB/day allows the first one after 300 s, the training took 7 s"
    )


def test_what_earlier_attempts_wrote_counts(tmp_path):
    for name in ("run", "run.1"):
        (tmp_path / name).mkdir()
        outcomes = [{"bytes": 600_000, "saved_ns": time.time_ns() - age * 10**9} for age in (30 * 3600, 3600)]
        manifest = {"windows": [{"ranks": {"0": outcome}} for outcome in (*outcomes, "x", {"bytes": -1})]}
        (tmp_path / name / "run.json").write_text(json.dumps(manifest))
        (tmp_path / name / "rank0.1.pt.trace.json").write_text("{}")
    with Tracer(tmp_path, run="run", budget=f"{PLENTY}, 1.3 MB/day") as tracer:
        chooser = chooser_of(tracer)
        until(tracer, lambda: chooser.is_ready and chooser.is_steady)
        assert [size for _, size in chooser.ledger._sizes] == [600_000, 600_000]
    assert not tracer.saved_traces


def test_a_step_outside_a_window_calls_no_functions_more(tmp_path):
    with Tracer(tmp_path, run="run", budget="1%") as tracer:
        train(tracer, LEARNED + 1)
        del chooser_of(tracer).add_step
        names = min((calls(tracer.step) for _ in range(40)), key=len)
    assert names == STEP


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": "0.5%", "schedule": cyclic()},
        {"budget": "0.5%", "requests": False},
        {"budget": "0.5"},
        {"budget": "1%, 2%"},
        {"budget": "0%"},
        {"budget": "100%"},
        {"budget": "2 GB"},
        {"budget": "nan%"},
        {"budget": "-1%"},
        {"budget": "1%,"},
        {"budget": "1 GB/day, 2 GB/day"},
        {"budget": "0 GB/day"},
    ],
)
def test_what_no_budget_can_mean_is_refused(tmp_path, arguments):
    with pytest.raises(UsageError, match="budget="):
        Tracer(tmp_path, **arguments)


def test_a_schedule_that_waits_for_requests_goes_with_a_budget(tmp_path):
    Tracer(tmp_path, budget="2 GB/day", schedule=on_request)


def test_sizes_are_those_of_nested_tensors():
    assert sizes_of({"x": torch.ones(2, 3), "y": [torch.ones(4), "text"]}) == ((2, 3), ((4,), None))
    sizes = _Sizes()
    texts = [sizes.new_sizes(torch.ones(size)) for size in (2, 3, 3, 2, 3, 3, 3, 3)]
    assert texts == [None, None, None, None, None, None, "(3,)", None]


def test_batches_that_fail_are_not_watched_any_more(tmp_path, log):
    class Odd(torch.Tensor):
        @property
        def shape(self):
            raise RuntimeError("no shape")

    with Tracer(tmp_path, run="run", budget="1%") as tracer:
        assert len(list(tracer.steps([torch.ones(2).as_subclass(Odd)] * 3))) == 3
    assert [line for line in log() if "sizes of inputs" in line] == [
        "The sizes of inputs aren't watched: RuntimeError: no shape"
    ]
    assert isinstance(tracer._error_log, ErrorLog)


def test_why_is_a_short_text_of_a_request():
    assert Request(why="x").to_json()["why"] == "x"
    for why in (3, "x" * 301):
        with pytest.raises(UsageError, match="why"):
            request_from_json({"why": why})
    assert "torch" in sys.modules
