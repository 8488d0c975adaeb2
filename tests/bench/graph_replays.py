"""What graphs add to opening a recording: pairs in turn, 100,000 kernels in 1,000 replays against the same events.

The same events without graphs: the calls that launch graphs have another name, so that nothing is joined. A server marks
its iterations in both. Measured is CPU time, because other programs disturb wall times.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.measures.graphs.replayed_calls import join_captures
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.trace.model import CaptureFiles
from kinetoscope_tb.views import VIEWS
from support.graphs import GraphRecording, Operator  # needs the path above

REPLAYS, LAYERS, SLOWER = 1_000, 10, 1.2
MARK = "execute_context_0(0)_generation_8(8)"  # vLLM
FIRST, ALL = ("overview", "health"), ("overview", "health", "advice", "graph_kernels")
_KERNELS = ("rms_norm", "gemm_qkv", "rotary_embedding", "reshape_and_cache", "paged_attention")
_KERNELS += ("gemm_out", "rms_norm", "gemm_up", "silu", "gemm_down")
WORK = tuple(Operator(f"my::{kernel}", (8, 64), layer, (kernel,)) for layer in range(LAYERS) for kernel in _KERNELS)


def opening_s(text: bytes, captures: tuple[Trace, ...], views: tuple[str, ...]) -> float:
    """CPU seconds of reading a recording and computing some views."""
    begun = time.process_time()
    read = read_blocks([text], path="replays")
    trace = join_captures(read, CaptureFiles(captures))
    for name in views:
        compute(VIEWS[name], trace, {})
    return time.process_time() - begun


def report_graphs(pairs: int) -> None:
    """Print how much longer a recording with graphs takes than the same events without."""
    recording = GraphRecording("rocm")
    for _ in range(REPLAYS):
        recording.replayed(WORK, 1, mark=MARK)
    text = recording.builder.text().encode()
    plain = text.replace(b"hipGraphLaunch", b"hipOtherLaunch")
    captures = (GraphRecording("rocm").captured(WORK).builder.build(),)
    print(
        f"\n{REPLAYS * len(WORK):,} kernels in {REPLAYS:,} replays, against the same events without graphs (CPU time)"
    )
    for what, views in (("to the first page", FIRST), ("with advice and what is inside graphs", ALL)):
        opening_s(text, captures, views)  # fills caches
        ratios = []
        for pair in range(pairs):
            sides = [(text, captures), (plain, ())]
            first, second = (opening_s(*side, views) for side in (sides if pair % 2 else sides[::-1]))
            ratios.append(first / second if pair % 2 else second / first)
        middle = statistics.median(ratios)
        bar = f"(bar: {SLOWER}×{'' if middle <= SLOWER else ', NOT reached'})"
        print(f"  {what:<38} {middle:.2f}× of {pairs} pairs {bar}")
