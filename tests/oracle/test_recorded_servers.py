"""Recordings of vLLM and SGLang on a CPU, against what the servers counted: tests/oracle/servers/README.md."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb import open as opened
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.measures.recording.server import inference_server
from kinetoscope_tb.names.iterations import sequence_lengths

SERVERS = Path(__file__).parent / "servers"
PROMPTS, ANSWERS, REQUESTS = 82, 36, 4  # tokens; the prefill of a request makes the first token of its answer


def test_vllm_counted_as_many_iterations_and_tokens() -> None:
    profile = opened(SERVERS / "vllm")
    made = profile.iterations.filter(pl.col("phase") != "idle")
    assert made.height == 14
    assert made["tokens"].sum() == PROMPTS + ANSWERS - REQUESTS
    lengths = [sequence_lengths(name) for name in made["name"]]
    assert sum(one.c_sq for one in lengths if one) == PROMPTS
    assert sum(one.g_sq for one in lengths if one) == ANSWERS - REQUESTS
    assert set(profile.iterations["engine"]) == {"vLLM"}
    assert set(profile.iterations["confidence"]) == {"recorded"}
    assert profile.view("phases", of="all")["total_ns"].sum() == profile._trace.window[1] - profile._trace.window[0]


def test_sglang_recorded_the_prefills_and_three_decodes() -> None:
    prefill, decode = (opened(SERVERS / "sglang", worker=f"TP-0-{stage}").iterations for stage in ("EXTEND", "DECODE"))
    assert prefill.select("phase", "batch", "tokens").rows() == [("prefill", 1, 10), ("prefill", 3, PROMPTS - 10)]
    assert decode.select("phase", "batch", "tokens").rows() == [("decode", REQUESTS, REQUESTS)] * 3


def test_the_scheduler_s_annotations_say_what_the_host_does_between_decodes() -> None:
    profile = opened(SERVERS / "sglang", worker="TP-0-DECODE")
    row = profile.view("phases", of="all").row(by_predicate=pl.col("phase") == "decode", named=True)
    assert row["gap_detokenizing_ns"] > 0
    assert row["gap_scheduling_ns"] > 0


@pytest.mark.parametrize(("folder", "server"), [("vllm", "vLLM"), ("sglang", "SGLang")])
def test_a_recording_on_a_cpu_names_its_server_and_no_device(folder: str, server: str) -> None:
    profile = opened(SERVERS / folder)
    assert inference_server(profile._trace) == server
    missing = profile.views().filter(~pl.col("has_data"))["view"]
    assert "limits" in missing
    assert not {"iterations", "phases", "steps"} & set(missing)
    words = str([*profile.advice.to_dicts(), *profile.health.to_dicts()])
    assert "profiler.step()" not in words


def test_stages_are_workers_of_one_run() -> None:
    (run,) = list_path(str(SERVERS / "sglang")).runs.values()
    assert {worker: list(spans) for worker, spans in run.items()} == {
        "TP-0-DECODE": ["load7"],
        "TP-0-EXTEND": ["load7"],
    }
