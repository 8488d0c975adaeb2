"""Device work by its name alone, in files without categories: kernels, copies and fills, and calls that launch them.

Names of host functions must not fit: profilers of the host write C++ names too, among them PyTorch's own kernels for
CPUs. tests/unit/names/test_device_work.py holds real names for each pattern, and some that only look alike.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from .regex import regex

Work = Literal["kernel", "memcpy", "memset", "call"]

_DEVICE_NAMESPACES = (
    r"at::native|at::cuda|at_cuda_detail|(?:pytorch_)?flash|cutlass\w*|cute|cub|thrust|cublas\w*|cudnn\w*|cask\w*|magma\w*"
    r"|internal::gemvx|ck|ck_tile|rocprim|aiter|fbgemm_gpu|vllm|sgl_kernel|flashinfer|deep_gemm|deep_ep|dpsk|xformers"
    r"|tensorrt_llm|marlin|gptq|awq"
)
_OF_HOST = regex(
    r".*\bat::native::(?:DEFAULT|AVX2|AVX512|ZVECTOR|VSX|SVE\w*)::|.*__device_stub__|(?!void )[^<]*\((?:at|c10)::Tensor"
)
_PATTERNS: tuple[tuple[Work, str], ...] = (
    (
        "memcpy",
        r"\[?(?:CUDA )?mem_?cpy\]?[ _]?(?:async )?\(?(?:[HDPA][ _]?to[ _]?[HDPA]|[HDP]2[HDP]|(?:host|device|peer))"
        r"|Copy(?:Host|Device)To(?:Host|Device)\b|CopyBuffer(?:Aligned)?\b|hipMemcpy[HD]to[HD] \(",
    ),
    (
        "memset",
        r"\[(?:CUDA )?(?i:memset)\]|Memset \((?:Device|Unknown|Pinned|Pageable|Managed|Array)|Memset(?: \d+)?$"
        r"|FillBuffer\w*$",
    ),
    (
        "kernel",
        rf"(?:void )?(?:{_DEVICE_NAMESPACES})::.*[kK]ernel|void (?:{_DEVICE_NAMESPACES})::.*<"
        r"|_ZN(?:2at6native|2at4cuda|7cutlass|3cub|6thrust|5flash|2ck|7ck_tile|5aiter|4vllm)\w*[kK]ernel"
        r"|std::enable_if<.*>::type internal::gemvx::kernel<"
        r"|(?:nccl|rccl)(?:Dev)?Kernel_?\w*|(?:sm\d{2,3}_)?xmma_\w|nvjet_\w+_\d|cutlass\w*_(?:\d+_)?(?:wmma_)?(?:tensorop|simt)_"
        r"|(?:_5x_)?(?:cudnn_(?:infer_|train_)?)?(?:maxwell|pascal|volta|turing|ampere|hopper|blackwell)_\w*(?:gemm|cudnn)"
        r"|sm\d{2,3}_\w*(?:gemm|fprop|dgrad|wgrad|flash)|cudnn_generated_\w+|fmha(?:_cutlass[FB]|Sm\d+)\w*"
        r"|(?:Custom_)?Cijk_\w+_MT\d|igemm_(?:fwd|bwd|wrw)_gtc|miopen\w*Kernel|MIOpenBatchNorm\w+"
        r"|triton_(?:(?:poi|red|per|tem|for|spl|unk)_fused_|_\d)\w+|kernel_cutlass_\w+",
    ),
    (
        "call",
        r"cuda(?:Launch\w+|Mem(?:cpy|set)\w*|(?:Device|Stream|Event)(?:Synchronize|Query|WaitEvent|Record|Create\w*)"
        r"|Malloc\w*|Free\w*|GraphLaunch)(?:_v\d+)?|cu(?:LaunchKernel\w*|Memcpy\w+|Memset\w+|(?:Ctx|Stream|Event)Synchronize)"
        r"|hip(?:Launch\w+|ExtModuleLaunchKernel|ModuleLaunchKernel|Mem(?:cpy|set)\w*|(?:Device|Stream|Event)Synchronize"
        r"|Malloc\w*|Free\w*|GraphLaunch)",
    ),
)
_PAGEABLE = regex(r"Page?able")
_TO_HOST = regex(r"DtoH|DeviceToHost|D2H")
_TO_DEVICE = regex(r"HtoD|HostToDevice|H2D")
_BETWEEN_DEVICES = regex(r"PtoP|PeerToPeer|P2P")
_TEMPLATE = regex(r"void (?:\(anonymous namespace\)::)?(\w+)<")
_OF_KERNELS = regex(r"_[kK]ernel|Kernel|_warp_|_engine|_sgemm|gemm_largek|fft[12]d")
_LONGEST = 1024  # characters of a name that are looked at
_WORK = tuple((work, regex(pattern, re.IGNORECASE if work == "memcpy" else 0)) for work, pattern in _PATTERNS)


def device_work(name: str) -> Work | None:
    """What an event of this name is; None if its name doesn't tell."""
    return _work_of_start(name[:_LONGEST])


@lru_cache(maxsize=1 << 14)
def _work_of_start(start: str) -> Work | None:
    if _OF_HOST.match(start):
        return None
    template = _TEMPLATE.match(start)
    if template and _OF_KERNELS.search(template[1]):
        return "kernel"
    fits = (work for work, pattern in _WORK if (pattern.fullmatch if work == "call" else pattern.match)(start))
    return next(fits, None)


def copies_to_host(name: str) -> bool:
    """Whether a copy of this name brings data from a device to the host."""
    return bool(_TO_HOST.search(name))


def copies_to_device(name: str) -> bool:
    """Whether a copy of this name brings data from the host to a device."""
    return bool(_TO_DEVICE.search(name))


def copies_between_devices(name: str) -> bool:
    """Whether a copy of this name brings data from one device to another."""
    return bool(_BETWEEN_DEVICES.search(name))


def is_pageable(name: str) -> bool:
    """Whether a copy of this name goes to or from pageable memory of the host, which takes longer than pinned."""
    return bool(_PAGEABLE.search(name))


_VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        *("as_strided", "view", "t", "transpose", "permute", "expand", "select", "slice", "unsqueeze", "squeeze"),
        *("detach", "alias", "narrow", "_reshape_alias", "resolve_conj", "resolve_neg"),
    )
)


def is_view(name: str) -> bool:
    """Whether an operator of this name computes nothing, but returns a view of its input."""
    return name in _VIEWS
