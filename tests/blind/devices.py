"""Devices that jobs run on: what their data sheets say, and the kernels that libraries choose on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .machine import Kernel


@dataclass(frozen=True)
class Device:
    """A device. Rates are peaks per nanosecond: floating-point operations, bytes of memory, bytes over the host's link."""

    name: str
    major: int
    minor: int
    multiprocessors: int
    memory_bytes: int
    matrix_flops: float
    float_flops: float
    memory_rate: float
    link_rate: float
    gemm: str
    float_gemm: str

    def properties(self, number: int) -> dict[str, Any]:
        """What a trace says of it."""
        return {
            "id": number,
            "name": self.name,
            "totalGlobalMem": self.memory_bytes,
            "computeMajor": self.major,
            "computeMinor": self.minor,
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": 2048 if self.minor == 0 else 1536,
            "regsPerBlock": 65536,
            "warpSize": 32,
            "sharedMemPerBlock": 49152,
            "numSms": self.multiprocessors,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerBlockOptin": 232448,
            "sharedMemPerMultiprocessor": 233472,
        }


H100 = Device(
    "NVIDIA H100 80GB HBM3", 9, 0, 132, 84_942_979_072, 989_400, 66_900, 3_352, 55,
    "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_NNT", "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
)  # fmt: skip
A100 = Device(
    "NVIDIA A100-SXM4-80GB", 8, 0, 108, 85_174_583_296, 312_000, 19_500, 2_039, 25,
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", "ampere_sgemm_128x64_nn",
)  # fmt: skip
L40S = Device(
    "NVIDIA L40S", 8, 9, 142, 47_810_936_832, 362_000, 91_600, 864, 25,
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", "ampere_sgemm_128x64_nn",
)  # fmt: skip
UNNAMED = Device(
    "", 0, 0, 96, 40_000_000_000, 200_000, 15_000, 1_000, 20, "gemm_kernel_128x128", "gemm_kernel_f32_128x128"
)

NUMBER_BYTES = {"c10::BFloat16": 2, "float": 4}


def matmul(device: Device, m: int, n: int, k: int, *, roof_frac: float, is_float: bool = False) -> Kernel:
    """A matrix product (m, k) × (k, n) at this share of the device's roof."""
    peak = device.float_flops if is_float else device.matrix_flops
    bytes_moved = (m * k + k * n + m * n) * (4 if is_float else 2)
    length = max(2 * m * n * k / peak, bytes_moved / device.memory_rate) / roof_frac
    name = device.float_gemm if is_float else device.gemm
    blocks = max(1, -(-m // 128) * -(-n // 128))
    return Kernel(name, int(length), (blocks, 1, 1), (256, 1, 1), 168, 98_304)


def elementwise(device: Device, name: str, bytes_moved: float, *, roof_frac: float = 0.88) -> Kernel:
    """A kernel that reads and writes so many bytes."""
    length = 1_400 + bytes_moved / device.memory_rate / roof_frac
    blocks = int(max(1, bytes_moved // 12_288))
    return Kernel(name, int(length), (blocks, 1, 1), (128, 1, 1), 32)


def vectorized(functor: str, arrays: int = 3) -> str:
    """The symbol of torch's kernel that applies a function to every item."""
    return (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, std::array<char*, {arrays}ul> >"
        f"(int, at::native::{functor}, std::array<char*, {arrays}ul>)"
    )


ADD = vectorized("CUDAFunctor_add<c10::BFloat16>")
MULTIPLY = vectorized(
    "BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >"
)
GELU = vectorized(
    "GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}",
    2,
)
COPY = vectorized("bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2)
FILL = vectorized("FillFunctor<float>", 1)
DIRECT_COPY = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}> >(int, at::native::direct_copy)"
)
LAYER_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 11, false, false>(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true, false, false, true, true, false>(pytorch_flash::Flash_fwd_params)"
ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, bool, float*, float*>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, bool, float*, float*)"
FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 2, 1, 1>, std::multiplies<float>, float>"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float, float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float, float>, unsigned int, float, 4, 4>)"
CONVOLUTION = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int, int, int, float const*, int, float*, float const*, kernel_conv_params, unsigned long long, int, float, float, int, float const*, float const*, bool, int, int)"
CUSTOM = "my_fused_scan_kernel_v2(float const*, float*, int, int)"
