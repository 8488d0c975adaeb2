"""The critical path in a sentence."""

from __future__ import annotations

import pytest

from kinetoscope_tb.names.text import percent
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.overview.critical_path import critical_path
from kinetoscope_tb.views.overview.critical_path_summary import critical_path_summary
from support.build import TraceBuilder
from support.real_traces import FOLDER, MISSING


def test_the_largest_part_its_largest_name_and_the_longest_time_on_the_host():
    built = TraceBuilder()
    for step in range(2):
        at = step * 1000
        built.step(step + 1, at, 1000).op("aten::mm", at, 200).op("aten::empty", at + 10, 150)
        built.launch(at + 180, 10, step + 1).kernel("gemm_kernel", at + 195, 700, step + 1)
        built.launch(at + 250, 650, 100 + step, name="cudaDeviceSynchronize")
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert row["rule"] == "kernel"
    assert row["title"] == "70.0 % of the critical path is kernels on the GPU."
    assert row["evidence"].startswith("All of that is `gemm_kernel`: 700 ns per step. Other parts of the path: ")
    assert "operators on the host" in row["evidence"]
    assert "The longest stretch on the host is 190 ns in step 1;" in row["evidence"]
    assert "its largest part is `aten::empty`." in row["evidence"]
    assert row["saving_ns"] is None


def test_without_a_device_the_host_is_not_set_apart():
    built = TraceBuilder().step(1, 0, 1000).op("aten::`mm`", 0, 900)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert row["title"] == "90.0 % of the critical path is operators on the host."
    assert row["evidence"].startswith("All of that is `aten::'mm'`: 900 ns.")
    assert "longest stretch" not in row["evidence"]


def test_the_steps_of_a_server_are_called_iterations():
    built = TraceBuilder().annotation("step[DECODE bs=4]", 0, 1000).op("aten::mm", 0, 200)
    (row,) = critical_path_summary(built.launch(150, 10, 1).kernel("k", 200, 700, 1).build()).rows(named=True)
    assert " in iteration 0;" in row["evidence"]


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
@pytest.mark.parametrize(
    ("file", "share"),
    [
        ("claims/tracelens_h100_owlv2.json.gz", "51.1 % of the critical path is data loading."),
        ("claims/hta_mtia_rank_0.json.gz", "62.9 % of the critical path is runtime calls."),
        ("single/tracelens_h100_nsfw_image_detection.json.gz", None),
    ],
)
def test_the_share_is_that_of_the_largest_row_of_the_critical_path(file, share):
    trace = read(str(FOLDER / file))
    (row,) = critical_path_summary(trace).rows(named=True)
    assert row["title"].startswith(percent(critical_path(trace)["path_frac"][0]))
    assert share in (None, row["title"])
