"""Device work by its name alone."""

import pytest

from kinetoscope_tb.names.device_work import device_work
from kinetoscope_tb.names.kernel_labels import kernel_labels

from .test_kernel_labels import PRECISION

KERNELS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)",
    "void (anonymous namespace)::softmax_warp_forward_kernel<float, float, float, 7, false, false>(float*)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, true, false>(int)",
    "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int const*>(int const*)",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "triton_poi_fused_add_relu_0",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEviT0_T1_",
    "void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
)
COPIES = (
    "Memcpy HtoD (Pageable -> Device)",
    "[MEMCPY] HtoD",
    "[CUDA memcpy HtoD]",
    "[CUDA memcpy Host-to-Device]",
    "MemcpyD2H",
    "MemcpyH2D",
    "CopyHostToDevice",
    "CopyDeviceToHost",
    "Memcpy PtoP (Device -> Device)",
)
FILLS = ("Memset (Device)", "[CUDA memset]", "[MEMSET]", "Memset 3", "FillBuffer")
CALLS = (
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cuLaunchKernel",
    "hipLaunchKernel",
    "cudaStreamSynchronize",
    "hipMalloc",
)
OTHERS = (
    "at::native::(anonymous namespace)::add_kernel(at::TensorIteratorBase&, c10::Scalar const&)",
    "void at::native::DEFAULT::vectorized_loop2d_kernel<float>(at::TensorIteratorBase&)",
    "at::_ops::add_Tensor::call(at::Tensor const&)",
    "memcpy",
    "__memcpy_avx_unaligned_erms",
    "memset",
    "my_kernel_launcher",
    "gemm",
    "f (train.py:12)",
    "jit_train_step(123)",
    "PjitFunction(train_step)",
    "model_run",
    "cudaLaunchKernelFromMyTool (tool.py:3)",
    "entire_frame_compile",
    "",
)


@pytest.mark.parametrize("part", ["_kernel", "at::native::", "void ", "(", "<", "enable_if::", "/job:a/", "gemm_f16"])
@pytest.mark.slow  # long names
def test_names_of_any_length_are_read_in_time(part: str) -> None:
    names = [before + part * 200_000 for before in ("", "void ", "std::enable_if<", "cutlass3x_sm90_tensorop_")]
    assert {device_work(name) for name in names} <= {None, "kernel"}
    assert len(kernel_labels(names)) == len(names)


@pytest.mark.parametrize("name", [*KERNELS, *(name for _, name in PRECISION if not name.startswith("void sgemm"))])
def test_kernels_are_known_by_their_names(name: str) -> None:
    assert device_work(name) == "kernel"


@pytest.mark.parametrize(("work", "names"), [("memcpy", COPIES), ("memset", FILLS), ("call", CALLS), (None, OTHERS)])
def test_copies_fills_and_calls_are_known_and_functions_of_the_host_are_not(
    work: str | None, names: tuple[str, ...]
) -> None:
    assert {name: device_work(name) for name in names} == dict.fromkeys(names, work)
