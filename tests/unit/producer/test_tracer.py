import gzip
import json
import re
import threading

import pytest
import torch
from torch.profiler import ProfilerAction, profile
from torch.utils.data import DataLoader

import kinetoscope
import kinetoscope.session.supervisor
from kinetoscope import ProfilerBusyError, ScheduleError, Tracer, UsageError, cyclic
from support.waiting import wait_for

NONE, WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
RECORD, SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


def content(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def ranges(trace):
    """Name, start and end of each annotation, by start, longest first."""
    rows = [e for e in trace["traceEvents"] if e.get("cat") == "user_annotation"]
    return sorted(((e["name"], e["ts"], e["ts"] + e["dur"]) for e in rows), key=lambda row: (row[1], -row[2]))


def names(trace):
    return [name for name, *_ in ranges(trace)]


def work(_batch=None):
    return torch.ones(4, 4).relu().sum()


def test_a_relative_logdir_is_below_the_folder_that_the_program_began_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Tracer("runs", run="run") as tracer:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        for batch in tracer.steps([1]):
            work(batch)
    assert tracer.saved_traces == (tmp_path / "runs/run/rank0.1.pt.trace.json.gz",)
    assert content(*tracer.saved_traces)


def test_a_tracer_that_is_interrupted_while_it_begins_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kinetoscope.session.supervisor.Supervisor, "begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Tracer(tmp_path, run="run").__enter__()
    assert not torch.autograd._profiler_enabled()
    with Tracer(tmp_path, run="again") as tracer:
        work()
    assert len(tracer.saved_traces) == 1


def test_an_exception_on_the_way_to_the_file_costs_the_window_alone(tmp_path, monkeypatch, log):
    schedule = cyclic(wait=0, warmup=1, active=1, repeat=3)  # torch crashes if its handler raises before a warm-up
    with Tracer(tmp_path, run="run", schedule=schedule) as tracer:
        for step in range(6):
            with monkeypatch.context() as patch:
                if step == 1:
                    patch.setattr(tracer._annotations.log, "window_events", lambda _: {}["nothing"])
                work()
                tracer.step()
    assert [path.name for path in tracer.saved_traces] == [f"rank0.{n}.pt.trace.json.gz" for n in (4, 6)]
    assert [text for text in log() if "A recording was lost: KeyError" in text]


def test_without_a_schedule_everything_is_one_window(tmp_path, log):
    with Tracer(tmp_path, run="run") as tracer:
        for batch in tracer.steps([1, 2, 3]):
            work(batch)
    assert tracer.saved_traces == (tmp_path / "run" / "rank0.3.pt.trace.json.gz",)
    trace = content(*tracer.saved_traces)
    steps = [name for name in names(trace) if name.startswith("ProfilerStep")]
    assert steps == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert sum(e["name"] == "aten::relu" for e in trace["traceEvents"]) == 3
    assert log() == []


def test_a_trace_has_metadata_about_its_recording(tmp_path):
    schedule = cyclic(wait=1, warmup=1, active=2)
    with Tracer(tmp_path, run="run", schedule=schedule, profile_memory=True, system=()) as tracer:
        for _ in range(4):
            with tracer.marker('é"'):
                work()
            tracer.step()
    metadata = content(*tracer.saved_traces)["kinetoscope"]
    started, ended = metadata.pop("started_ns"), metadata.pop("ended_ns")
    assert 0 < ended - started < 60e9
    assert metadata.pop("pid") > 0
    assert metadata.pop("host")
    (second, second_start, second_end), (third, third_start, third_end) = metadata.pop("step_times_ns")
    assert (second, third) == (2, 3)
    assert started < second_start < second_end <= third_start < third_end < ended
    progress = metadata.pop("progress")
    assert (progress["batch"], progress["epoch"], progress["batch_in_epoch"]) == (4, 0, 4)
    assert metadata.pop("python_version")
    usual_step = metadata.pop("usual_step")
    assert (usual_step["steps"], usual_step["median_ns"] > 0) == (1, True)  # the first one: the others have a profiler
    cpu = metadata.pop("cpu")  # None where the system doesn't count
    assert cpu is None or cpu["process_ns"] > 0
    assert metadata == {
        "version": kinetoscope.__version__,
        "run": "run",
        "global_rank": 0,
        "world_size": 1,
        "local_rank": None,
        "node_rank": None,
        "torch_version": str(torch.__version__),
        "cuda_version": torch.version.cuda,
        "window": 0,
        "step_first": 2,
        "step_last": 3,
        "is_last_step_whole": True,
        "steps_completed": 4,
        "reason": "schedule",
        "is_complete": True,
        "options": {
            "activities": ["CPU"],
            "record_shapes": True,
            "profile_memory": True,
            "with_stack": False,
            "with_flops": False,
            "with_modules": False,
        },
        "schedule": {
            "wait": 1,
            "warmup": 1,
            "active": 2,
            "repeat": 1,
            "skip_first": 0,
            "skip_first_wait": False,
            "per": "run",
        },
        "markers": {'é"': {"label": 'é"', "categories": []}},
        "counters": {},
        "dropped": 0,
        "double_steps": 0,
        "clock": None,
        "cluster": {},
        "why": None,
        "mesh": {},
        "ranks": None,
    }


@pytest.mark.parametrize(
    ("schedule", "spans"),
    [
        (cyclic(wait=1, warmup=1, active=2, repeat=2), [4, 8]),
        (cyclic(wait=0, warmup=0, active=1, repeat=3), [1, 2, 3]),
        (cyclic(wait=0, warmup=1, active=2, repeat=0), [3, 6, 9]),
        (cyclic(wait=6, warmup=1, active=9), [9]),
        (torch.profiler.schedule(wait=3, warmup=1, active=1, repeat=1), [5]),
        (lambda step: [NONE, WARMUP, RECORD, NONE][step % 4], [3, 7]),
        (lambda step: SAVE if step == 4 else NONE, [5]),
    ],
    ids=["cycles", "no warm-up", "no pause", "ends inside", "torch's", "without a save", "one step"],
)
def test_each_window_is_a_file_named_by_the_completed_steps(tmp_path, schedule, spans, log):
    with Tracer(tmp_path, run="run", schedule=schedule) as tracer:
        for batch in tracer.steps(range(9)):
            work(batch)
    assert [path.name for path in tracer.saved_traces] == [f"rank0.{span}.pt.trace.json.gz" for span in spans]
    for path, span in zip(tracer.saved_traces, spans, strict=True):
        trace = content(path)
        steps = [name for name in names(trace) if name.startswith("ProfilerStep")]
        metadata = trace["kinetoscope"]
        assert steps == [f"ProfilerStep#{n}" for n in range(metadata["step_first"], span)]
        assert metadata["step_last"] == span - 1
    assert log() == []


def test_ranges_never_overlap_partly(tmp_path):
    with Tracer(tmp_path, run="run") as tracer:
        for _ in range(2):
            with tracer.marker("epoch"):
                for batch in tracer.steps(iter([1, 2])):  # a loader without a length
                    with tracer.marker("forward"):
                        work(batch)
        tracer.step()
        with tracer.marker("tail"):
            work()
            tracer.step()
            work()
    open_ranges = []
    for name, start, end in ranges(content(*tracer.saved_traces)):
        while open_ranges and open_ranges[-1][2] <= start:
            open_ranges.pop()
        assert not open_ranges or end <= open_ranges[-1][2], (name, open_ranges[-1])
        open_ranges.append((name, start, end))
    assert sum(name == "tail" for name in names(content(*tracer.saved_traces))) == 2


@pytest.mark.parametrize("loader", [[0, 1, 2], DataLoader(range(3))], ids=["list", "DataLoader"])
def test_the_wait_for_data_looks_the_same_for_every_loader(tmp_path, loader):
    with Tracer(tmp_path, run="run") as tracer:
        assert [int(batch) for batch in tracer.steps(loader)] == [0, 1, 2]
    waits = [name for name in names(content(*tracer.saved_traces)) if name.startswith("enumerate(DataLoader)#")]
    assert len(waits) == 4  # the last one learns that there is no more
    assert len(set(waits)) == 1


def test_a_marker_decorates_recursive_functions_and_returns_their_value(tmp_path):
    with Tracer(tmp_path, run="run") as tracer:
        marker = tracer.marker("factorial")

        @marker
        def factorial(n):
            """Its own."""
            return n * factorial(n - 1) if n else 1

        assert factorial(4) == 24
        assert factorial.__doc__ == "Its own."
        with marker, marker:
            work()
    assert names(content(*tracer.saved_traces)).count("factorial") == 7
    assert factorial(3) == 6  # outside the `with` it is just the function


def test_a_marker_ends_with_an_exception_and_passes_it_on(tmp_path):
    with Tracer(tmp_path, run="run") as tracer:
        with pytest.raises(KeyError), tracer.marker("fails"):
            raise KeyError
        with tracer.marker("after"):
            work()
    (_, _, end), (_, start, _) = (row for row in ranges(content(*tracer.saved_traces)) if "Step" not in row[0])
    assert end <= start


def test_a_generator_can_not_be_decorated(tmp_path):
    def generator():
        yield

    with pytest.raises(UsageError, match="generator"):
        Tracer(tmp_path).marker("name")(generator)


def test_an_exception_in_the_loop_still_saves_the_window(tmp_path):
    def training(tracer):
        with tracer:
            for batch in tracer.steps(range(9)):
                work()
                if batch == 3:
                    raise KeyError(batch)

    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=1, active=4))
    with pytest.raises(KeyError):
        training(tracer)
    metadata = content(*tracer.saved_traces)["kinetoscope"]
    assert (metadata["reason"], metadata["step_first"], metadata["step_last"]) == ("exception: KeyError", 2, 3)
    assert not metadata["is_last_step_whole"]


@pytest.mark.parametrize(
    ("options", "is_text"),
    [
        ({"keep_events": False}, False),
        ({"keep_events": False, "with_modules": True}, True),
        ({"keep_events": False, "on_window": id}, True),
        ({"keep_events": False, "on_trace_ready": id}, True),
        ({}, True),  # keeps the events of a window without a schedule
    ],
)
def test_stacks_are_python_calls_and_text_if_the_program_may_read_events(tmp_path, options, is_text):
    with Tracer(tmp_path, run="run", with_stack=True, **options) as tracer:
        work()
    events = content(*tracer.saved_traces)["traceEvents"]
    calls = [e["name"] for e in events if e.get("cat") == "python_function"]
    assert any("test_tracer.py" in name and name.endswith(": work") for name in calls)
    stacks = [e["args"].get("Call stack", "") for e in events if e.get("cat") == "cpu_op"]
    assert {"test_tracer.py" in stack for stack in stacks} == {is_text}


def test_a_disabled_tracer_does_nothing(tmp_path, log):
    tracer = Tracer(tmp_path / "logdir", enabled=False)
    loader = [1, 2]
    with tracer, Tracer(tmp_path, enabled=False), tracer.marker("m"):
        assert type(tracer.steps(loader)) is type(iter(loader))
        tracer.step()
        with profile(acc_events=True):
            work()
    tracer.step()
    assert list(tmp_path.iterdir()) == []
    assert log() == []


# What can't work is refused


def test_a_second_tracer_is_refused_before_torch_crashes(tmp_path):
    with Tracer(tmp_path, schedule=lambda step: SAVE if step == 1 else NONE, run="run") as tracer:
        with pytest.raises(ProfilerBusyError, match="Another Tracer"), Tracer(tmp_path):
            pass
        tracer.step()
        work()
    assert len(tracer.saved_traces) == 1


def test_a_tracer_that_was_started_and_forgotten_ends_when_another_one_starts(tmp_path, log):
    first, second = Tracer(tmp_path, run="first"), Tracer(tmp_path, run="second")
    assert kinetoscope.current() is None
    first.start()
    assert kinetoscope.current() is first
    work()
    second.start()
    assert kinetoscope.current() is second
    assert len(first.saved_traces) == 1
    first.stop()
    second.stop()
    assert kinetoscope.current() is None
    messages = log()
    assert re.fullmatch(
        r"The Tracer that was started at .*test_tracer\.py:\d+ wasn't stopped\. It ends now.*", messages[0]
    )
    assert re.fullmatch(
        r"stop\(\) does nothing: this Tracer has ended already\. The active one .*\.py:\d+\.", messages[1]
    )


def test_stop_says_that_there_is_nothing_to_stop(tmp_path, log):
    Tracer(tmp_path, enabled=False).stop()
    assert log() == []
    Tracer(tmp_path).stop()
    assert log() == ["stop() does nothing: this Tracer was never started."]


def test_a_tracer_isn_t_ended_from_within_its_own_callback(tmp_path):
    refusals = []

    def starts_another(_tracer):
        with pytest.raises(ProfilerBusyError, match="Another Tracer"):
            Tracer(tmp_path, run="inner").start()
        refusals.append(True)

    tracer = Tracer(tmp_path, run="outer", on_trace_ready=starts_another)
    tracer.start()
    work()
    tracer.stop()
    assert (refusals, len(tracer.saved_traces)) == ([True], 1)


def test_a_window_that_meets_another_profiler_is_left_out(tmp_path, log):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=1, active=1, repeat=2)) as tracer:
        for batch in tracer.steps(range(6)):
            if batch == 0:
                other = profile(acc_events=True)
                other.start()
            work()
            if batch == 1:
                other.stop()
    assert [path.name for path in tracer.saved_traces] == ["rank0.6.pt.trace.json.gz"]
    assert log() == ["Another profiler is recording in this process; this window is left out."]


def test_steps_outside_the_with_are_refused(tmp_path):
    tracer = Tracer(tmp_path, run="run")
    for use in (tracer.step, lambda: tracer.steps([])):
        with pytest.raises(UsageError, match="outside its `with`"):
            use()
    with tracer:
        work()
    with pytest.raises(UsageError, match="records once"):
        tracer.__enter__()


def test_only_the_thread_that_entered_counts_steps(tmp_path):
    problems = []

    def elsewhere():
        try:
            tracer.step()
        except UsageError as error:
            problems.append(str(error))

    with Tracer(tmp_path, run="run") as tracer:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert len(problems) == 1
    assert "Only the thread" in problems[0]


@pytest.mark.parametrize("schedule", [3, lambda step: "record"])
def test_a_schedule_that_is_none_is_refused(tmp_path, schedule):
    with pytest.raises(ScheduleError, match=r"function of the step|must return"), Tracer(tmp_path, schedule=schedule):
        pass
    with Tracer(tmp_path, run="run"):
        pass  # the refused one left nothing active


def test_a_logdir_elsewhere_is_refused():
    with pytest.raises(UsageError, match="local folder"):
        Tracer("s3://bucket/logdir")


# What goes wrong with a recording doesn't reach the training


@pytest.mark.parametrize(
    ("schedule", "steps", "message"),
    [
        (cyclic(wait=10, active=1), 8, "0 windows: the schedule needs 12 steps, the loop made 8."),
        (torch.profiler.schedule(wait=1, warmup=1, active=1), 1, "0 windows: the schedule needs 3 steps, the loop made 1."),
        (cyclic(), 0, "0 windows: the schedule needs 4 steps, the loop made 0; call step() after each, or loop over steps(loader)."),
        (lambda step: NONE, 2, "0 windows: the schedule recorded none of the steps, the loop made 2."),
    ],
)  # fmt: skip
def test_a_tracer_without_a_window_says_why(tmp_path, schedule, steps, message, log):
    with Tracer(tmp_path, schedule=schedule) as tracer:
        for batch in tracer.steps(range(steps)):
            work(batch)
    assert log() == [message]
    (run,) = tmp_path.iterdir()
    assert [path.name for path in sorted(run.iterdir())] == [".work", "run.json"]
    (rank,) = json.loads((run / "run.json").read_text())["ranks"]
    assert (rank["state"], rank["problem"] + ".", rank["steps_completed"]) == ("ended", message, steps)


def test_a_logdir_that_can_not_be_written_is_reported_when_the_training_begins(tmp_path, log):
    (tmp_path / "file").touch()
    with Tracer(tmp_path / "file", run="run", schedule=cyclic(wait=1000)) as tracer:
        tracer.step()
        assert wait_for(lambda: tracer._trace_writer.rank_and_folder())
        (problem,) = log()
    assert problem.startswith(f"The logdir {tmp_path / 'file'} can't be written: ")
    assert "`kinetoscope recover`" in problem


def test_a_logdir_that_can_not_be_written_is_reported_once(tmp_path, log):
    (tmp_path / "file").touch()
    batches = 0
    with Tracer(tmp_path / "file", run="run", schedule=cyclic(warmup=0, active=1, repeat=3)) as tracer:
        for _ in tracer.steps(range(3)):
            work()
            batches += 1
    begin, first, last = (line for line in log() if not line.startswith("Waiting for "))
    assert batches == 3
    assert begin.startswith("The logdir ")
    assert "rank0.1.pt.trace.json.gz wasn't written" in first
    assert last == "3 recordings were lost, 0 saved."


def test_a_schedule_that_fails_later_ends_the_recording_only(tmp_path, log):
    def schedule(step):
        return RECORD if step < 2 else 1 / 0

    with Tracer(tmp_path, run="run", schedule=schedule) as tracer:
        for batch in tracer.steps(range(5)):
            work(batch)
    assert tracer.completed_steps == 5
    assert log() == ["The profiler failed, so nothing more is recorded: ZeroDivisionError: division by zero"]
    assert [path.name for path in tracer.saved_traces] == ["rank0.2.pt.trace.json.gz"]


def test_a_step_that_ends_in_an_optimizer_s_hook_is_refused(tmp_path):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Tracer(tmp_path, run="run") as tracer:
        hook = optimizer.register_step_post_hook(lambda *_: tracer.step())
        model(torch.ones(1, 2)).sum().backward()
        with pytest.raises(UsageError, match="hook of an optimizer"):
            optimizer.step()
        hook.remove()
        optimizer.step()
        tracer.step()
    assert tracer.completed_steps == 1


@pytest.mark.parametrize("keeps", [False, True])
def test_a_window_s_events_are_freed_on_another_thread(tmp_path, keeps):
    threads = []

    class Event:
        def __del__(self):
            threads.append(threading.current_thread())

    def on_window(profiler):
        profiler.profiler.event = Event()

    schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)
    with Tracer(tmp_path, schedule=schedule, on_window=on_window, keep_events=keeps) as tracer:
        for _ in range(7):
            work()
            tracer.step()
    assert len(threads) == (1 if keeps else 2)
    assert threading.current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)
