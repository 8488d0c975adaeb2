import json

import pytest

from eras import ERAS
from kinetoscope_tb.measures.recording.torch_version import torch_version, writer
from kinetoscope_tb.reader import read, read_blocks
from support.build import TraceBuilder

PYTHON = "torch's exporter in Python (use_python_export)"
CUSPY = "torch's CUPTI monitor or Cuspy"
BASE = {"baseTimeNanoseconds": 1_790_857_026_000_000_000}  # of October 2026: later than every release here
NEW = BASE | {"trace_id": "1F", "host_name": "node7"}


def event(cat, name="x", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 2, "ts": 1.001, "dur": 2.002, "args": args}


def file(*events, top=None, last=None, of="traceEvents"):
    """The text of a file with top-level values before and behind its events."""
    top, last = json.dumps(top or {})[1:-1], json.dumps(last or {})[1:-1]
    listed = ",\n".join(e if isinstance(e, str) else json.dumps(e) for e in events)
    return f'{{{top}{", " * bool(top)}"{of}": [\n{listed}\n]{", " * bool(last)}{last}}}'


def version(text):
    return torch_version(read_blocks([text.encode()], path="t.json"))


OLD_OP = event("Operator", **{"Input dims": [], "External id": 1}) | {"tid": "2", "ts": 5, "dur": 2}
LAUNCH_1_11 = event("Runtime", **{"external id": 1}) | {"ts": 5, "dur": 2}
OP_1_13 = event("cpu_op", **{"Profiler Event Index": 1, "Trace name": "PyTorch Profiler"}) | {"ts": 5, "dur": 2}
KERNEL_1_12 = event("kernel") | {"ts": 5, "dur": 2}
ARROW_1_12 = event("async_cpu_to_gpu", "async_gpu") | {"ph": "s", "id": 1, "ts": 5}
OP_2_0 = event("cpu_op", **{"Ev Idx": 1, "Input Dims": []}) | {"ts": 5, "dur": 2}
OP_2_1 = event("cpu_op", **{"Ev Idx": 1, "Input Dims": [], "Concrete Inputs": []}) | {"ts": 5, "dur": 2}
OP = event("cpu_op", **{"Ev Idx": 1, "Record function id": 0})
MEMORY = event("cpu_instant_event", "[memory]", Addr=1, Bytes=2) | {"ph": "i"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps([OLD_OP]), "≈ 1.8"),
        (file(OLD_OP | {"args": {"Input Dims": []}}), "≈ 1.9"),
        (file(event("cpu_op"), event("Kernel") | {"tid": "stream 7"}, OLD_OP | {"cat": "cpu_op", "args": {}}), "≈ 1.9"),
        (file(event("cpu_op"), LAUNCH_1_11, event("Kernel")), "≈ 1.10–1.11"),
        (file(event("cpu_op"), LAUNCH_1_11, event("python_function", **{"Python id": 1})), "≈ 1.11"),
        (file(event("cpu_op"), KERNEL_1_12, ARROW_1_12, top={"deviceProperties": [{"id": 0}]}), "≈ 1.12"),
        (file(OP_1_13, KERNEL_1_12, ARROW_1_12, top={"deviceProperties": [{"id": 0}]}), "≈ 1.13"),
        (file(OP_1_13, event("gpu_user_annotation")), "≈ 1.13"),
        (file(OP_2_0, event("ac2g") | {"ph": "f", "id": 1}), "≈ 2.0"),
        (file(OP_2_1), "≈ 2.1–2.3"),
        (file(OP_2_1, event("cpu_op", "record_param_comms", **{"In msg size": 1}) | {"ts": 5, "dur": 1}), "≈ 2.2"),
        (file(OP_2_1, top={"distributedInfo": {"pg_config": []}}), "≈ 2.3"),
        (file(OP, last=BASE), "≈ 2.4–2.5"),
        (file(OP, event("cpu_op", **{"Src Rank": 1}), last=BASE), "≈ 2.5"),
        (file(OP, top={"trace_id": "1F"}, last=BASE), "≈ 2.6–2.7"),
        (file(OP, MEMORY, top={"trace_id": "1F"}, last=BASE), "≈ 2.6"),
        (file(OP | {"args": {"finished": False}}, top={"trace_id": "1F"}, last=BASE), "≈ 2.7"),
        (file(OP, top=BASE | {"trace_id": "1F"}), "≈ 2.8–2.11"),
        (file(OP, event("cuda_event", event_id=1), top=BASE | {"trace_id": "1F"}), "≈ 2.10–2.11"),
        (file(OP, top=BASE | {"trace_id": "1F", "PT_PROFILER_JOB_NAME": "a"}), "≈ 2.11"),
        (file(OP, top=NEW), "≈ 2.12 or later"),
        (file(OP, event("kernel", **{"graph node id": 3}), top=BASE), "≈ 2.12"),
        (file(OP, event("cpu_op", "record_param_comms", Seq=3), top=BASE), "≈ 2.12"),
        (file('  {\n    "ph": "X",\n    "cat": "cpu_op",\n    "name": "a", "ts": 1.000\n  }', top=BASE), "≈ 2.12"),
        (file(OP, event("kernel", channel_type="ASYNC"), top=NEW), "≈ 2.13 or later"),
        (file(OP, event("kernel", hsa_queue=1), top=NEW), "≈ 2.14 or later"),
        (file(OP, event("xpu_sync"), top=NEW), "≈ 2.14 or later"),
    ],
)
def test_what_a_release_brought_or_gave_up_tells_about_which_it_was(text, expected):
    assert version(text) == expected


def test_what_is_missing_or_old_never_outweighs_what_only_newer_releases_write():
    one_line = '  {\n    "ph": "X", "cat": "kernel", "name": "k", "ts": 1.000, "args": {"channel_type": 1}\n  }'
    assert version(file(one_line, top=BASE)) == "≈ 2.13"


def test_a_host_name_in_the_older_layout_is_somebody_s_own():
    one_line = '  {\n    "ph": "X", "cat": "cpu_op", "name": "k", "ts": 1.000\n  }'
    assert version(file(one_line, top=NEW)) == "≈ 2.8–2.11"


def test_no_release_wrote_a_trace_before_it_was_begun():
    of_2025_10 = {"baseTimeNanoseconds": 1_760_000_000_000_000_000, "trace_id": "1F"}
    assert version(file(OP, top=of_2025_10)) == "≈ 2.8–2.9"
    assert version(file(OP, top={"baseTimeNanoseconds": 0, "trace_id": "1F"})) == "≈ 2.8–2.11"


def test_the_line_at_which_modules_are_called_tells_the_release():
    def call(line):
        return TraceBuilder().python(f"torch/nn/modules/module.py({line}): _call_impl", 0, 5).build()

    assert torch_version(call(1743)) == "≈ 2.6"
    assert torch_version(call(7)) == "≈ 2.8"


@pytest.mark.parametrize(
    ("path", "version"),
    [  # the releases are within those that the traces' own README infers, but where a comment gives the reason
        ("single/torch1.8.0_array_form/worker0.pt.trace.json.gz", "≈ 1.8"),
        ("single/torch1.8.1_schemaVersion/worker0.pt.trace.json.gz", "≈ 1.8"),
        ("single/torch1.8.1_autograd_api/worker0.pt.trace.json.gz", "≈ 1.8"),
        ("single/kineto_gpu_metrics_input.json", "≈ 1.9"),
        ("runs/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz", "≈ 1.9"),
        ("single/hta_a100_rank3_of_8_control.json.gz", "≈ 1.13"),  # of August 2022, with Profiler Event Index
        ("single/hta_no_distributedInfo.json.gz", "≈ 1.13"),
        ("single/hta_backward_thread.json", "≈ 1.13"),
        ("single/hta_trace_compare_base.json.gz", "≈ 1.13"),
        ("single/hta_gp100_gpu_user_annotation.json.gz", "≈ 2.0"),
        ("single/param_linear_kineto_rtx2080ti.json.gz", "≈ 2.0"),
        ("runs/dlrm_8gpu_nccl/worker0_step_12.1694128201545.pt.trace.json", "≈ 2.0"),
        ("single/hta_cuda_sync_simple_add.json.gz", "≈ 2.1"),
        ("single/tracelens_rocm_old_gemm_01.json", "≈ 2.1–2.3"),
        ("single/hta_event_sync_trace.json.gz", "≈ 2.2–2.3"),
        ("single/switch_transformers_a100_torch2.3.json", "≈ 2.3"),
        ("single/hta_nccl_data_rank0_of_2.json.gz", "≈ 2.4"),
        ("single/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "≈ 2.4"),
        ("single/hta_mi250_minitoy_train_ROCm6_2.json.gz", "≈ 2.4–2.5"),
        ("single/particle_runtime_only.json", "≈ 2.4–2.5"),
        ("runs/particle_forward_batch_size_512/hmoss-6a49xb_1988833.1733770537022695153.pt.trace.json", "≈ 2.4–2.5"),
        ("single/hta_triton_example.json.gz", "≈ 2.6"),  # cupti_version came with 2.6
        ("single/tracelens_h100_nsfw_image_detection.json.gz", "≈ 2.6"),
        ("single/tracelens_mi300_bert-small.json.gz", "≈ 2.7"),
        ("single/hta_mtia_inference_rank_0.json.gz", "≈ 2.8–2.10"),
        ("single/tracelens_mi300_torch_compile_triton.json.gz", "≈ 2.8–2.11"),
        ("single/tracelens_mi300_rocprofiler-sdk_sdpa_01.json", "≈ 2.8–2.11"),
        ("single/ncompass_h100nvl_test_trace.pt.trace.json", "≈ 2.9"),
        ("single/sglang_MI300_qwen3_30b_TP-0-DECODE.trace.json.gz", "≈ 2.9"),
        ("single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz", "≈ 2.9"),
        ("single/tracelens_vllm_decode_graph_execution.json.gz", "≈ 2.9"),
        ("single/tracelens_mi300_normalization.json.gz", "≈ 2.10"),
        ("single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz", "≈ 2.11"),
        ("single/kineto_h100_before_fix_trace.json", "≈ 2.12"),  # graph node id; kineto built by itself
    ],
)
def test_the_torch_of_real_traces_is_told(traces, path, version):
    assert torch_version(read(traces / path)) == version


@pytest.mark.parametrize(
    ("path", "version", "written_by"),
    [
        ("cpu/train_plain.json.gz", "≈ 2.12 or later", None),  # nothing changed in C++ since
        ("cpu/train_all.json.gz", "≈ 2.15", None),  # by the line of nn.Module._call_impl
        ("cpu/names.python_export.json.gz", "≈ 2.13 or later", PYTHON),
        ("python_export/graph_plain.json.gz", "≈ 2.15 or later", PYTHON),  # [memory] is an instant
        ("python_export/graph_annotated.json.gz", "≈ 2.15 or later", PYTHON),
        ("cuspy/cuspy_eager.json.gz", "≈ 2.14 or later", CUSPY),
        ("cuspy/cuspy_graphs.json.gz", "≈ 2.14 or later", CUSPY),
        ("cuspy/cuspy_two_devices.json.gz", "≈ 2.14 or later", CUSPY),
        ("cuspy/cuspy_steps_without_work.json.gz", "≈ 2.13 or later", CUSPY),
    ],
)
def test_the_files_of_torch_2_15_name_it_or_leave_it_open(torch_2_15, path, version, written_by):
    trace = read(torch_2_15 / path)
    assert (torch_version(trace), writer(trace)) == (version, written_by)


RELEASES = ("1.8", "1.9", *(f"1.{n}" for n in range(10, 14)), *(f"2.{n}" for n in range(14)))


def contains(release_words, release):
    first, _, last = release_words.removeprefix("≈ ").partition("–")
    return RELEASES.index(first) <= RELEASES.index(release) <= RELEASES.index(last or first)


RELEASED = [e for e in ERAS if e.name.startswith(("torch ", "ROCm, torch "))]


@pytest.mark.parametrize("era", RELEASED, ids=lambda era: era.name)
@pytest.mark.slow  # each era
def test_the_torch_of_every_era_is_told(era):
    assert contains(torch_version(era.trace), ".".join(map(str, era.writer.torch)))


@pytest.mark.parametrize(
    ("name", "release_words"),
    [
        ("kineto main", "≈ 2.14"),
        ("Python exporter", "≈ 2.13"),
        ("CUPTI monitor", "≈ 2.13"),
        ("legacy", None),
        ("Ascend", None),
    ],
)
def test_the_torch_of_other_writers_is_told_or_left_open(name, release_words):
    assert torch_version(next(e for e in ERAS if e.name == name).trace) == release_words


def test_our_recorder_says_it():
    trace = TraceBuilder(host_name="node7", kinetoscope={"torch_version": "2.13.0"}).op("a", 0, 5).build()
    assert torch_version(trace) == "2.13.0"


def test_a_file_of_another_tool_has_no_torch():
    assert version('{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}]}') is None


def test_the_exporter_in_python_and_the_other_writers_are_told():
    def written(text):
        return writer(read_blocks([text.encode()], path="t.json"))

    memory = '{"ph":"X","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":1.000,"dur":0.000}'
    assert written(file(memory, top=BASE)) == "torch's exporter in Python (use_python_export)"
    assert version(file(memory, top=BASE)) == "≈ 2.13–2.14"
    assert written(file(event("gpu_memcpy", **{"copy kind": 1}), top=BASE)) == "torch's CUPTI monitor"
    old = {"ph": "X", "name": "aten::mm", "pid": "CPU functions", "tid": 1, "ts": 1.5, "dur": 2, "args": {}}
    assert written(json.dumps([old])) == "torch's autograd profiler without kineto"
    on_demand = {"traceName": "/tmp/libkineto_activities_7.json"}
    assert written(file(OP, top=NEW, last=on_demand)) == "kineto on demand"
    assert written(file(OP, top=NEW)) is None
    assert writer(next(e for e in ERAS if e.name == "Ascend").trace) == "torch_npu"
    annotated = read_blocks([file(OP, top=NEW).encode()], path="a.annotated.json.gz")
    assert writer(annotated) == "torch.cuda._annotate_cuda_graph_trace"
