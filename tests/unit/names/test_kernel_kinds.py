import pytest

from kinetoscope_tb.names.kernel_kinds import alignment, kernel_kind, output_tile, written_for

HIPBLASLT = "Cijk_Ailk_Bljk_BBS_BH_MT256x112x64_MI16x16x16x1_SN_1LDSB0_ISA942_IU1"
XMMA = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5"
TURING = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(…)"
TF32 = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(…)"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (HIPBLASLT, "matmul"),
        (XMMA, "matmul"),
        ("nvjet_sm103_tst_256x16_64x6_4x1_v_bz_TNT", "matmul"),
        ("volta_sgemm_128x64_nn", "matmul"),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>", "attention"),
        ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64VarSeqQ8Kv128", "attention"),
        ("attn_fwd.kd", "attention"),
        ("igemm_fwd_gtcx_nhwc_fp32_bx0_bt128x128x8", "convolution"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, true>", "convolution"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, true, false>", "layout"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "elementwise"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16>", "elementwise"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", "elementwise"),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>", "elementwise"),
        ("MIOpenBatchNormFwdTrainSpatialMeanVariance", "elementwise"),
        ("triton_poi_fused_add_mul_0", "other"),  # fused already
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>>", "other"),
    ],
)
def test_the_kind_of_a_kernel(name, kind):
    assert kernel_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "tile", "aligned", "capability"),
    [
        (HIPBLASLT, (256, 112), None, None),
        (XMMA, (128, 64), None, None),
        (TURING, (256, 128), 1, (7, 5)),
        (TF32, (64, 64), 1, (8, 0)),
        ("ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_nn", (64, 64), None, (8, 0)),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", (128, 128), None, (7, 0)),
        ("nvjet_sm103_tst_256x16_64x6_4x1_v_bz_TNT", (256, 16), None, None),
        ("some_gemm", None, None, None),
    ],
)
def test_what_a_matmul_kernel_s_name_says(name, tile, aligned, capability):
    assert (output_tile(name), alignment(name), written_for(name)) == (tile, aligned, capability)
