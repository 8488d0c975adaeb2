"""Torch 2.15's key_averages() and the viewer agree about the files that 2.15 recorded on a CPU.

The truth beside each file is what the same profiler said. What differs by definition is in test_key_averages.py.
"""

import polars as pl
import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.views.host.operators import operators
from support.python_calls import operators_that_call_python
from support.torch_2_15 import truth

FILES = {  # file: what was recorded
    "train_all.json.gz": "shapes, memory, stacks, FLOPs, modules",
    "train_all.python_export.json.gz": "the same, by the exporter in Python",
    "train_plain.json.gz": "no options",
    "toggled.json.gz": "CPU collection off for the second of three steps",
    "compiled.json.gz": "a compiled model with stacks",
    "ddp_rank0.json.gz": "gloo, rank 0",
    "ddp_rank0.python_export.json.gz": "gloo, rank 0, by the exporter in Python",
    "ddp_rank1.json.gz": "gloo, rank 1",
    "ddp_rank1.python_export.json.gz": "gloo, rank 1, by the exporter in Python",
    "train_verbose.json.gz": "overloads, all threads, stacks, memory",
}


@pytest.fixture(params=FILES)
def recorded(torch_2_15, request):
    """(trace, our rows by name, torch's rows) of the same recording."""
    path = torch_2_15 / "cpu" / request.param
    trace = read(path)
    names = set(trace.ops["name"].cast(pl.String))
    theirs = {row["name"]: row for row in truth(path)["key_averages"] if row["name"] in names}
    ours = {row["name"]: row for row in operators(trace).iter_rows(named=True) if row["name"] in theirs}
    return trace, ours, theirs


def test_operators_have_torch_s_calls_and_total_times(recorded):
    _, ours, theirs = recorded
    assert len(theirs) > 15
    assert {name: (row["calls"], row["host_total_ns"]) for name, row in ours.items()} == {
        name: (row["count"], round(row["total_us"] * 1000)) for name, row in theirs.items()
    }


def test_operators_that_call_no_python_have_torch_s_self_times(recorded):
    trace, ours, theirs = recorded
    names = theirs.keys() - operators_that_call_python(trace)
    assert len(names) > 15
    assert {name: ours[name]["host_self_ns"] for name in names} == {
        name: round(theirs[name]["self_us"] * 1000) for name in names
    }


def test_operators_have_torch_s_memory(recorded):
    trace, ours, theirs = recorded
    if not trace.memory.is_empty():
        names = theirs.keys() - operators_that_call_python(trace)
        assert {name: row["host_total_bytes"] for name, row in ours.items()} == {
            name: row["mem"] for name, row in theirs.items()
        }
        assert {name: ours[name]["host_self_bytes"] for name in names} == {
            name: theirs[name]["self_mem"] for name in names
        }
