"""Which inference server recorded a trace, and how its owner records a better one.

A server's loop has no place for `profiler.step()`; its owner starts and stops the profiler over HTTP or by a variable.
"""

from __future__ import annotations

import re

import polars as pl

from ...trace import Trace

_SERVERS = (  # names of operators and annotations, and the files of Python functions
    (
        "SGLang",
        re.compile(r"sglang(?:_profiler)?::|sgl_kernel::|step\[(?:DECODE|EXTEND|PREFILL|MIXED)\b|(?:.*/)?sglang/"),
    ),
    ("vLLM", re.compile(r"vllm::|execute_\d+_context_\d|(?:.*/)?vllm/")),
    ("TensorRT-LLM", re.compile(r"trtllm::|(?:.*/)?tensorrt_llm/")),
)
_HOW = {
    "SGLang": "raise `num_steps` of `/start_profile`",
    "vLLM": "wait longer between `/start_profile` and `/stop_profile`",
    "TensorRT-LLM": "choose a longer range in TLLM_PROFILE_START_STOP",
}


def inference_server(trace: Trace) -> str:
    """The name of the server; empty if no name in the trace shows one."""
    names = pl.concat([frame["name"].unique().cast(pl.String) for frame in (trace.host_events, trace.python_calls)])
    listed = names.drop_nulls().to_list()
    return next((server for server, pattern in _SERVERS if any(map(pattern.match, listed))), "")


def how_to_record(server: str) -> str:
    """How to record more of a server, as a sentence."""
    return (
        f"Record more iterations: {_HOW[server]}. Start the profiler after warm-up and between requests, so that no "
        "earlier work runs."
    )
