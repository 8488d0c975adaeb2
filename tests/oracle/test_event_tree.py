"""Modules, Python calls and stacks against torch's own tree of a fresh recording.

`experimental_event_tree()` is built from the profiler's events in memory, before they are written; `key_averages()`
groups operators by the stacks that torch took. verbose=True writes them too; without them, Python calls say the same.
"""

import re
import threading
from collections import defaultdict
from dataclasses import replace

import polars as pl
import pytest
import torch
from torch import nn
from torch.autograd.profiler_util import _filter_stack_entry

from kinetoscope import trace_handler
from kinetoscope_tb.measures.calls.call_tree import WITHIN
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.host.call_stacks import call_stacks
from kinetoscope_tb.views.host.modules import modules
from kinetoscope_tb.views.host.python_calls import python_calls
from support.waiting import LIMIT_S

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NODE, ACCUMULATES = "autograd::engine::evaluate_function: ", "torch::autograd::AccumulateGrad"


class Net(nn.Module):
    """Modules in modules, one called twice, one that calls itself, and one whose gradients flow through Python."""

    def __init__(self):
        super().__init__()
        self.first, self.act = nn.Linear(8, 8), nn.GELU()
        self.rest = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.LayerNorm(8))
        self.twice = Twice()

    def forward(self, x):
        return self.twice(self.act(self.rest(self.act(self.first(x)))), 2)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x, depth):
        return self(x * self.weight, depth - 1) if depth else Double.apply(x)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def train(net, optimizer):
    nn.functional.mse_loss(net(torch.randn(4, 8)), torch.zeros(4, 8)).backward()
    optimizer.step()
    optimizer.zero_grad()


def recorded(folder, run):
    """The viewer's trace and torch's profiler of three calls of a function."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    handler = trace_handler(folder, run="run")
    for thread in threading.enumerate():  # torch puts the stacks of all threads that wait into one
        if thread.name.startswith("kinetoscope"):
            thread.join(LIMIT_S)
    run()  # what is imported while torch records has names that torch can't read back (torch 2.13)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        with_stack=True,
        with_modules=True,
        on_trace_ready=handler,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as profiler:
        for _ in range(3):
            run()
    torch.set_num_threads(threads)
    handler.close()
    (path,) = handler.saved_traces
    return read(path), profiler


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """The viewer's trace, and torch's events as (event, all around it and itself)."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    trace, profiler = recorded(tmp_path_factory.mktemp("training"), lambda: train(net, optimizer))
    roots = profiler.profiler.kineto_results.experimental_event_tree()
    return trace, [pair for root in roots for pair in walked(root, ())]


def walked(event, around):
    path = (*around, event)
    yield event, path
    for child in event.children:
        yield from walked(child, path)


def is_python(event):
    return event.tag in (torch._C._profiler._EventType.PyCall, torch._C._profiler._EventType.PyCCall)


def is_op(event):
    return event.tag == torch._C._profiler._EventType.TorchOp


def module_path(path):
    return tuple(e.name.removeprefix("nn.Module: ") for e in path if e.name.startswith("nn.Module: "))


def module_rows(trace):
    rows = modules(trace).filter(pl.col("calls").is_not_null()).iter_rows(named=True)
    return [(tuple(row["path"].split(WITHIN)), row) for row in rows]


def sums(pairs):
    """(count, sum) of each key's values."""
    totals = defaultdict(lambda: (0, 0))
    for key, value in pairs:
        count, total = totals[key]
        totals[key] = count + 1, total + value
    return dict(totals)


def test_every_module_has_torch_s_calls_and_time(training):
    trace, events = training
    theirs = sums((module_path(path), e.duration_time_ns) for e, path in events if e.name.startswith("nn.Module: "))
    ours = {path: (row["calls"], row["forward_host_ns"]) for path, row in module_rows(trace)}
    assert len(ours) == 10
    assert ours == theirs


def test_every_module_has_the_time_of_its_operators_backward(training):
    trace, events = training
    ops = sorted(((e, path) for e, path in events if is_op(e)), key=lambda pair: pair[0].start_time_ns)
    made, theirs, last = {}, defaultdict(int), ()
    for event, path in ops:
        fields = event.extra_fields
        if event.name.startswith(NODE):
            last = last if event.name.endswith(ACCUMULATES) else made.get(fields.sequence_number, ())
            for depth in range(1, len(last) + 1):
                theirs[last[:depth]] += event.duration_time_ns
        elif fields.sequence_number >= 0 and not any(e.name.startswith(NODE) for e in path):
            made[fields.sequence_number] = module_path(path)
    ours = {path: row["backward_host_ns"] for path, row in module_rows(trace)}
    assert sum(ns > 0 for ns in ours.values()) == len(ours)
    assert ours == theirs


def test_every_place_in_the_program_has_torch_s_calls_and_time(training):
    trace, events = training
    annotations = set(trace.host_events.filter(pl.col("kind") == "annotation")["name"].cast(str))
    theirs = sums(
        (python_path(path, annotations), e.duration_time_ns)
        for e, path in events
        if is_python(e) or (is_op(e) and e.name not in annotations and not is_inner(path, annotations))
    )
    ours, paths = {}, []
    for row in python_calls(trace).iter_rows(named=True):
        name = row["function"] if row["file"] is None else f"{row['file']}({row['line']}): {row['function']}"
        paths.append(() if row["parent_row"] is None else (*paths[row["parent_row"]], name))
        if row["kind"] not in ("thread", "rest"):
            ours[paths[-1]] = row["calls"], row["host_total_ns"]
    assert len(ours) > 200
    assert ours == theirs


def is_inner(path, annotations):
    around = [e for e in path[:-1] if e.name not in annotations]
    return bool(around) and is_op(around[-1])


def python_path(path, annotations):
    """The names along a path, of operators only those that Python calls."""
    events = [e for e in path if e.name not in annotations]
    names = (e.name for i, e in enumerate(events) if is_python(e) or i == 0 or is_python(events[i - 1]))
    return tuple(ADDRESS.sub("", name) for name in names)


@pytest.mark.parametrize("is_written", [True, False])
def test_operators_have_torch_s_stacks(tmp_path, is_written):
    net = Net()
    trace, profiler = recorded(tmp_path, lambda: nn.functional.mse_loss(net(torch.randn(4, 8)), torch.zeros(4, 8)))
    assert trace.host_events["call_stack"].is_not_null().any()
    if not is_written:
        host = trace.host_events.with_columns(pl.lit(None, trace.host_events.schema["call_stack"]).alias("call_stack"))
        trace = replace(trace, host_events=host)
    columns = ("calls", "host_self_ns", "host_total_ns")
    rows = call_stacks(trace).filter(pl.col("stack").is_not_null()).iter_rows(named=True)
    ours = added((row["name"], frames_of(row["stack"].split("\n")), tuple(row[c] for c in columns)) for row in rows)
    theirs = added(
        (
            row.key,
            frames_of(row.stack),
            (row.count, round(1000 * row.self_cpu_time_total), round(1000 * row.cpu_time_total)),
        )
        for row in profiler.key_averages(group_by_stack_n=200)
    )
    assert len(ours) > 40
    differing = [(key, ours[key], theirs.get(key)) for key in ours if ours[key] != theirs.get(key)]
    assert {key[0] for key, *_ in differing} <= {
        "Double"
    }  # torch 2.13 takes the Python that it calls off its self time


def added(rows):
    totals = defaultdict(lambda: (0, 0, 0))
    for name, stack, costs in rows:
        totals[name, stack] = tuple(map(sum, zip(totals[name, stack], costs, strict=True)))
    return dict(totals)


def frames_of(frames):
    """The frames that torch lists, without addresses."""
    return tuple(ADDRESS.sub("", frame) for frame in frames if _filter_stack_entry(frame))


def test_backward_work_has_the_stack_of_the_module_that_it_belongs_to(training):
    trace, _ = training
    table = call_stacks(trace, name="AddmmBackward0")
    assert table["is_forward_stack"].all()
    assert sorted(re.findall(r"nn\.Module: (\S+)", stack)[0] for stack in table["stack"]) == ["Linear_0", "Linear_1"]
