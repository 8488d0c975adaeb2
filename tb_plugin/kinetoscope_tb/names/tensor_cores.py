"""Which kernels use tensor cores, and which operators could, by name.

No trace records whether a kernel ran on tensor cores (NVIDIA), matrix cores (AMD) or XMX (Intel), but its name often
shows it. A kernel that matches no pattern is "unknown" and counts neither as "yes" nor as "no". Raise TABLE_VERSION
when you change a pattern; tests/unit/names/test_tensor_cores.py holds a real name for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from .regex import regex

Answer = Literal["yes", "no", "unknown"]

TABLE_VERSION = 4

NO_MATH = (
    # parts of a library's attention or matmul that multiply no matrices themselves
    r"flash_(?:fwd_splitkv_combine|bwd_(?:dot_do_o|convert_d|clear_d))",
    r"FlashAttn(?:FwdCombine|Bwd(?:Preprocess|Postprocess))",
    r"cudnn::fusion::(?:compute_dot_do_o|convert_dq)",
    r"fmha_cutlass[FB]_(?:f32_\w*sm[57]|f16_\w*sm5)",  # before Ampere in float, before Volta in half: no MMA for it
    r"ReduceSplitK|splitKreduce|_PostGSU\d*\b",  # sum the partial products
    r"compute\w*OffsetsKernel",
    r"deep_gemm::(?:transpose|smxx_)",  # change the layout, or clear
    r"(?:Batch|Single)DecodeWith\w+Kernel",  # FlashInfer: one query is no matrix
    r"paged_attention_v[12]_kernel|paged_attention_\w*reduce_kernel",
    r"gemv|gemmSN_|gemmk1_|kgemm_4bit_inference_naive|dot_kernel",
    r"_ffma_|simt_[sdcz]gemm",
)
"""Names that are "no" whatever else they contain."""

USES = (
    r"(?:^|_)[a-z]{1,2}(?:884|1688|16816|16832|161616|8816|168256)(?=[a-z])",  # the MMA's shape: s16816gemm, i8816cudnn
    r"(?:^|[\W_])(?:hmma|imma|wgmma|wmma|mma)[\W_]",
    r"mfma",
    r"m\d+n\d+k\d+|4bit_cuda_m16n",  # the same shape as PTX spells it: PyTorch's int4 product, AWQ
    r"tensorop|Tensor[oO]p|tfloat32_t|_tensor\d+x\d+x\d+",
    r"\bnvjet_(?!(?:sm\d+_)?(?:sss|ddd)_(?!tf32))",  # cuBLAS on Hopper and later, but for plain float
    r"xmma_(?!\w*_f32f32_f(?:16|32)_)\w*(?:f16|bf16|tf32|i8|e4m3|e5m2)",  # {A}{C}_{operands}{accumulator}_{epilogue}
    r"cutlass.*[sS]m(?:90|9x|100|103|120).*(?:gemm|Gemm|gmma|Gmma|mma|Mma|fprop|dgrad|wgrad)",
    r"device_kernel<.*(?:[gG]emm|Mma|Fmha|TmaWarpSpecialized)|MainloopSm(?:90|100|103|120)",  # CUTLASS 3
    r"(?:flash|FLASH)_(?:fwd|bwd)|(?:flash|FLASH)::compute_attn",
    r"FlashAttn(?:Fwd|Bwd)(?=Sm\d|\b)|FlashAttention\w*Sm\d|FlashMLA|flash_mla_splitkv|\bsm(?:90|100)\w*::.*attn_fwd",
    r"fmha_cutlass[FB]_(?:f16_\w*sm[78]|(?:bf16|f32)_\w*sm8)",  # float: three TF32 products (kernel_forward.h)
    r"sdpa_sm\d+_\w*flash",  # cuDNN
    r"fmhaSm\d+\w*Qkv|\bbmm_(?:E\dm\d|Bfloat16|Fp16)_\w+_Fp32",  # TensorRT-LLM's generated kernels
    r"(?:Batch|Single)Prefill\w+Kernel",  # FlashInfer
    r"deep_gemm::\w*(?:gemm|mqa_logits|einsum|mega_moe)|dpsk::(?:grouped_)?gemm::\w*gemm",
    r"sm(?:90|100)_\w*gemm_\w*impl|\bMarlin<|marlin::Marlin",
    r"_matmul_ogs_\w*(?:bf16|fp16|fp8|e4m3|e5m2|mxfp4)",  # Triton's own kernels, with their types
    r"(?:\b|_)Cijk_\w*_MI\d",  # Tensile: rocBLAS, hipBLASLt
    r"[xX]dl(?:op|_|s)|_xdl|GridwiseMoeGemm|ck_tile::\w*(?:Gemm|Fmha(?:Fwd|Bwd))",  # Composable Kernel
    r"\bfmha_(?:fwd|bwd)_hd|(?:\baiter::|_ZN5aiter\d+)\w*(?:gemm|fmoe|fmha|flatmm)",  # AITER's assembly
    r"igemm_(?:fwd|bwd|wrw)_gtcx",  # MIOpen: "x" is xdlops
    r"^attn_fwd(?:\.kd)?$|^bwd_kernel_(?:dk_dv|dq|fuse)",  # AOTriton, PyTorch's attention on ROCm
)
"""Names that show the use of tensor cores."""

NEVER = (
    r"^Mem(?:cpy|set)\b|__amd_rocclr|^(?:Fill|Copy)Buffer",
    r"\bat::native::|_ZN2at6native|at_cuda_detail|\bat::cuda::\(anonymous namespace\)::spin_kernel",
    r"\bcub::|\bthrust::|\brocprim::|\bhipcub::",
    r"\btriton_(?:poi|red|per|for|spl)_",  # TorchInductor's pointwise and reducing kernels; its templates are unknown
    r"[sdcz]gemm(?:_|\b)",  # plain floats, doubles and complex numbers; with tensor cores the name has the MMA's shape
    r"_scudnn_|(?:dgrad|wgrad)\w*_(?:engine|alg\d_\d)<float|dgrad2d_alg1_1<float|wgrad_nchw_helper",
    r"winograd|\bfft[12]d_|_fft<|\b(?:regular|vector|multi)_\w*fft|pointwise_mult_and_sum_complex|flip_filter",
    r"\b(?:Custom_)?Cijk_(?!\w*_MI\d)",
    r"\bcudnn::ops::|\bcudnn::bn_|MIOpenBatchNorm|\bcunn_",
    r"epilogue::impl::globalKernel|scal_kernel|reduce_1Block_kernel|naive_conv_|im2col|col2im|moe_align_block",
    r"fbgemm_gpu::(?:_offsets|permute)|split_embedding_|bounds_check_indices|linearize_index",
)
"""Names of kernels that never use tensor cores."""

MOVES = (
    r"elementwise|pointwise|softmax|norm|reduce_kernel|(?:fill|copy)_(?:async_)?kernel|nchwToNhwc|nhwcToNchw",
    r"transpose|embedding|multi_tensor_apply|dropout|pooling|permute|scatter|gather|index(?:ing|_select)",
    r"\bbn_(?:fw|bw)|rope_|rotary|topk|sort|routing|bitmatrix|act_and_mul|silu|gelu|swiglu|reshape_and_cache",
    r"store_kvcache|to_dense_representation|dequant|quantize",
)
"""Words for elementwise work and data movement; they decide only if no word for a matmul is in the name too."""

PRODUCTS = r"gemm|matmul|_mm_|conv(?!ert)|attn|attention|(?<!a)mma|mha|moe(?!.?sort)|sdpa|triton_tem"

MATRIX_OPS = (
    r"aten::_?convolution(?:_\w+)?|aten::conv(?:_tbc|(?:_transpose)?[123]d)|aten::_?(?:slow|thnn)_conv\w+",
    r"aten::(?:cudnn|miopen|mkldnn|mps)_convolution\w*",
    r"aten::(?:mm|bmm|matmul|addmm|addbmm|baddbmm|linear|addmv|mv|einsum|bilinear|inner|tensordot|chain_matmul)_?",
    r"aten::(?:linalg_multi_dot|linalg_matmul|_trilinear|_addmm_activation|mkldnn_linear|linear_backward)",
    r"aten::_(?:int|scaled|grouped|scaled_grouped)_mm\w*|aten::_weight_int[48]pack_mm\w*",
    r"aten::(?:lstm|gru|rnn_tanh|rnn_relu)(?:_cell)?|aten::_(?:cudnn|thnn_fused)_(?:rnn|lstm_cell|gru_cell)\w*",
    r"aten::(?:miopen_rnn|mkldnn_rnn_layer)\w*",
    r"aten::_?scaled_dot_product_\w+|aten::_(?:flash|efficient|cudnn|fused_sdp)_attention_\w+",
    r"aten::_?(?:native_|triton_)?multi_head_attention\w*|aten::_transform\w*_encoder_layer_fwd",
    r"(?:autograd::engine::evaluate_function: )?"
    r"(?:Addmm|Mm|Bmm|Baddbmm|Addbmm|Linear|Convolution\w*|CudnnConvolution|ScaledDotProduct\w*)Backward\d*",
    r"flash_attn\w*::\w*(?:fwd|forward|bwd|backward)\w*|xformers\w*::\w*attention\w*",
)
"""Operators that multiply matrices: with a suitable dtype and shape, tensor cores can run them."""


def _any_of(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


_NO_MATH, _USES, _NEVER = (regex(_any_of(patterns)) for patterns in (NO_MATH, USES, NEVER))
_MOVES, _PRODUCTS = (regex(_any_of(patterns), re.IGNORECASE) for patterns in (MOVES, (PRODUCTS,)))
_MATRIX_OPS = regex(rf"(?:{_any_of(MATRIX_OPS)})(?:\.\w+)?")  # with an overload: aten::mm.out


def tensor_cores(name: str) -> Answer:
    """Whether a kernel of this name uses tensor (or matrix) cores: yes, no or unknown."""
    if _NO_MATH.search(name):
        return "no"
    if _USES.search(name):
        return "yes"
    if _NEVER.search(name) or (_MOVES.search(name) and not _PRODUCTS.search(name)):
        return "no"
    return "unknown"


def is_matrix_op(name: str) -> bool:
    """Whether an operator of this name can run on tensor cores with a suitable dtype and shape."""
    return bool(_MATRIX_OPS.fullmatch(name))
