"""Programs that keep their device busy with efficient work, from real ones: what causes are planted in.

The pauses of the host's start-up are cut out, its matmuls run on tensor cores and take most of the device's time, and
shapes and the device's properties are left out, so that nothing is known about their efficiency. Where a rule could
know more, the plant adds it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from planted.bases import base
from planted.replay import Program, dry_run
from planted.sketch import COMMUNICATION, CONVOLUTION, HEAVY, PAUSE_NS, end_with_a_read, faster_host, squeeze

_SHAPES = (
    "Input Dims",
    "Input dims",
    "Input Strides",
    "Input type",
    "Concrete Inputs",
    "Call stack",
    "Module Hierarchy",
)
_GEMM = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_tensor16x8x16_kernel"
_FPROP = (
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_"
    "tensor16x8x16_execute_kernel__5x_cudnn"
)
_FULL = {"blocks per SM": 12.0, "warps per SM": 48.0, "est. achieved occupancy %": 50, "grid": [1584, 1, 1], "block": [128, 1, 1]}  # fmt: skip
_LEAST_HEAVY = 0.95  # of the device's time: the rest could be fused, which mends 5 % at most
_DROPPED = ("enumerate(DataLoader)#",)

BASES = (
    "resnet_v100", "recsys_a100", "ddp_a100", "owlv2_h100", "qwen_h100", "vit_h100", "mlp_h100", "bert_mi300",
    "switch_a100", "dlrm_v100", "particle_a100", "triton_mi300",
)  # fmt: skip
SMALL = ("vit_h100", "mlp_h100", "bert_mi300", "switch_a100", "dlrm_v100", "particle_a100", "triton_mi300", "qwen_h100")
"""Of these a recording of several steps is written and read quickly."""


def healthy(name: str, rng: np.random.Generator, busy: float = 0.95, *, reads: bool | None = None) -> Program:
    """One step of a base trace that keeps its device busy for this share of the time, or a bit more.

    Args:
        name: Of the base.
        rng: Where chance comes from.
        busy: The device's share of the step.
        reads: Whether the host reads the loss at the end of each step, so that each step begins with an idle device.
    """
    program = _warm(base(name), rng)
    if reads if reads is not None else rng.random() < 0.5:
        program = end_with_a_read(program)
    heavy = program.computing(HEAVY)
    if not heavy.any():
        heavy = np.arange(len(program.rows)) % 7 == 0
    for row in np.flatnonzero(heavy):
        _on_tensor_cores(program, int(row))
    program.dur = np.where(program.computing(COMMUNICATION), np.minimum(program.dur, 3_000), program.dur)
    if program.dur[~heavy].sum() > (1 - _LEAST_HEAVY) * program.dur.sum():
        target = program.dur[~heavy].sum() * _LEAST_HEAVY / (1 - _LEAST_HEAVY)
        program.dur = np.where(heavy, program.dur * target / program.dur[heavy].sum(), program.dur).astype(np.int64)
    for _ in range(12):
        if busy_share(program) >= busy:
            break
        program.dur = np.where(heavy, program.dur * 1.35 + 200, program.dur).astype(np.int64)
    return program


def busy_share(program: Program, steps: int = 3) -> float:
    """Which part of the later steps its busiest device stream runs."""
    replay, begins = dry_run(program, steps)
    low, high = int(begins[1]), replay.last_ns()
    compute = replay.program.stream == 0
    inside = np.clip(replay.row_end, low, high) - np.clip(replay.row_begin, low, high)
    return float(inside[compute].sum()) / max(1, high - low)


def _warm(program: Program, rng: np.random.Generator) -> Program:
    program = faster_host(squeeze(program, PAUSE_NS), float(rng.uniform(0.6, 1.0)))
    is_left = np.array([not i.name.startswith(_DROPPED) for i in program.host])
    program = without_slices(program, ~is_left)
    program.host = [
        info._replace(args={k: v for k, v in info.args.items() if k not in _SHAPES}) for info in program.host
    ]
    program.head = {k: v for k, v in program.head.items() if k not in ("deviceProperties", "traceName", "metadata")}
    return program


def without_slices(program: Program, dropped: np.ndarray) -> Program:
    """The program without these host slices, none of which may launch or wait."""
    dropped = dropped.copy()
    dropped[program.launch] = False
    dropped[list(program.waits)] = False
    place = np.cumsum(~dropped) - 1
    return dataclasses.replace(
        program,
        begin=program.begin[~dropped],
        end=program.end[~dropped],
        host=[info for info, gone in zip(program.host, dropped, strict=True) if not gone],
        launch=place[program.launch],
        waits={int(place[at]): what for at, what in program.waits.items()},
    )


def _on_tensor_cores(program: Program, row: int) -> None:
    info = program.rows[row]
    is_amd = "Cijk" in info.name or "attn_fwd" in info.name
    args = {**info.args, **{k: v for k, v in _FULL.items() if k in info.args or k in ("grid", "block")}}
    name = info.name
    if not is_amd and "bf16" not in name and "Bfloat16" not in name:
        name = _FPROP if CONVOLUTION.search(name) else _GEMM
    program.rows[row] = info._replace(name=name, args=args)
