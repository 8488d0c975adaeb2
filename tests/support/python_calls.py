"""What with stacks differs from torch by definition: there, Python calls are part of the tree of operators."""

import polars as pl

from kinetoscope_tb.trace import Trace


def operators_that_call_python(trace: Trace) -> set[str]:
    """Names of operators with a Python call inside, whose time and memory torch takes off theirs."""
    calls = trace.python_calls.select("thread", call="start_ns")
    inside = trace.ops.select("name", "thread", "start_ns", "dur_ns").join(calls, "thread")
    began = pl.col("call").is_between(pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns"), closed="left")
    return set(inside.filter(began)["name"].cast(pl.String))
