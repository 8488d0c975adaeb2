"""Annotations by name: which library writes each, and the name without the numbers that differ from call to call.

Sources, as of 2026: torch/optim/optimizer.py and torch/nn/parallel/distributed.py (PyTorch), torch/distributed/fsdp and
torch/distributed/_composable (FSDP), lightning/pytorch/profilers/pytorch.py, megatron/core/utils.py (nvtx_range_push
with the module's path), vllm/v1/worker/gpu_model_runner.py, torchrec/distributed and deepspeed/utils/nvtx.py. Those of
servers' iterations are in iterations.py.
"""

from __future__ import annotations

from typing import NamedTuple

from .iterations import iteration_name
from .kernels import is_backend_range, is_data_loading, step_number
from .regex import regex

_FORMS = (
    ("FSDP", r"FSDP\d*::|FullyShardedDataParallel\b|FSDPParamGroup|FlatParameter"),
    ("Lightning", r"\[(?:pl|Strategy|Callback|LightningModule|LightningDataModule)\]"),
    ("Megatron", r"megatron[./]"),
    ("Transformer Engine", r"transformer_engine[./]"),
    ("DeepSpeed", r"DeepSpeed|deepspeed[./]"),
    ("vLLM", r"gpu_model_runner: |vllm[.:/]"),
    ("SGLang", r"sglang[.:/]"),
    (
        "TorchRec",
        r"## .*(?:Awaitable|NoWait|Request) wait\(\) ##|## (?:all2all_data|alltoall_|sparse_data_dist|wait_sparse)",
    ),
    ("torch.compile", r"## Call CompiledFxGraph|Torch-Compiled Region|CompiledFunction|TorchDynamo|Compiled"),
    ("PyTorch", r"Optimizer\.\w+#|DistributedDataParallel\.|DataParallel\.|ProfilerStep|PyTorch Profiler"),
)
_TABLE = tuple((source, regex(pattern)) for source, pattern in _FORMS)

STEP = "ProfilerStep"
"""The name of all steps."""


class AnnotationName(NamedTuple):
    """A range's name to merge by, and the library that writes it; None: the program's own."""

    name: str
    source: str | None


def annotation_name(text: str, server: str = "") -> AnnotationName:
    """The name of a range: steps have no number, and a server's iterations are one name per phase.

    Args:
        text: What was written.
        server: The server that was recorded, if that is known: SGLang has written vLLM's form, too.
    """
    if step_number(text) is not None:
        return AnnotationName(STEP, "PyTorch")
    if iteration := iteration_name(text):
        if iteration.phase == "capture":
            return AnnotationName("graph capture", server or "an inference server")
        source = None if iteration.engine == "user" else iteration.engine
        if source == "vLLM" and server == "SGLang":
            return AnnotationName(f"{iteration.phase} iteration", server)
        return AnnotationName(" ".join(filter(None, (source, iteration.phase, "iteration"))), source)
    if is_backend_range(text):
        return AnnotationName(text, "c10d")
    if is_data_loading(text):
        return AnnotationName(text, "PyTorch")
    return AnnotationName(text, next((source for source, form in _TABLE if form.match(text)), None))
