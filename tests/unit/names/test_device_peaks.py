import pytest

from kinetoscope_tb.names.device_peaks import PEAKS, architecture_of, architecture_peaks, device_peaks

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "multiprocessors", "memory", "bf16_or_fp16", "gb_per_s"),
    [
        ("Tesla V100-SXM2-32GB", 80, 32 * GIB, 125, 900),
        ("Tesla V100-DGXS-32GB", 80, 32 * GIB, 125, 900),
        ("Tesla V100-PCIE-16GB", 80, 16 * GIB, 112, 900),
        ("Tesla T4", 40, 15 * GIB, 65, 320),
        ("NVIDIA A100-PCIE-40GB", 108, 42346610688, 312, 1555),
        ("NVIDIA A100-PG509-200", 108, 42505273344, 312, 1555),
        ("NVIDIA A100 80GB PCIe", 108, 84987740160, 312, 1935),
        ("NVIDIA A100-SXM4-80GB", 108, 85 * 10**9, 312, 2039),
        ("NVIDIA H100 80GB HBM3", 132, 85018279936, 989.4, 3352),
        ("NVIDIA H100 PCIe", 114, 80 * GIB, 756, 2039),
        ("NVIDIA H100 NVL", 132, 99949805568, 835.5, 3938),
        ("NVIDIA H200", 132, 140 * GIB, 989.4, 4800),
        ("NVIDIA B300 SXM6 AC", 148, 287416123392, 2250, 8000),
        ("NVIDIA GeForce RTX 2080 Ti", 68, 11554586624, 53.8, 616),
        ("NVIDIA GeForce RTX 4090", 128, 24 * GIB, 165.2, 1008),
        ("AMD Instinct MI300X", 304, 206141652992, 1307.4, 5300),
        ("AMD Instinct MI300X VF", 304, 205571227648, 1307.4, 5300),
        ("AMD Instinct MI250X", 110, 64 * GIB, 191.5, 1638.4),
        ("Intel(R) Data Center GPU Max 1550", None, 64 * GIB, 419.4, 1638.4),
        ("Intel(R) Data Center GPU Max 1550", None, 128 * GIB, 838.9, 3276.8),
        ("NVIDIA H100 80GB HBM3", None, None, 989.4, 3352),
    ],
)
def test_a_driver_s_name_finds_its_peaks(name, multiprocessors, memory, bf16_or_fp16, gb_per_s):
    peaks = device_peaks(name, multiprocessors, memory)
    assert (peaks.flop_per_s["fp16"], peaks.bandwidth) == (bf16_or_fp16 * 1e12, pytest.approx(gb_per_s * 1e9))


@pytest.mark.parametrize(
    ("name", "multiprocessors", "memory"),
    [
        ("AMD Radeon Graphics", 104, 68702699520),
        ("", 304, 206141652992),
        ("NVIDIA H100", 132, 102085492736),
        ("ARTEMIS", None, None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, 5 * GIB),
        ("AMD Instinct MI300X", 38, 24 * GIB),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, 16 * GIB),
        ("NVIDIA GeForce RTX 4090 D", 114, 24 * GIB),
        ("NVIDIA A100-PG509-200", 108, None),
        ("NVIDIA A100-PG509-200", 108, 80 * GIB),
    ],
)
def test_what_is_not_surely_a_device_of_the_table_is_unknown(name, multiprocessors, memory):
    assert device_peaks(name, multiprocessors, memory) is None


@pytest.mark.parametrize("row", PEAKS, ids=lambda row: row.source)
def test_faster_formats_are_no_slower(row):
    peaks = row.flop_per_s
    assert row.source
    assert 1e11 < row.bandwidth < 1e13
    assert peaks["fp32"] <= peaks.get("fp32_matrix", peaks["fp32"]) <= peaks["fp16"]
    assert peaks.get("fp64", 0) <= peaks.get("fp64_matrix", 1e99)
    assert peaks["fp16"] <= peaks.get("fp8", 1e99)
    assert all(1e12 <= peak < 1e16 for peak in peaks.values())


def test_the_roof_for_matrices_is_what_the_vendor_measured_where_it_did():
    peaks = device_peaks("AMD Instinct MI300X", 304)
    assert (peaks.flop_per_s["bf16"], peaks.roof("bf16"), peaks.roof("fp32_matrix")) == (1307.4e12, 708e12, 163.4e12)
    assert device_peaks("NVIDIA H100 80GB HBM3").roof("bf16") == 989.4e12
    assert peaks.roof("fp6") is None


def test_an_architecture_has_the_rates_of_its_slowest_product():
    peaks = architecture_peaks("gfx942")
    assert (peaks.bandwidth, peaks.roof("bf16"), peaks.roof("int8")) == (5300e9, 708e12, 1961.2e12)
    assert architecture_peaks("sm100").roof("bf16") == 2250e12


def test_an_architecture_whose_products_differ_has_none():
    assert architecture_peaks("sm90") is None  # H20 and H100
    assert architecture_peaks("gfx1100") is None


@pytest.mark.parametrize(
    ("kernel", "architecture"),
    [
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_GLS0_ISA942_IU1_K1", "gfx942"),
        ("_ZN5aiter24fmha_fwd_hd128_bf16_gfx950E", "gfx950"),
        ("nvjet_sm103_tst_256x16_64x6_4x1_v_bz_TNT", "sm103"),
        ("nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNT", None),
        ("sm80_xmma_gemm_bf16bf16_bf16f32", None),  # runs on newer devices too
        ("volta_sgemm_128x64_nn", None),
    ],
)
def test_kernels_that_run_on_one_architecture_show_it(kernel, architecture):
    assert architecture_of(kernel) == architecture
