"""Which inference server recorded a trace, and how its owner records a better one.

A server's loop has no place for `profiler.step()`; its owner starts and stops the profiler over HTTP or by a variable.
"""

from __future__ import annotations

import re

import polars as pl

from ...trace import Trace
from ..serving.iterations import server_engine

_SERVERS = (  # names of operators and annotations, and the files of Python functions
    (
        "SGLang",
        re.compile(r"sglang(?:_profiler)?::|sgl_kernel::|step\[(?:DECODE|EXTEND|PREFILL|MIXED)\b|(?:.*/)?sglang/"),
    ),
    ("vLLM", re.compile(r"vllm::|execute_\d+_context_\d|(?:.*/)?vllm/")),
    ("TensorRT-LLM", re.compile(r"trtllm::|(?:.*/)?tensorrt_llm/")),
)
_HOW = {
    "ATOM": "wait longer between `/start_profile` and `/stop_profile`",
    "SGLang": "raise `num_steps` of `/start_profile`",
    "vLLM": "wait longer between `/start_profile` and `/stop_profile`",
    "TensorRT-LLM": "choose a longer range in TLLM_PROFILE_START_STOP",
}


def inference_server(trace: Trace) -> str:
    """The name of the server, `inferred` if only the structure shows one; empty if nothing does."""
    names = pl.concat([frame["name"].unique().cast(pl.String) for frame in (trace.host_events, trace.python_calls)])
    listed = names.drop_nulls().to_list()
    named = next((server for server, pattern in _SERVERS if any(map(pattern.match, listed))), "")
    return named or server_engine(trace)


def how_to_record(server: str) -> str:
    """How to record more of a server, as a sentence."""
    how = _HOW.get(server, "stop the profiler later")
    return (
        f"Record more iterations: {how}. Start the profiler after warm-up and between requests, so that no "
        "earlier work runs."
    )
