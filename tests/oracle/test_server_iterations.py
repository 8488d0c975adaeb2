"""Iterations of real servers, held against a small program over the raw JSON, and without their annotations."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.measures.recording.contents import has_iterations
from kinetoscope_tb.measures.serving.iterations import server_engine, server_iterations
from kinetoscope_tb.names.kernel_families import kernel_family
from kinetoscope_tb.views import VIEWS
from support.read_once import read_once
from support.real_servers import (
    B300,
    CAPTURE,
    DECODE,
    DEEPSEEK,
    DIFFUSION,
    DIFFUSION_CAPTURE,
    MIXED,
    PREFILL,
    QWEN,
    VLLM_CAPTURE,
)
from support.stripped import CALLS, DEVICE, built, is_mark, raw, stripped, tiled

SAID = {  # phase, requests, tokens, as the annotations say; engine; launches of graphs
    PREFILL: ("prefill", 15, 15360, "SGLang", 0),
    MIXED: ("mixed", 46, 8192, "vLLM", 25),
    DECODE: ("decode", 32, 32, "vLLM", 1),
    B300: ("decode", 16, 16, "SGLang", 1),
    QWEN: ("decode", 16, 16, "SGLang", 1),
    DEEPSEEK: ("decode", 16, 16, "SGLang", 1),
    CAPTURE: ("capture", 32, None, "capture", 0),
    VLLM_CAPTURE: ("capture", 8192, None, "capture", 0),
    DIFFUSION: ("diffusion", 1, None, "xDiT", 4),
}
SERVING = [PREFILL, MIXED, DECODE, B300, QWEN, DEEPSEEK]

document = cache(raw)


@cache
def without_marks(path, *, python=False):
    """The trace without its annotations, and without Python calls, made once for all who compare with it."""
    return stripped(document(path), python=python)


@pytest.fixture
def path(traces):
    def of(name):
        found = (traces / name).resolve()
        if not found.exists():
            pytest.skip(f"{found} isn't there")
        return found

    return of


def by_hand(events):
    """The one iteration: how long its window is, how long the device is busy in it, rows and families launched in it."""

    def ns(time):
        return round(time * 1000)

    mark = max((e for e in events if e.get("cat") == "user_annotation" and is_mark(e)), key=lambda e: e["dur"])
    begin, end = ns(mark["ts"]), ns(mark["ts"] + mark["dur"])
    launched = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") in CALLS and begin <= ns(e["ts"]) and ns(e["ts"] + e["dur"]) <= end
    }
    device = [e for e in events if e.get("cat") in DEVICE]
    inside = [e for e in device if e["args"]["correlation"] in launched]
    stop = max([end, *(ns(e["ts"] + e["dur"]) for e in inside)])
    busy, reached = 0, begin
    for start, last in sorted((ns(e["ts"]), ns(e["ts"] + e["dur"])) for e in device):
        busy += max(min(last, stop) - max(start, reached), 0)
        reached = max(reached, min(last, stop))
    families = {}
    for event in inside:
        family = kernel_family(event["name"]) if event["cat"] == "kernel" else "copy"
        families[family] = families.get(family, 0) + float(event["dur"])
    return end - begin, stop - begin, busy, len(inside), families


@pytest.mark.parametrize("name", SAID)
def test_the_iteration_is_as_its_annotation_and_the_raw_events_say(path, name):
    trace = read_once(path(name))
    row = VIEWS["iterations"].run(trace).row(0, named=True)
    (phase,) = VIEWS["phases"].run(trace).filter(iterations=1).rows(named=True)
    host, total, busy, rows, families = by_hand(document(path(name))["traceEvents"])
    assert (row["phase"], row["batch"], row["tokens"], row["engine"], row["graph_launches"]) == SAID[name]
    assert row["confidence"] == "recorded"
    exact = [row["host_ns"], row["total_ns"], row["busy_ns"], phase["total_ns"], phase["busy_ns"]]
    assert exact == [host, total, busy, total, busy]
    assert row["device_events"] == rows
    for family, duration in families.items():
        assert phase[f"{family}_ns"] == pytest.approx(duration * 1000, abs=rows)
    assert row["token_ns"] == (round(row["total_ns"] / row["tokens"]) if row["tokens"] else None)
    assert bool(server_engine(trace)) == (name != DIFFUSION)


def test_a_capture_of_a_model_that_is_no_servers_has_no_iterations(path):
    trace = read_once(path(DIFFUSION_CAPTURE))
    assert not server_engine(trace)
    assert VIEWS["iterations"].is_missing(trace)


def agreement(true, found):
    """How many iterations there are and were found, and how many share more than half of their device rows."""
    true, found = server_iterations(true), server_iterations(found)
    assert true.device.size == found.device.size
    matched = 0
    for number in range(true.frame.height):
        mine = true.device == number
        others = np.unique(found.device[mine & (found.device >= 0)])
        shared = [(mine & (found.device == n)).sum() / (mine | (found.device == n)).sum() for n in others]
        matched += max(shared, default=0) > 0.5
    return true.frame.height, found.frame.height, matched


@pytest.mark.parametrize("python", [True, False], ids=["with Python calls", "without"])
def test_iterations_are_found_without_their_annotations(path, python):
    counts = [agreement(read_once(path(name)), without_marks(path(name), python=python)) for name in SERVING]
    true, found, matched = map(sum, zip(*counts, strict=True))
    assert (true, found, matched) == (6, 6, 6)


@pytest.mark.parametrize(
    "names",
    [[PREFILL, B300, QWEN, DEEPSEEK], [MIXED, DECODE], [DECODE], [MIXED]],
    ids=["SGLang", "vLLM", "FULL", "PIECES"],
)
def test_many_real_iterations_in_a_row_are_told_apart_without_their_annotations(path, names):
    played = tiled([document(path(name)) for name in names], 30, seed=len(names))
    true, found, matched = agreement(built(played), stripped(played, python=False))
    assert true == 30
    assert 2 * matched / (true + found) >= 0.98


@pytest.mark.parametrize(
    ("name", "phase"), [(PREFILL, "prefill"), (DECODE, "decode"), (B300, "decode"), (MIXED, "other")]
)
def test_a_phase_is_inferred_only_where_attention_kernels_say_it(path, name, phase):
    made = server_iterations(without_marks(path(name))).frame
    assert made.select("source", "engine", "phase").rows() == [("structure", "inferred", phase)]


REFERENCE = {  # GFLOP and MiB of one call, and µs of all, as TraceLens computed them (perf_csvs/InferenceAttention_fwd.csv)
    PREFILL: (36, 128.84901888, 300.0, 20075.15625),
    MIXED: (24, 65.010180096, 211.826171875, 5146.9072265625),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_the_work_of_attention_is_that_of_the_reference(path, name):
    """TraceLens leaves out half of the diagonal: sqsk - sqsq / 2 instead of - sq (sq - 1) / 2, 0.1 % less here."""
    calls, gflop, mib, microseconds = REFERENCE[name]
    row = VIEWS["limits"].run(read_once(path(name))).row(by_predicate=pl.col("part") == "attention", named=True)
    assert row["work_flop"] == pytest.approx(calls * gflop * 1e9, rel=0.002)
    assert row["moved_bytes"] == calls * mib * 2**20
    assert row["known_frac"] * row["kernels_ns"] == pytest.approx(microseconds * 1000, abs=calls)


def test_all_matmuls_of_a_prefill_are_known_with_the_weights_of_the_model(path):
    row = VIEWS["limits"].run(read_once(path(PREFILL))).row(by_predicate=pl.col("part") == "gemm", named=True)
    assert (row["known_frac"], row["bound_by"]) == (1, "compute")
    hidden, inner, layers, vocabulary = 4096, 12288, 36, 151936  # Qwen3-8B
    layer = hidden * (6144 + 4096 + 3 * inner)
    assert row["model_bytes"] == 2 * (layers * layer + vocabulary * hidden)


def test_one_iteration_of_diffusion_without_its_annotation_stays_one_step(path):
    """Nothing bounds an iteration: what repeats are the passes inside it. The profiler's step has all its work."""
    true, trace = server_iterations(read_once(path(DIFFUSION))), without_marks(path(DIFFUSION))
    assert true.frame.height == 1
    assert not has_iterations(trace)
    assert trace.steps.height == 1
    assert (trace.device_events["step"].to_numpy()[true.device == 0] == 0).all()


def test_without_annotations_the_steps_of_every_recording_are_its_iterations(path):
    """Views count by steps. Those of all files have F1 = 1, of diffusion by the profiler's own step: as `agreement`."""
    matched = steps = 0
    for name in [*SERVING, DIFFUSION]:
        true, trace = server_iterations(read_once(path(name))), without_marks(path(name))
        found, mine = trace.device_events["step"].to_numpy() == 0, true.device == 0
        matched += int((mine & found).sum() > 0.5 * (mine | found).sum())
        steps += trace.steps.height
    begin, end = trace.steps.select("start_ns", "end_ns").row(0)
    start, until = true.frame.select("start_ns", "next_ns").row(0)
    assert (matched, steps) == (7, 7)
    assert begin <= start < until <= end
    assert until - start > 0.99 * (end - begin)
