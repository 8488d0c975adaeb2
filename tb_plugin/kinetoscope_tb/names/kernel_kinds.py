"""What kind of work a kernel does, by its name, and what its name says of how it does it.

The operator that launched a kernel says more, where it is known; names are what is left in replayed graphs. A kernel
that matches nothing is "other". tests/unit/names/test_kernel_kinds.py holds a real name for each pattern.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from .regex import regex

Kind = Literal["attention", "convolution", "matmul", "layout", "elementwise", "other"]

_PATTERNS: tuple[tuple[Kind, str], ...] = (
    (
        "layout",
        r"(?i)nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose|\btranspose_?(?:kernel|readWrite)",
    ),
    # one kernel per operator of eager PyTorch; those of compilers and servers are fused already
    (
        "elementwise",
        r"at::native::.*?(?:elementwise_kernel|reduce_kernel|[sS]oft[mM]ax|layer_norm|group_norm|batch_norm"
        r"|RowwiseMoments|Gamma(?:Beta|Backward)|GroupNorm|LayerNorm|fused_dropout|CatArrayBatchedCopy)"
        r"|softmax_warp_(?:forward|backward)|cunn_SoftMax|cudnn::bn_|\bbn_(?:fw|bw)_|MIOpenBatchNorm",
    ),
    ("attention", r"(?i)flash_?(?:fwd|bwd|attn)|flash::|fmha|attn_fwd|attention|sdpa|bwd_kernel_d|MLA"),
    (
        "convolution",
        r"(?i)fprop|dgrad|wgrad|winograd|implicit_convolve|conv(?:olution|[123]d|_depthwise)|igemm_(?:fwd|bwd|wrw)"
        r"|scudnn",
    ),
    ("matmul", r"(?i)gemm|Cijk_|nvjet_|matmul|splitK|gemv|cublas"),
)
_KINDS = tuple((kind, regex(pattern)) for kind, pattern in _PATTERNS)

_ELEMENTWISE = (
    ("softmax", regex(r"softmax")),
    ("normalization", regex(r"(?:batch|layer|group|instance|rms)_?norm")),
    (
        "reduction",
        regex(
            r"::(?:_foreach_)?(?:nan)?(?:sum|mean|amax|amin|max|min|argmax|argmin|any|all|norm|linalg_vector_norm|prod"
            r"|std|var|std_mean|var_mean|logsumexp|median|count_nonzero)(?:_out)?$"
        ),
    ),
)
_ARCHITECTURES = (
    (regex(r"(?:^|_)volta_|cutlass_70|[sS]m70_"), (7, 0)),
    (regex(r"(?:^|_)turing_|cutlass_75|[sS]m75_"), (7, 5)),
    (regex(r"(?:^|_)ampere_|cutlass_80|[sS]m80_"), (8, 0)),
)
_ALIGNED = regex(r"_align(?P<elements>\d+)\b")
_TILES = (
    regex(r"_MT(?P<m>\d+)x(?P<n>\d+)x\d+"),  # Tensile: macro tile
    regex(r"tilesize(?P<m>\d+)x(?P<n>\d+)x\d+"),  # cuBLAS on Hopper
    regex(r"gemm(?:_relu)?_(?:[a-z][a-z0-9]*_)?(?P<m>\d+)x(?P<n>\d+)_"),  # cuBLAS and CUTLASS before
    regex(r"nvjet_(?:sm\d+_)?[a-z]{3}_(?P<m>\d+)x(?P<n>\d+)_"),
)


@lru_cache(1 << 12)
def kernel_kind(name: str) -> Kind:
    """The kind of work of a kernel of this name."""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")


def elementwise_family(operator: str) -> str:
    """What an operator with elementwise kernels does to its elements: each by itself, rows, or sums of them."""
    return next((family for family, pattern in _ELEMENTWISE if pattern.search(operator)), "elementwise")


def written_for(name: str) -> tuple[int, int] | None:
    """The compute capability that a matmul kernel of NVIDIA's was written for, if its name shows one below 9.0."""
    return next((capability for pattern, capability in _ARCHITECTURES if pattern.search(name)), None)


def alignment(name: str) -> int | None:
    """How many elements a CUTLASS kernel loads at once: 8 of 16 bits is the most; None: the name doesn't tell."""
    match = _ALIGNED.search(name)
    return int(match["elements"]) if match else None


def output_tile(name: str) -> tuple[int, int] | None:
    """The size of the tile of the output that one block of a matmul kernel computes; None: the name doesn't tell."""
    match = next((hit for pattern in _TILES if (hit := pattern.search(name))), None)
    return (int(match["m"]), int(match["n"])) if match else None
