"""What is said of kernels in real recordings whose finding an expert wrote down, or that were read by one."""

import polars as pl
import pytest

from kinetoscope_tb.measures.recording.device_properties import name_devices
from kinetoscope_tb.names.text import percent
from kinetoscope_tb.views.device.operator_efficiency import operator_efficiency
from kinetoscope_tb.views.overview.advice import advice
from support.read_once import read_once
from support.real_traces import FOLDER, MISSING

LABELLED = FOLDER.parent / "labelled"
OWL = "claims/tracelens_h100_owlv2.json.gz"
QWEN = "claims/tracelens_h100_qwen1.5-0.5b.json.gz"

pytestmark = pytest.mark.skipif(not (FOLDER.exists() and LABELLED.exists()), reason=MISSING)


def advice_of(trace, rule):
    return advice(trace).row(by_predicate=pl.col("rule") == rule, named=True)


# file, device that the user names, headline, percentage of the roof, cause, remedy, confidence
FINDINGS = [
    ("gemm_01_compute_few_tiles", None, "matmul_below_roof", "4.5 %", "only 4 tiles of 256 × 128", "split-K", "medium"),
    ("gemm_03_compute_misaligned", None, "matmul_below_roof", "52.9 %", "4097 is no multiple of 8", "4104", "medium"),
    ("elem_01_add_poor_bw", None, "elementwise_below_roof", "36.1 %", "Neither the shapes nor the names", "", "high"),
    ("sdpa_02_very_long_seq_head_waste", None, "attention_below_roof", "33.2 %", "192 is padded to 256", "", "high"),
    ("conv_03_asymmetric_kernel", "AMD Instinct MI300X", "convolution_below_roof", "8.8 %", "64 blocks for 304", "",
     "high"),
    ("conv_05_pointwise_1x1", "AMD Instinct MI300X", "convolution_below_roof", "13.4 %", "Neither the shapes", "", "high"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "device", "rule", "fraction", "cause", "remedy", "confidence"), FINDINGS)
def test_the_headline_is_the_expert_s_finding(name, device, rule, fraction, cause, remedy, confidence):
    trace = read_once(LABELLED / f"{name}.json.gz")
    first = advice(trace if device is None else name_devices(trace, device)).row(0, named=True)
    assert (first["rule"], first["confidence"]) == (rule, confidence)
    assert f"run at {fraction} of" in first["title"]
    assert cause in first["evidence"]
    assert remedy in first["action"]


@pytest.mark.parametrize("path", sorted(LABELLED.glob("*.json.gz")), ids=lambda path: path.name)
def test_no_view_contradicts_what_is_said(path):
    assert not advice(read_once(path))["evidence"].str.contains("contradicts this").any()


@pytest.mark.parametrize("name", ["conv_03_asymmetric_kernel", "conv_05_pointwise_1x1"])
def test_without_a_name_for_the_device_nothing_is_claimed(name):
    table = advice(read_once(LABELLED / f"{name}.json.gz"))
    assert "convolution_below_roof" not in table["rule"]
    assert "the trace doesn't name the device; the option --device names it" in table["evidence"][-1]


@pytest.mark.parametrize(("name", "share"), [("conv_03_asymmetric_kernel", "80 %"), ("conv_05_pointwise_1x1", "75 %")])
def test_the_largest_part_comes_first_also_if_nothing_is_known_of_it(name, share):
    first, second = advice(read_once(LABELLED / f"{name}.json.gz")).rows(named=True)[:2]
    assert (first["rule"], first["confidence"], first["saving_ns"]) == ("unknown_part", "cannot_tell", None)
    assert first["title"].startswith(f"For {share} of the recording it is unknown")
    assert (second["rule"], second["confidence"]) == ("host_bound", "low")


def test_the_work_of_a_fused_moe_is_unknown_with_its_size():
    table = advice(read_once(LABELLED / "moe_01_many_experts_few_tokens.json.gz"))
    assert (
        "58.3 % of the recording can't be rated, most of it in `vllm::rocm_aiter_fused_moe`: which experts its tokens"
        in table["evidence"][-1]
    )


def test_attention_in_separate_operators_is_named_with_its_module():
    first = advice_of(read_once(FOLDER / OWL), "unfused_attention")
    assert first["title"] == "Attention that isn't fused takes 40.7 % of step 6."
    assert "89 % of the kernel time, in `Owlv2Attention`: `aten::_softmax` of (16, 5185, 5185)" in first["evidence"]
    assert "scaled_dot_product_attention" in first["action"]
    assert first["confidence"] == "high"
    assert 0.3 < first["saving_frac"] < 0.407  # behind faster kernels the host limits


def test_the_kernels_of_unfused_attention_are_claimed_once():
    rules = advice(read_once(FOLDER / OWL))["rule"].to_list()
    assert not {"matmul_below_roof", "elementwise", "elementwise_below_roof"} & set(rules)


def test_elementwise_kernels_that_dominate_come_first():
    table = advice(read_once(FOLDER / QWEN))
    assert table["rule"].to_list()[:3] == ["elementwise", "layout_changes", "casts"]
    assert "take 42.7 % of step 6" in table["title"][0]
    assert "torch.compile" in table["action"][0]
    assert table["saving_ns"][:3].sum() < table["saving_ns"][0] / table["saving_frac"][0]


@pytest.mark.parametrize(
    "name", ["gemm_01_compute_few_tiles", "gemm_03_compute_misaligned", "sdpa_02_very_long_seq_head_waste"]
)
def test_advice_and_the_table_have_the_same_share_of_the_roof(name):
    trace = read_once(LABELLED / f"{name}.json.gz")
    row = operator_efficiency(trace).row(0, named=True)
    assert percent(row["roof_frac"]) in advice(trace)["title"][0]
    assert row["peak_flop_per_s"] == 708e12  # what hipBLASLt reaches on an MI300X, by AMD


SILENT = (  # short kernels, fused ones, or ones without recorded shapes: nothing may be claimed of them
    "single/tracelens_h100_nsfw_image_detection.json.gz",
    "single/tracelens_mi300_bert-small.json.gz",
    "single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz",
    "claims/sglang_MI300_deepseek_r1_TP-0-DECODE.trace.json.gz",
    "single/tracelens_vllm_decode_graph_execution.json.gz",
)


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_of_kernels_that_no_rule_fits(name):
    rules = set(advice(read_once(FOLDER / name))["rule"])
    assert not rules & {"unfused_attention", "elementwise", "elementwise_below_roof", "casts", "layout_changes"}
    assert not {rule for rule in rules if rule.endswith("_below_roof")}
