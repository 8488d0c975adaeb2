"""The identities on every real trace, and the predecessor's numbers where it was right."""

import os
from functools import cache

import polars as pl
import pytest

from kinetoscope_tb.measures.time.breakdown import CATEGORIES
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER, MISSING

TRACES = sorted(p for kind in ("runs", "single") for p in (FOLDER / kind).rglob("*.json*"))

read_once = cache(read)
each = pytest.mark.parametrize("path", TRACES, ids=lambda p: p.relative_to(FOLDER).as_posix())


def test_the_real_traces_are_there():
    if not TRACES and not os.environ.get("CI"):
        pytest.skip(MISSING)
    assert TRACES


@each
def test_the_parts_of_every_step_add_up(path):
    table = VIEWS["steps"].run(read_once(path))
    parts = table.select(f"{name.lower().replace(' ', '_')}_ns" for name in CATEGORIES)
    assert parts.sum_horizontal().to_list() == table["total_ns"].to_list()
    assert min(parts.min().row(0)) >= 0


@each
def test_busy_idle_and_exposed_time_add_up_on_every_device(path):
    trace = read_once(path)
    idle, exposed = VIEWS["idle"].run(trace, per="step"), VIEWS["exposed_time"].run(trace, per="step")
    causes = ["busy_ns", "host_late_ns", "launch_latency_ns", "dependency_ns", "other_ns"]
    assert idle.select(pl.sum_horizontal(causes)).to_series().to_list() == idle["window_ns"].to_list()
    parts = ["computation_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns"]
    assert exposed.select(pl.sum_horizontal(parts)).to_series().to_list() == exposed["window_ns"].to_list()
    assert idle.filter(scope="device")["idle_ns"].to_list() == exposed["idle_ns"].to_list()


@each
def test_every_view_answers(path):
    trace = read_once(path)
    for view in VIEWS.values():
        if not view.is_missing(trace):
            frame = view.table.of(view.run(trace))
            assert frame.select(view.table.key).is_duplicated().sum() == 0
            assert not any(column.is_nan().any() for column in frame.select(pl.col(pl.Float64)))


@pytest.mark.skipif(not TRACES, reason="no real traces")
def test_resnet50_has_the_breakdown_that_the_predecessor_found():
    """Torch-tb-profiler 0.4.3 shows these microseconds for the average of the six steps; no rule of ours changes a part."""
    (path, _) = sorted((FOLDER / "runs" / "resnet50_num_workers_0").iterdir())
    table = VIEWS["overview"].run(read_once(path))
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


@pytest.mark.skipif(not TRACES, reason="no real traces")
def test_resnet50_has_the_gpu_facts_that_the_predecessor_found():
    (path, _) = sorted((FOLDER / "runs" / "resnet50_num_workers_0").iterdir())
    row = VIEWS["gpus"].run(read_once(path)).row(0, named=True)
    shown = [round(100 * row[name], 2) for name in ("utilization_frac", "sm_efficiency_frac", "occupancy_frac")]
    assert shown == [55.51, 54.68, 49.13]


@pytest.mark.skipif(not TRACES, reason="no real traces")
def test_nccl_kernels_are_exposed_communication_not_computation():
    """The predecessor took NCCL's kernels for computation; the truth, in ms per step: 27.3 communication, 12.6 hidden."""
    trace = read_once(FOLDER / "single" / "hta_a100_rank3_of_8_control.json.gz")
    row = VIEWS["exposed_time"].run(trace).row(0, named=True)
    means = {name: round(row[name] / 6e6, 1) for name in ("communication_ns", "overlap_ns", "exposed_communication_ns")}
    assert means == {"communication_ns": 27.3, "overlap_ns": 12.6, "exposed_communication_ns": 14.7}
