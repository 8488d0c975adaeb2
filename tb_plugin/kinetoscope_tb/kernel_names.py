"""What a name says of its work: communication, tensor cores, data loading, a step.

Names are the only evidence that every trace has. Each table below is a list of patterns;
tests/unit/test_kernel_names.py holds a real name for each of them.
"""

from __future__ import annotations

import re
from typing import Literal

Answer = Literal["yes", "no", "unknown"]

TENSOR_CORE_TABLE_VERSION = 1

STEP = re.compile(r"ProfilerStep#(\d+)")
DATA_LOADING = ("enumerate(DataLoader)#", "enumerate(DataPipe)#")

_COMMUNICATION_KERNEL = re.compile(
    r"""
      \bnccl | \bmscclKernel | \brccl | \boneccl | \bxccl | \bhccl | \bhcom_  # the libraries' own kernels
    | cross_device_reduce | (?:two|one)_?shot_all_?reduce | quick_?reduce    # vLLM, SGLang, AITER
    | allreduce_fusion | lamport | \bmultimem_ | symm_mem                    # TensorRT-LLM, symmetric memory
    | nvshmem | \bdeep_ep::
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COMMUNICATION_RANGE = re.compile(r"record_param_comms$|c10d::|(?:nccl|rccl|gloo|xccl|ccl|oneccl|hccl|ucc|mpi):")

_TENSOR_CORES = re.compile(
    r"""
      (?:^|_)[a-z]?(?:884|1688|16816|16832|161616|8816|168256)(?!\d)  # the MMA shape in a library's names: s16816gemm
    | hmma | imma\b | wgmma | tensorop
    | \bnvjet_(?!sss|ddd)                                            # cuBLAS on Hopper and later, but for plain float
    | xmma_\w*(?:f16|bf16|tf32|i8|e4m3|e5m2)
    | cutlass.*sm(?:90|100|103|120).*(?:gemm|gmma|mma|Gmma)
    | flash_(?:fwd|bwd) | \bflash::\w*(?:fwd|bwd) | FlashAttn(?:Fwd|Bwd) | fmha_cutlass[FB]_(?:f16|bf16)
    | sdpa_sm\d+_flash | cudnn_generated_fort_native_sdpa
    | \bCijk_\w*_(?:MI\d|MFMA) | [xX]dl(?:op|_)|_xdl | kernel_gemm_xdl | FmhaFwd | FmhaBwd | \bfmha_(?:fwd|bwd)_hd
    """,
    re.VERBOSE,
)
_NO_TENSOR_CORES = re.compile(
    r"""
      ^Mem(?:cpy|set) | \bat::native:: | at_cuda_detail | \bcub:: | \bthrust:: | \brocprim:: | \bhipcub::
    | elementwise | reduce_kernel | softmax | (?:layer|batch|group|rms)_?norm | \bbn_(?:fw|bw) | (?:fill|copy)_kernel
    | sgemm(?:_|\b) | _scudnn_ | (?:dgrad|wgrad)\w*_engine<float | winograd
    | ffma | \bgemv | gemvx | gemmk1 | simt | splitKreduce | dot_kernel
    | nchwToNhwc | nhwcToNchw | transpose | im2col | embedding | multi_tensor_apply | dropout | pooling
    | \btriton_(?:poi|red|per)_ | \bCijk_(?!\w*_(?:MI\d|MFMA)) | __amd_rocclr
    """,
    re.VERBOSE | re.IGNORECASE,
)

_MATRIX_OPS = re.compile(
    r"""
    aten::(?:
        _?convolution(?:_\w+)? | conv(?:_tbc|_transpose)?[123]d | thnn_conv2d
      | cudnn_convolution\w* | miopen_convolution\w*
      | mm | bmm | matmul | addmm | addbmm | baddbmm | linear | addmv | mv | einsum | bilinear | chain_matmul
      | linalg_multi_dot | linalg_matmul | _scaled_mm | _grouped_mm | _int_mm | _addmm_activation
      | (?:lstm|gru|rnn_tanh|rnn_relu)(?:_cell)? | _cudnn_rnn(?:_backward)? | _thnn_fused_(?:lstm|gru)_cell
      | scaled_dot_product_attention | _scaled_dot_product_\w+ | _flash_attention_\w+ | _efficient_attention_\w+
      | _cudnn_attention_\w+
    )$
    """,
    re.VERBOSE,
)


def is_communication_kernel(name: str) -> bool:
    """Whether a device row of this name moves data between ranks."""
    return bool(_COMMUNICATION_KERNEL.search(name))


def is_communication_range(name: str) -> bool:
    """Whether a host operator or annotation of this name is a collective or a point-to-point transfer."""
    return bool(_COMMUNICATION_RANGE.match(name))


def is_data_loading(name: str) -> bool:
    """Whether a host range of this name waits for the next batch of a DataLoader."""
    return name.startswith(DATA_LOADING)


def tensor_cores(name: str) -> Answer:
    """Whether a kernel of this name uses tensor (or matrix) cores; unknown is an answer."""
    if is_communication_kernel(name):
        return "no"
    if _TENSOR_CORES.search(name):
        return "yes"
    return "no" if _NO_TENSOR_CORES.search(name) else "unknown"


def is_matrix_op(name: str) -> bool:
    """Whether an operator of this name can run on tensor cores, given a fitting dtype and shape."""
    return bool(_MATRIX_OPS.match(name))


def step_number(name: str) -> str | None:
    """N of `ProfilerStep#N`, or None."""
    match = STEP.fullmatch(name.strip())
    return match.group(1) if match else None
