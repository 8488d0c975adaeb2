"""One real name for each pattern of the tables."""

import pytest

from kinetoscope_tb.names.kernels import is_communication_kernel, is_communication_range, is_data_loading, step_number


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs const*)",
        "mscclKernel_Sum_half_Simple_false",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "two_shot_all_reduce_kernel",
        "void one_shot_all_reduce_kernel<c10::BFloat16, 8>",
        "multimem_all_reduce_kernel",
        "void deep_ep::intranode::dispatch<8, 1024>",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<>",
        "nvshmemi_transfer_put_signal",
        "quickreduce::allreduce_prototype_twoshot",
        "oneccl_allreduce_entry",
    ],
)
def test_communication_kernels(name):
    assert is_communication_kernel(name)


@pytest.mark.parametrize(
    "name", ["void at::native::reduce_kernel<512>", "Memcpy PtoP (Device -> Device)", "my_func_cl"]
)
def test_other_kernels_are_no_communication(name):
    assert not is_communication_kernel(name)


@pytest.mark.parametrize(
    "name", ["record_param_comms", "c10d::allreduce_", "nccl:all_reduce", "gloo:all_reduce", "xccl:_all_gather_base"]
)
def test_communication_ranges(name):
    assert is_communication_range(name)


def test_other_ranges_are_no_communication():
    assert not is_communication_range("aten::add")
    assert not is_communication_range("my::nccl:like")


def test_data_loading_is_told_by_its_annotation():
    assert is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    assert is_data_loading("enumerate(DataPipe)#Mapper")
    assert not is_data_loading("DataLoader")


def test_a_step_s_number():
    assert step_number("ProfilerStep#12") == "12"
    assert step_number("ProfilerStep*") is None
    assert step_number("aten::ProfilerStep#1") is None
