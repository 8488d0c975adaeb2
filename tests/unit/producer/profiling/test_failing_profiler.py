"""What torch can't record reaches the log, run.json, `status` and `check`, each once, and never the training."""

import gzip
import json
import threading

import pytest
import torch
from click.testing import CliRunner
from torch.autograd import profiler as autograd_profiler
from torch.autograd import profiler_legacy
from torch.profiler import ProfilerActivity, profile

from kinetoscope import Tracer, UsageError, cyclic
from kinetoscope.journal.status import rank_statuses
from kinetoscope_tb.cli.commands import commands

STEPS = 6


def work():
    return float(torch.ones(4, 4).relu().sum())


def trained(tracer, at=None, do=None):
    """Train inside a Tracer; return what was learned."""
    learned = 0.0
    with tracer:
        for step in range(STEPS):
            learned += work()
            if step == at:
                do()
            tracer.step()
    return learned


def content(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def left_out(run):
    (rank,) = json.loads((run / "run.json").read_text())["ranks"]
    return [(left["step"], left["problem"]) for left in rank["left_out"]]


def assert_named_once(run, step, words, log):
    """A loss is reported once in each place."""
    assert [text for text in log() if words in text] == log()
    assert len(log()) == 1
    ((known_step, problem),) = left_out(run)
    assert known_step == step
    assert words in problem
    ((status,),) = [status.left_out for status in rank_statuses(run)]
    assert words in status["problem"]
    checked = CliRunner().invoke(commands, ["check", str(run)])
    output = checked.output or str(checked.exception)
    assert checked.exit_code == 1
    assert output.count(words) == 1


SCHEDULES = {
    "at once": (None, 0),
    "first step": (cyclic(wait=0, warmup=0, active=2), 0),
    "warm-up": (cyclic(wait=0, warmup=1, active=2), 0),
    "later": (cyclic(wait=2, warmup=1, active=2), 2),
    "later without warm-up": (cyclic(wait=2, warmup=0, active=2), 2),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_a_device_that_is_not_there_costs_the_recording_alone(tmp_path, name, log):
    schedule, step = SCHEDULES[name]
    tracer = Tracer(tmp_path, run="run", schedule=schedule, activities=[ProfilerActivity.CUDA], keep_events=True)
    assert trained(tracer) == STEPS * 16
    assert tracer.completed_steps == STEPS
    assert_named_once(tmp_path / "run", step, "The profiler failed, so nothing more is recorded: AssertionError", log)
    assert tracer.key_averages().table() == ""
    assert list(tracer.events()) == []
    with profile(acc_events=True):  # torch is as it was
        work()


class Observer:
    """An execution trace observer that fails in one method."""

    def __init__(self, fails):
        self.fails = fails

    def called(self, name):
        if name == self.fails:
            raise KeyError(name)

    def start(self):
        self.called("start")

    def stop(self):
        self.called("stop")

    def cleanup(self):
        self.called("cleanup")


@pytest.mark.parametrize("fails", ["start", "stop", "cleanup"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_an_observer_that_fails_does_not_reach_the_training(tmp_path, name, fails, log):
    schedule, _ = SCHEDULES[name]
    tracer = Tracer(tmp_path, run="run", schedule=schedule, profiler={"execution_trace_observer": Observer(fails)})
    assert trained(tracer) == STEPS * 16
    assert len(log()) == 1
    assert f"KeyError: '{fails}'" in log()[0]


@pytest.mark.parametrize("method", ["_prepare_trace", "_start_trace", "__exit__"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_an_exception_of_torch_does_not_reach_the_training(tmp_path, name, method, monkeypatch, log):
    schedule, _ = SCHEDULES[name]
    real = getattr(autograd_profiler.profile, method)

    def failing(*args):
        if method == "__exit__":
            real(*args)
        raise RuntimeError("kineto is out of order")

    with monkeypatch.context() as patch:
        patch.setattr(autograd_profiler.profile, method, failing)
        tracer = Tracer(tmp_path, run="run", schedule=schedule)
        assert trained(tracer) == STEPS * 16
    assert len(log()) == 1
    assert "kineto is out of order" in log()[0]
    assert not torch.autograd._profiler_enabled()
    with Tracer(tmp_path, run="again") as tracer:
        work()
    assert len(tracer.saved_traces) == 1


def started(kind):
    if kind == "profile":
        other = profile(acc_events=True)
        other.start()
        return other.stop
    other = autograd_profiler.emit_itt()
    other.__enter__()
    return lambda: other.__exit__(None, None, None)


@pytest.mark.parametrize("kind", ["profile", "emit_itt"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_profiler_that_runs_already_costs_the_windows_that_meet_it(tmp_path, name, kind, log):
    schedule, step = SCHEDULES[name]
    stop = started(kind)
    try:
        assert trained(Tracer(tmp_path, run="run", schedule=schedule)) == STEPS * 16
    finally:
        stop()
    assert_named_once(tmp_path / "run", step, "Another profiler is recording in this process", log)


def test_a_window_that_is_left_out_among_others_is_a_loss(tmp_path, log):
    stop = started("emit_itt")
    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=0, warmup=1, active=1, repeat=3))
    assert trained(tracer, 1, stop) == STEPS * 16
    assert [path.name for path in tracer.saved_traces] == ["rank0.4.pt.trace.json.gz", "rank0.6.pt.trace.json.gz"]
    assert_named_once(tmp_path / "run", 0, "Another profiler is recording in this process", log)


@pytest.mark.parametrize("kind", ["profile", "emit_itt"])
def test_a_profiler_that_ends_before_the_window_costs_nothing(tmp_path, kind, log):
    stop = started(kind)
    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=2, warmup=1, active=2))
    assert trained(tracer, 0, stop) == STEPS * 16
    assert [path.name for path in tracer.saved_traces] == ["rank0.5.pt.trace.json.gz"]
    assert log() == []


@pytest.mark.filterwarnings("ignore:.*profiler_legacy.*:FutureWarning")
@pytest.mark.parametrize("kind", [autograd_profiler.emit_itt, profiler_legacy.profile])
def test_a_profiler_of_this_thread_inside_a_window_ends_it(tmp_path, kind, log):
    def emitting():
        with kind():
            work()

    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=0, warmup=1, active=2, repeat=2))
    assert trained(tracer, 1, emitting) == STEPS * 16
    (first, second) = (content(path)["kinetoscope"] for path in tracer.saved_traces)
    assert (first["reason"], first["is_complete"], second["reason"], second["is_complete"]) == (
        "another profiler",
        False,
        "schedule",
        True,
    )
    assert len(log()) == 1
    with kind():  # torch is as it was
        work()


@pytest.mark.skipif(torch.cuda.is_available(), reason="NVTX works here")
def test_a_profiler_that_can_not_begin_is_not_in_the_way_for_ever(tmp_path, log):
    emitter = autograd_profiler.emit_nvtx()

    def emitting():
        with pytest.raises((AssertionError, RuntimeError)):
            emitter.__enter__()

    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=1, active=2))
    assert trained(tracer, 0, emitting) == STEPS * 16
    assert [path.name for path in tracer.saved_traces] == ["rank0.4.pt.trace.json.gz"]


def test_itt_of_another_thread_is_ignored(tmp_path, log):
    def emitting():
        def elsewhere():
            with autograd_profiler.emit_itt():
                work()

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    tracer = Tracer(tmp_path, run="run")
    assert trained(tracer, 1, emitting) == STEPS * 16
    assert len(tracer.saved_traces) == 1
    assert log() == []


def test_torch_failing_where_the_program_starts_a_profiler_does_not_reach_that_call(tmp_path, monkeypatch, log):
    def own():
        monkeypatch.setattr(tracer._controller.profiler, "stop", lambda: 1 / 0)
        tracer._controller.profiler.profiler.__exit__(None, None, None)
        with profile(acc_events=True):
            work()

    tracer = Tracer(tmp_path, run="run")
    assert trained(tracer, 1, own) == STEPS * 16
    assert any("ZeroDivisionError" in problem for _, problem in left_out(tmp_path / "run"))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("activities", []),
        ("activities", ["CPU"]),
        ("activities", "CPU"),
        ("activities", [ProfilerActivity.CPU, ProfilerActivity.CPU]),
        ("on_trace_ready", "a folder"),
        ("on_window", 3),
        ("on_saved", 3),
    ],
)
def test_arguments_that_can_never_work_are_refused_at_once(tmp_path, argument, value):
    with pytest.raises(UsageError, match=argument):
        Tracer(tmp_path, **{argument: value})


def test_a_failing_trace_id_callback_is_replaced(tmp_path, log):
    tracer = Tracer(tmp_path, run="run", profiler={"custom_trace_id_callback": lambda: 1 / 0})
    assert trained(tracer) == STEPS * 16
    assert len(content(*tracer.saved_traces)["trace_id"]) == 32
    assert log() == ["custom_trace_id_callback failed: ZeroDivisionError: division by zero"]
