"""The 2021 samples against what torch-tb-profiler 0.4.3 shows of them: its steps, operators and kernels, each row.

`torch_tb_profiler/SAMPLE/*.csv` hold its tables, in its microseconds, rounded as it rounds. On traces of that age none of
our deliberate differences changes a number, except:

* it knows no row for device time without an operator, ours is `[unattributed]`;
* without ProfilerStep its one step ends with the last operator, ours with the last device work.
"""

import csv
from pathlib import Path

import pytest

from kinetoscope_tb.views import VIEWS
from support.read_once import read_once

TABLES = Path(__file__).parent / "torch_tb_profiler"
SAMPLES = {
    "resnet50_span1": "runs/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
    "resnet50_span2": "runs/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz",
    "torch1.8.1": "single/torch1.8.1_schemaVersion/worker0.pt.trace.json.gz",
    "torch1.8.1_without_steps": "single/torch1.8.1_autograd_api/worker0.pt.trace.json.gz",
}
each = pytest.mark.parametrize("sample", SAMPLES)


def view(traces, sample, name):
    return VIEWS[name].run(read_once(traces / SAMPLES[sample]))


def theirs(sample, table):
    """Their rows: the name, and numbers by column."""
    with (TABLES / sample / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
        return {row[0]: dict(zip(head[1:], map(float, row[1:]), strict=True)) for row in rows}


def us(ns):
    """Nanoseconds as their rounded microseconds, give or take the rounding of a half."""
    return pytest.approx(ns / 1000, abs=0.501)


@each
def test_every_operator_has_their_calls_and_times(sample, traces):
    columns = "device_self", "device_total", "host_self", "host_total"
    ours = {row["name"]: row for row in view(traces, sample, "operators").iter_rows(named=True)}
    rows = theirs(sample, "operators")
    assert ours.keys() - rows.keys() <= {"[unattributed]"}
    for name, row in rows.items():
        assert row == {"calls": ours[name]["calls"], **{f"{c}_us": us(ours[name][f"{c}_ns"]) for c in columns}}, name


@each
def test_every_kernel_has_their_calls_times_and_occupancy(sample, traces):
    ours = {row["name"]: row for row in view(traces, sample, "kernels").iter_rows(named=True)}
    rows = theirs(sample, "kernels")
    assert ours.keys() == rows.keys()
    for name, row in rows.items():
        our = ours[name]
        times = {f"{c}_us": us(our[f"{c}_ns"]) for c in ("total", "mean", "max", "min")}
        if our["mean_blocks_per_sm"] is not None:  # torch 1.8 doesn't record it
            times["mean_blocks_per_sm"] = pytest.approx(our["mean_blocks_per_sm"], abs=0.00501)
            times["mean_occupancy_percent"] = pytest.approx(100 * our["mean_occupancy_frac"], abs=0.00501)
        assert row == {"calls": our["calls"], **times}, name


@each
def test_every_step_has_their_parts(sample, traces):
    if sample == "torch1.8.1_without_steps":
        return
    ours = {row["step"]: row for row in view(traces, sample, "steps").iter_rows(named=True)}
    rows = theirs(sample, "steps")
    assert ours.keys() == rows.keys()
    for name, row in rows.items():
        assert row == {part: us(ours[name][f"{part.lower().replace(' ', '_')}_ns"]) for part in row}
        assert ours[name]["communication_ns"] == 0
