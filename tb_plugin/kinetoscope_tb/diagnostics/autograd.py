"""Autograd's sequence numbers, which link a backward operator to its forward operator."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..arrays.gather import map_categories
from ..trace import Diagnostic, Trace

_BACKWARD = "autograd::engine::evaluate_function: "


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Torch's validator: no two different backward operators have one sequence number.

    Each forward thread counts its own numbers.
    """
    host = trace.host_events
    is_backward = map_categories(host["name"], lambda name: name.startswith(_BACKWARD))
    backward = host.select("name", "sequence", "fwd_thread", "offset").filter(
        pl.Series(is_backward) & (pl.col("sequence") >= 0)
    )
    shared = backward.group_by("sequence", "fwd_thread").agg(
        names=pl.col("name").n_unique(), offset=pl.col("offset").min()
    )
    shared = shared.filter(pl.col("names") > 1)
    if shared.height:
        yield Diagnostic(
            "backward_shares_sequence",
            shared.height,
            "Different backward operators have the same sequence number, so their forward operators are ambiguous, and "
            "their time may be shown at the wrong module. Their own times are right.",
            int(shared["offset"].min()),  # type: ignore[arg-type]  # it isn't empty
        )
