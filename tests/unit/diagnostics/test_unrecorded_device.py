"""Jobs that ran on a device of which nothing was recorded."""

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.measures.recording.unrecorded_device import unrecorded_device
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

A100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]}


def training(*operators, **top):
    builder = TraceBuilder(**top).step(1, 0, 1000).op("aten::mm", 10, 900)
    for nth, name in enumerate(operators):
        builder.op(name, 20 + 10 * nth, 5)
    return builder


def fact(trace):
    return dict(compute(VIEWS["environment"], trace, {}).rows()).get("Device")


def advice(trace):
    return compute(VIEWS["advice"], trace, {}).rows(named=True)


@pytest.mark.parametrize(
    "name",
    [
        "aten::cudnn_convolution",
        "aten::_cudnn_rnn",
        "aten::miopen_batch_norm",
        "aten::_flash_attention_forward",
        "aten::_efficient_attention_backward",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention_backward",
        "aten::_scaled_dot_product_cudnn_attention",
        "nccl:all_reduce",
        "triton_poi_fused_add_0",
        "flash_attn::_flash_attn_forward",
    ],
)
def test_an_operator_that_cpus_lack_shows_that_the_device_wasn_t_recorded(name):
    trace = training(name).build()
    device = unrecorded_device(trace)
    assert device is not None
    assert device.evidence.startswith(f"`{name}`")
    (row,) = advice(trace)
    assert (row["rule"], row["confidence"]) == ("device_not_recorded", "cannot_tell")
    assert row["title"] == "The job ran on a GPU, of which nothing was recorded: what costs most can't be said."
    assert "ProfilerActivity.CUDA" in row["action"]
    assert fact(trace) == "GPU (not recorded)"
    (found,) = (d for d in diagnose(trace) if d.rule == "device_off")
    assert name in found.consequence


def test_an_rnn_on_the_cpu_that_asks_for_cudnn_ran_on_the_cpu():
    trace = training("aten::lstm", "aten::cudnn_is_acceptable", "aten::mkldnn_rnn_layer").build()
    assert unrecorded_device(trace) is None
    assert fact(trace) is None or "not recorded" not in fact(trace)
    assert all(row["rule"] != "device_not_recorded" for row in advice(trace))


def test_ranks_that_could_communicate_by_either_backend_ran_where_their_operators_did():
    top = {"distributedInfo": {"backend": "cpu:gloo,cuda:nccl", "rank": 0, "world_size": 2}}
    assert unrecorded_device(training("aten::mkldnn_convolution", **top).build()) is None
    assert unrecorded_device(training("aten::mm", **top).build()) is not None


def test_the_name_of_the_device_is_in_the_heading_and_in_the_verdict():
    trace = training("aten::cudnn_convolution", **A100).build()
    assert fact(trace) == "NVIDIA A100-SXM4-80GB (not recorded)"
    assert advice(trace)[0]["title"].startswith("The job ran on NVIDIA A100-SXM4-80GB, of which nothing was recorded")


def test_a_launch_memory_of_a_device_or_a_backend_shows_it_too():
    launched = training().launch(30, 5, 1).build()
    allocated = training().memory(30, 8, **{"Device Type": 1}).build()
    backend = training(distributedInfo={"backend": "cpu:gloo,cuda:nccl", "rank": 0, "world_size": 2}).build()
    evidence = [unrecorded_device(trace).evidence for trace in (launched, allocated, backend)]
    assert evidence == [
        "`cudaLaunchKernel` was called",
        "Memory of a device was allocated",
        "The ranks communicate by cpu:gloo,cuda:nccl",
    ]


def test_a_file_that_only_names_its_gpu_isn_t_headed_cpu():
    trace = training(**A100).build()
    assert fact(trace) == "NVIDIA A100-SXM4-80GB (not recorded)"
    (row,) = advice(trace)
    assert row["title"].startswith("Nothing of NVIDIA A100-SXM4-80GB was recorded: if the job ran on it")
    assert not unrecorded_device(trace).was_used


@pytest.mark.parametrize("name", ["aten::mkldnn_convolution", "aten::_scaled_dot_product_flash_attention_for_cpu"])
def test_a_training_on_the_cpu_of_a_machine_with_a_gpu_is_judged_as_one(name):
    trace = training(name, **A100).build()
    assert unrecorded_device(trace) is None
    assert fact(trace) == "CPU (the machine has NVIDIA A100-SXM4-80GB)"
    assert "device_not_recorded" not in [row["rule"] for row in advice(trace)]


def test_a_training_on_a_cpu_is_one():
    trace = training("aten::add", "gloo:all_reduce").build()
    assert unrecorded_device(trace) is None
    assert fact(trace) == "CPU"


def test_a_recorded_device_is_no_unrecorded_one():
    trace = training("aten::cudnn_convolution").launch(30, 5, 1).kernel("k", 40, 5, 1).build()
    assert unrecorded_device(trace) is None


@pytest.mark.parametrize(
    ("name", "activity"),
    [("npu::npu_rms_norm", "torch_npu.profiler.ProfilerActivity.NPU"), ("xccl:all_reduce", "ProfilerActivity.XPU")],
)
def test_the_activity_is_that_of_the_device(name, activity):
    assert unrecorded_device(training(name).build()).activity == activity
