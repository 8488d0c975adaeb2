"""Graphs that the host captures in the steps: nothing runs that it launches then."""

from __future__ import annotations

from collections.abc import Iterator

from ...measures.recording.lost_launches import MOSTLY_CAPTURED, capture_spans
from ...measures.recording.server import RECORD_REPLAYS
from ...names.text import percent
from ...trace import Diagnostic
from ...trace.model import Fault, NumberKind
from .times import Times

_NOTICEABLE = 0.1  # of the steps
_UNDERMINED: frozenset[NumberKind] = frozenset({"idle", "launches", "totals"})


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """A noticeable share of the steps; numbers of devices say nothing where it is most of them."""
    spans = capture_spans(times.trace)
    captured_ns = times.within_steps(*spans)
    share = times.share(captured_ns)
    if share < _NOTICEABLE:
        return
    fact = f"Graphs are captured for {percent(share)} of the steps, and nothing that is captured runs then"
    is_most = share >= MOSTLY_CAPTURED
    yield Diagnostic(
        "graphs_captured",
        spans[0].size,
        f"{fact}: kernels, idle time and utilization here say nothing of the replays. {RECORD_REPLAYS}",
        level="warning" if is_most else "note",
        fault=Fault(fact, _UNDERMINED, RECORD_REPLAYS, captured_ns) if is_most else None,
    )
