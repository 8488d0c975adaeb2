"""One real name for each pattern of the tables."""

import pytest

from kinetoscope_tb.names.kernels import (
    communication_rule,
    is_collective_call,
    is_communication_range,
    is_data_loading,
    step_number,
)

COMMUNICATION = {
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "NCCL",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "NCCL",
    "ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs const*)": "NCCL",
    "void ncclKernelAllToAllvDedup<signed char>(int*, CtranAlgoDeviceState*, ExecKernArgs)": "NCCL",
    "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)": "NCCL",
    "mscclKernel_Sum_half_Simple_false": "NCCL",
    "oneccl_allreduce_entry": "oneCCL",
    "hcom_allReduce_": "HCCL",
    "comms::pipes::allToAllvKernel(void*, void const*, int)": "torchcomms",
    "void meta::comms::ddaAllReduceFlatIpc<__hip_bfloat16, 8, false>": "torchcomms",
    "void mscclpp::collective::allreducePacket<float>": "MSCCL++",
    "void allreduce_LL_1node<__nv_bfloat16>": "MSCCL++",
    "void deep_ep::intranode::dispatch<8, 1024>": "DeepEP",
    "void deep_ep::intranode::cached_notify_combine<8>(void**, int*, int, int, int, int**, int)": "DeepEP",
    "_ZN7deep_ep12internode_ll7combineILb0ELi7168EEEvPv": "DeepEP",
    "void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*, long*)": "DeepEP",
    "void dpsk::ep::internode::notify_dispatch<false, 4>(int const*, long*, int)": "DeepEP",
    "void dpsk::ep::internode::combine<8, __nv_bfloat16>": "DeepEP",
    "hybrid_ep::dispatch_kernel<true>": "HybridEP",
    "void uccl::internode::cached_notify<false>(int)": "UCCL",
    "void mooncake::dispatch_kernel_impl<true, 4, 8>": "Mooncake",
    "void nixl_ep::ep_kernels::dispatch<true>": "NIXL",
    "EpDispatchIntraNodeKernel_bf16": "MORI",
    "void mori::moe::EpCombineInterNodeKernel<hip_bfloat16>": "MORI",
    "void a2a_dispatch_send_kernel<true, 16>(unsigned long)": "pplx",
    "dlslime::intranode_alltoall_kernel": "DLSlime",
    "nvshmemi_transfer_put_signal": "NVSHMEM",
    "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)": "NVSHMEM",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)": "symmetric memory",
    "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 8>": "symmetric memory",
    "two_shot_all_reduce_kernel_inplace": "symmetric memory",
    "exchangeSplitAndOffset(long*, int, int)": "symmetric memory",
    "c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)": "symmetric memory",
    "persistent_all_reduce_two_shot": "iris",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "custom all-reduce",
    "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>": "custom all-reduce",
    "void aiter::reduce_scatter_cross_device_store<std::bfloat16_t, 8>": "custom all-reduce",
    "void aiter::allgather_lastdim<std::bfloat16_t, 4>(aiter::RankData*)": "custom all-reduce",
    "quickreduce::allreduce_prototype_twoshot": "custom all-reduce",
    "void (anonymous namespace)::all_reduce_one_shot_push_kernel<__nv_bfloat16, 8u, true>": "custom all-reduce",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<>": "TensorRT-LLM",
    "void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)4>": "TensorRT-LLM",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>": "TensorRT-LLM",
    "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8, __nv_bfloat16>": "TensorRT-LLM",
    "void moeA2ADispatchKernel<8, false>": "TensorRT-LLM",
}


@pytest.mark.parametrize(("name", "rule"), COMMUNICATION.items())
def test_communication_kernels(name, rule):
    assert communication_rule(name) == rule


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512>",
        "Memcpy PtoP (Device -> Device)",
        "my_func_cl",
        "void cdpsk::ep::CUB_200400_900_NS::detail::scan::DeviceScanKernel<>",
        "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*)",
        "void deep_ep::layout::get_dispatch_layout<256, 32>(long const*)",
        "hybrid_ep::permute_kernel",
        "void mscclpp::megamoe::detail::megaMoe<false>()",
        "void aiter::local_device_load_rmsnorm<std::bfloat16_t, 512, 2>",
        "moeA2APrepareDispatchKernel",
    ],
)
def test_other_kernels_are_no_communication(name):
    assert communication_rule(name) is None


@pytest.mark.parametrize(
    ("name", "is_collective"),
    [
        ("record_param_comms", True),
        ("nccl:all_reduce", True),
        ("symm_mem::one_shot_all_reduce", True),
        ("symm_mem::multimem_all_reduce_", True),
        ("symm_mem::fused_all_gather_matmul", False),
        ("_C_custom_ar::all_reduce", True),
        ("sglang::outplace_all_reduce", True),
        ("sglang::flashinfer_allreduce_residual_rmsnorm", False),
        ("vllm::reduce_scatter", True),
        ("vllm::unified_attention", False),
        ("aten::copy_", False),
    ],
)
def test_host_ranges_whose_kernels_are_communication(name, is_collective):
    assert is_collective_call(name) == is_collective


@pytest.mark.parametrize(
    "name",
    [
        "record_param_comms",
        "c10d::allreduce_",
        "nccl:all_reduce",
        "gloo:all_reduce",
        "xccl:_all_gather_base",
        "torchcomms::torchcomm_all_reduce_",
        "_C::shm_allreduce",  # recorded by vLLM 0.32 with two workers on a CPU
        "_C::shm_gather",
    ],
)
def test_communication_ranges(name):
    assert is_communication_range(name)


def test_other_ranges_are_no_communication():
    assert not is_communication_range("aten::add")
    assert not is_communication_range("my::nccl:like")
    assert not is_communication_range("torchcomms::torchcomm_wait_tensors")


def test_data_loading_is_told_by_its_annotation():
    assert is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    assert is_data_loading("enumerate(DataPipe)#Mapper")
    assert not is_data_loading("DataLoader")


def test_a_step_s_number():
    assert step_number("ProfilerStep#12") == "12"
    assert step_number("ProfilerStep*") is None
    assert step_number("aten::ProfilerStep#1") is None
