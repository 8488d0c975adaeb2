"""What advice says of single real recordings, and of recordings of known causes made here.

`test_each_recording.py` holds the rules that were judged for each of them.
"""

import time

import polars as pl
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from kinetoscope_tb.reader import read
from kinetoscope_tb.views.overview.advice import advice
from support.real_traces import FOLDER, MISSING

MATRIX_CORES = (
    "claims/sglang_MI300_deepseek_r1_TP-0-DECODE.trace.json.gz",
    "single/sglang_MI300_qwen3_30b_TP-0-DECODE.trace.json.gz",
    "single/tracelens_mi300_bert-small.json.gz",
    "single/tracelens_mi300_torch_compile_triton.json.gz",
)


@pytest.mark.parametrize("name", MATRIX_CORES)
@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_matrix_cores_of_an_mi300_are_known_though_rocm_numbers_its_devices_otherwise(name):
    evidence = advice(read(FOLDER / name))["evidence"][-1]
    assert "doesn't identify the device" not in evidence
    assert "tensor cores" not in evidence


def advice_of(name, rule):
    return advice(read(FOLDER / name)).row(by_predicate=pl.col("rule") == rule, named=True)


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_all_copies_between_host_and_device_are_pageable():
    assert (
        "; all of it to or from pageable memory"
        in advice_of("claims/param_resnet_kineto_rtx2080ti.json.gz", "copies")["evidence"]
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz", "Graphs are captured for 30.6 ms of 33.7 ms."),
        (  # captures take less than half of it
            "../inference/vllm_prefilldecode_piecewise/capture_traces/"
            "graph_capture_rank_0.1773709679453551615.pt.trace.json.gz",
            "graphs are captured",
        ),
    ],
)
@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_recording_of_a_capture_is_told_of_no_waiting_no_graphs_and_no_optimizer(name, words):
    table = advice(read(FOLDER / name))
    assert not {"host_bound", "launch_bound"} & set(table["rule"])
    assert words in table["evidence"][-1]
    assert not any("CUDA graphs" in action or "optimizer" in action for action in table["action"])


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_a_gap_that_recurs_in_every_step_of_a_graphs_replay_is_named():
    table = advice(read(FOLDER / "claims/hta_a100_rank0_of_16.json.gz"))
    first = table.row(0, named=True)
    assert (first["rule"], first["confidence"], first["saving_ns"]) == ("repeated_gap", "cannot_tell", None)
    assert "63.5 ms, before `Memset (Device)` of `CompiledFunctionBackward`" in first["title"]
    assert "in 5 of 5 steps" in first["evidence"]
    assert "launched by `cudaGraphLaunch`" in first["evidence"]
    assert "unexplained_idle" not in table["rule"].to_list()  # what is left is too little for a word


FIRST_LAUNCHES = (
    "single/switch_transformers_a100_torch2.3.json",
    "single/tracelens_mi300_normalization.json.gz",
    "single/torch1.8.1_autograd_api/worker0.pt.trace.json.gz",
)


@pytest.mark.parametrize("name", FIRST_LAUNCHES)
@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_first_launches_that_load_code_are_warm_up(name):
    first = advice(read(FOLDER / name)).row(0, named=True)
    assert (first["rule"], first["confidence"]) == ("warm_up", "medium")


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_a_late_launch_in_a_steady_decode_is_no_warm_up():
    assert "warm_up" not in advice(read(FOLDER / "single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz"))["rule"]


class Slow:
    """A data set that takes a while for each sample: as many seconds as a function says."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(self.seconds())
        return torch.full((256,), float(index))


@pytest.fixture
def recorded(tmp_path):
    """Record five steps of a training on the CPU, and give the advice for it."""

    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def record(seconds, step):
        loader = iter(torch.utils.data.DataLoader(Slow(seconds), batch_size=8))
        path = tmp_path / "recorded.pt.trace.json"
        plan = schedule(wait=0, warmup=1, active=5, repeat=1)
        ready = {"on_trace_ready": lambda p: p.export_chrome_trace(str(path))}
        with profile(activities=[ProfilerActivity.CPU], schedule=plan, **ready) as recording:
            for _ in range(6):
                step(next(loader))
                recording.step()
        return advice(read(path))

    yield record
    torch.set_num_threads(threads)


def products(batch):
    """Large ones, so that what a busy machine keeps the step waiting for falls into them and not between them."""
    weight = torch.ones(1024, 1024)
    for _ in range(6):
        torch.mm(batch.repeat(128, 4), weight)


# True of any training that a busy machine lets wait: in its first step, in another one, or between operators.
OF_A_BUSY_MACHINE = {"warm_up", "longer_steps", "longer_host_steps", "unexplained_idle"}


def test_a_recorded_training_with_a_slow_loader(recorded):
    lasted_s = 0.0

    def step(batch):
        nonlocal lasted_s
        start = time.perf_counter()
        products(batch)
        lasted_s = time.perf_counter() - start

    table = recorded(lambda: max(0.01, lasted_s / 8), step)  # half of a step at least, however busy the machine is
    first = table.row(0, named=True)
    assert first["rule"] == "data_loading"
    assert first["saving_ns"] >= 8 * 10_000_000
    assert "num_workers" in first["action"]


def test_a_recorded_training_in_large_products_needs_nothing(recorded):
    rules = recorded(lambda: 0, products)["rule"].to_list()
    assert [rule for rule in rules if rule not in OF_A_BUSY_MACHINE] == ["nothing_to_fix"]


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_a_wait_for_data_names_the_function_that_takes_it():
    # The loader resizes images by scipy.ndimage.zoom: 528.7 of the 619.0 ms.
    title, evidence = advice(read(FOLDER / "claims/tracelens_h100_owlv2.json.gz")).row(0)[1:3]
    assert title == "51.1 % of step 6 waits for data, most of it in `zoom (scipy/ndimage/_interpolation.py:739)`."
    assert evidence.endswith(
        "85.4 % of that idle time is spent in `zoom_shift`, called at `zoom (scipy/ndimage/_interpolation.py:739)`."
    )
