"""Options for what newer versions of torch record: they reach torch where it has them, and cost a log line elsewhere."""

import json

import pytest
import torch
from torch.profiler import ProfilerActivity

from kinetoscope import Tracer, UsageError, cyclic
from kinetoscope.profiling import torch_features
from kinetoscope.profiling.options import Options
from kinetoscope.profiling.torch_features import ExperimentalConfig, TorchFeatures

HAS_TRACE_ONLY = hasattr(ExperimentalConfig, "trace_only")
COUNTERS = ("environment", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed")
ALL = TorchFeatures(in_process_cupti=True, graph_dependencies=True, gpu_counters=COUNTERS)


@pytest.fixture
def settings(monkeypatch):
    """What torch's settings are made with, in place of a torch that has them all."""
    monkeypatch.setattr(torch_features, "ExperimentalConfig", lambda **settings: settings)


def use(monkeypatch, module, *, has_device=True):
    """Have an in-process CUPTI backend, or none, and a device."""
    monkeypatch.setattr(torch_features, "find_spec", lambda name: name if name == module else None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_device)


@pytest.mark.parametrize(
    ("module", "backend"), [("torch.profiler._cuspy", "cuspy"), ("torch.profiler._cupti", "cupti_monitor")]
)
def test_the_backend_gets_what_torch_2_14_and_2_15_read(monkeypatch, settings, module, backend, log):
    use(monkeypatch, module)
    assert ALL.supported_features() == ALL
    config = Options(features=ALL).arguments(str)["experimental_config"]
    assert json.loads(config["custom_profiler_config"]) == {
        "backend": backend,
        "enable_graph_dependencies": True,
        "enable_event_node_ids": True,
        "enable_environment_counters": True,
        "enable_pm_sampling": True,
        "pm_metrics": [COUNTERS[1]],
    }
    assert log() == []


def test_torch_2_13_has_the_backend_alone(monkeypatch, settings, log):
    use(monkeypatch, "torch.profiler._cupti_monitor")
    assert ALL.supported_features() == TorchFeatures(in_process_cupti=True)
    (message,) = log()
    assert "doesn't have graph_dependencies and gpu_counters; torch 2.14 does" in message


@pytest.mark.parametrize(
    ("module", "has_device", "message"),
    [
        (None, True, "doesn't have torch's in-process CUPTI backend; torch 2.13 does"),
        ("torch.profiler._cuspy", False, "There is no CUDA device"),
    ],
)
def test_without_backend_or_device_kineto_records(monkeypatch, settings, log, module, has_device, message):
    use(monkeypatch, module, has_device=has_device)
    features = ALL.supported_features()
    assert features == TorchFeatures()
    assert Options(features=features).arguments(str)["experimental_config"] is None
    (line,) = log()
    assert message in line


def test_a_window_without_events_is_saved_also_where_it_ends_early(tmp_path, log):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=1, active=4), trace_only=True) as tracer:
        for _ in range(3):
            torch.ones(4).relu()
            tracer.step()
        torch.ones(4).relu()
    assert [path.name for path in tracer.saved_traces] == ["rank0.3.pt.trace.json.gz"]
    if HAS_TRACE_ONLY:
        assert log() == []
        with pytest.raises(UsageError, match="needs a Tracer without trace_only=True"):
            tracer.key_averages()
    else:
        assert "doesn't have trace_only; torch 2.13 does" in log()[0]


def test_call_stacks_come_before_trace_only(settings):
    features = TorchFeatures(trace_only=True)
    assert features.config(with_stack=True, verbose=True) == {"verbose": True}
    assert features.config(with_stack=True, verbose=False) is None
    assert features.config(with_stack=False, verbose=False) == {"trace_only": True}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gpu_counters": "environment"}, "must be a collection of names"),
        ({"graph_dependencies": True, "activities": [ProfilerActivity.CUDA]}, "needs ProfilerActivity.CPU"),
        (
            {"trace_only": True, "profiler": {"experimental_config": torch._C._profiler._ExperimentalConfig()}},
            "trace_only: it can't be combined with an experimental_config",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path, arguments, message):
    with pytest.raises(UsageError, match=message):
        Tracer(tmp_path, **arguments)
