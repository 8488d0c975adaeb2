"""One real name for each pattern of the tables."""

import pytest

from kinetoscope_tb.kernel_names import (
    is_communication_kernel,
    is_communication_range,
    is_data_loading,
    is_matrix_op,
    step_number,
    tensor_cores,
)

TENSOR_CORES = {
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn": "yes",
    "volta_h884gemm_256x64_ldg8_nn": "yes",
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn": "yes",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn": "yes",
    "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_32x3_tn": "yes",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_tn_align8>": "yes",
    "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8": "yes",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT": "yes",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN": "yes",
    "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel": "yes",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16": "yes",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1": "yes",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::arch::Sm90, cutlass3x_sm90_tensorop_gmma>>": "yes",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>": "yes",
    "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>": "yes",
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>>": "yes",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)": "yes",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0": "yes",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1": "yes",
    "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<>>": "yes",
    "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync>>": "yes",
    "Memcpy HtoD (Pageable -> Device)": "no",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>": "no",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>": "no",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>": "no",
    "volta_sgemm_32x128_tn": "no",
    "ampere_sgemm_128x64_nn": "no",
    "volta_scudnn_128x64_relu_interior_nn_v1": "no",
    "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1>": "no",
    "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>": "no",
    "void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>": "no",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>": "no",
    "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>": "no",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false>": "no",
    "void splitKreduce_kernel<float, float, float, float>": "no",
    "cutlass_80_simt_sgemm_128x32_8x5_nn_align1": "no",
    "triton_poi_fused_add_relu_0": "no",
    "triton_red_fused_native_layer_norm_1": "no",
    "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1": "no",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "no",
    "void cublasLt::some_kernel_of_next_year<8, 32>": "unknown",
    "nvjet_sss_64x64_64x4": "unknown",
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4": "no",
}


@pytest.mark.parametrize(("name", "answer"), TENSOR_CORES.items())
def test_tensor_core_use_by_name(name, answer):
    assert tensor_cores(name) == answer


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
    assert tensor_cores(name) == "no"


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


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "aten::addmm",
        "aten::conv2d",
        "aten::convolution_backward",
        "aten::_flash_attention_forward",
        "aten::linear",
    ],
)
def test_operators_that_multiply_matrices(name):
    assert is_matrix_op(name)


def test_other_operators_do_not():
    assert not is_matrix_op("aten::add")
    assert not is_matrix_op("aten::mm_backward_of_mine")


def test_data_loading_is_told_by_its_annotation():
    assert is_data_loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    assert is_data_loading("enumerate(DataPipe)#Mapper")
    assert not is_data_loading("DataLoader")


def test_a_step_s_number():
    assert step_number("ProfilerStep#12") == "12"
    assert step_number("ProfilerStep*") is None
    assert step_number("aten::ProfilerStep#1") is None
