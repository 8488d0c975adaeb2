import pytest

from kinetoscope_tb.names.collectives import bus_factor, element_bytes, kind_of, message_bytes

NAMES = {
    "allreduce": "all_reduce",
    "nccl:all_reduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_reduce",
    "void vllm::cross_device_reduce_2stage<__hip_bfloat16, 8>(RankData*)": "all_reduce",
    "one_shot_all_reduce_kernel": "all_reduce",
    "_allgather_base": "all_gather",
    "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL": "reduce_scatter",
    "all_to_allv": "all_to_all",
    "nccl:all_to_all": "all_to_all",
    "deep_ep::intranode::dispatch<8>": "all_to_all",
    "void dpsk::ep::internode::combine<8, __nv_bfloat16>": "all_to_all",
    "void uccl::internode_ll::dispatch<true>": "all_to_all",
    "EpDispatchIntraNodeKernel_bf16": "all_to_all",
    "void moeA2ACombineKernel<8>": "all_to_all",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)": "all_reduce",
    "void aiter::reduce_scatter_cross_device_store<std::bfloat16_t, 8>": "reduce_scatter",
    "broadcast": "broadcast",
    "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)": "broadcast",
    "ncclDevKernel_Reduce_Sum_f32_RING_LL": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "send": "send",
    "recv": "recv",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "send_recv",
    "nvshmem_put": "other",
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_collective_has_one_name_however_it_is_spelt(name, kind):
    assert kind_of(name) == kind


DTYPES = {
    "Float": 4,
    "float": 4,
    "BFloat16": 2,
    "c10::BFloat16": 2,
    "c10::Half": 2,
    "Double": 8,
    "Long": 8,
    "long int": 8,
    "Int": 4,
    "int": 4,
    "Short": 2,
    "Char": 1,
    "Byte": 1,
    "unsigned char": 1,
    "Bool": 1,
    "Float8_e4m3fn": 1,
    "c10::Float8_e5m2fnuz": 1,
    "Float8_e8m0fnu": 1,
    "Float4_e2m1fn_x2": 1,
    "UInt16": 2,
    "UInt32": 4,
    "UInt64": 8,
    "ComplexHalf": 4,
    "ComplexFloat": 8,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
    "QInt8": 1,
    "Bits16": 2,
    "": None,
    "Tensor": None,
}


@pytest.mark.parametrize(("dtype", "size"), DTYPES.items())
def test_numbers_of_each_type_have_their_size(dtype, size):
    assert element_bytes(dtype) == size


def test_the_message_is_what_holds_all_ranks_parts():
    assert message_bytes("all_gather", 10, 80) == 80
    assert message_bytes("all_gather", 10, -1) == -1
    assert message_bytes("reduce_scatter", 80, 10) == 80
    assert message_bytes("all_reduce", 10, -1) == 10
    assert message_bytes("all_reduce", -1, -1) == -1


def test_each_link_carries_its_share_of_the_message():
    assert bus_factor("all_reduce", 8) == 2 * 7 / 8
    assert bus_factor("all_gather", 8) == 7 / 8
    assert bus_factor("broadcast", 8) == 1
    assert bus_factor("all_reduce", 1) == 0
