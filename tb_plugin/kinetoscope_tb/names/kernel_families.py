"""Families of kernels in a model that is served: attention, matmuls, experts, normalization, sampling.

The first family of the table whose pattern occurs in the name applies; a kernel that is communication counts as that,
whatever its name. tests/unit/names/test_kernel_families.py holds a real name for each pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .kernel_labels import kernel_label
from .kernels import communication_rule
from .regex import regex

FAMILIES = ("attention", "gemm", "moe", "communication", "normalization", "sampling", "other")

_PATTERNS = (
    (
        "moe",  # before gemm and sampling: experts are multiplied in groups, and routing takes the top k of the experts
        r"moe | matmul_ogs | finalize_matmul_scatter | topk_?(?:gating|soft) | grouped_?topk | biased_topk"
        r" | _topk_forward | expert | routing(?:Main|Indices|Custom|DeepSeek|Renormalize) | _combined_routing"
        r" | _bitmatrix | silu_and_mul_masked | grouped_?gemm",
    ),
    (
        "attention",
        r"attention | attn | fmha | flash_(?:fwd|bwd|mla) | FlashMLA | Batch(?:Decode|Prefill)With | mla_decode"
        r" | sage_(?:fwd|quant) | sdpa | _fwd_grouped_kernel_stage | \bpa_(?:fwd|bf16|fp16) | reduce_segments"
        r" | reshape_and_cache | store_?kv_?cache | concat_and_cache | set_kv_buffer | kv_indices"
        r" | rotary_embedding | (?:\b|_)rope_",
    ),
    (
        "normalization",  # torch.compile's names list the operators: RMSNorm is a mean of squares and a root
        r"rms_?norm | layer_?norm | group_?norm | batch_?norm | ^triton_\w*fused\w*_mean\w*_pow\w*_rsqrt",
    ),
    (
        "sampling",
        r"ArgMaxOps | arg_?max | (?<!up)(?<!down)(?<!re)(?<!grid_)sampl(?:e|ing) | multinomial | exponential_kernel"
        r" | Top[KP]\w*(?:Mask|Renorm) | apply_\w*penalt | \bmin_p_ | gumbel",
    ),
)
_TABLE = tuple((family, regex(pattern, re.VERBOSE | re.IGNORECASE)) for family, pattern in _PATTERNS)
_GEMM_LABELS = ("GEMM", "GEMV", "split-K", "MoE GEMM")
_DECODE = regex(
    r"BatchDecode|decode_attention|paged_attention|_fwd_grouped_kernel_stage|\bpa_(?:fwd|bf16|fp16)|unified_attention_3d"
    r"|mla_decode|flash_?mla|fmhaSm\d+\w*ForGen",
    re.IGNORECASE,
)
_KV_CACHE = regex(
    r"reshape_and_cache|store_?kv_?cache|concat_and_cache|set_kv_buffer|kv_indices|paged|BatchDecode|BatchPrefill"
    r"|unified_attention|decode_attention|_fwd_grouped_kernel_stage|mla_decode|flash_?mla",
    re.IGNORECASE,
)
_PREFILL = regex(r"prefill|context_attention|fmhaSm\d+\w*Context", re.IGNORECASE)


@lru_cache(maxsize=20_000)
def kernel_family(name: str) -> str:
    """The family of a kernel by its name."""
    if communication_rule(name):
        return "communication"
    family = next((family for family, pattern in _TABLE if pattern.search(name)), None)
    if family:
        return family
    return "gemm" if kernel_label(name).startswith(_GEMM_LABELS) else "other"


def attention_phase(name: str) -> str | None:
    """`decode` or `prefill` if only that phase runs attention kernels of this name; else None."""
    if kernel_family(name) != "attention":
        return None
    if _DECODE.search(name):
        return "decode"
    return "prefill" if _PREFILL.search(name) else None


def uses_kv_cache(name: str) -> bool:
    """Whether kernels of this name read or write a paged cache of keys and values: only engines of servers have one."""
    return bool(_KV_CACHE.search(name))
