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
from collections import defaultdict

import pytest
import torch

from kinetoscope import trace_handler
from kinetoscope_tb.analyses.operators import operators
from kinetoscope_tb.analyses.operators_by_shape import operators_by_shape
from kinetoscope_tb.reader import read


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


RECORDINGS = {
    "shapes and memory": {"record_shapes": True, "profile_memory": True},
    "a schedule": {"schedule": torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1), "profile_memory": True},
    "stacks": {"with_stack": True, "profile_memory": True},
}


@pytest.fixture(scope="module", params=RECORDINGS)
def recording(request, tmp_path_factory):
    """The viewer's trace and torch's profiler of the same recording."""
    folder = tmp_path_factory.mktemp("logdir")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        on_trace_ready=trace_handler(folder, run="run"),
        **RECORDINGS[request.param],
    ) as profiler:
        training(4, profiler)
    torch.set_num_threads(threads)
    (path,) = folder.glob("run/*")
    return read(path), profiler


def ns(microseconds):
    return round(microseconds * 1000)


def compared(recording):
    """Names of the operators that both sides define alike."""
    trace, profiler = recording
    names = set(trace.ops["name"].cast(str))
    return names - {"Double", "DoubleBackward"} if profiler.with_stack else names


def averages(recording, **grouping):
    """torch's rows of the operators; with stacks, torch also lists Python calls among them."""
    _, profiler = recording
    names = compared(recording)
    return [row for row in profiler.key_averages(**grouping) if not row.is_user_annotation and row.key in names]


def test_every_operator_has_torch_s_calls_and_times(recording):
    trace, _ = recording
    names = compared(recording)
    ours = {
        row["name"]: (row["calls"], row["host_self_ns"], row["host_total_ns"])
        for row in operators(trace).iter_rows(named=True)
        if row["name"] in names
    }
    theirs = {row.key: (row.count, ns(row.self_cpu_time_total), ns(row.cpu_time_total)) for row in averages(recording)}
    assert len(ours) > 60
    assert set(trace.ops.filter("is_repeat")["name"]) >= {"aten::sum"}
    assert ours == theirs


def test_an_operator_that_calls_python_has_torch_s_calls_and_total(recording):
    trace, profiler = recording
    ours = {row["name"]: (row["calls"], row["host_total_ns"]) for row in operators(trace).iter_rows(named=True)}
    rows = [row for row in profiler.key_averages() if row.key in ("Double", "DoubleBackward")]
    assert len(rows) == 2
    assert {row.key: (row.count, ns(row.cpu_time_total)) for row in rows}.items() <= ours.items()


def test_torch_lists_no_operator_that_the_viewer_lacks(recording):
    trace, profiler = recording
    names = set(operators(trace)["name"])
    listed = {row.key for row in profiler.key_averages() if not row.is_user_annotation}
    known = set(trace.python_calls["name"].cast(str)) | {"[memory]"}
    assert listed - names - known == set()


def test_every_operator_has_torch_s_memory(recording):
    trace, _ = recording
    names = compared(recording)
    ours = {
        row["name"]: (row["host_self_bytes"], row["host_total_bytes"])
        for row in operators(trace).iter_rows(named=True)
        if row["name"] in names
    }
    theirs = {row.key: (row.self_cpu_memory_usage, row.cpu_memory_usage) for row in averages(recording)}
    assert any(self_bytes > 0 for self_bytes, _ in ours.values())
    assert ours == theirs


def torch_s_shapes(text):
    """Shapes as torch groups by them: lists of tensors count as empty, and so do shapes that weren't recorded."""
    shapes = json.loads(text) if text else []
    return str([[] if shape and isinstance(shape[0], list) else shape for shape in shapes])


def test_every_operator_and_shape_has_torch_s_calls_and_times(recording):
    trace, _ = recording
    names = compared(recording)
    ours = defaultdict(lambda: (0, 0, 0))
    for row in operators_by_shape(trace).iter_rows(named=True):
        if row["name"] in names:
            key = row["name"], torch_s_shapes(row["input_shapes"])
            costs = row["calls"], row["host_self_ns"], row["host_total_ns"]
            ours[key] = tuple(map(sum, zip(ours[key], costs, strict=True)))
    theirs = {
        (row.key, str(row.input_shapes)): (row.count, ns(row.self_cpu_time_total), ns(row.cpu_time_total))
        for row in averages(recording, group_by_input_shape=True)
    }
    assert ours == theirs
