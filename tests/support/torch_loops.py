"""Loops with torch.profiler, as people write them: each function is a small program that returns what it saw.

A test runs each of them as it is, and with its imports from `kinetoscope.profiler`. Nothing else changes, and both must
see the same.
"""

import asyncio
import contextlib
import functools
import inspect
import json
import os
import textwrap
import threading

import torch
import torch.profiler


def work(steps=1):
    """What is profiled: an operator that nothing else here calls, once per step."""
    for _ in range(steps):
        torch.ones(4, 4).relu()


def relus(profiler):
    """How often that operator ran in a profiler's last window."""
    return sum(row.count for row in profiler.key_averages() if row.key == "aten::relu")


def names_in(place):
    """The files that the program wrote itself, without those of runs."""
    return sorted(path.name for path in place.iterdir() if path.is_file())


# ---- with and without a schedule


def a_schedule_and_a_handler_for_tensorboard(folder):
    from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(folder / "log")),
        record_shapes=True,
    ) as prof:
        for _ in range(6):
            work()
            prof.step()
    return prof.step_num


def names_by_attribute(folder):
    import torch.profiler as torch_profiler

    saved = []
    with torch_profiler.profile(
        activities=torch_profiler.supported_activities(),
        schedule=torch_profiler.schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=lambda p: saved.append(p.step_num),
    ) as p:
        for _ in range(5):
            with torch_profiler.record_function("train"):
                work()
            p.step()
    return saved, torch_profiler.ProfilerAction.RECORD.name, torch_profiler.itt.__name__


def everything_at_once(folder):
    from torch.profiler import profile

    with profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        work(3)
    table = prof.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=100)
    return relus(prof), "aten::relu" in table, prof.with_flops, prof.profile_memory, prof.schedule(7).name


def steps_without_a_schedule(folder):
    from torch.profiler import profile

    with profile() as prof:
        for _ in range(4):
            work()
            prof.step()
    return prof.step_num, relus(prof), prof.record_steps


def many_cycles_after_a_pause(folder):
    from torch.profiler import profile, schedule

    steps = []
    plan = schedule(skip_first=2, wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: steps.append((p.step_num, relus(p)))) as prof:
        for _ in range(14):
            work()
            prof.step()
    return steps


def a_first_cycle_without_a_wait(folder):
    from torch.profiler import profile, schedule

    steps = []
    plan = schedule(skip_first=1, wait=3, warmup=0, active=1, repeat=2, skip_first_wait=1)
    with profile(schedule=plan, on_trace_ready=lambda p: steps.append(p.step_num)) as prof:
        for _ in range(9):
            work()
            prof.step()
    return steps


def a_schedule_of_the_program(folder):
    from torch.profiler import ProfilerAction, profile

    asked, steps = [], []

    def plan(step):
        asked.append(step)
        return ProfilerAction.RECORD_AND_SAVE if step % 4 == 3 else ProfilerAction.NONE

    with profile(schedule=plan, on_trace_ready=lambda p: steps.append(p.step_num)) as prof:
        for _ in range(9):
            work()
            prof.step()
    return steps, asked


def gradient_accumulation(folder):
    from torch.profiler import profile, schedule

    steps = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=lambda p: steps.append((p.step_num, relus(p)))
    ) as prof:
        for micro_batch in range(12):
            work()
            if (micro_batch + 1) % 2 == 0:
                prof.step()
    return steps


# ---- a profiler that may not be there


def a_guard_with_torch_s_class(folder):
    import torch
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    def make(enabled):
        if not enabled:
            return contextlib.nullcontext()
        handler = tensorboard_trace_handler(folder / "log")
        return profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1), on_trace_ready=handler)

    counts = []
    for enabled in (True, False):
        prof, stepped = make(enabled), 0
        with prof:
            for _ in range(5):
                if isinstance(prof, torch.profiler.profile):
                    prof.step()
                    stepped += 1
                work()
        counts.append(stepped)
    return counts


def a_guard_with_the_imported_name(folder):
    from torch.profiler import _KinetoProfile, profile, schedule

    prof = profile(schedule=schedule(wait=1, warmup=0, active=1, repeat=1))
    kinds = [isinstance(prof, (int, profile)), isinstance(prof, _KinetoProfile), issubclass(type(prof), profile)]
    with prof:
        for _ in range(3):
            work()
            if isinstance(prof, profile):
                prof.step()
    return kinds, prof.step_num


def a_guard_by_truth(folder):
    from torch.profiler import profile, schedule

    def train(prof=None):
        for _ in range(4):
            work()
            if prof:
                prof.step()
        return prof is not None and prof.step_num

    prof = profile(schedule=schedule(wait=0, warmup=1, active=1))
    prof.start()
    result = train(prof), train()
    prof.stop()
    return result


def a_null_context_that_is_none_inside(folder):
    from torch.profiler import profile, schedule

    stepped = []
    for is_profiled in (False, True):
        manager = (
            profile(schedule=schedule(wait=1, warmup=0, active=2, repeat=1))
            if is_profiled
            else contextlib.nullcontext()
        )
        with manager as prof:
            for _ in range(4):
                work()
                if prof is not None:
                    prof.step()
                    stepped.append(prof.step_num)
    return stepped


def an_exit_stack(folder):
    from torch.profiler import profile, record_function

    with contextlib.ExitStack() as stack:
        prof = stack.enter_context(profile())
        stack.enter_context(record_function("all"))
        work(2)
    return relus(prof)


def only_on_one_rank(folder):
    from torch.profiler import profile

    rank = int(os.environ.get("RANK", "0"))
    prof = profile() if rank == 0 else None
    if prof is not None:
        prof.__enter__()
    work(2)
    if prof is not None:
        prof.__exit__(None, None, None)
    return relus(prof)


def an_attribute_of_a_trainer(folder):
    from torch.profiler import profile, schedule

    class Callback:
        def __init__(self, prof):
            self.prof = prof

        def on_step_end(self):
            self.prof.step()

    class Trainer:
        def __init__(self, callbacks):
            self.callbacks = callbacks

        def train(self):
            for _ in range(6):
                work()
                for callback in self.callbacks:
                    callback.on_step_end()

    windows = []
    plan = schedule(wait=1, warmup=1, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: windows.append(p.step_num)) as prof:
        Trainer([Callback(prof)]).train()
    return windows


# ---- starting and stopping


def start_and_stop(folder):
    from torch.profiler import profile

    prof = profile()
    prof.start()
    work(2)
    prof.stop()
    prof.export_chrome_trace(str(folder / "trace.json"))
    return relus(prof), names_in(folder)


def start_and_stop_at_steps(folder):
    from torch.profiler import profile

    prof = profile()
    for step in range(8):
        if step == 2:
            prof.start()
        work()
        if step == 4:
            prof.stop()
    return relus(prof)


def steps_that_go_on_after_the_stop(folder):
    from torch.profiler import profile, schedule

    prof = profile(schedule=schedule(wait=1, warmup=0, active=2, repeat=1))
    prof.start()
    for step in range(8):
        work()
        if step == 5:
            prof.stop()
        prof.step()
    return prof.step_num


def steps_without_a_start(folder):
    from torch.profiler import profile, schedule

    windows = []
    prof = profile(
        schedule=schedule(wait=1, warmup=1, active=1, repeat=1), on_trace_ready=lambda p: windows.append(p.step_num)
    )
    for _ in range(6):
        work()
        prof.step()
    return windows, prof.step_num


def a_profile_per_epoch_in_one_folder(folder):
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    counts = []
    for _ in range(3):
        handler = tensorboard_trace_handler(str(folder / "log"))
        with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=handler) as prof:
            for _ in range(4):
                work()
                prof.step()
        counts.append((prof.step_num, relus(prof)))
    return counts


def one_profile_for_all_epochs(folder):
    from torch.profiler import profile

    windows = []
    prof = profile(on_trace_ready=lambda p: windows.append(relus(p)))
    for epoch in range(3):
        with prof:
            work(epoch + 1)
    return windows


def a_schedule_that_spans_epochs(folder):
    from torch.profiler import profile, schedule

    windows = []
    prof = profile(
        schedule=schedule(skip_first=2, wait=1, warmup=0, active=1), on_trace_ready=lambda p: windows.append(p.step_num)
    )
    for _ in range(3):
        prof.start()
        for _ in range(4):
            work()
            prof.step()
        prof.stop()
    return windows, prof.step_num


def an_exception_in_the_loop(folder):
    from torch.profiler import profile, schedule

    windows = []
    with (
        contextlib.suppress(ZeroDivisionError),
        profile(
            schedule=schedule(wait=1, warmup=1, active=5), on_trace_ready=lambda p: windows.append(relus(p))
        ) as prof,
    ):
        for step in range(6):
            work()
            prof.step()
            1 / (step - 4)
    return windows


def a_break_at_a_step(folder):
    from torch.profiler import profile, schedule

    with profile(schedule=schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(100):
            work()
            prof.step()
            if prof.step_num == 4:
                break
    return prof.step_num


def a_break_when_it_is_done(folder):
    from torch.profiler import ProfilerAction, profile, schedule

    with profile(schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(100):
            work()
            prof.step()
            if prof.current_action == ProfilerAction.NONE:
                break
    return prof.step_num


# ---- where steps are


def a_decorator(folder):
    from torch.profiler import profile

    def profiled(function):
        @functools.wraps(function)
        def wrapper(*args):
            with profile(with_modules=True) as prof:
                function(*args)
            return relus(prof)

        return wrapper

    @profiled
    def train(steps):
        work(steps)

    return train(2), train(3)


def a_context_manager_around_it(folder):
    from torch.profiler import profile, schedule

    @contextlib.contextmanager
    def maybe_profile(start_step):
        plan = schedule(wait=1, warmup=1, active=1)
        with profile(schedule=plan, on_trace_ready=lambda p: windows.append(p.step_num)) as prof:
            prof.step_num = start_step  # a training that resumes
            yield prof

    windows = []
    with maybe_profile(100) as prof:
        for _ in range(6):
            work()
            prof.step()
    return windows, prof.step_num


def a_generator(folder):
    from torch.profiler import profile, schedule

    def batches(prof):
        for batch in range(5):
            yield batch
            prof.step()

    with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1)) as prof:
        for _ in batches(prof):
            work()
    return prof.step_num


def coroutines(folder):
    from torch.profiler import profile, schedule

    async def serve(prof):
        for _ in range(5):
            await asyncio.sleep(0)
            work()
            prof.step()

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        asyncio.run(serve(prof))
    return prof.step_num, relus(prof)


def a_thread_that_trains(folder):
    from torch.profiler import profile, schedule

    profilers = []

    def train():
        with profile(schedule=schedule(wait=1, warmup=0, active=2, repeat=1)) as prof:
            profilers.append(prof)
            for _ in range(4):
                work()
                prof.step()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    profilers[0].export_chrome_trace(str(folder / "trace.json"))
    return profilers[0].step_num, relus(profilers[0]), len(profilers[0].events()) > 0, names_in(folder)


def a_data_loader(folder):
    from torch.profiler import profile, schedule
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.ones(6, 2)), batch_size=1)
    with profile(schedule=schedule(wait=1, warmup=1, active=3, repeat=1)) as prof:
        for _ in loader:
            work()
            prof.step()
    rows = {row.key: row.count for row in prof.key_averages() if row.key.startswith("enumerate(DataLoader)")}
    return prof.step_num, relus(prof), len(rows)


# ---- handlers


def a_handler_that_exports_and_prints(folder):
    from torch.profiler import profile, schedule

    tables = []

    def on_ready(p):
        tables.append("aten::relu" in p.key_averages().table(sort_by="cpu_time_total", row_limit=10))
        p.export_chrome_trace(str(folder / f"trace_{p.step_num}.json"))

    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=on_ready) as prof:
        for _ in range(4):
            work()
            prof.step()
    traced = [
        [event["name"] for event in json.loads((folder / name).read_text())["traceEvents"]].count("aten::relu")
        for name in names_in(folder)
    ]
    return tables, names_in(folder), traced


def a_handler_that_is_set_later(folder):
    from torch.profiler import profile, schedule

    windows = []
    prof = profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=3))
    prof.on_trace_ready = lambda p: windows.append((p is prof, p.step_num))
    with prof:
        for step in range(3):
            work()
            prof.step()
            if step == 1:
                prof.on_trace_ready = None
    return windows


def a_handler_that_is_a_method_of_a_partial(folder):
    from torch.profiler import profile, schedule

    class Reports:
        def __init__(self):
            self.steps = []

        def save(self, p, *, name):
            self.steps.append((name, p.step_num, len(p.events()) > 0))

    reports = Reports()
    on_ready = functools.partial(reports.save, name="rank0")
    with profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=on_ready) as prof:
        for _ in range(6):
            work()
            prof.step()
    return reports.steps


def a_handler_with_full_names_in(folder):
    import torch
    from torch.profiler import profile

    with profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(str(folder / "log"), worker_name="me")) as p:
        work()
    return p.step_num, [path.name.partition(".")[0] for path in (folder / "log").rglob("me.*")]


# ---- subclasses


def a_subclass_with_its_own_defaults(folder):
    from torch.profiler import ProfilerActivity, profile

    class CpuProfile(profile):
        def __init__(self, title, **kwargs):
            self.title = title
            super().__init__(activities=[ProfilerActivity.CPU], with_stack=True, **kwargs)

        def slowest(self):
            return self.key_averages().table(sort_by="cpu_time_total", row_limit=3)

    with CpuProfile("epoch", record_shapes=True) as prof:
        work(2)
    return prof.title, "Self CPU" in prof.slowest(), relus(prof), sorted(a.name for a in prof.activities)


def a_subclass_that_does_more_at_both_ends(folder):
    from torch.profiler import profile

    class Report(profile):
        def __enter__(self):
            calls.append("enter")
            super().__enter__()
            return self

        def __exit__(self, *error):
            super().__exit__(*error)
            calls.append("exit")
            self.export_chrome_trace(str(folder / "report.json"))

    calls = []
    with Report() as prof:
        work()
    return calls, relus(prof), names_in(folder)


def a_subclass_that_overrides_start_stop_and_step(folder):
    from torch.profiler import profile, schedule

    class Counting(profile):
        def start(self):
            calls.append("start")
            super().start()

        def stop(self):
            super().stop()
            calls.append("stop")

        def step(self):
            calls.append(self.step_num)
            super().step()

    calls = []
    with Counting(schedule=schedule(wait=1, warmup=0, active=1, repeat=1)) as prof:
        for _ in range(3):
            work()
            prof.step()
    return calls, prof.step_num


def a_subclass_for_a_device(folder):
    from torch.profiler import profile, schedule

    class DeviceProfile(profile):
        """What a plugin for a device does: it starts and stops its own tracer with each window."""

        def start_trace(self):
            calls.append("device starts")
            super().start_trace()

        def stop_trace(self):
            super().stop_trace()
            calls.append("device stops")

        def export_chrome_trace(self, path):
            super().export_chrome_trace(path)
            calls.append("device exports")

    calls = []
    with DeviceProfile(
        schedule=schedule(wait=1, warmup=1, active=1, repeat=2),
        on_trace_ready=lambda p: p.export_chrome_trace(str(folder / f"{p.step_num}.json")),
    ) as prof:
        for _ in range(7):
            work()
            prof.step()
    return calls, names_in(folder)


# ---- attributes and results


def attributes_before_and_after(folder):
    from torch.profiler import ProfilerAction, profile, schedule
    from torch.profiler.profiler import PROFILER_STEP_NAME

    prof = profile(schedule=schedule(wait=0, warmup=1, active=1), with_modules=True, acc_events=False)
    seen = [prof.current_action, prof.profiler, prof.step_num, prof.use_device, prof.mem_tl, prof.get_trace_id()]
    seen += [prof.record_steps, prof.schedule(1), (ProfilerAction.RECORD, None) in prof.action_map]
    with prof:
        seen += [prof.current_action, type(prof.profiler).__name__]
        work()
        prof.step()
        seen += [prof.current_action == ProfilerAction.RECORD_AND_SAVE, prof.step_num]
        work()
        prof.step()
    options = (prof.record_shapes, prof.with_stack, prof.with_modules, prof.experimental_config, prof.acc_events)
    return seen, options, PROFILER_STEP_NAME, prof.execution_trace_observer, prof.custom_trace_id_callback


def a_window_that_the_program_ends(folder):
    from torch.profiler import ProfilerAction, profile, schedule

    windows = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=9), on_trace_ready=lambda p: windows.append((p.step_num, relus(p)))
    ) as prof:
        for step in range(6):
            work()
            if step == 4 and prof.current_action is ProfilerAction.RECORD:
                prof.current_action = ProfilerAction.RECORD_AND_SAVE
            prof.step()
    return windows


def a_checkpoint_that_avoids_the_window(folder):
    from torch.profiler import ProfilerAction, profile, schedule

    saved = []
    with profile(schedule=schedule(wait=2, warmup=1, active=2, repeat=1)) as prof:
        for step in range(7):
            work()
            if prof.current_action == ProfilerAction.NONE:
                saved.append(step)
            prof.step()
    return saved


def the_tree_of_events(folder):
    from torch.profiler import profile

    with profile(with_stack=True, profile_memory=True, record_shapes=True) as prof:
        work(2)
    roots = prof.profiler.kineto_results.experimental_event_tree()
    todo, count = list(roots), 0
    while todo:
        event = todo.pop()
        count += event.name == "aten::relu"
        todo += event.children
    return count, prof.profiler.kineto_results.trace_start_ns() > 0


def sums_of_the_inner_profiler(folder):
    from torch.profiler import profile

    with profile() as prof:
        work(2)
    total = prof.profiler.total_average()
    events = [event.name for event in prof.profiler.function_events]
    return total.count > 0, events.count("aten::relu"), prof.profiler.self_cpu_time_total > 0


def call_stacks(folder):
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import profile

    with profile(with_stack=True, experimental_config=_ExperimentalConfig(verbose=True)) as prof:
        work(2)
    prof.export_stacks(str(folder / "stacks.txt"), "self_cpu_time_total")
    return names_in(folder), (folder / "stacks.txt").read_text().count("aten_relu") > 0


def a_memory_timeline(folder):
    from torch.profiler import profile

    with profile(with_stack=True, profile_memory=True, record_shapes=True) as prof:
        work(2)
    prof.export_memory_timeline(str(folder / "memory.json"), device="cpu")
    return names_in(folder), type(prof.mem_tl).__name__


def metadata(folder):
    from torch.profiler import profile

    prof = profile()
    prof.preset_metadata_json("run", '{"lr": 0.1}')
    with prof:
        prof.add_metadata("model", "resnet")
        prof.add_metadata_json("sizes", "[1, 2]")
        work()
    prof.export_chrome_trace(str(folder / "trace.json"))
    trace = json.loads((folder / "trace.json").read_text())
    return [trace.get(key) for key in ("run", "model", "sizes")]


def collection_that_is_switched(folder):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as prof:
        work(1)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        work(5)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        work(2)
    return relus(prof)


def events_of_all_cycles(folder):
    from torch.profiler import profile, schedule

    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=3), acc_events=True) as prof:
        for _ in range(3):
            work()
            prof.step()
    return relus(prof)


def ids_of_traces(folder):
    from torch.profiler import profile, schedule

    ids, number = [], iter(range(9))
    with profile(
        schedule=schedule(wait=0, warmup=0, active=1, repeat=2),
        custom_trace_id_callback=lambda: f"id{next(number)}",
        on_trace_ready=lambda p: ids.append(p.get_trace_id()),
    ) as prof:
        for _ in range(2):
            work()
            prof.step()
    return ids


def a_window_by_hand(folder):
    from torch.profiler import profile

    prof = profile()
    prof.prepare_trace()
    prof.start_trace()
    work(2)
    prof.stop_trace()
    prof.export_chrome_trace(str(folder / "trace.json"))
    return relus(prof), names_in(folder)


def a_restart_from_the_first_step(folder):
    from torch.profiler import profile, schedule

    windows = []
    prof = profile(
        schedule=schedule(wait=1, warmup=0, active=1, repeat=1), on_trace_ready=lambda p: windows.append(p.step_num)
    )
    for _ in range(2):
        prof.step_num = 0
        prof.current_action = prof.schedule(prof.step_num)
        prof.start()
        for _ in range(3):
            work()
            prof.step()
        prof.stop()
    return windows


def an_observer_of_the_execution(folder):
    from torch.profiler import ExecutionTraceObserver, profile

    observer = ExecutionTraceObserver().register_callback(str(folder / "execution.json"))
    with profile(execution_trace_observer=observer) as prof:
        work(2)
    nodes = json.loads((folder / "execution.json").read_text())["nodes"]
    return prof.execution_trace_observer is observer, [node["name"] for node in nodes].count("aten::relu")


SHAPES = [value for value in list(vars().values()) if inspect.isfunction(value) and value.__module__ == __name__]
SHAPES = [shape for shape in SHAPES if list(inspect.signature(shape).parameters) == ["folder"]]


# ---- running them


def with_our_names(shape):
    """A program whose names of torch.profiler are imported from `kinetoscope.profiler`."""
    lines = textwrap.dedent(inspect.getsource(shape)).splitlines()
    imports = ("from torch.profiler", "import torch.profiler as")
    code = "\n".join(
        line.replace("torch.profiler", "kinetoscope.profiler") if line.strip().startswith(imports) else line
        for line in lines
    )
    assert "kinetoscope.profiler" in code
    names = dict(inspect.getmodule(shape).__dict__)
    exec(compile(code, shape.__name__, "exec"), names)
    return names[shape.__name__]


def seen_with_torch(shape, folder, monkeypatch):
    """What a program sees with torch, and how many windows torch completes for it."""
    windows = []
    ready = torch.profiler.profile._trace_ready
    with monkeypatch.context() as patch:
        patch.setattr(torch.profiler.profile, "_trace_ready", lambda p: (windows.append(p), ready(p))[1])
        seen = shape(folder)
    return seen, len(windows) or 1  # torch doesn't report a window that the program itself begins and ends
