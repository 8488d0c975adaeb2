"""Recognizes communication, data loading and steps by name (tensor cores: tensor_cores.py).

Names are the only evidence that every trace has. Each table below is a list of patterns;
tests/unit/names/test_kernels.py holds a real name for each of them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .regex import regex

_STEP = r"ProfilerStep#([0-9]{1,18})"
STEP, STEPS = regex(_STEP), f"^{_STEP}$"
_OVERLOAD = regex(r"(\w+::\w+)\.\w+$")
DATA_LOADING = ("enumerate(DataLoader)#", "enumerate(DataPipe)#")

_COMMUNICATION_RULES = (  # the first that fits; a namespace ends in "::", or in the digit that mangling puts there
    ("NCCL", r"\bnccl | \brccl | \bmscclKernel"),  # with NCCLX, which torchcomms uses
    ("oneCCL", r"\boneccl | \bxccl"),
    ("HCCL", r"\bhccl | \bhcom_"),
    ("torchcomms", r"(?<![a-z_])comms(?:::|\d)pipes | \bctran:: | \bdda(?:AllReduce|AllGather|ReduceScatter|AllToAll)"),
    ("MSCCL++", r"(?<![a-z_])mscclpp(?:::|\d)(?!\w*mega_?moe) | allreduce_LL_[12]node"),
    # Only kernels that move data: the layout, the scan of counts and the permutation of tokens are local work.
    ("DeepEP", r"(?<![a-z_])(?:deep_ep|dpsk(?:::|\d)ep)(?:::|\d)(?!.*get_dispatch_layout)"),
    ("HybridEP", r"(?<![a-z_])hybrid_ep(?:::|\d)(?:device_sync|dispatch|combine)_kernel"),
    ("UCCL", r"(?<![a-z_])uccl(?:::|\d)int(?:er|ra)node"),
    ("Mooncake", r"(?<![a-z_])mooncake(?:::|\d) | \bmooncake_(?:ep_)?(?:dispatch|combine)"),
    ("NIXL", r"(?<![a-z_])nixl_ep(?:::|\d)"),
    ("MORI", r"(?<![a-z_])mori(?:::|\d) | (?:\b|\d)Ep(?:Dispatch|Combine)\w*Kernel"),
    ("pplx", r"\ba2a_(?:dispatch|combine)_(?:send|recv)_kernel"),
    ("DLSlime", r"(?<![a-z_])dlslime(?:::|\d)\w*all_?to_?all"),
    ("NVSHMEM", r"(?:nv|roc)shmem | \b(?:barrier|sync|quiet)(?:_all)?_on_stream_kernel"),
    (
        "symmetric memory",  # of PyTorch: CUDASymmetricMemory*.cu, nvshmem_extension.cu
        r"\bmultimem_ | symm_mem | \b(?:one|two)_shot_all_reduce_kernel"
        r" | \bexchangeSplitAndOffset | \ballToAllV(?:_2d)?\b"
        r" | \b(?:barrier|put_signal|wait_signal)_kernel\(unsigned\ int\s?\*\*",
    ),
    ("iris", r"\bpersistent_(?:all_reduce|all_gather|reduce_scatter|all_to_all)"),
    (
        "custom all-reduce",  # vLLM, SGLang, AITER
        r"cross_device_reduce | quick_?reduce | reduce_scatter_cross_device | \baiter(?:::|\d+)all_?gather"
        r" | (?:all_reduce_)?(?:one|two)_shot_(?:push|pull)_kernel",
    ),
    (
        "TensorRT-LLM",  # and FlashInfer, which has its kernels
        r"(?:one|two)_?shot_?all_?reduce | all_?reduce_?fusion | lamport | moeA2A(?:Dispatch|Combine)Kernel"
        r" | \bmoeAllToAllKernel | mnnvl_\w*all_?reduce",
    ),
)
_COMMUNICATION_KERNELS = tuple((rule, regex(text, re.VERBOSE | re.IGNORECASE)) for rule, text in _COMMUNICATION_RULES)
_COLLECTIVE_OPERATOR = regex(  # custom operators that do nothing but one collective
    r"symm_mem::(?:(?:one|two)_shot|multimem|all_to_all|reduce_scatter|nvshmem|rocshmem)\w*$"
    r"|(?:_C_custom_ar|sgl_kernel|vllm|sglang|trtllm)::(?:(?:in|out)place_|reg_)?"
    r"(?:all_?reduce|all_?gather|reduce_?scatter)(?!\w*norm)\w*$"
)
_BACKEND_RANGE = regex(r"(?:nccl|rccl|gloo|xccl|ccl|oneccl|hccl|ucc|mpi):(?!:)")
_COMMUNICATION_RANGE = regex(  # torchcomms otherwise marks its collectives as c10d does (TorchCommTracing.cpp)
    rf"record_param_comms$|c10d::|torchcomms::torchcomm_(?!wait)|{_BACKEND_RANGE.pattern}"
    r"|_C::shm_(?:all_?reduce|(?:all_)?gather|(?:send|recv)_tensor_list)$"  # vLLM csrc/cpu/shm.cpp: between processes
)
_QUEUED = regex(r"\b(?:nccl|rccl|xccl|hccl)(?![a-z])")


def operator_of(name: str) -> str:
    """The operator's name without its overload: aten::sum for aten::sum.dim_IntList."""
    match = _OVERLOAD.match(name)
    return match[1] if match else name


def communication_rule(name: str) -> str | None:
    """The communication library whose kernels have such names; None if the name doesn't match any."""
    return next((rule for rule, pattern in _COMMUNICATION_KERNELS if pattern.search(name)), None)


def is_collective_call(name: str) -> bool:
    """Whether a kernel that a host range of this name launches directly moves data between ranks."""
    return is_communication_range(name) or bool(_COLLECTIVE_OPERATOR.match(name))


def is_communication_range(name: str) -> bool:
    """Whether a host operator or annotation of this name is a collective or a point-to-point transfer."""
    return bool(_COMMUNICATION_RANGE.match(name))


def is_backend_range(name: str) -> bool:
    """Whether an annotation of this name is a backend's annotation of one collective, such as nccl:all_reduce."""
    return bool(_BACKEND_RANGE.match(name))


def is_queued_communication(text: str) -> bool:
    """Whether a host range, or a backend, with this name only enqueues its work on a device.

    Then the host range, such as nccl:all_reduce, ends before the data moves, and its length isn't the transfer's.
    """
    return bool(_QUEUED.search(text))


def is_data_loading(name: str) -> bool:
    """Whether a host range of this name waits for the next batch of a DataLoader."""
    return name.startswith(DATA_LOADING)


def loads_by_workers(name: str) -> bool:
    """Whether a host range of this name waits for the next batch of a DataLoader whose worker processes load it."""
    return is_data_loading(name) and "_MultiProcessing" in name


@lru_cache(maxsize=1 << 16)
def step_number(name: str) -> str | None:
    """N of `ProfilerStep#N`, or None."""
    match = STEP.fullmatch(name.strip())
    return match.group(1) if match else None
