"""Real recordings whose finding others have published, as they are."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np

from planted.recording import Recording
from support.real_traces import FOLDER

FINDINGS: dict[str, tuple[set[str], bool]] = {
    "labelled/gemm_01_compute_few_tiles.json.gz": ({"matmul_below_roof"}, False),
    "labelled/gemm_03_compute_misaligned.json.gz": ({"matmul_below_roof"}, False),
    "labelled/elem_01_add_poor_bw.json.gz": ({"elementwise_below_roof", "elementwise"}, False),
    "labelled/sdpa_02_very_long_seq_head_waste.json.gz": ({"attention_below_roof"}, False),
    "labelled/conv_03_asymmetric_kernel.json.gz": ({"convolution_below_roof"}, False),
    "labelled/conv_05_pointwise_1x1.json.gz": ({"convolution_below_roof"}, False),
    # One fused kernel is all, and nothing models its work.
    "labelled/moe_01_many_experts_few_tokens.json.gz": ({"nothing_to_fix", "matmul_below_roof"}, True),
}
CAPTURES = (
    "traces/single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz",
    "inference/vllm_prefilldecode_piecewise/capture_traces/graph_capture_rank_0.1773709679453551615.pt.trace.json.gz",
    "inference/xdit_flux1_aiter_sage/capture_traces/capture_trace_rank_0.json.gz",
)
"""Graphs are captured, nothing that is captured runs: nobody waits for the host."""


def _copy(source: Path, rng: np.random.Generator, path: Path) -> Path:
    target = path.with_name(path.name + ".gz")
    shutil.copyfile(source, target)
    return target


def labelled() -> list[Recording]:
    """The labelled micro-cases, and recordings of graph captures."""
    shared = FOLDER.parent
    cases = [
        Recording(
            Path(name).name.split(".")[0], "labelled", partial(_copy, shared / name), frozenset(rules), may_abstain=may
        )
        for name, (rules, may) in FINDINGS.items()
    ]
    silent = frozenset({"nothing_to_fix", "memory", "warm_up"})
    cases += [
        Recording(f"graph_capture.{at}", "graph_capture", partial(_copy, shared / name), silent, may_abstain=True)
        for at, name in enumerate(CAPTURES)
    ]
    return [case for case in cases if case.make.args[0].exists()]  # type: ignore[attr-defined]
