"""What run, worker and span a trace is by its path, and how those are shown."""

import pytest

from kinetoscope_tb.discovery import run_labels, span_labels
from support.logdirs import NS, listed, make, names


def test_a_folder_is_a_run_and_numbers_are_in_the_order_of_numbers(tmp_path):
    make(tmp_path, *(f"job/rank{r}.{s}.pt.trace.json.gz" for r in (10, 2) for s in (10, 2)))
    assert names(listed(tmp_path)) == [
        ("job", "rank2", "2"),
        ("job", "rank2", "10"),
        ("job", "rank10", "2"),
        ("job", "rank10", "10"),
    ]


def test_the_logdir_itself_is_a_run_of_its_own_name(tmp_path):
    make(tmp_path / "mine", "rank0.pt.trace.json", "deep/er/rank0.pt.trace.json")
    assert names(listed(tmp_path / "mine")) == [("deep/er", "rank0", "default"), ("mine", "rank0", "default")]


WRITERS = [  # who writes it; path below the logdir; run, worker, span
    ("torch", f"r/host_4711.{NS}.pt.trace.json", "r", "host_4711", NS),
    ("torch, ms", "r/worker0.1623143089861.pt.trace.json.gz", "r", "worker0", "1623143089861"),
    ("kinetoscope", "r/rank3.42.pt.trace.json.gz", "r", "rank3", "42"),
    ("Composer", "r/torch_traces/rank3.42.pt.trace.json", "r/torch_traces", "rank3", "42"),
    ("Composer JSON", "r/traces/ep2-ba64-rank5.json", "r/traces", "rank5", "64"),
    ("torch's Perfetto", "r/rank3.42.pftrace.gz", "r", "rank3", "42"),
    ("torch's Perfetto, named by hand", "r/rank3.42.pt.trace.pftrace", "r", "rank3", "42"),
    ("Perfetto", "r/android.perfetto-trace", "r", "android", "default"),
    ("Composer merged", "r/traces/merged_trace.json", "r/traces", "merged_trace", "default"),
    (
        "Lightning",
        f"lightning_logs/version_0/fit-0-[Strategy]DDPStrategy.training_step.{NS}.pt.trace.json",
        "lightning_logs/version_0",
        "fit-0-[Strategy]DDPStrategy.training_step",
        NS,
    ),
    ("torchtune", f"out/iteration_20/r3-2024-12-9-18-44.{NS}.pt.trace.json.gz", "out", "r3", "20"),
    ("torchtitan", "d/profiling/traces/iteration_10/rank3_trace.json.gz", "d/profiling/traces", "rank3", "10"),
    ("torchtitan, leaf", "d/traces/iteration_10/leaf/rank3_trace.json.gz", "d/traces/leaf", "rank3", "10"),
    ("torchtitan, old", "d/profile_trace/iteration_10/rank3_trace.json", "d/profile_trace", "rank3", "10"),
    ("Megatron-LM", "m/torch_profile/rank-3.json.gz", "m/torch_profile", "rank-3", "default"),
    ("NeMo", "n/device/rank-3.json", "n/device", "rank-3", "default"),
    ("accelerate", "a/profile_3.json", "a", "profile_3", "default"),
    ("MMEngine", f"m/tf_tracing_logs/host_47.{NS}.pt.trace.json", "m/tf_tracing_logs", "host_47", NS),
    ("detectron2", f"o/log/profiler-tensorboard-iter7/worker3.{NS}.pt.trace.json", "o/log", "worker3", "7"),
    ("detectron2, JSON", "o/log/profiler-trace-iter7.json", "o/log", "profiler-trace", "7"),
    ("OLMo-core", "w/profiler/rank-3-step-40.chrome_trace.json.gz", "w/profiler", "rank-3", "40"),
    ("verl", "v/prof_start_5_end_9_rank_1.json", "v", "rank_1", "5"),
    ("Ray Train", "p/pytorch_profiler/worker_3_epoch_2.pt.trace.json", "p/pytorch_profiler", "worker_3", "2"),
    ("vLLM", f"l/cmpl-1-rank-3.{NS}.pt.trace.json.gz", "l", "cmpl-1-rank-3", NS),
    ("vLLM, 2026", f"l/dp0_pp0_tp1_dcp0_ep0_rank1.{NS}.pt.trace.json.gz", "l", "dp0_pp0_tp1_dcp0_ep0_rank1", NS),
    ("vLLM, API server", f"l/host_47.async_llm.{NS}.pt.trace.json.gz", "l", "host_47.async_llm", NS),
    ("SGLang", "s/1782843274.77-TP-0-DECODE.trace.json.gz", "s", "TP-0-DECODE", "1782843274.77"),
    ("SGLang, more", "s/id-TP-1-DP-0-PP-0-EP-1.trace.json.gz", "s", "TP-1-DP-0-PP-0-EP-1", "id"),
    ("SGLang's diffusion", "s/id-5_steps-global-rank0.trace.json.gz", "s", "rank0", "default"),
    ("SGLang's captures", "s/capture_traces/bs_512_rank0.json.gz", "s/capture_traces", "rank0", "512"),
    (
        "SGLang's captures of 2026",
        "s/graph_capture_profile/DecodeCudaGraphRunner_bs_16_rank1.json.gz",
        "s/graph_capture_profile",
        "rank1",
        "DecodeCudaGraphRunner_bs_16",
    ),
    (
        "SGLang's captures in one file",
        "s/graph_capture_profile/cuda_graph_capture-DecodeCudaGraphRunner-TP-1.json.gz",
        "s/graph_capture_profile",
        "TP-1",
        "DecodeCudaGraphRunner",
    ),
    (
        "vLLM's captures",
        f"l/capture_traces/graph_capture_rank_0.{NS}.pt.trace.json.gz",
        "l/capture_traces",
        "graph_capture_rank_0",
        NS,
    ),
    ("TensorRT-LLM", "t/base-rank-3.json", "t", "base-rank-3", "default"),
    ("dynolog", "y/out_4711.json", "y", "out_4711", "default"),
    ("kineto", "y/libkineto_activities_4711.json", "y", "libkineto_activities_4711", "default"),
    ("unitrace", "y/libkineto_trace_host_4711.json", "y", "libkineto_trace_host_4711", "default"),
    ("Meta", "f/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "f", "rank-34", "Jul_15_10_52_41.1074"),
    ("a script", "r/trace_12.json", "r", "trace", "12"),
    ("a script", "r/My_Trace.json", "r", "My_Trace", "default"),
    ("a script", "r/anything.json", "r", "anything", "default"),
    ("nobody", "r/iteration_20/rank3.7.pt.trace.json", "r/iteration_20", "rank3", "7"),
]


@pytest.mark.parametrize(
    ("path", "run", "worker", "span"), [row[1:] for row in WRITERS], ids=[row[0] for row in WRITERS]
)
def test_names_of_many_writers(tmp_path, path, run, worker, span):
    make(tmp_path, path)
    assert names(listed(tmp_path)) == [(run, worker, span)]


def test_two_files_of_one_span_are_both_shown(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json", "r/rank0.5.pt.trace.json.gz")
    listing = listed(tmp_path)
    assert names(listing) == [("r", "rank0", "5"), ("r", "rank0", "5 (r/rank0.5.pt.trace.json.gz)")]
    assert listing.problems == ()


def test_names_that_differ_by_the_time_alone_are_one_worker(tmp_path):
    make(tmp_path, f"o/iteration_20/r3-2024-12-9-18-44.{NS}.pt.trace.json.gz")
    make(tmp_path, f"o/iteration_30/r3-2024-12-9-19-2.{NS}.pt.trace.json.gz")
    assert names(listed(tmp_path)) == [("o", "r3", "20"), ("o", "r3", "30")]


def test_a_second_recording_of_one_iteration_is_shown_too(tmp_path):
    make(tmp_path, "o/iteration_20/r3-2024-12-9-18-44.1733770537022695153.pt.trace.json")
    make(tmp_path, "o/iteration_20/r3-2024-12-9-19-2.1733770999022695153.pt.trace.json")
    second = "20 (o/iteration_20/r3-2024-12-9-19-2.1733770999022695153.pt.trace.json)"
    assert names(listed(tmp_path)) == [("o", "r3", "20"), ("o", "r3", second)]


def test_runs_are_shown_without_the_folders_that_trainers_put_between():
    runs = ["a/torch_traces", "b/profiling/traces", "c/device", "c", "torch_traces", "d/torch_profile", "e"]
    assert run_labels(runs) == {
        "a/torch_traces": "a",
        "b/profiling/traces": "b",
        "c/device": "c/device",
        "c": "c",
        "torch_traces": "torch_traces",
        "d/torch_profile": "d",
        "e": "e",
    }


def test_times_are_shown_as_times():
    spans = ["1733769848514071115", "1733769848914071115", "1733770537022695153", "1623143089861", "42", "default"]
    assert span_labels(spans) == {
        "1733769848514071115": "2024-12-09 18:44:08.514071 UTC",
        "1733769848914071115": "2024-12-09 18:44:08.914071 UTC",
        "1733770537022695153": "2024-12-09 18:55:37 UTC",
        "1623143089861": "2021-06-08 09:04:49 UTC",
        "42": "42",
        "default": "default",
    }


def test_two_times_in_one_microsecond_stay_numbers():
    spans = ["1733769848514071115", "1733769848514071116"]
    assert span_labels(spans) == {span: span for span in spans}
