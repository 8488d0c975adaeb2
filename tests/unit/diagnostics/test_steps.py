"""What Trace health says of steps."""

from dataclasses import replace

import polars as pl

from kinetoscope_tb.diagnostics.steps import diagnose
from support.build import TraceBuilder


def test_steps_called_iterations_where_nothing_shows_any_are_diagnosed():
    trace = TraceBuilder()
    trace.op("aten::mm", 0, 10)
    built = trace.build()
    iteration = {"name": pl.lit("0"), "phase": pl.lit("decode"), "part": pl.lit("steady")}
    forged = replace(built, steps=built.steps.with_columns(**iteration))
    assert [diagnostic.rule for diagnostic in diagnose(forged)] == []
