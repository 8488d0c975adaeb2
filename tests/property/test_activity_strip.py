"""The activity strip: each column adds up to its length, and the columns of a device to its idle time by cause."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.overview.activity_strip import PARTS
from support.build import TraceBuilder
from support.examples import examples
from support.real_traces import FOLDER, MISSING
from support.strategies import builders

STRIP, IDLE = VIEWS["activity_strip"], VIEWS["idle"]
NOT_PARTS = ("time_ns", "dur_ns", "gap_start_ns", "gap_ns")
ADDENDS = [name for name in STRIP.table.schema() if name.endswith("_ns") and name not in NOT_PARTS]
CAUSES = [name for name in ADDENDS if name in IDLE.table.schema()]
BUSY = ["kernel_ns", "copy_ns", "communication_ns"]


def check(trace):
    strip = STRIP.run(trace)
    assert strip.select(pl.sum_horizontal(ADDENDS)).to_series().to_list() == strip["dur_ns"].to_list()
    devices = strip.filter(pl.col("scope") == "device").group_by("device").agg(pl.sum("dur_ns", *ADDENDS))
    idle = IDLE.run(trace).filter(pl.col("scope") == "device").select("device", "busy_ns", *CAUSES).sort("device")
    sums = devices.select("device", pl.sum_horizontal(BUSY).alias("busy_ns"), *CAUSES).sort("device")
    assert sums.rows() == idle.rows()


@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
@pytest.mark.parametrize("name", ["hta_nccl_data_rank0_of_2.json.gz", "tracelens_mi300_bert-small.json.gz"])
def test_columns_of_real_traces_add_up_too(name):
    check(read(str(FOLDER / "single" / name)))


@examples(60)
@given(builders(), st.integers(0, 100), st.integers(0, 100))
def test_columns_add_up_to_their_length_and_to_the_idle_view_and_a_part_has_what_lies_in_it(builder, start, length):
    trace = builder.build()
    check(trace)
    part = STRIP.run(trace, from_ns=start, to_ns=start + length)
    assert part.select(pl.sum_horizontal(ADDENDS)).to_series().to_list() == part["dur_ns"].to_list()
    whole = STRIP.run(trace)
    inside = pl.col("time_ns").is_between(start, start + length - 1)
    if (whole["dur_ns"] <= 1).all() and part["dur_ns"].sum():  # one column for each ns: the same ones
        assert part.select("scope", *ADDENDS).rows() == whole.filter(inside).select("scope", *ADDENDS).rows()


def test_a_gap_is_named_in_each_column_that_it_reaches_into():
    builder = TraceBuilder().step(1, 0, 5600).kernel("a", 0, 1000).kernel("b", 4000, 1600)
    strip = STRIP.run(builder.build()).filter(pl.col("scope") == "device")
    assert strip.height == PARTS
    named = strip.filter(pl.col("gap_ns").is_not_null())
    assert named["time_ns"].to_list() == list(range(1000, 4000, 10))
    assert named.select("gap_start_ns", "gap_ns").unique().rows() == [(1000, 3000)]


def test_without_a_device_the_host_has_the_parts_of_the_steps():
    trace = TraceBuilder().step(1, 0, 5600).op("aten::add", 0, 560).build()
    strip = STRIP.run(trace)
    assert strip["scope"].unique().to_list() == ["host"]
    assert strip["cpu_exec_ns"].sum() == VIEWS["steps"].run(trace)["cpu_exec_ns"].sum() == 560
