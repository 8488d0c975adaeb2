"""What holds of each real recording and each sample: a recording is read once for all that is held against it."""

import os
from pathlib import Path

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.measures.recording.contents import has_iterations
from kinetoscope_tb.measures.serving.iterations import server_engine
from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.event import EventTexts, event_length
from kinetoscope_tb.views import VIEWS
from support.real_servers import SERVERS
from support.real_traces import FOLDER, MISSING, of_each_program
from support.sums import RULES
from support.trace_entries import assert_same, reopened
from support.verdicts import FILE, from_text, heading, judged_traces, verdict

SAMPLES = Path(__file__).parents[2] / "samples"
KINDS = ("runs", "single", "claims", "../inference")
REAL = [path for path in of_each_program(*KINDS) if path.name != "execution_details.json"]
TRACES = sorted([*REAL, *SAMPLES.glob("*/*/*.pt.trace.json.gz")])
VERDICTS = from_text(FILE.read_text("utf-8"))


def named(path):
    return str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else f"../{path.relative_to(FOLDER.parent)}"


def for_each(paths):
    """Give a test the trace of each file: the tests of a file follow each other, so it is read once for all."""
    ids = ["-".join(path.parts[-3:]) for path in paths]
    return pytest.mark.parametrize("recording", paths, ids=ids, indirect=True, scope="module")


@pytest.fixture(scope="module")
def recording(request):
    """A file, and its trace, or why it can't be read."""
    try:
        return request.param, read(request.param)
    except TraceError as error:
        return request.param, error


def test_the_real_traces_are_there():
    if not REAL and not os.environ.get("CI"):
        pytest.skip(MISSING)
    assert REAL


@for_each(TRACES)
def test_sums_reconcile(recording, subtests):
    _path, trace = recording
    tables = {name: view.run(trace) for name, view in VIEWS.items() if not view.is_missing(trace)}
    for holds in RULES:
        with subtests.test(rule=holds.__name__):
            holds(trace, tables)


@for_each(judged_traces())
def test_the_verdict_is_the_one_that_was_read(recording):
    path, trace = recording
    assert verdict(trace) == VERDICTS[heading(path)]


JUDGED = {
    # One process, num_workers=0: the loader runs between the steps' work (59 ms of 178 ms). Convolutions run in float
    # on a V100, but the host never waits for them: it ends its step 9 to 16 ms before the device, and goes on. So
    # convolutions at three times the speed save these milliseconds once, after the last step. Batch norm and ReLU
    # are 16.7 % of the step, and 19.2 % in the second span; fused, the host has less to launch, too. SGD goes by
    # parameter, for less than 3 %.
    "runs/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz": ["data_loading", "elementwise"],
    "runs/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz": ["data_loading", "elementwise"],
    # The same with another torch: its devices' properties weren't written, so nothing of precision. The host is late in
    # nothing that could be named (nested calls of a convolution count once), so the loader, as large, comes first.
    # Batch norm and ReLU take 13.6 %, most of it in long runs of kernels that could be one each.
    "single/torch1.8.0_array_form/worker0.pt.trace.json.gz": ["data_loading", "host_bound", "elementwise"],
    # Four workers: the loader costs nothing any more; the host is late for 9.9 %, in pieces and behind the last step.
    # Kernels for batch norm and ReLU take 23.5 %.
    "single/torch1.8.1_schemaVersion/worker0.pt.trace.json.gz": ["elementwise"],
    # DLRM on 8 ranks: 240 kernels of 4 µs, all-to-all that waits for other ranks, Adagrad as a loop over tensors. Two
    # results are copied to pageable memory: only then does the host go on launching.
    "runs/dlrm_8gpu_nccl/worker0_step_12.1694128201545.pt.trace.json": [
        "launch_bound",
        "synchronizing",
        "communication",
        "data_loading",
        "optimizer",
    ],
    "runs/dlrm_8gpu_nccl/worker1_step_12.1694128201556.pt.trace.json": ["communication", "launch_bound", "optimizer"],
    # A100, rank 3 of 8: half of the all-reduces lie behind the backward pass, but the host, which is late again and
    # again, takes nearly as long meanwhile: without any communication a step would be 9 % shorter. So would faster
    # matmuls and copies save next to nothing. Elementwise kernels take 19.7 %, in runs of several.
    "single/hta_a100_rank3_of_8_control.json.gz": ["host_bound", "elementwise", "communication"],
    "single/hta_nccl_data_rank0_of_2.json.gz": ["host_bound"],
    # Forward passes whose recording begins with start-up: one gap of 0.29 s, and a first launch that takes 0.63 s.
    "runs/particle_forward_batch_size_512/hmoss-6a49xb_1988833.1733770537022695153.pt.trace.json": [
        "warm_up",
        "host_bound",
    ],
    # The model runs on the CPU, in large operators; attention is bmm, softmax, dropout and bmm over 4096 x 128 x 128.
    "runs/particle_cpu_logs/hmoss-6a49xb_4025559.1732704788383329918.pt.trace.json": ["unfused_attention"],
    # Small batches with Python stacks on: hundreds of short kernels, each launched too late.
    "single/ncompass_h100nvl_test_trace.pt.trace.json": ["launch_bound"],
    "single/tracelens_h100_nsfw_image_detection.json.gz": ["launch_bound"],
    "single/tracelens_mi300_bert-small.json.gz": ["launch_bound"],
    # Kernels back to back, nothing between them: attention at 38 and 42 % of what an MI300X reaches, and a matmul with
    # four tiles for all of its multiprocessors.
    "single/tracelens_mi300_rocprofiler-sdk_sdpa_01.json": ["attention_below_roof"],
    "single/tracelens_rocm_old_gemm_01.json": ["matmul_below_roof"],
    "single/tracelens_mi300_torch_compile_triton.json.gz": ["attention_below_roof"],
    # A GPU's rank of which only the host was recorded: nothing is said of its device.
    "single/hta_no_distributedInfo.json.gz": ["device_not_recorded"],
    # Device rows without any launch: nothing says whether anything else was queued.
    "single/hta_trace_compare_base.json.gz": ["unexplained_idle"],
    # A server's start: nothing of what is captured runs.
    "single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz": ["graph_capture"],
    # It names a GPU, and has seven calls of the runtime: nothing says whether the GPU worked.
    "single/particle_runtime_only.json": ["device_not_recorded"],
}


@for_each([FOLDER / name for name in JUDGED] if FOLDER.exists() else [])
def test_a_real_trace_gets_the_advice_that_was_judged_true(recording):
    """The samples' golden files hold more of them: samples/single_process trains a small model in small operators."""
    path, trace = recording
    judged = JUDGED[named(path)]
    rest = [] if judged in (["device_not_recorded"], ["graph_capture"]) else ["nothing_to_fix"]
    assert VIEWS["advice"].run(trace)["rule"].to_list() == [*judged, *rest]


TRUE_ALARMS = {  # each was looked at in the trace
    # Cut on purpose: 60 and 70 % of the file.
    "derived_malformed/truncated_mid_event.pt.trace.json": {"truncated"},
    "derived_malformed/truncated.pt.trace.json.gz": {"truncated"},
    # Both waits for the device return 50 µs before the end of the kernels that they waited for: the clock is off.
    "claims/tracelens_mi300_rocprofiler-sdk_sdpa_03.json": {"kernel_outlives_wait"},
    # Cut by hand: the one kernel begins 64 ms after its launch.
    "single/hta_backward_thread.json": {"starts_amid_work"},
    # 54 k calls of Python in 34 ms, of which 31 ms are the capture of a graph.
    "single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz": {"graphs_captured", "stacks_slow_host"},
    # A graph is captured for 73 % of the time.
    "../inference/xdit_flux1_aiter_sage/capture_traces/capture_trace_rank_0.json.gz": {"graphs_captured"},
    # Decode servers that were recorded amid their work: the first graph waits 7.8 and 149 ms for it.
    "single/tracelens_vllm_decode_graph_execution.json.gz": {"starts_amid_work"},
    "../inference/vllm_prefilldecode_piecewise/graph_execution.json.gz": {"starts_amid_work"},
    # 201 k calls of Python in 249 ms.
    "../inference/xdit_flux1_aiter_sage/profile_trace_rank_0.json.gz": {"stacks_slow_host"},
    # Times were made up: a kernel ends 11 µs after the wait for its device; two kernels overlap by 5 µs.
    **{
        f"../torch-2.15/cuspy/cuspy_{kind}": {"kernel_outlives_wait"}
        for kind in ("eager.json", "eager.json.gz", "counters.json.gz", "counters_nan.json.gz")
    },
    "../torch-2.15/cuspy/cuspy_two_devices.json.gz": {"kernels_overlap"},
}


def real_traces():
    folders = (FOLDER, *(FOLDER.parent / name for name in ("inference", "labelled", "torch-2.15")))
    return [path for folder in folders for path in sorted(folder.rglob("*.json*")) if "truth" not in path.name]


@for_each(real_traces())
def test_a_real_trace_raises_no_false_alarm(recording):
    path, trace = recording
    diagnostics = [] if isinstance(trace, TraceError) else diagnose(trace)
    alarms = {d.rule for d in diagnostics if d.fault or d.rule == "events_twice"}
    assert alarms == TRUE_ALARMS.get(named(path), set())


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_true_alarms_are_of_real_traces():
    assert {named(path) for path in real_traces()} >= TRUE_ALARMS.keys()


PATTERNS = ("single/*.json*", "claims/*.json*", "runs/dlrm_8gpu_nccl/worker0*")
OTHERS = sorted(path for pattern in PATTERNS for path in FOLDER.glob(pattern) if named(path) not in SERVERS)


@for_each(OTHERS)
def test_what_is_no_recording_of_a_server_has_no_iterations(recording):
    _path, trace = recording
    assert not has_iterations(trace)
    assert not server_engine(trace)


PROGRAMS = [path for path in of_each_program("") if path.stat().st_size > 0]
SMALL = 100_000  # bytes: a third of the real traces, which have all views that any of them has


@for_each(PROGRAMS)
def test_a_real_trace_comes_back_from_the_cache_and_views_of_small_ones_say_the_same(recording):
    path, trace = recording
    again = reopened(trace)
    assert_same(again, trace)
    for view in VIEWS.values() if path.stat().st_size < SMALL else ():
        if not view.is_missing(trace):
            assert view.run(again).equals(view.run(trace), null_equal=True), view.id


@for_each(PROGRAMS)
def test_rows_of_a_real_trace_lead_to_their_events(recording):
    path, trace = recording
    texts = EventTexts()
    for name in ("host_events", "launches", "device_events", "python_calls"):
        frame = getattr(trace, name)
        for row in frame[:: max(1, frame.height // 3)].select("name", "offset", "length").iter_rows(named=True):
            assert event_length(trace, row["offset"]) == row["length"]
            event = texts.event(str(path), 1, row["offset"], row["length"])
            assert event.text[0] + event.text[-1] == "{}"
            assert event.value["name"] == row["name"]
            assert event.problem is None or "repaired" in event.problem
