"""The viewer against torch itself: operators of a fresh recording, to the nanosecond and the byte.

torch's `key_averages()` works on the profiler's events in memory, ours on the file; the rules are those of
torch/autograd/profiler_util.py in 2.13 (`_populate_cpu_children`, `_remove_dup_nodes`, `MemRecordsAcc`):

* Operators and annotations make one tree per thread. With stacks, Python calls are in it too, and torch treats them
  like calls of operators: it takes them off the self time of an operator that calls Python (a torch.autograd.Function),
  and an operator in an annotation of its own name is no repetition any more, as a Python call lies between. The viewer
  shows the same numbers with stacks and without.
* Memory that an operator took is all that was allocated while it ran. torch counts what other threads allocate too;
  a CPU training has one thread.
"""

import json
import re
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from inspect import signature

import polars as pl
import pytest
import torch
from torch.autograd.profiler_util import EventList, FunctionEvent
from torch.profiler import schedule, tensorboard_trace_handler

from kinetoscope import trace_handler
from kinetoscope.handler import TraceHandler
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.host.operators import operators
from kinetoscope_tb.views.host.operators_by_shape import operators_by_shape
from support.build import TraceBuilder
from support.python_calls import operators_that_call_python
from support.torch_memory import HAS_EXACT_MEMORY, ROUNDED_MEMORY

pytestmark = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")  # as an error it would crash torch


def experimental_config(**options):
    """torch's settings; None if the installed torch lacks one of them."""
    try:
        return torch._C._profiler._ExperimentalConfig(**options)
    except TypeError:
        return None


ALL_THREADS = experimental_config(profile_all_threads=True)
OVERLOADS = experimental_config(verbose=True, capture_overload_names=True)
OF_OTHER_TESTS = re.compile(r"kinetoscope/|asyncio/|selectors\.py")  # a recorder's thread, the browser's event loop
HAS_PYTHON_EXPORT = "use_python_export" in signature(tensorboard_trace_handler).parameters
BY_OVERLOAD = dict.fromkeys({"group_by_overload_name"} & set(signature(EventList.key_averages).parameters), True)


class Double(torch.autograd.Function):
    """Calls Python from within an operator, on the way back too."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def training(steps, profiler):
    nn, annotated = torch.nn, torch.profiler.record_function
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(8 * steps, 3, 16, 16), torch.randint(10, (8 * steps,)))
    for pictures, labels in torch.utils.data.DataLoader(data, batch_size=8):
        with annotated("forward"), annotated("aten::nothing"):
            with annotated("forward"), annotated("forward"):
                scores = Double.apply(model(pictures))
            loss = nn.functional.cross_entropy(scores, labels)
        with annotated("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cat([scores.detach(), torch.zeros(2, 10)])
        scores.detach().sum()  # an operator that only wraps one of the same name
        profiler.step()


def on_two_threads(steps, profiler):
    """A training whose backward threads are others' too: torch's checkpoints call autograd from within autograd."""

    def train():
        layer = torch.nn.Linear(8, 8)
        middle = torch.utils.checkpoint.checkpoint(layer, torch.randn(4, 8, requires_grad=True), use_reentrant=True)
        middle.relu().sum().backward()

    trainings = [threading.Thread(target=train) for _ in range(steps)]
    for thread in trainings:
        thread.start()
    train()
    for thread in trainings:
        thread.join()


def compiled_training(steps, profiler):
    """A compiled model, which is compiled in the first step: annotations overlap there, and torch counts them twice."""
    layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    model = torch.compile(layers, backend="aot_eager")
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(4, (8,)))
        loss.backward()
        loss.detach().sum().sum()
        profiler.step()


@dataclass
class Recording:
    """How to record: the profiler's options, who saves the trace, what runs, and what of torch's it needs."""

    options: dict = field(default_factory=dict)
    saving: object = partial(trace_handler, run="run")
    work: object = training
    needs: object = True


CYCLES = {"schedule": schedule(wait=0, warmup=1, active=1, repeat=2), "profile_memory": True}
RECORDINGS = {
    "shapes and memory": Recording({"record_shapes": True, "profile_memory": True}),
    "one long cycle": Recording(CYCLES | {"schedule": schedule(wait=0, warmup=1, active=2, repeat=1)}),
    "cycles": Recording(CYCLES | {"record_shapes": True}),
    "stacks": Recording({"with_stack": True, "profile_memory": True}),
    "FLOPs and modules": Recording({"with_flops": True, "with_modules": True, "profile_memory": True}),
    "all options": Recording(
        dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"), True)
    ),
    "overloads": Recording({"record_shapes": True, "experimental_config": OVERLOADS}, needs=OVERLOADS),
    "threads": Recording(
        {"record_shapes": True, "experimental_config": ALL_THREADS}, work=on_two_threads, needs=ALL_THREADS
    ),
    "compiled": Recording(
        CYCLES | {"schedule": schedule(wait=0, warmup=1, active=2, repeat=1)}, work=compiled_training
    ),
    "compiled, with memory, stacks and modules": Recording(
        {"profile_memory": True, "with_stack": True, "with_modules": True}, work=compiled_training
    ),
    "plain JSON": Recording({"record_shapes": True, "profile_memory": True}, tensorboard_trace_handler),
    "torch's gzip": Recording({"profile_memory": True}, partial(tensorboard_trace_handler, use_gzip=True)),
    "torch's Python exporter": Recording(
        {"record_shapes": True, "profile_memory": True},
        partial(tensorboard_trace_handler, use_python_export=True),
        needs=HAS_PYTHON_EXPORT,
    ),
}
GROUPINGS = {"name": {}, "shape": {"group_by_input_shape": True}}


def forget_misplaced_allocations(events):
    """Apply torch's rule about operators that only wrap one of their name as torch does where it has exact times.

    Older versions miss an allocation that is less than 256 ns before an operator's end. They add its row to the tree
    as a child of that operator, which then counts as a call besides the only operator that it wraps.
    """
    if not HAS_EXACT_MEMORY:
        for event in events:
            event.cpu_children = [child for child in event.cpu_children if child.name != "[memory]"]
        events._remove_dup_nodes()


@dataclass
class Cycle:
    """One recorded window: the viewer's trace, and torch's rows of it by grouping."""

    trace: Trace
    rows: dict


@dataclass
class Recorded:
    """The windows of a recording, and torch's profiler at its end."""

    cycles: list[Cycle]
    profiler: torch.profiler.profile


def record(recording, folder):
    """The viewer's traces and torch's rows of the same recording."""
    handler, rows = recording.saving(str(folder)), []

    def save(profiler):
        handler(profiler)
        forget_misplaced_allocations(profiler.events())
        averages = partial(profiler.key_averages, **BY_OVERLOAD)
        rows.append({name: averages(**options) for name, options in GROUPINGS.items()})

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=save, **recording.options
    ) as profiler:
        recording.work(4, profiler)
    torch.set_num_threads(threads)
    if isinstance(handler, TraceHandler):
        handler.close()
    paths = sorted(folder.rglob("*.pt.trace.json*"))  # their names have the number of steps, or a time
    return Recorded([Cycle(read(path), of) for path, of in zip(paths, rows, strict=True)], profiler)


@pytest.fixture(scope="module", params=RECORDINGS)
def recorded(request, tmp_path_factory):
    recording = RECORDINGS[request.param]
    if not recording.needs:
        pytest.skip(f"torch {torch.__version__} can't record this")
    return record(recording, tmp_path_factory.mktemp("logdir"))


def ns(microseconds):
    return round(microseconds * 1000)


def named(row):
    """The row's name as the file has it."""
    overload = getattr(row, "overload_name", "")  # torch 2.6 has none
    return f"{row.key}.{overload}" if overload else row.key


def compared(trace):
    """Names of the operators that both sides define alike."""
    return set(trace.ops["name"].cast(str)) - operators_that_call_python(trace)


def pairs(recorded, grouping="name"):
    """Each window with the names to compare, and torch's rows of them; with stacks, torch also lists Python calls."""
    for cycle in recorded.cycles:
        names = compared(cycle.trace)
        rows = [row for row in cycle.rows[grouping] if not row.is_user_annotation and named(row) in names]
        yield cycle.trace, names, rows


def our(trace, names, *columns):
    """These columns of our rows, by operator."""
    return {row["name"]: tuple(row[c] for c in columns) for row in operators(trace).to_dicts() if row["name"] in names}


def test_every_operator_has_torch_s_calls_and_times(recorded):
    for trace, names, rows in pairs(recorded):
        theirs = {named(row): (row.count, ns(row.self_cpu_time_total), ns(row.cpu_time_total)) for row in rows}
        assert len(theirs) > 30
        assert our(trace, names, "calls", "host_self_ns", "host_total_ns") == theirs


def test_there_are_operators_that_only_wrap_one_of_their_name(recorded):
    for trace, names, _ in pairs(recorded):
        repeats = {name.partition(".")[0] for name in trace.ops.filter("is_repeat")["name"].cast(str)}
        assert repeats >= {"aten::sum"} & names


def test_an_operator_that_calls_python_has_torch_s_calls_and_total(recorded):
    for cycle in recorded.cycles:
        names = operators_that_call_python(cycle.trace)
        rows = [row for row in cycle.rows["name"] if row.key in names]
        theirs = {row.key: (row.count, ns(row.cpu_time_total)) for row in rows}
        assert our(cycle.trace, names, "calls", "host_total_ns") == theirs


def test_torch_lists_no_operator_that_the_viewer_lacks(recorded):
    for cycle in recorded.cycles:
        names = {named(row) for row in cycle.rows["name"] if not row.is_user_annotation}
        listed = {name for name in names if not OF_OTHER_TESTS.match(name)}
        known = set(cycle.trace.python_calls["name"].cast(str)) | {"[memory]"}
        assert listed - set(operators(cycle.trace)["name"]) - known == set()


@pytest.mark.skipif(not HAS_EXACT_MEMORY, reason=ROUNDED_MEMORY)
def test_every_operator_has_torch_s_memory(recorded):
    for trace, names, rows in pairs(recorded):
        theirs = {named(row): (row.self_cpu_memory_usage, row.cpu_memory_usage) for row in rows}
        ours = our(trace, names, "host_self_bytes", "host_total_bytes")
        if recorded.profiler.profile_memory:
            assert any(taken > 0 for taken, _ in ours.values())
            assert ours == theirs
        else:
            assert set(ours.values()) == {(None, None)}


@pytest.mark.skipif(not HAS_EXACT_MEMORY, reason=ROUNDED_MEMORY)
def test_the_memory_view_has_torch_s_memory(recorded):
    for trace, names, rows in pairs(recorded):
        if not recorded.profiler.profile_memory:
            assert VIEWS["memory_by_operator"].is_missing(trace)
            return
        columns = "name", "self_size_increase_bytes", "size_increase_bytes"
        table = VIEWS["memory_by_operator"].run(trace).filter(pl.col("device") == "cpu").select(columns)
        ours = {name: sizes for name, *sizes in table.iter_rows() if name in names}
        theirs = {named(row): [row.self_cpu_memory_usage, row.cpu_memory_usage] for row in rows}
        assert {name: ours.get(name, [0, 0]) for name in theirs} == theirs


def torch_s_shapes(text):
    """Shapes as torch groups by them: lists of tensors count as empty, and so do shapes that weren't recorded."""
    shapes = json.loads(text) if text else []
    return str([[] if shape and isinstance(shape[0], list) else shape for shape in shapes])


def test_every_operator_and_shape_has_torch_s_calls_and_times(recorded):
    for trace, names, rows in pairs(recorded, "shape"):
        ours = defaultdict(lambda: (0, 0, 0))
        for row in operators_by_shape(trace).iter_rows(named=True):
            if row["name"] in names:
                key = row["name"], torch_s_shapes(row["input_shapes"])
                costs = row["calls"], row["host_self_ns"], row["host_total_ns"]
                ours[key] = tuple(map(sum, zip(ours[key], costs, strict=True)))
        assert ours == {
            (named(row), str(row.input_shapes)): (row.count, ns(row.self_cpu_time_total), ns(row.cpu_time_total))
            for row in rows
        }


def test_windows_that_torch_adds_up_add_up(tmp_path):
    recorded = record(Recording(CYCLES | {"acc_events": True}), tmp_path)
    added = defaultdict(lambda: (0, 0, 0, 0))
    for cycle in recorded.cycles:
        names = compared(cycle.trace)
        for name, costs in our(
            cycle.trace, names, "calls", "host_self_ns", "host_total_ns", "host_total_bytes"
        ).items():
            added[name] = tuple(map(sum, zip(added[name], costs, strict=True)))
    assert len(recorded.cycles) == 2
    theirs = {
        row.key: (row.count, ns(row.self_cpu_time_total), ns(row.cpu_time_total), row.cpu_memory_usage)
        for row in recorded.profiler.key_averages()
        if row.key in added
    }
    compared_costs = slice(None) if HAS_EXACT_MEMORY else slice(3)
    assert {name: costs[compared_costs] for name, costs in added.items()} == {
        name: costs[compared_costs] for name, costs in theirs.items()
    }


def test_an_annotation_in_an_operator_is_no_self_time_of_it(tmp_path):
    library = torch.library.Library("annotated", "DEF")
    library.define("twice(Tensor x) -> Tensor")

    def twice(x):
        with torch.profiler.record_function("my part"):
            half = x @ x
        return half + half

    library.impl("twice", twice, "CPU")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(3):
            torch.ops.annotated.twice(torch.ones(64, 64))
    path = tmp_path / "annotated.pt.trace.json"
    profiler.export_chrome_trace(str(path))
    (theirs,) = (row for row in profiler.key_averages() if row.key == "annotated::twice")
    ours = our(read(path), {"annotated::twice"}, "host_self_ns", "host_total_ns")
    assert ours == {"annotated::twice": (ns(theirs.self_cpu_time_total), ns(theirs.cpu_time_total))}


@pytest.mark.parametrize("is_asynchronous", [False, True])
def test_what_a_backend_annotates_in_an_operator_is_its_self_time(is_asynchronous):
    """torch/csrc/distributed/c10d/Work.cpp calls _setAsync() for it; this is what torch makes of such an event."""

    def event(number, name, start, end, **more):
        return FunctionEvent(number, name, 1, start, end, device_type=torch.autograd.DeviceType.CPU, **more)

    events = EventList(
        [event(1, "record_param_comms", 0, 100), event(2, "nccl:all_reduce", 10, 80, is_async=is_asynchronous)],
        use_device=None,
    )
    events._build_tree()
    trace = TraceBuilder().op("record_param_comms", 0, 100).annotation("nccl:all_reduce", 10, 70).build()
    if is_asynchronous:
        assert events[0].self_cpu_time_total == operators(trace)["host_self_ns"][0] == 100
    else:
        assert events[0].self_cpu_time_total == 30
