"""A real name for each alternative of each pattern, most of them from traces, and names that look alike."""

import re

import pytest

from kinetoscope_tb.names import tensor_cores as table
from kinetoscope_tb.names.tensor_cores import is_matrix_op, tensor_cores

YES = """
volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn
volta_h884gemm_256x64_ldg8_nn
turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn
turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1
turing_int8_i8816cudnn_int8_256x128_ldg16_relu_singleBuffer_small_nt_v1
ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn
ampere_int8_i16832gemm_int8_256x128_ldg16_stages_64x3_tn
turing_fp16_h1688gemm_256x128_ldg8_stages_32x1_nn
void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_tn_align8>
cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8
cutlass_80_tensorop_b168256xorgemm_b1_256x128_512x3_tn_align128
void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>
_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS_4gemm9GemmShapeINS_10tfloat32_tE
void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::warp::MmaTensorOp<cutlass::gemm::GemmShape<64>>>
nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT
nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN
nvjet_sm103_tst_128x16_64x12_2x1_2cta_v_bz_TNT
nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN
nvjet_sss_tf32_128x256_TNT
sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel
sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16
sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1
sm72_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize256x128x64_stage1_warpsize4x2x1
sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1
sm90_xmma_gemm_e5m2e4m3_e5m2f32_f32_tn_n_tilesize128x128x128_warpgroupsize2x1x1
sm80_xmma_gemm_bf16_bf16f32_f32_nn_n_tilesize32x32x64
void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::arch::Sm90, CollectiveMma<MainloopSm90>>>
void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<>>>
void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>
void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>
void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>>
kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__
void flash::FlashMLA_splitkv_kernel<576, 512>
void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64>>
flash_mla_splitkv_fp8_sparse_kernel
fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)
fmha_cutlassF_f16_aligned_64x64_rf_sm75(PyTorchMemEffAttention::AttentionKernel)
fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwardKernel)
cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0
cudnn_generated_fort_native_sdpa_sm80_flash_bprop_f16_knob_31_128x64x64_1x1x1_kernel0_0
fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64VarSeqQ8Kv128PersistentSwapsAbForGen
bmm_E4m3_E4m3E4m3_Fp32_t128x64x128u2_s6_et64x64_m64x64x32_cga1x1x1_16dp256b_TN_transOut_schedS
bmm_Bfloat16_E2m1E2m1_Fp32_bA16_bB16_bC16_t128x16x512u2_s5_et64x16_m64x16x64
void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1u, 128u>>
void flashinfer::SinglePrefillWithKVCacheKernel<flashinfer::KernelTraits<1u, 128u>>
void flash::compute_attn_ws<Flash_fwd_kernel_traits<192, 128, 128, 12, 2, false, 1, cutlass::bfloat16_t, 128>, true>
void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<flash::CollectiveMainloopBwdSm90<>>>>
flash::FlashAttnBwd<flash::CollectiveMainloopBwd<>>
void sm90::fwd::sparse_attn_fwd_kernel<sm90::fwd::KernelTemplate<512, true>>
void cutlass::device_kernel<vllm::cutlass_3x_gemm_sm90_fp8<cutlass::float_e4m3_t, cutlass::bfloat16_t>>
void cutlass::device_kernel<dpsk::grouped_gemm::GemmKernel<cute::tuple<int, int, int, int>>>
void cutlass::device_kernel<cutlass::fmha::kernel::FmhaKernelTma<>>
void cutlass::device_kernel<CollectiveMma<MainloopSm100TmaUmma>>
void cutlass::device_kernel<flat::kernel::FlatKernelTmaWarpSpecializedDeltaRule<>>
cutlass::gemm::MainloopSm120ArrayTmaWarpSpecializedBlockScaled
cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized
cutlass::gemm::MainloopSm100TmaUmmaWarpSpecialized
cutlass::gemm::MainloopSm103TmaUmmaWarpSpecialized
void dpsk::gemm::fp8_gemm_kernel<4096u, 7168u, 128u, 128u, 128u, 5u, 128u, 128u, 2u, (dpsk::gemm::GemmType)1>
void deep_gemm::sm90_fp8_mqa_logits<64u, 128u, false>
void deep_gemm::sm90_bmn_bnk_mn_gemm_impl<1>
void deep_gemm::sm100_fp8_einsum_impl<1>
void deep_gemm::sm100_fp8_fp4_mega_moe_impl<1>
void deep_gemm::fp8_gemm_kernel<7168u, 2048u, 64u, 128u, 128u>
sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u, 1u, 64u, 128u, 128u>
sm100_fp8_gemm_1d1d_impl<0u, 7168u, 2048u>
void marlin::Marlin<__half, 128l, 2, 4, 8, 4>
void Marlin<256, 1, 8, 8, 4, 8>(int4 const*, int4 const*)
gemm_forward_4bit_cuda_m16n128k32
gemm_forward_4bit_cuda_m16nXk32
void at::native::tinygemm_m16n8k16_chunk_kernel<at::native::ALayout_RM<(at::native::KReductionType)0>>
_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu
_matmul_ogs_TNN_fp16xfp16xfp16_64x128x64x1
_matmul_ogs_NNT_fp8xfp8xfp8_128x256x128x1
_matmul_ogs_NNT_e4m3xe4m3xe4m3_128x256x128x1
_matmul_ogs_NNT_e5m2xe5m2xe5m2_128x256x128x1
Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1
Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_HA_S_SAB_SAV_MT256x256x128_MI16x16x1_SN
void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16>
void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<>>
void ck::kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle<ck::GridwiseGemmMultipleABD_xdl_cshuffle<>>
gridwise_convolution_implicit_gemm_v4r4_xdlops_nchw_kcyx_nkhw
void ck::kernel_gemm<ck::GridwiseGemmXdl_k0mk1_k0nk1_mn<>, ck::BlockwiseGemmXdlops_pipeline>
void ck::kernel_moe_gemm<ck::GridwiseMoeGemm<ck::tensor_layout::gemm::RowMajor>>
void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync>>
void ck_tile::kentry<256, 1, ck_tile::FmhaBwdDQDKDVKernel<ck_tile::BlockFmhaBwdDQDKDVPipeline>>
void ck_tile::kentry<1, ck_tile::QuantGemmKernel<ck_tile::GemmTile2DPartitioner>>
fmha_bwd_hd128_bf16_a16_rtz
fmha_fwd_hd128_bf16_causal
_ZN5aiter39fmha_fwd_hd128_bf16_causal_group_rtne_gE
aiter::bf16gemm_fp32bf16_tn_64x64_splitk
_ZN5aiter51fmoe_bf16_blockscaleFp8_g1u1_novs_silu_1tg_ps_32x256E
_ZN5aiter43flatmm_uk_gfx9_f16f8_128x256x128_1x4_16x16x32E
igemm_fwd_gtcx_nhwc_fp16_bx0_ex1_bt256x256x32_wt32x32x8_ws1x1_wr2x2
igemm_bwd_gtcx3_nhwc_fp16_bx0_ex0_bt128x128x32
igemm_wrw_gtcx2_nhwc_fp16_bx0_ex1_bt128x128x32
attn_fwd
attn_fwd.kd
bwd_kernel_dk_dv.kd
bwd_kernel_dq.kd
bwd_kernel_fuse.kd
volta_fp16_hmma_fprop_nhwc
wmma_gemm_kernel(float*, half*)
void imma_gemm<int>
void wgmma_kernel<8>
""".strip().splitlines()

NO = """
void deep_gemm::transpose_fp32<512, 64>(const float*, float*)
void deep_gemm::smxx_clean_logits<1>
void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<>>>
Memcpy HtoD (Pageable -> Device)
Memset (Device)
__amd_rocclr_fillBufferAligned
FillBuffer
CopyBuffer
void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>
void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float, 64u, 1u, 32u>
_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_
at::cuda::(anonymous namespace)::spin_kernel(long)
void at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<>
void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600>
void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<>>
void rocprim::detail::trampoline_kernel<rocprim::detail::wrapped_scan_config<>>
void hipcub::detail::radix_sort_kernel<>
void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>
volta_sgemm_32x128_tn
ampere_fp16_sgemm_fp16_128x64_tn
volta_cgemm_32x32_tn
ampere_gcgemm_64x64_nt
volta_scudnn_128x64_relu_interior_nn_v1
_5x_cudnn_ampere_fp16_scudnn_fp16_128x32_relu_small_nn_v1
void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1>
void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>
void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>
void cudnn::detail::dgrad2d_alg1_1<float, 0, 4, 6, 3, 2, 4, false, true>
void cudnn::detail::wgrad2d_alg1_1<float, 0, 4, 6, 3, 2, 4, false, true>
void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>
void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>
void fft2d_c2r_32x32<float, false, false, 0u, false, false>
void regular_fft<64u, EPT<8u>, 8u, 8u>
void vector_fft<512u, EPT<16u>>
multi_bluestein_fft
void composite_2way_fft<30u, 8u>
void pointwise_mult_and_sum_complex<float2, 8, 4>
void flip_filter<float, float>
void cudnn::ops::scalePackedTensor_kernel<float, float>
void cudnn::ops::nchwToNhwcKernel<float, float, float>
void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, __nv_bfloat16, float>
void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>
MIOpenBatchNormFwdTrainSpatial
void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>
void cudnn::fusion::compute_dot_do_o_specialized<true, 128, 128>
void cudnn::fusion::convert_dq_to_16bits<true, 128>
void cublasLt::epilogue::impl::globalKernel<8, 32, float, float, float, true, true, 1>
void scal_kernel<float, float, 1, true, 6, 5, 5, 3>
void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float>>
naive_conv_fwd_nchw_float_double_float
void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false>
void gemmSN_NN_kernel<float, 256, 4, 2, 8, 4, 4, false>
void gemmk1_kernel<float, 256, 5, false, false, false, false>
void kgemm_4bit_inference_naive<__half, 128, 16>
void dot_kernel<float, 128, 0, cublasDotParams<float>>
void splitKreduce_kernel<float, float, float, float>
void cutlass_cudnn_train::Kernel<cutlass_cudnn_train::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128>>>
Cijk_B_PostGSU2
void cask_cudnn::computeOffsetsKernel<false, false>(cask_cudnn::ComputeOffsetsParams)
cask_cudnn::computeWgradSplitKOffsetsKernel(cask_cudnn::ComputeSplitKOffsetsParams)
cutlass_80_simt_sgemm_128x32_8x5_nn_align1
sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4
triton_poi_fused_add_relu_0
triton_poi_fused_add_1688
triton_red_fused_native_layer_norm_1
triton_per_fused_sum_16816
triton_for_fused_0
triton_spl_fused_cumsum_0
Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1
void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64>>
void flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>
void flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<64>>
void flash::flash_bwd_clear_dkvaccum_kernel<Flash_bwd_kernel_traits<64>>
void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<64>>>
void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<64>>>
void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<8>>>
fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::AttentionKernel)
fmha_cutlassF_f16_notaligned_64x64_rf_sm50(PyTorchMemEffAttention::AttentionKernel)
void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>
void flashinfer::SingleDecodeWithKVCacheKernel<(flashinfer::PosEncodingMode)0>
void vllm::paged_attention_v1_kernel<__half, __half, 128, 16, 128>
void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3, false>
void vllm::rotary_embedding_kernel<c10::BFloat16, true>
_fused_qk_rope_reshape_and_cache_kernel
void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16>
void (anonymous namespace)::act_and_mul_kernel<__nv_bfloat16>
void (anonymous namespace)::store_kvcache<2048l, 4, true, long>
void (anonymous namespace)::indexing_backward_kernel<float, 4>
void indexSelectLargeIndex_index_select<float>
void at::to_dense_representation_kernel<float>(long, long, long const*, float const*)
void bounds_check_indices_kernel<long>
void linearize_index_kernel<long>
void fbgemm_gpu::_offsets_range_cuda_kernel<long>
void fbgemm_gpu::permute_2D_data_kernel<false, int, int>
split_embedding_backward_codegen_adagrad_unweighted_find_long_segments
dense_embedding_codegen_forward_unweighted_kernel
void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>
void recat_copy_async_kernel<float>
void copy_kernel<int>
void fill_kernel<int>
nchwToNhwcKernel
nhwcToNchwKernel
void fused_dropout_kernel<float>
void cudnn::pooling_fw_4d_kernel<float, float, cudnn::maxpooling_func<float>>
void transpose_readWrite_alignment_kernel<float2, float2, 1, false, 6, 4, 4>
void cudnn::cnn::im2col4d_kernel<float, long>(cudnn::cnn::im2col4d_params, cudnnConvolutionStruct)
void col2im_kernel<float>
void bn_fw_tr_1C11<float>
void bn_bw_tr_1C11<float>
_topk_forward
aiter::topksoftmax_4x128x8_bf16
_combined_routing_compute
_sum_bitmatrix_rows
void moe_align_block_size_kernel<int>
void ck_tile::kentry<2, ck_tile::MoeSortingKernel<ck_tile::MoeSortingProblemEx<int, float, 2>>>
void vllm::scatter_kernel<float>
void gather_kernel<float>
void permute_pooled_embs_kernel<float>
void pointwise_add<float>
void reduce_kernel<float>
swiglu_fwd
silu_kernel
gelu_kernel
void kDequantizeBlockwise_dequant<__half>
void static_scaled_fp8_quantize<float>
""".strip().splitlines()

UNKNOWN = """
void cublasLt::some_kernel_of_next_year<8, 32>
nvjet_sss_64x64_64x4
nvjet_sm100_sss_64x64_64x4
fused_moe_kernel
kernel_unified_attention_2d
triton_tem_fused_mm_relu_0
triton_tem_fused_zeros_gather_softmax_1
triton__0d1d2d3de
conv1x1_fp32_nhwc_kernel
conv2d_c1_k1_nchw_hw_packed_kernel
_finalize_matmul_scatter_bf16
softmax_attention_kernel
gather_gemm_scatter
_mm_reduce_kernel_sort
moe_gather
sdpa_softmax
mha_softmax
my_mma2_transpose
_attn_norm
merge
""".strip().splitlines()

MATRIX_OPS = [
    "aten::convolution",
    "aten::_convolution",
    "aten::convolution_backward",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::conv_tbc",
    "aten::conv_transpose2d",
    "aten::thnn_conv2d",
    "aten::_slow_conv2d_forward",
    "aten::cudnn_convolution",
    "aten::miopen_convolution",
    "aten::mkldnn_convolution",
    "aten::mps_convolution_backward",
    "aten::mm",
    "aten::mm.out",
    "aten::bmm",
    "aten::matmul",
    "aten::addmm",
    "aten::addbmm",
    "aten::baddbmm",
    "aten::baddbmm_",
    "aten::linear",
    "aten::addmv",
    "aten::mv",
    "aten::einsum",
    "aten::bilinear",
    "aten::inner",
    "aten::tensordot",
    "aten::chain_matmul",
    "aten::linalg_multi_dot",
    "aten::linalg_matmul",
    "aten::_trilinear",
    "aten::_addmm_activation",
    "aten::mkldnn_linear",
    "aten::linear_backward",
    "aten::_int_mm",
    "aten::_scaled_mm",
    "aten::_grouped_mm",
    "aten::_scaled_grouped_mm",
    "aten::_weight_int4pack_mm",
    "aten::_weight_int8pack_mm",
    "aten::lstm",
    "aten::gru",
    "aten::rnn_tanh",
    "aten::rnn_relu",
    "aten::lstm_cell",
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
    "aten::_thnn_fused_lstm_cell",
    "aten::_thnn_fused_gru_cell",
    "aten::miopen_rnn",
    "aten::mkldnn_rnn_layer",
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::_flash_attention_forward",
    "aten::_efficient_attention_backward",
    "aten::_cudnn_attention_forward",
    "aten::_fused_sdp_attention_x",
    "aten::_native_multi_head_attention",
    "aten::_transformer_encoder_layer_fwd",
    "AddmmBackward0",
    "MmBackward0",
    "BmmBackward0",
    "BaddbmmBackward0",
    "AddbmmBackward0",
    "LinearBackward0",
    "ConvolutionBackward0",
    "CudnnConvolutionBackward",
    "ScaledDotProductFlashAttentionBackward0",
    "flash_attn::_flash_attn_forward",
    "flash_attn_3::fwd",
    "xformers_flash3::flash_attention_fwd",
    "xformers::efficient_attention",
]


def alternatives(pattern):
    """The parts of a pattern between the bars that stand in no bracket."""
    depth, part = 0, ""
    for previous, letter in zip(" " + pattern, pattern, strict=False):
        depth += (letter in "([" and previous != "\\") - (letter in ")]" and previous != "\\")
        if letter == "|" and not depth:
            yield part
            part = ""
        else:
            part += letter
    yield part


def parts(patterns):
    return [part for pattern in patterns for part in alternatives(pattern)]


@pytest.mark.parametrize("name", YES)
def test_kernels_on_tensor_cores(name):
    assert tensor_cores(name) == "yes"


@pytest.mark.parametrize("name", NO)
def test_kernels_beside_tensor_cores(name):
    assert tensor_cores(name) == "no"


@pytest.mark.parametrize("name", UNKNOWN)
def test_kernels_whose_name_tells_nothing(name):
    assert tensor_cores(name) == "unknown"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        *((part, YES) for part in parts(table.USES)),
        *((part, NO) for part in parts([*table.NO_MATH, *table.NEVER])),
        *((f"(?i:{part})", NO) for part in parts(table.MOVES)),
        *((f"(?i:{part})", UNKNOWN) for part in parts([table.PRODUCTS])),
    ],
)
def test_every_alternative_has_a_name(pattern, names):
    assert any(re.search(pattern, name) for name in names)


@pytest.mark.parametrize("name", MATRIX_OPS)
def test_operators_that_multiply_matrices(name):
    assert is_matrix_op(name)


@pytest.mark.parametrize("part", parts(table.MATRIX_OPS))
def test_every_alternative_has_an_operator(part):
    assert any(re.fullmatch(part, name) for name in MATRIX_OPS)


@pytest.mark.parametrize("name", ["aten::add", "aten::mm_backward_of_mine", "aten::comm", "AddBackward0", "aten::conv"])
def test_other_operators_do_not(name):
    assert not is_matrix_op(name)
