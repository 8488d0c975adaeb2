"""Numbers of real traces that were looked at, and the predecessor's where it was right."""

import polars as pl
import pytest

from kinetoscope_tb.measures.time.idle_causes import CAUSES
from kinetoscope_tb.names.text import percent
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER, MISSING

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)


def idle_ms(name):
    """The idle time of a recording's only device by cause, in ms, and its headline."""
    trace = read(next(FOLDER.glob(name)))
    row = VIEWS["idle"].run(trace).filter(scope="device").row(0, named=True)
    headline = VIEWS["advice"].run(trace)["title"][0]
    return {cause: row[f"{cause.replace(' ', '_')}_ns"] / 1e6 for cause in CAUSES}, headline


def test_the_gpu_of_a_server_that_replays_graphs_does_not_wait_for_the_host():
    """Up to 422 rows of vLLM were queued; the first one was launched 2.2 ms after the start and ran 149 ms later."""
    ms, headline = idle_ms("../inference/vllm_prefilldecode_piecewise/graph_execution.json.gz")
    assert ms["host late"] <= 2.22
    assert ms["not shown"] == pytest.approx(151.23, abs=0.01)
    assert headline == "49.1 % of iteration 0 isn't in the recording: the GPU may have been busy then."


def test_what_the_trace_does_not_show_has_no_culprit_on_the_host():
    trace = read(next(FOLDER.glob("../inference/vllm_prefilldecode_piecewise/graph_execution.json.gz")))
    rows = VIEWS["idle_culprits"].run(trace).filter(pl.col("cause") == "not shown")
    assert rows.select("host", "source", "gaps", "total_ns").rows() == [(None, None, 1, 151_231_271)]


def test_a_server_is_idle_for_the_same_share_in_its_headline_and_in_the_view_of_idle_time():
    """SGLang's decode was idle for 48.8 %, of which 0.3 % had work queued."""
    trace = read(FOLDER / "single" / "sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz")
    share = VIEWS["idle"].run(trace).filter(scope="device")["idle_frac"][0]
    title = VIEWS["advice"].run(trace)["title"][0]
    assert (
        f"the GPU is idle for {percent(share)} of decode, mostly while the host is in operators and launches" in title
    )


def test_a_host_in_a_synchronous_copy_waits_for_the_gpu_and_not_the_other_way_round():
    """SGLang's prefill launched work after 0.12 ms, and then sat in hipMemcpyWithStream for 493 ms."""
    ms, headline = idle_ms("../inference/sglang_prefilldecode/*.json.gz")
    assert ms["host late"] < 1.1
    assert ms["blocked copy"] == pytest.approx(493.2, abs=0.1)
    assert headline.startswith(
        "The GPU is idle with work already queued for 50 % of iteration 0, while the host is in `hipMemcpyWithStream`"
    )


def test_a_first_gap_is_split_at_the_launch_of_the_copy_that_ends_it():
    """8.6 of 45 ms passed before cudaMemcpyAsync was called, which then held the host for 40 ms."""
    trace = read(next((FOLDER / "claims/resnet50_num_workers_4").glob("*.gz")))
    gap = VIEWS["gaps"].run(trace).row(0, named=True)
    assert gap["dur_ns"] == 44_992_000
    assert gap["host_late_ns"] == 8_556_000
    assert gap["cause"] == "blocked copy"


def test_the_first_step_holds_nothing_of_the_step_before_the_recording():
    """It lasted 368 ms among 212 to 217 while an early copy on a prefetch stream ended the tail of the step before."""
    table = VIEWS["steps"].run(read(FOLDER / "claims" / "hta_a100_rank0_of_16.json.gz"))
    assert table["total_ns"][0] == pytest.approx(216.3e6, abs=0.05e6)


def test_resnet50_has_the_breakdown_that_the_predecessor_found():
    """Torch-tb-profiler 0.4.3 shows these microseconds for the average of the six steps; no rule of ours changes a part."""
    (path, _) = sorted((FOLDER / "runs" / "resnet50_num_workers_0").iterdir())
    table = VIEWS["overview"].run(read(path))
    mean = dict(zip(table["category"], (round(ns / 1000) for ns in table["mean_ns"]), strict=True))
    assert mean == {
        "Kernel": 98589,
        "Memcpy": 1915,
        "Memset": 89,
        "Communication": 0,
        "Runtime": 2908,
        "DataLoader": 59262,
        "CPU Exec": 13674,
        "Other": 1156,
        "Step": 177592,
    }


def test_resnet50_has_the_gpu_facts_that_the_predecessor_found():
    (path, _) = sorted((FOLDER / "runs" / "resnet50_num_workers_0").iterdir())
    row = VIEWS["gpus"].run(read(path)).row(0, named=True)
    shown = [round(100 * row[name], 2) for name in ("utilization_frac", "sm_efficiency_frac", "occupancy_frac")]
    assert shown == [55.51, 54.68, 49.13]


def test_nccl_kernels_are_exposed_communication_not_computation():
    """The predecessor took NCCL's kernels for computation; the truth, in ms per step: 27.3 communication, 12.6 hidden."""
    trace = read(FOLDER / "single" / "hta_a100_rank3_of_8_control.json.gz")
    row = VIEWS["exposed_time"].run(trace).row(0, named=True)
    means = {name: round(row[name] / 6e6, 1) for name in ("communication_ns", "overlap_ns", "exposed_communication_ns")}
    assert means == {"communication_ns": 27.3, "overlap_ns": 12.6, "exposed_communication_ns": 14.7}
