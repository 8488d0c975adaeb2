"""What a Tracer offers under the names of torch.profiler.profile."""

import gzip
import json
import re

import pytest
import torch
from torch.profiler import profile
from torch.profiler import tensorboard_trace_handler as torch_s_handler

from kinetoscope import Tracer, UsageError, cyclic, trace_handler
from kinetoscope.profiler import profile as recording_profile
from kinetoscope.profiler import tensorboard_trace_handler

TWO = cyclic(wait=1, warmup=0, active=1, repeat=2)


def work():
    torch.ones(4, 4).relu().sum()


def trained(tracer, steps=4):
    with tracer:
        for _ in range(steps):
            work()
            tracer.step()
    return tracer


def content(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def steps(trace):
    return [e["name"] for e in trace["traceEvents"] if str(e.get("name")).startswith("ProfilerStep")]


def test_a_handler_has_all_of_each_window_while_it_is_called(tmp_path, log):
    rows = []

    def ready(tracer):
        path = tmp_path / f"{tracer.step_num}.json"
        tracer.export_chrome_trace(path)
        averages = {row.key: row.count for row in tracer.key_averages()}
        names = {event.name for event in tracer.events()}
        rows.append((tracer.step_num, averages["aten::relu"], "aten::relu" in names, tracer.get_trace_id()))

    tracer = trained(Tracer(tmp_path, run="run", schedule=TWO, on_trace_ready=ready))
    assert [row[:3] for row in rows] == [(2, 1, True), (4, 1, True)]
    for (step, *_, trace_id), saved in zip(rows, tracer.saved_traces, strict=True):
        exported = content(tmp_path / f"{step}.json")
        assert exported == content(saved)
        assert exported["trace_id"] == trace_id
    assert log() == []


def test_torch_s_profiler_exports_inside_on_window_too(tmp_path, log):
    def ready(profiler):
        assert isinstance(profiler, profile)
        profiler.export_chrome_trace(str(tmp_path / f"{profiler.step_num}.json.gz"))

    tracer = trained(Tracer(tmp_path, run="run", schedule=TWO, on_window=ready))
    exported = [content(tmp_path / f"{step}.json.gz") for step in (2, 4)]
    assert exported == [content(path) for path in tracer.saved_traces]
    assert [steps(trace) for trace in exported] == [["ProfilerStep#1"], ["ProfilerStep#3"]]
    assert log() == []


def test_the_last_window_can_be_exported_between_windows_and_after_the_last(tmp_path, log):
    tracer = Tracer(tmp_path, run="run", schedule=TWO)
    with tracer:
        for step in range(4):
            work()
            tracer.step()
            if step == 1:
                tracer.export_chrome_trace(tmp_path / "first.json")
    tracer.export_chrome_trace(tmp_path / "second.json.gz")
    exported = [content(tmp_path / name) for name in ("first.json", "second.json.gz")]
    assert exported == [content(path) for path in tracer.saved_traces]
    assert log() == []


def test_a_failed_export_is_logged(tmp_path, log):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=9)) as tracer:
        tracer.export_chrome_trace(tmp_path / "none.json")
    assert "didn't write" in log()[0]
    assert "no window is complete" in log()[0]
    (tmp_path / "file").touch()
    failing = Tracer(
        tmp_path / "file", run="run", on_trace_ready=lambda t: t.export_chrome_trace(tmp_path / "file" / "x")
    )
    trained(failing)
    failing.export_chrome_trace(tmp_path / "lost.json")
    assert len([text for text in log() if "export_chrome_trace() didn't write" in text]) == 3
    assert list(tmp_path.glob("*.json")) == []


def test_a_handler_that_fails_costs_nothing_else(tmp_path, log):
    tracer = trained(
        Tracer(tmp_path, run="run", schedule=TWO, on_trace_ready=lambda _: 1 / 0, on_window=lambda _: {}[0])
    )
    assert len(tracer.saved_traces) == 2
    assert log()[0] == "on_trace_ready failed: ZeroDivisionError: division by zero"


def test_torch_s_own_handler_writes_what_is_saved(tmp_path, log):
    handler = torch_s_handler(str(tmp_path / "log"), "me", use_gzip=True)
    tracer = trained(Tracer(tmp_path, run="run", on_trace_ready=handler))
    (path,) = (tmp_path / "log").iterdir()
    assert re.fullmatch(r"me\.\d+\.pt\.trace\.json\.gz", path.name)
    assert content(path) == content(*tracer.saved_traces)
    assert log() == []


def test_without_a_schedule_the_window_stays_in_memory(tmp_path, log):
    tracer = trained(Tracer(tmp_path, run="run"))
    assert {row.key: row.count for row in tracer.key_averages()}["aten::relu"] == 4
    with pytest.raises(UsageError, match="keep_events=True"):
        trained(Tracer(tmp_path, run="windows", schedule=TWO)).key_averages()
    assert log() == []


def test_a_tracer_starts_and_stops_without_a_block(tmp_path):
    tracer = Tracer(tmp_path, run="run", schedule=TWO)
    tracer.start()
    for _ in range(3):
        work()
        tracer.step()
    assert tracer.step_num == 3
    tracer.stop()
    assert [path.name for path in tracer.saved_traces] == ["rank0.2.pt.trace.json.gz"]


def test_trace_ids_can_be_changed_between_windows(tmp_path):
    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=0, active=1, repeat=3))
    assert tracer.get_trace_id() is None
    tracer.set_custom_trace_id_callback(lambda: "first")
    ids = []
    with tracer:
        for step in range(6):
            work()
            tracer.step()
            ids.append(tracer.get_trace_id())
            if step == 1:
                tracer.set_custom_trace_id_callback(lambda: "second")
            if step == 3:
                tracer.set_custom_trace_id_callback(None)
    traces = [content(path)["trace_id"] for path in tracer.saved_traces]
    assert traces[:2] == ["first", "second"]
    assert len(traces[2]) == 32
    assert ids == ["first", "first", "second", "second", traces[2], traces[2]]
    with pytest.raises(UsageError, match="isn't callable"):
        tracer.set_custom_trace_id_callback("third")


@pytest.mark.parametrize(("use_gzip", "name"), [(True, "me.0.pt.trace.json.gz"), (False, "me.0.pt.trace.json")])
def test_a_handler_compresses_or_not(tmp_path, use_gzip, name):
    handler = trace_handler(tmp_path, run="run", worker="me", use_gzip=use_gzip)
    with profile(on_trace_ready=handler):
        work()
    handler.close()
    assert [path.name for path in handler.saved_traces] == [name]
    assert content(*handler.saved_traces)["kinetoscope"]["run"] == "run"


def test_a_tracer_takes_no_handler_that_saves(tmp_path):
    with pytest.raises(UsageError, match=r"torch\.profiler\.profile"):
        Tracer(tmp_path, on_trace_ready=trace_handler(tmp_path))
    with pytest.raises(UsageError, match=r"torch\.profiler\.profile"):
        recording_profile(on_trace_ready=trace_handler(tmp_path))


def test_a_handler_of_the_program_s_own_may_call_the_one_for_tensorboard(tmp_path, monkeypatch, log):
    monkeypatch.chdir(tmp_path)
    handler = tensorboard_trace_handler("log", "me")
    with recording_profile(on_trace_ready=lambda profiler: handler(profiler)) as tracer:
        work()
    (path,) = (tmp_path / "log").iterdir()
    assert content(path) == content(*tracer.saved_traces)
    assert tracer.saved_traces[0].is_relative_to(tmp_path / "runs")
    assert log() == []


def test_the_folder_for_tensorboard_is_where_it_is_recorded(tmp_path):
    with recording_profile(on_trace_ready=tensorboard_trace_handler(tmp_path, "me", use_gzip=True)) as tracer:
        work()
    assert tracer.saved_traces[0].name == "me.0.pt.trace.json.gz"
    assert tracer.saved_traces[0].parents[1] == tmp_path
    with pytest.raises(UsageError, match="worker"):
        tensorboard_trace_handler(tmp_path, "a/b")


@pytest.mark.filterwarnings("ignore:`use_cuda` is deprecated")
@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.parametrize("use_cuda", [True, False])
def test_the_old_switch_for_cuda_is_understood(tmp_path, monkeypatch, use_cuda):
    monkeypatch.chdir(tmp_path)
    with recording_profile(use_cuda=use_cuda) as tracer:
        work()
    activities = content(*tracer.saved_traces)["kinetoscope"]["options"]["activities"]
    assert ("CUDA" in activities) is use_cuda


@pytest.mark.parametrize("active", [1, 2])
@pytest.mark.parametrize("warmup", [0, 1])
def test_a_loop_of_the_program_s_own_ends_with_its_last_step(tmp_path, active, warmup):
    cycle, cycles = active + warmup, 3
    schedule = cyclic(wait=0, warmup=warmup, active=active, repeat=0)
    tracer = trained(Tracer(tmp_path, run="run", schedule=schedule), cycle * cycles)
    spans = [cycle * (n + 1) for n in range(cycles)]
    assert [path.name for path in tracer.saved_traces] == [f"rank0.{span}.pt.trace.json.gz" for span in spans]
    recorded = [name for path in tracer.saved_traces for name in steps(content(path))]
    assert recorded == [f"ProfilerStep#{span - active + n}" for span in spans for n in range(active)]


def test_what_runs_after_the_last_step_is_not_lost(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=0, warmup=0, active=1, repeat=0), with_stack=True) as tracer:
        work()
        tracer.step()
        torch.ones(3).sigmoid()
    last = content(tracer.saved_traces[1])
    assert [e["name"] for e in last["traceEvents"]].count("aten::sigmoid") == 1
    assert last["kinetoscope"]["is_complete"] is False


def test_a_step_that_an_exception_cuts_off_is_one(tmp_path):
    tracer = Tracer(tmp_path, run="run", schedule=cyclic(wait=0, warmup=0, active=1, repeat=0))

    def failing():
        with tracer:
            work()
            tracer.step()
            work()
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert [path.name for path in tracer.saved_traces] == ["rank0.1.pt.trace.json.gz", "rank0.2.pt.trace.json.gz"]
    assert content(tracer.saved_traces[1])["kinetoscope"]["is_complete"] is False
