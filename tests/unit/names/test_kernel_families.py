"""A real name for each pattern of the families of kernels."""

import pytest

from kinetoscope_tb.names.kernel_families import FAMILIES, attention_phase, kernel_family, uses_kv_cache

CUDA = "void at::native::"
ARGMAX = (
    f"{CUDA}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4>>"
)
KERNELS = {
    "attention": [
        "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 8, false>",
        "kernel_unified_attention_3d",
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmha",
        "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64VarSeqQ8Kv128PersistentSwapsAbForGen",
        "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<flashinfer::PosEncodingMode::kNone, 2, 4, 8>",
        "_fwd_grouped_kernel_stage1",
        "reduce_segments",
        "sage_fwd",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>",
        "void (anonymous namespace)::fused_rope_kernel<true, 128l, true, __nv_bfloat16, long, 16u>",
        "_fused_qk_rope_reshape_and_cache_kernel",
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>",
        "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>",
        "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>",
        "create_flashinfer_kv_indices_triton",
    ],
    "gemm": [
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1_AFC1",
        "nvjet_sm103_tst_256x16_64x6_4x1_v_bz_TNT",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>",
    ],
    "moe": [
        "void ck::kernel_moe_gemm<ck::GridwiseMoeGemm<ck::tensor_layout::gemm::RowMajor>>",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu",
        "_finalize_matmul_scatter_bf16",
        "_topk_forward",
        "_combined_routing_compute",
        "_sum_bitmatrix_rows",
        "aiter::topksoftmax_4x128x8_bf16",
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>",
        "void ck_tile::kentry<2, ck_tile::MoeSortingKernel<ck_tile::MoeSortingProblemEx<int, float, 2, true>>>",
        "fused_moe_kernel",
        "triton_poi_fused_constant_pad_nd_moe_forward_0",
    ],
    "communication": [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
    ],
    "normalization": [
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEE",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass",
        "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16",
        "std::enable_if<T2>(int)0&&vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>",
        f"{CUDA}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>",
        "triton_poi_fused__to_copy_add_addmm_cat_mean_mul_pow_rsqrt_view_9",
    ],
    "sampling": [
        ARGMAX,
        "void flashinfer::sampling::TopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)0>",
        "void flashinfer::sampling::TopKMaskLogitsKernel<1024u, 4u, float, int>",
        f"{CUDA}(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, at::native::templates::cuda"
        "::uniform_and_transform<float, float, at::CUDAGeneratorImpl*, at::native::templates::cuda::exponential_kernel<",
        "void vllm::apply_repetition_penalties_kernel<c10::BFloat16>",
    ],
    "other": [
        f"{CUDA}vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul>>",
        f"{CUDA}(anonymous namespace)::upsample_nearest2d_out_frame<c10::BFloat16>",  # no sampling
        "alloc_decode_kernel",
        "compute_position_kernel",
    ],
}
CASES = [(name, family) for family, names in KERNELS.items() for name in names]


@pytest.mark.parametrize(("name", "family"), CASES)
def test_a_kernel_has_the_family_that_its_name_says(name, family):
    assert kernel_family(name) == family


def test_every_family_has_a_kernel():
    assert tuple(KERNELS) == FAMILIES


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        (KERNELS["attention"][0], "decode"),
        ("kernel_unified_attention_3d", "decode"),
        ("kernel_unified_attention_2d", None),  # vLLM runs it in both phases
        (KERNELS["attention"][2], "prefill"),
        (KERNELS["attention"][3], "decode"),
        ("alloc_decode_kernel", None),
    ],
)
def test_some_attention_kernels_run_in_one_phase_only(name, phase):
    assert attention_phase(name) == phase


def test_a_cache_of_keys_and_values_is_a_servers():
    assert all(map(uses_kv_cache, KERNELS["attention"][:4]))
    assert not uses_kv_cache("sage_fwd")
    assert not uses_kv_cache("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>")
