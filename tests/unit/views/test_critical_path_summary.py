"""The critical path in a sentence."""

from __future__ import annotations

import re

import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.views.overview.critical_path_culprits import critical_path_culprits
from kinetoscope_tb.views.overview.critical_path_summary import critical_path_summary
from support.build import TraceBuilder
from support.machine import MS, US, Machine
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
    assert row["title"] == "70 % of the critical path is `gemm_kernel`."
    assert row["evidence"].startswith("It takes 700 ns per step (kernels on the GPU). Other parts of the path: ")
    assert "operators on the host" in row["evidence"]
    assert "The longest stretch on the host is 190 ns in step 1;" in row["evidence"]
    assert "its largest part is `aten::empty`." in row["evidence"]


def test_without_a_device_the_host_is_not_set_apart():
    built = TraceBuilder().step(1, 0, 1000).op("aten::`mm`", 0, 900)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert row["title"] == "90 % of the critical path is `aten::'mm'`."
    assert row["evidence"].startswith("It takes 900 ns (operators on the host).")
    assert "longest stretch" not in row["evidence"]


def test_communication_on_the_path_of_one_rank_may_be_waiting():
    built = TraceBuilder().step(1, 0, 100).launch(0, 10, 1).kernel("ncclDevKernel_AllReduce_Sum_bf16", 20, 900, 1)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert row["rule"] == "communication"
    assert " It may include waits for other ranks: where these are recorded, *All ranks* has " in row["evidence"]
    (alone,) = critical_path_summary(TraceBuilder().step(1, 0, 1000).op("aten::mm", 0, 900).build()).rows(named=True)
    assert "other ranks" not in alone["evidence"]


def test_the_name_of_a_data_loader_is_not_cut():
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    (row,) = critical_path_summary(TraceBuilder().step(1, 0, 1000).annotation(name, 0, 900).build()).rows(named=True)
    assert row["title"] == f"90 % of the critical path is `{name}`."


def test_the_steps_of_a_server_are_called_iterations():
    built = TraceBuilder().annotation("step[DECODE bs=4]", 0, 1000).op("aten::mm", 0, 200)
    (row,) = critical_path_summary(built.launch(150, 10, 1).kernel("k", 200, 700, 1).build()).rows(named=True)
    assert " in iteration 0;" in row["evidence"]
    built = TraceBuilder()
    for number in range(2):
        built.annotation("step[DECODE bs=4]", number * 1000, 500).launch(number * 1000, 10, number + 1)
        built.kernel("k", number * 1000 + 200, 700, number + 1)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert " ns per iteration (kernels on the GPU)." in row["evidence"]


def test_many_small_culprits_are_named_by_their_cause():
    built = TraceBuilder().step(1, 0, 1000)
    for number in range(9):
        built.op(f"aten::op{number}", number * 100, 100)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert row["title"] == "90 % of the critical path is operators on the host."
    assert row["evidence"].startswith("11.1 % of that is `aten::op0`: 100 ns.")


def test_a_function_of_the_program_is_named_once_with_its_file():
    built = TraceBuilder().step(1, 0, 1000).op("aten::a", 0, 150).op("aten::b", 150, 150)
    for number in range(7):
        built.python(f"train.py({number}): part_{number}", 300 + 100 * number, 100)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert row["evidence"].startswith("14.3 % of that is `part_0 (train.py:0)`: 100 ns. Other parts of the path: ")


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
@pytest.mark.parametrize(
    ("file", "title", "evidence"),
    [
        (
            "claims/tracelens_h100_owlv2.json.gz",
            "43.6 % of the critical path is `zoom_shift`.",
            r"It takes [\d.]+ m?s (per step )?\(data loading at `",
        ),
        (
            "claims/hta_mtia_rank_0.json.gz",
            "62.3 % of the critical path is `runFunction - job_prep_and_submit_for_execution`.",
            r"It takes [\d.]+ m?s (per step )?\(launching",
        ),
        (
            "single/tracelens_h100_nsfw_image_detection.json.gz",
            "49.6 % of the critical path is operators on the host.",
            r"36\.5 % of that is `aten::addmm`: 1\.43 ms\.",
        ),
    ],
)
def test_the_sentence_names_what_the_largest_rows_do(file, title, evidence):
    trace = read(str(FOLDER / file))
    (row,) = critical_path_summary(trace).rows(named=True)
    assert row["title"] == title
    assert re.match(evidence, row["evidence"])
    assert critical_path_culprits(trace)["cause"][0] == row["rule"]


def test_another_part_that_would_save_more_than_the_largest_is_named():
    """The host takes nearly as long as the kernels that it launches, so faster ones would wait for it."""
    machine = Machine()

    def step(_):
        machine.load(8 * MS)
        for _ in range(10):
            machine.kernel(MS, host=950 * US)
        machine.wait()

    row = critical_path_summary(machine.steps(step)).row(0, named=True)
    assert row["title"] == "52.7 % of the critical path is `GEMM cuBLAS ampere 128x128 bf16`."
    assert "Yet data loading would save most: " in row["evidence"]


def test_a_stretch_of_many_small_culprits_is_named_by_its_cause():
    machine = Machine()

    def step(_):
        for number in range(20):
            machine.op(f"aten::small_{number}", lambda: machine.work(MS))
        machine.kernel(MS)
        machine.wait()

    (evidence,) = critical_path_summary(machine.steps(step))["evidence"]
    assert "most of it is operators on the host." in evidence


def test_of_launches_that_return_when_their_work_ends_it_is_said_that_the_device_works():
    built = TraceBuilder().step(1, 0, 1000).launch(0, 500, 1).kernel("k", 50, 440, 1)
    built.launch(500, 500, 2).kernel("k", 540, 450, 2)
    (row,) = critical_path_summary(built.build()).rows(named=True)
    assert "these calls return when what they launched ends." in row["evidence"]


def test_where_no_launch_is_known_the_path_cannot_be_told():
    built = TraceBuilder().step(1, 0, 1000).op("aten::mm", 0, 500).kernel("k", 50, 440)
    assert critical_path_summary(built.build())["confidence"].to_list() == ["cannot_tell"]
