"""`kinetoscope.profiler.profile` beside torch's class: the same names, one run per folder, and words for wrong arguments."""

import gzip
import json
import os

import pytest
import torch
import torch.profiler

import kinetoscope.profiler
from kinetoscope import ProfilerBusyError, ScheduleError, Tracer, UsageError, cyclic, process_id, trace_handler
from kinetoscope.profiler import ProfilerActivity, continued_runs, profile, schedule, tensorboard_trace_handler

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own


@pytest.fixture(autouse=True)
def new_process(monkeypatch, tmp_path):
    """Nothing is recorded yet, and the folder is empty."""
    monkeypatch.setattr(continued_runs, "_runs", {})
    monkeypatch.chdir(tmp_path)


def work():
    torch.ones(4, 4).relu().sum()


def recorded(steps=4, **arguments):
    with profile(on_trace_ready=tensorboard_trace_handler("log"), **arguments) as prof:
        for _ in range(steps):
            work()
            prof.step()
    return prof


def runs(folder):
    """The windows of each run in a folder, as its manifest has them."""
    return {
        path.parent.name: [window["span"] for window in json.loads(path.read_text())["windows"]]
        for path in sorted(folder.glob("*/run.json"))
    }


def files(prof):
    return [path.name.partition(".pt")[0] for path in prof.saved_traces]


def content(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def test_it_has_all_names_of_torch_s_module_and_class():
    modules = (torch.profiler, kinetoscope.profiler), (torch.profiler.profiler, kinetoscope.profiler.profiler)
    for theirs, ours in modules:
        assert [name for name in theirs.__all__ if not hasattr(ours, name)] == []
    torch_s, prof = torch.profiler.profile(), profile()
    assert [name for name in dir(torch_s) if not name.startswith("__") and not hasattr(prof, name)] == []
    for name in set(vars(torch_s)) - {"action_map", "schedule"}:
        if not name.startswith("_"):
            assert getattr(prof, name) == getattr(torch_s, name), name
    with pytest.raises(AttributeError, match=r"'profile' object has no attribute 'nothing'$"):
        _ = prof.nothing
    with pytest.raises(AttributeError, match=r"'marker'; its `tracer` has, .* tracer\.marker"):
        _ = prof.marker
    with pytest.raises(AttributeError, match=r"'kinetoscope\.profiler' has no attribute 'nothing'"):
        _ = kinetoscope.profiler.nothing


def test_torch_s_own_class_is_made_once_and_records_once(monkeypatch):
    made, started = [], []
    init, start = torch.profiler.profile.__init__, torch.autograd.profiler.profile._start_trace
    monkeypatch.setattr(torch.profiler.profile, "__init__", lambda self, **kwargs: made.append(init(self, **kwargs)))
    monkeypatch.setattr(torch.autograd.profiler.profile, "_start_trace", lambda self: started.append(start(self)))
    prof = recorded(schedule=schedule(wait=1, warmup=1, active=2, repeat=1))
    assert (len(made), len(started)) == (1, 1)
    assert files(prof) == ["rank0.4"]


def test_profiles_in_one_folder_are_one_run(tmp_path):
    spans = [files(recorded(schedule=schedule(wait=1, warmup=1, active=1, repeat=1))) for _ in range(3)]
    assert spans == [["rank0.3"], ["rank0.7"], ["rank0.11"]]
    (windows,) = runs(tmp_path / "log").values()
    assert windows == [3, 7, 11]
    trace = content(next(tmp_path.glob("log/*/rank0.11.*")))
    assert [e["name"] for e in trace["traceEvents"] if "ProfilerStep" in str(e.get("name"))] == ["ProfilerStep#10"]


@pytest.mark.parametrize("steps", [0, 2])
def test_no_two_windows_of_a_run_have_the_same_number(tmp_path, steps):
    for _ in range(3):
        recorded(steps)
    (windows,) = runs(tmp_path / "log").values()
    assert windows == [steps, 2 * steps + 1, 3 * steps + 2]
    assert len(list(tmp_path.glob("log/*/rank0.*.pt.trace.json"))) == 3


def test_one_profile_that_is_started_again_continues_its_schedule_and_its_run(tmp_path):
    prof = profile(
        schedule=schedule(skip_first=3, wait=0, warmup=0, active=1, repeat=1),
        on_trace_ready=tensorboard_trace_handler("log"),
    )
    for _ in range(3):
        with prof:
            for _ in range(2):
                work()
                prof.step()
    assert (prof.step_num, files(prof)) == (6, ["rank0.4"])
    assert runs(tmp_path / "log") == {prof.saved_traces[0].parent.name: [4]}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_profile_that_nobody_stopped_makes_way_for_the_next_one(tmp_path, steps):
    left_open = [profile(on_trace_ready=tensorboard_trace_handler("log")) for _ in range(2)]
    for prof in left_open:
        prof.start()
        for _ in range(steps):
            work()
            prof.step()
    left_open[1].stop()
    left_open[0].stop()
    spans = [steps, 2 * steps + 1]
    assert [files(prof) for prof in left_open] == [[f"rank0.{span}"] for span in spans]
    assert list(runs(tmp_path / "log").values()) == [spans]


def test_a_profile_that_made_way_can_start_again():
    first, second = profile(), profile()
    first.start()
    first.step()
    with second:
        work()
    first.start()
    work()
    first.step()
    first.stop()
    assert first.step_num == 2
    assert [len(prof.saved_traces) for prof in (first, second)] == [2, 1]


def test_another_folder_or_another_process_is_another_run(tmp_path, monkeypatch):
    recorded()
    with profile():
        work()
    monkeypatch.setattr(process_id, "pid", os.getpid() + 1)
    monkeypatch.setattr(continued_runs, "current_rank_info", lambda: "another")
    recorded()
    assert list(runs(tmp_path / "log").values()) == [[4], [4]]
    assert list(runs(tmp_path / "runs").values()) == [[0]]


def test_each_tracer_is_a_run(tmp_path):
    for _ in range(2):
        with Tracer("log", run="run"):
            work()
    assert runs(tmp_path / "log") == {"run": [0], "run.1": [0]}


def test_a_training_that_resumes_numbers_its_windows_by_its_steps(tmp_path):
    steps = []
    plan = schedule(wait=1, warmup=1, active=1)
    with profile(schedule=plan, on_trace_ready=lambda p: steps.append(p.step_num)) as prof:
        prof.step_num = 1000
        for _ in range(5):
            work()
            prof.step()
    assert (steps, files(prof)) == ([1002, 1005], ["rank0.1002", "rank0.1005"])
    assert content(prof.saved_traces[1])["kinetoscope"]["step_first"] == 1004


def test_a_window_that_is_open_keeps_its_steps_when_the_number_changes():
    with profile(schedule=schedule(wait=0, warmup=0, active=2, repeat=0)) as prof:
        prof.step_num = 100
        for _ in range(2):
            work()
            prof.step()
        assert prof.step_num == 102
    facts = content(prof.saved_traces[0])["kinetoscope"]
    assert (facts["step_first"], facts["step_last"], facts["steps_completed"]) == (0, 1, 2)


def test_a_window_that_the_program_ends_is_followed_by_a_new_one():
    with profile(schedule=schedule(wait=0, warmup=0, active=4, repeat=1)) as prof:
        for step in range(4):
            work()
            if step == 1:
                prof.current_action = torch.profiler.ProfilerAction.RECORD_AND_SAVE
            prof.step()
    facts = [content(path)["kinetoscope"] for path in prof.saved_traces]
    assert [(window["step_first"], window["step_last"]) for window in facts] == [(0, 1), (2, 3)]


def test_a_tracer_records_with_a_subclass_of_torch_s_profiler(tmp_path):
    class DeviceProfile(torch.profiler.profile):
        def start_trace(self):
            calls.append("start")
            super().start_trace()

    calls = []
    with Tracer(tmp_path, run="run", profile_class=DeviceProfile):
        work()
    assert calls == ["start"]


def test_a_subclass_that_forgets_to_initialize_says_so():
    class Broken(profile):
        def __init__(self):
            pass

    with pytest.raises(AttributeError, match="'Broken' object has no attribute"):
        Broken().start()


def test_nothing_can_be_read_before_the_start():
    for read in (profile().key_averages, profile().events, lambda: profile().export_chrome_trace("x")):
        with pytest.raises(AssertionError, match="must have started"):
            read()
    prof = profile()
    prof.stop()
    prof.toggle_collection_dynamic(True, [])
    prof.step()
    assert (prof.step_num, prof.saved_traces, prof.get_trace_id()) == (1, (), None)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"use_cuda": True}, r"Tracer\(\) has no argument 'use_cuda': write activities=\[ProfilerActivity.CPU, "),
        ({"with_stacks": True}, "'with_stacks': write with_stack=…"),
        ({"shedule": None}, "'shedule': write schedule=…"),
        ({"use_gzip": True}, r"write file='rank\{rank\}"),
        ({"worker_name": "me"}, r"write file='rank\{rank\}"),
        ({"experimental_config": None}, r"write profiler=\{'experimental_config': …\}"),
        ({"wait": 1}, r"write schedule=cyclic\(wait=…"),
        ({"dir_name": "x"}, "write logdir='runs'"),
        ({"xyz": 1}, r"no argument 'xyz'\.$"),
        ({"schedule": schedule}, r"schedule isn't called: write schedule=schedule\(wait=…"),
        ({"schedule": cyclic}, r"cyclic isn't called: write schedule=cyclic\(wait=…"),
        ({"schedule": 3}, r"try cyclic\(wait=…"),
        ({"on_trace_ready": "log"}, r"A folder goes into on_trace_ready=tensorboard_trace_handler"),
        ({"on_trace_ready": trace_handler}, r"call it: on_trace_ready=trace_handler\('runs'\)"),
        ({"on_trace_ready": torch.profiler.tensorboard_trace_handler}, "call it: on_trace_ready=tensorboard_trace"),
    ],
)
def test_a_wrong_argument_of_a_tracer_is_told_the_right_one(tmp_path, arguments, hint):
    with pytest.raises(UsageError, match=hint):
        Tracer(tmp_path, **arguments)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"with_stacks": True}, r"profile\(\) has no argument 'with_stacks': write with_stack=…"),
        ({"logdir": "x"}, r"write on_trace_ready=tensorboard_trace_handler\('runs'\)"),
        ({"wait": 1}, r"write schedule=schedule\(wait=…"),
        ({"keep": 3}, r"write kinetoscope\.Tracer\(keep=…\)"),
        ({"on_trace_ready": tensorboard_trace_handler}, "call it: on_trace_ready=tensorboard_trace_handler"),
        ({"on_trace_ready": "log"}, "A folder goes into"),
        ({"schedule": schedule}, "isn't called"),
        ({"activities": []}, "name at least one"),
    ],
)
def test_a_wrong_argument_of_a_profile_is_told_the_right_one(arguments, hint):
    with pytest.raises(UsageError, match=hint):
        profile(**arguments)


@pytest.mark.parametrize(
    ("activities", "use_cuda", "names"),
    [
        ([ProfilerActivity.CPU, {ProfilerActivity.CUDA: ["GPU_MEMCPY"]}], True, ["CPU", "CUDA"]),
        ([ProfilerActivity.CPU, {ProfilerActivity.CUDA: ["GPU_MEMCPY"]}], False, ["CPU"]),
        ({ProfilerActivity.CPU}, True, ["CPU", "CUDA"]),
    ],
)
def test_the_old_switch_for_cuda_goes_with_activities_of_any_form(activities, use_cuda, names):
    assert sorted(activity.name for activity in profile(activities=activities, use_cuda=use_cuda).activities) == names


def test_it_can_take_the_place_of_torch_s_class_for_a_library_that_makes_its_own(monkeypatch):
    monkeypatch.setattr(torch.profiler, "profile", profile)
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(4):
            work()
            prof.step()
    assert files(prof) == ["rank0.3"]


def test_an_unknown_argument_is_also_a_type_error():
    with pytest.raises(TypeError, match="'skip_frist': write skip_first=…"):
        cyclic(skip_frist=1)
    with pytest.raises(TypeError, match="'worker_name': write worker='…'"):
        trace_handler("runs", worker_name="me")
    with pytest.raises(TypeError, match="'use_cude'"):
        profile(use_cude=True)
    assert issubclass(ScheduleError, UsageError)


def test_an_open_block_isn_t_replaced_but_a_profile_that_was_never_stopped_is(caplog):
    with profile() as outer:
        work()
        with pytest.raises(ProfilerBusyError, match="Another Tracer is active"):
            profile().start()
    assert len(outer.saved_traces) == 1
    forgotten, next_one = profile(), profile()
    forgotten.start()
    work()
    next_one.start()
    next_one.stop()
    assert "wasn't stopped. It ends now" in caplog.text
    assert len(forgotten.saved_traces) == 1
    forgotten.stop()
