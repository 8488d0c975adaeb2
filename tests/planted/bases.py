"""The real recordings that causes are planted in: one iteration of each, as a program."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from planted.replay import Program, load, program_of
from support.real_traces import FOLDER


@dataclass(frozen=True)
class Base:
    """A part of a real trace.

    Args:
        path: Below the folder of real traces.
        step: Name of the step that is the iteration; empty for all that the process launched.
        part: Which part of that stretch, as fractions of it.
        has_python: Whether Python frames stay.
    """

    path: str
    step: str = ""
    part: tuple[float, float] = (0.0, 1.0)
    has_python: bool = False


BASES = {
    "resnet_v100": Base("claims/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz", "ProfilerStep#6"),
    "recsys_a100": Base("single/hta_a100_rank3_of_8_control.json.gz", "ProfilerStep#1010"),
    "ddp_a100": Base("single/hta_nccl_data_rank0_of_2.json.gz", "ProfilerStep#5"),
    "owlv2_h100": Base("claims/tracelens_h100_owlv2.json.gz", "ProfilerStep#6", (0.0, 0.2)),
    "qwen_h100": Base("claims/tracelens_h100_qwen1.5-0.5b.json.gz", "ProfilerStep#6"),
    "vit_h100": Base("single/tracelens_h100_nsfw_image_detection.json.gz", "ProfilerStep#6", has_python=True),
    "mlp_h100": Base("single/ncompass_h100nvl_test_trace.pt.trace.json", "ProfilerStep#2", has_python=True),
    "bert_mi300": Base("single/tracelens_mi300_bert-small.json.gz", "ProfilerStep#6", has_python=True),
    "switch_a100": Base("single/switch_transformers_a100_torch2.3.json"),
    "dlrm_v100": Base("runs/dlrm_8gpu_nccl/worker1_step_12.1694128201556.pt.trace.json", "ProfilerStep#10"),
    "particle_a100": Base(
        "runs/particle_forward_batch_size_128/hmoss-6a49xb_1987242.1733769849907107443.pt.trace.json"
    ),
    "triton_mi300": Base("single/tracelens_mi300_torch_compile_triton.json.gz"),
}


@functools.lru_cache(maxsize=len(BASES))
def base(name: str) -> Program:
    """One iteration; copy it before changing it."""
    chosen = BASES[name]
    document = load(FOLDER / chosen.path)
    events = document["traceEvents"]
    if not chosen.has_python:
        events = [e for e in events if e.get("cat") != "python_function"]
    document = {**document, "traceEvents": events}
    if not chosen.step:
        return program_of(document)
    step = next(e for e in events if e["name"] == chosen.step and e.get("cat") != "gpu_user_annotation")
    low, high = (step["ts"] + part * step["dur"] for part in chosen.part)
    return program_of(document, (low, high))
