"""Which inference server recorded a trace, and how its owner records a better one.

A server's loop has no place for `profiler.step()`; its owner starts and stops the profiler over HTTP or by a variable.
"""

from __future__ import annotations

import polars as pl

from ...names.regex import regex
from ...trace import Trace
from ...trace.results import once_per_recording
from ..serving.iterations import server_engine

_SERVERS = (  # names of operators and annotations, and the files of Python functions
    (
        "SGLang",
        regex(r"sglang(?:_profiler)?::|sgl_kernel::|step\[(?:DECODE|EXTEND|PREFILL|MIXED)\b|(?:.*/)?sglang/"),
    ),
    ("vLLM", regex(r"vllm::|execute_\d+_context_\d|(?:.*/)?vllm/")),
    ("TensorRT-LLM", regex(r"trtllm::|(?:.*/)?tensorrt_llm/")),
)
_HOW = {
    "ATOM": "wait longer between `/start_profile` and `/stop_profile`",
    "SGLang": "raise `num_steps` of `/start_profile`",
    "vLLM": "wait longer between `/start_profile` and `/stop_profile`",
    "TensorRT-LLM": "choose a longer range in TLLM_PROFILE_START_STOP",
}


_HOW_CAPTURES = {  # vllm/config/profiler.py; sglang/srt/utils/profile_utils.py
    "vLLM": 'Set "capture_torch_profiler": true in `--profiler-config`: the server then writes the folder '
    "capture_traces when it starts.",
    "SGLang": "Start the server with `--enable-profile-cuda-graph`, SGLANG_TORCH_PROFILER_DIR and "
    "SGLANG_ENABLE_CUDA_GRAPH_CAPTURE_TRACE=1: it then writes the folder graph_capture_profile.",
}


RECORD_REPLAYS = "Record the replays: start the profiler after the graphs are captured."
"""What to do about a recording in which graphs are captured."""


@once_per_recording
def inference_server(trace: Trace) -> str:
    """The name of the server, `inferred` if only the structure shows one; empty if nothing does."""
    names = pl.concat([frame["name"].unique().cast(pl.String) for frame in (trace.host_events, trace.python_calls)])
    texts = names.drop_nulls().to_list()
    name = next((server for server, pattern in _SERVERS if any(map(pattern.match, texts))), "")
    return name or server_engine(trace)


def how_to_record_captures(server: str) -> str:
    """How to record what the graphs of a server, or of another program, launch, as a sentence."""
    return _HOW_CAPTURES.get(
        server,
        "Record the capture of the graphs in a recording of its own, with record_shapes=True and with_stack=True.",
    )


def how_to_mark_steps(server: str) -> str:
    """How to record where steps begin and end, as a sentence; `server` is empty if it was something else."""
    return how_to_record(server) if server else "Call profiler.step() after each batch."


def how_to_record(server: str) -> str:
    """How to record more of a server, as a sentence."""
    how = _HOW.get(server, "stop the profiler later")
    return (
        f"Record more iterations: {how}. Start the profiler after warm-up and between requests, so that no "
        "earlier work runs."
    )
