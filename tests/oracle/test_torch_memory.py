"""Memory against torch itself: the profiler's own records of a fresh recording, and its `key_averages()`.

torch's event tree (torch/csrc/profiler/collection.h) has each allocation below the operator that was open, with the
address, the size and the allocator's total; ours has only what the file tells.
"""

from collections import Counter, defaultdict

import pytest
import torch
from torch._C._profiler import RecordScope
from torch._C._profiler import _EventType as EventType

from kinetoscope import trace_handler
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support import oracle
from support.torch_memory import HAS_EXACT_MEMORY, ROUNDED_MEMORY

CPU = [torch.profiler.ProfilerActivity.CPU]


def training():
    nn = torch.nn
    kept = torch.zeros(1000)  # released in the recording, where it is known
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(10, (32,)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept = torch.cat([kept[:500], torch.empty(600)])
    return model, optimizer, kept


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """The viewer's trace, torch's rows, and the allocations of torch's tree with the operator that each is in."""
    folder = tmp_path_factory.mktemp("logdir")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    handler = trace_handler(folder, run="run")
    with torch.profiler.profile(activities=CPU, profile_memory=True, on_trace_ready=handler) as profiler:
        alive = training()
    torch.set_num_threads(threads)
    handler.close()
    (path,) = handler.saved_traces
    tree = profiler.profiler.kineto_results.experimental_event_tree()
    assert alive
    return (
        read(path),
        profiler.key_averages(),
        sorted(allocations(tree, None), key=lambda found: found[0].start_time_ns),
    )


def allocations(events, operator):
    for event in events:
        kind, fields = event.typed
        if kind == EventType.Allocation:
            yield event, fields, operator
        is_operator = kind == EventType.TorchOp and fields.scope != RecordScope.USER_SCOPE
        yield from allocations(event.children, event.name if is_operator else operator)


@pytest.mark.skipif(not HAS_EXACT_MEMORY, reason=ROUNDED_MEMORY)
def test_each_operator_has_torch_s_calls_and_increases(recording):
    trace, rows, _ = recording
    table = VIEWS["memory_by_operator"].run(trace)
    ours = {row["name"]: row for row in table.to_dicts()}
    theirs = {row.key: row for row in rows if row.cpu_memory_usage or row.self_cpu_memory_usage}
    assert len(theirs) > 20
    for name in theirs.keys() & set(trace.ops["name"].cast(str)):
        row = theirs[name]
        assert (ours[name]["size_increase_bytes"], ours[name]["self_size_increase_bytes"], ours[name]["calls"]) == (
            row.cpu_memory_usage,
            row.self_cpu_memory_usage,
            row.count,
        )


def test_each_operator_took_what_torch_s_tree_has_below_it(recording):
    trace, _, records = recording
    theirs = defaultdict(lambda: (0, 0))
    for _, fields, operator in records:
        if fields.alloc_size > 0:
            count, size = theirs[operator or "[no operator]"]
            theirs[operator or "[no operator]"] = count + 1, size + fields.alloc_size
    table = VIEWS["memory_by_operator"].run(trace).select("name", "self_allocations", "self_allocation_bytes").rows()
    assert {name: (count, size) for name, count, size in table if count} == theirs


def test_each_piece_of_memory_lives_as_long_as_torch_s_records_say(recording):
    trace, _, records = recording
    told = [(event.start_time_ns, 0, fields.ptr, fields.alloc_size, 0) for event, fields, _ in records]
    theirs = Counter(
        (fate, size, gone - taken if fate == "released" else None) for fate, size, taken, gone in oracle.lifetimes(told)
    )
    events = VIEWS["memory_events"].run(trace, rows="all")
    assert Counter(events.select("outcome", "size_bytes", "lifetime_ns").rows()) == theirs
    assert {fate for fate, _, _ in theirs} >= {"released", "never released"}


def test_the_peak_is_the_highest_of_torch_s_totals(recording):
    trace, _, records = recording
    peak = max(fields.total_allocated for _, fields, _ in records)
    assert VIEWS["memory_devices"].run(trace)["peak_allocated_bytes"].to_list() == [peak]
    assert VIEWS["memory_peak"].run(trace)["alive_bytes"].sum() == peak
    assert VIEWS["memory_curve"].run(trace)["allocated_bytes"].max() == peak
