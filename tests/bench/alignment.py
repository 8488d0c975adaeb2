"""How right the alignment of steps is: variants of real recordings of which it is known which work is whose."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from bounds import line

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope_tb.compare.account import account_of_typical_step
from kinetoscope_tb.compare.alignment.alignment import align
from kinetoscope_tb.compare.alignment.units import units
from kinetoscope_tb.reader import read
from support.derived_pairs import (
    CHANGES,
    COMBINATIONS,
    Base,
    Change,
    Outcome,
    by_alignment,
    by_names,
    variant,
    write_another_program,
)
from support.real_traces import FOLDER

SAMPLES = Path(__file__).parents[2] / "samples" / "h100"
RECORDINGS = [
    *(SAMPLES / name / "rank0.25.pt.trace.json.gz" for name in ("training", "server")),
    *(
        FOLDER / path
        for path in (
            "claims/hta_a100_rank0_of_16.json.gz",
            "claims/hta_sampled_2_of_128_ranks/sampled_rank-0.json.gz",
            "claims/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
            "claims/tracelens_h100_owlv2.json.gz",
            "claims/tracelens_h100_qwen1.5-0.5b.json.gz",
            "runs/dlrm_8gpu_nccl/worker0_step_12.1694128201545.pt.trace.json",
            "runs/particle_forward_batch_size_128/hmoss-6a49xb_1987242.1733769849366171800.pt.trace.json",
            "single/hta_a100_rank3_of_8_control.json.gz",
            "single/hta_nccl_data_rank0_of_2.json.gz",
            "single/ncompass_h100nvl_test_trace.pt.trace.json",
            "single/switch_transformers_a100_torch2.3.json",
            "single/torch1.8.1_schemaVersion/worker0.pt.trace.json.gz",
            "single/tracelens_h100_nsfw_image_detection.json.gz",
            "single/tracelens_mi300_bert-small.json.gz",
            "single/tracelens_mi300_normalization.json.gz",
        )
    ),
]
QUICK_RECORDINGS = (0, 1, -3, -2)
MANY, MOST_S = 50_000, 10


def report_alignment(*, is_quick: bool = False) -> None:
    """Print the shares of the time that are matched right and wrong, and those of matching names in order."""
    paths = [RECORDINGS[at] for at in QUICK_RECORDINGS] if is_quick else RECORDINGS
    bases = [Base.of(read(str(path))) for path in paths]
    changes = (*CHANGES, *COMBINATIONS)
    print(f"alignment: {len(bases) * len(changes)} variants of the steps of {len(bases)} real recordings")
    ours, plain = list[Outcome](), list[Outcome]()
    for change in changes:
        outcomes, of_names = _outcomes(bases, change)
        ours, plain = ours + outcomes, plain + of_names
        print(_sentence(change.__name__, outcomes, of_names))
    print(_sentence("all", ours, plain))
    print(line("matched right", [100 * _right(ours)], 95, "%", at_least=True))
    print(line("matched wrong", [100 * _wrong(ours)], 1, "%"))
    _report_speed(bases[0])


def _outcomes(bases: list[Base], change: Change) -> tuple[list[Outcome], list[Outcome]]:
    outcomes, of_names = list[Outcome](), list[Outcome]()
    for seed, base in enumerate(bases):
        rows = list(change(base, base.rows(), np.random.default_rng(seed)))
        found, is_exact = by_alignment(base, rows)
        if not is_exact:
            raise SystemExit(f"{change.__name__}: the terms don't add up")
        outcomes.append(found)
        of_names.append(by_names(base, rows))
    return outcomes, of_names


def _right(outcomes: list[Outcome]) -> float:
    """The mean share of the time with a counterpart that is matched with it."""
    return float(np.mean([found.right_ns / max(1, found.truth_ns) for found in outcomes]))


def _wrong(outcomes: list[Outcome]) -> float:
    """The mean share of the time that is matched with other work."""
    return float(np.mean([found.wrong_ns / max(1, found.total_ns) for found in outcomes]))


def _sentence(name: str, ours: list[Outcome], plain: list[Outcome]) -> str:
    shares = (f"right {100 * _right(part):5.1f} %, wrong {100 * _wrong(part):5.2f} %" for part in (ours, plain))
    return f"  {name:<24} {'   names in order: '.join(shares)}"


def _report_speed(base: Base) -> None:
    """Print how long steps of many kernels take whose code differs throughout."""
    device = base.trace.device_events
    length = int((device["start_ns"] + device["dur_ns"]).max() - device["start_ns"].min()) + 1000
    copies = range(-(-MANY // base.units.rows.size))
    frames = [device.with_columns(start_ns=pl.col("start_ns") + copy * length) for copy in copies]
    end = pl.col("end_ns") + len(copies) * length
    steps, collectives = base.trace.steps.with_columns(end_ns=end), base.trace.collectives[:0]
    large = Base.of(replace(base.trace, device_events=pl.concat(frames), steps=steps, collectives=collectives))
    trace, _ = variant(large, list(write_another_program(large, large.rows(), np.random.default_rng(0))))
    begin, begin_cpu = time.perf_counter(), time.process_time()
    sides = [units(side, account_of_typical_step(side).rows) for side in (large.trace, trace)]
    align(*sides)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    print(f"  steps of {sides[0].rows.size:,} and {sides[1].rows.size:,} kernels: {seconds:.1f} s")
    print(line("CPU time of aligning them", [cpu], MOST_S, "s"))
