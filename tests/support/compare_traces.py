"""Traces to compare, whose numbers are easy to tell."""

from functools import cache

from support.build import TraceBuilder


@cache
def steps(*lengths, op="aten::mm", extra=None, extra_in=()):
    """One step per length, 1000 ns each, with an operator that launches one kernel of that length."""
    trace = TraceBuilder().window(0, 100_000)
    for i, length in enumerate(lengths):
        at = i * 1000
        trace.step(i, at, 1000).op(op, at + 10, 100).launch(at + 20, 5, i + 1).kernel(
            f"k_{op}", at + 200, length, i + 1
        )
        if extra and i in extra_in:
            trace.op(extra, at + 500, 50).launch(at + 510, 5, 100 + i).kernel(f"k_{extra}", at + 700, 30, 100 + i)
    return trace.build()
