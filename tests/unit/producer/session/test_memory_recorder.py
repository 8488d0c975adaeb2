"""Memory snapshots: when they are taken, what they hold, and that the training never notices."""

import json
import pickle

import pytest
import torch

from kinetoscope import MemoryHistory, Tracer, UsageError, cyclic, on_request
from kinetoscope.profiling import allocator_history
from kinetoscope.session import memory_recorder
from support.allocators import GIB, TOTAL, FakeAllocator, OutOfMemoryError
from support.waiting import wait_for

WINDOWS = cyclic(wait=1, warmup=1, active=2, repeat=2)


@pytest.fixture
def allocator(monkeypatch):
    """The allocator of a device that the program uses."""
    monkeypatch.setattr(allocator_history, "_observers", {})
    allocator = FakeAllocator()
    allocator.install()
    yield allocator
    allocator.uninstall()


def train(tracer, allocator, steps):
    for _ in range(steps):
        allocator.allocate(GIB)
        torch.ones(2).relu()
        tracer.step()


def listed_snapshots(tracer):
    """What run.json says of each snapshot."""
    run = json.loads((tracer._trace_writer.known_rank_and_folder[1] / "run.json").read_text())
    return [(s["rank"], s["span"], s["reason"], s["state"], s.get("file")) for s in run["snapshots"]]


def test_each_window_ends_with_a_snapshot_of_the_history_from_the_start(tmp_path, allocator):
    with Tracer(tmp_path, run="run", schedule=WINDOWS, memory_history="always") as tracer:
        train(tracer, allocator, 10)
    assert [path.name for path in tracer.saved_snapshots] == ["rank0.4.memory.pickle", "rank0.8.memory.pickle"]
    assert len(tracer.saved_traces) == 2
    assert listed_snapshots(tracer) == [
        (0, 4, "schedule", "saved", "rank0.4.memory.pickle"),
        (0, 8, "schedule", "saved", "rank0.8.memory.pickle"),
    ]
    snapshot = pickle.loads(tracer.saved_snapshots[1].read_bytes())
    assert [event["action"] for event in snapshot["device_traces"][0]] == 8 * ["segment_alloc", "alloc"]
    assert snapshot["deviceProperties"] == [{"id": 0, "name": "Fake 80GB", "totalGlobalMem": TOTAL}]
    facts = snapshot["kinetoscope"]
    assert (facts["run"], facts["global_rank"], facts["steps_completed"]) == ("run", 0, 8)
    assert allocator.calls[0] == ("begin", {"stacks": "python", "max_entries": 100_000})
    assert [call for call, _ in allocator.calls] == ["begin", "snapshot", "snapshot", "end"]


def test_a_history_of_windows_begins_with_the_warm_up_and_ends_with_the_window(tmp_path, allocator):
    history = MemoryHistory(when="windows", max_entries=50, stacks="all")
    with Tracer(tmp_path, schedule=WINDOWS, memory_history=history) as tracer:
        train(tracer, allocator, 10)
    begin = ("begin", {"stacks": "all", "max_entries": 50})
    assert allocator.calls == 2 * [begin, ("snapshot", 6), ("end", {})]


def test_a_history_that_the_program_records_itself_goes_on(tmp_path, allocator):
    torch.npu.memory._record_memory_history("all")
    with Tracer(tmp_path, schedule=WINDOWS, memory_history="always") as tracer:
        train(tracer, allocator, 5)
    assert [call for call, _ in allocator.calls] == ["begin", "snapshot"]
    assert allocator.history is not None


def test_the_device_is_not_used_before_the_program_does(tmp_path, allocator):
    allocator.is_initialized = False
    with Tracer(tmp_path, schedule=on_request, memory_history="always") as tracer:
        tracer.step()
        assert allocator.calls == []
        allocator.is_initialized = True
        wait_for(lambda: allocator.calls)


def test_an_allocation_that_fails_is_saved_and_the_exception_stays_the_same(tmp_path, allocator, log):
    tracer = Tracer(tmp_path, run="run", schedule=on_request, memory_history="always")

    def run_out_of_memory():
        with tracer:
            train(tracer, allocator, 3)
            allocator.allocate(TOTAL)

    with pytest.raises(OutOfMemoryError, match=f"out of memory: {TOTAL} bytes") as raised:
        run_out_of_memory()
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    (path,) = tracer.saved_snapshots
    assert path.name == "rank0.3.oom.memory.pickle"
    assert listed_snapshots(tracer) == [(0, 3, "out of memory", "saved", path.name)]
    snapshot = pickle.loads(path.read_bytes())
    assert snapshot["device_traces"][0][-1]["action"] == "oom"
    assert snapshot["kinetoscope"]["failure"]["request_bytes"] == TOTAL
    assert any(f"kinetoscope summary {path}" in text for text in log())


def test_a_failure_that_the_program_catches_is_saved_while_it_runs_and_the_last_one_at_the_end(tmp_path, allocator):
    with Tracer(tmp_path, run="run", schedule=on_request, memory_history="always") as tracer:
        tracer.step()
        for _ in range(3):
            with pytest.raises(OutOfMemoryError):
                allocator.allocate(TOTAL + 1)
            wait_for(lambda: ("snapshot", 1) in allocator.calls)
        tracer.step()
    assert [path.name for path in tracer.saved_snapshots] == ["rank0.1.oom.memory.pickle", "rank0.2.oom.memory.pickle"]


def test_after_a_while_the_next_failure_is_saved_at_once(tmp_path, allocator, monkeypatch):
    monkeypatch.setattr(memory_recorder, "COOLDOWN_S", 0.0)
    with Tracer(tmp_path, run="run", schedule=on_request, memory_history="always") as tracer:
        tracer.step()
        for number in (1, 2):
            with pytest.raises(OutOfMemoryError):
                allocator.allocate(TOTAL + 1)
            wait_for(lambda number=number: ("snapshot", number) in allocator.calls)
    names = ["rank0.1.oom.memory.pickle", "rank0.1.oom2.memory.pickle"]
    assert [path.name for path in tracer.saved_snapshots] == names


def test_after_the_recording_a_failure_is_only_the_program_s(tmp_path, allocator):
    with Tracer(tmp_path, schedule=on_request, memory_history="always") as tracer:
        tracer.step()
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(TOTAL + 1)
    assert tracer.saved_snapshots == ()
    with Tracer(tmp_path, schedule=on_request, memory_history="always"):
        pass
    assert len(allocator.observers) == 1  # torch can't detach one


def test_a_request_may_have_a_snapshot_without_any_option_of_the_tracer(tmp_path, allocator):
    with Tracer(tmp_path, schedule=on_request) as tracer:
        tracer.step()
        assert allocator.calls == []
        tracer.request(steps=2, warmup=1, memory=True)
        train(tracer, allocator, 5)
        tracer.request(steps=1, warmup=0)
        train(tracer, allocator, 3)
    assert [call for call, _ in allocator.calls] == ["begin", "snapshot", "end"]
    assert len(tracer.saved_traces) == 2
    assert [path.name.split(".")[2:] for path in tracer.saved_snapshots] == [["memory", "pickle"]]


def test_as_many_snapshots_stay_as_traces(tmp_path, allocator):
    with Tracer(tmp_path, run="run", schedule=WINDOWS, memory_history="always", keep=1) as tracer:
        train(tracer, allocator, 10)
    assert sorted(path.name for path in (tmp_path / "run").glob("rank0.*")) == [
        "rank0.8.memory.pickle",
        "rank0.8.pt.trace.json.gz",
    ]
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [snapshot.get("pruned") for snapshot in run["snapshots"]] == [True, None]


def test_snapshots_are_copied_like_traces(tmp_path, allocator):
    pytest.importorskip("fsspec")
    remote = tmp_path / "remote"
    with Tracer(tmp_path, run="run", schedule=WINDOWS, memory_history="always", remote=f"file://{remote}") as tracer:
        train(tracer, allocator, 5)
    (path,) = tracer.saved_snapshots
    assert (remote / "run" / path.name).read_bytes() == path.read_bytes()


def test_ranks_that_do_not_record_have_no_history(tmp_path, allocator):
    with Tracer(tmp_path, schedule=WINDOWS, memory_history="always", ranks=[1]) as tracer:
        train(tracer, allocator, 5)
    assert allocator.calls == []


def test_an_allocator_that_fails_costs_the_snapshot_alone(tmp_path, allocator, monkeypatch):
    def fail():
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(torch.npu.memory, "_snapshot", fail)
    with Tracer(tmp_path, run="run", schedule=WINDOWS, memory_history="always") as tracer:
        train(tracer, allocator, 5)
    assert len(tracer.saved_traces) == 1
    assert tracer.saved_snapshots == ()
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [(s["state"], s["problem"]) for s in run["snapshots"]] == [("lost", "the device is gone")]


def test_without_such_a_device_the_log_says_so_once(tmp_path, log):
    with Tracer(tmp_path, schedule=WINDOWS, memory_history="always") as tracer:
        for _ in range(10):
            tracer.step()
    assert [text for text in log() if "memory_history" in text] == [memory_recorder._NOTHING_TO_RECORD]
    assert len(tracer.saved_traces) == 2


def test_without_the_option_nothing_of_the_allocator_is_called(tmp_path, allocator):
    with Tracer(tmp_path, schedule=WINDOWS) as tracer:
        train(tracer, allocator, 5)
    assert (allocator.calls, allocator.observers) == ([], [])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tracer(memory_history=True),
        lambda: Tracer(memory_history="never"),
        lambda: MemoryHistory(when="sometimes"),
        lambda: MemoryHistory(stacks="c"),
        lambda: MemoryHistory(max_entries=0),
    ],
)
def test_a_wrong_history_is_refused(make):
    with pytest.raises(UsageError):
        make()
