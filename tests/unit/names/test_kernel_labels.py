"""Labels of kernels: a table of real names, and what holds for any name."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.names.kernel_labels import LONGEST, kernel_label, kernel_labels
from kinetoscope_tb.names.tensor_cores import tensor_cores

TABLE = Path(__file__).parent / "data" / "kernel_labels.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()]
PRECISION = [line.split("\t") for line in (TABLE.parent / "kernel_precision.tsv").read_text("utf-8").splitlines()]
REAL = Path(os.environ["KINETOSCOPE_TRACES"]) if "KINETOSCOPE_TRACES" in os.environ else None

DIFFERENT = (
    ("volta_sgemm_64x64_nt", "volta_sgemm_64x64_nn"),
    ("volta_scudnn_128x64_relu_small_nn_v1", "volta_scudnn_128x64_relu_medium_nn_v1"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, Array<char*, 2> >",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnOther_add<float>, Array<char*, 2> >",
    ),
    ("one" * 40 + "a", "one" * 40 + "b"),
)


@pytest.mark.parametrize(("label", "name"), ROWS, ids=[f"{i}-{row[0]}" for i, row in enumerate(ROWS)])
def test_real_names_have_readable_labels(label: str, name: str) -> None:
    assert kernel_label(name) == label


@pytest.mark.parametrize(("precision", "name"), PRECISION, ids=[f"{row[0]}-{row[1][:40]}" for row in PRECISION])
def test_the_number_format_of_a_matmul_is_that_of_what_it_multiplies(precision: str, name: str) -> None:
    """Not of what it stores: floats are converted to TF32, and `sgemm` multiplies halves as floats."""
    assert kernel_label(name).endswith(f" {precision}")
    if not name.startswith("Cijk_"):  # AMD's matrix cores multiply floats, too
        assert tensor_cores(name) not in {"fp32": ("yes",), "fp64": ()}.get(precision, ("no",))


def test_flags_of_templates_are_no_part_of_a_label() -> None:
    names = [f"void ns::quantize_kernel<{flag}, {size}>(int)" for flag in ("true", "false") for size in (64, 128)]
    names += [f"void dpsk::ep::internode::dispatch<false, 8, {flag}, 8>(int4*)" for flag in ("true", "false")]
    labels = kernel_labels(names)
    assert len(set(labels.values())) == len(names)
    assert not any("true" in label or "false" in label for label in labels.values())
    assert labels[names[-2]] == "DeepEP dispatch internode cached"


@pytest.mark.parametrize("pointers", ["std::array<char*, 3ul>", "at::detail::Array<char*, 3>"])
def test_pointers_to_elements_of_any_format_name_none(pointers: str) -> None:
    name = f"void at::native::vectorized_elementwise_kernel<4, at::native::gelu_kernel, {pointers} >(int, {pointers})"
    assert kernel_label(name) == "elementwise gelu x4"


@pytest.mark.parametrize("names", DIFFERENT)
def test_kernels_that_differ_have_different_labels(names: tuple[str, str]) -> None:
    labels = kernel_labels(names)
    assert labels[names[0]] != labels[names[1]]


def test_the_part_that_differs_is_added() -> None:
    assert set(kernel_labels(["volta_sgemm_64x64_nt", "volta_sgemm_64x64_nn"]).values()) == {
        "GEMM cuBLAS volta 64x64 nt fp32",
        "GEMM cuBLAS volta 64x64 nn fp32",
    }


def test_labels_of_triton_s_matmuls_begin_with_what_differs() -> None:
    names = ["_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1", "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu"]
    assert list(kernel_labels(names).values()) == [
        "matmul_ogs 128x128x128x1 bf16xbf16xmxfp4",
        "matmul_ogs swiglu 128x128x128x1 bf16xbf16xmxfp4",
    ]


@given(st.lists(st.text(max_size=200) | st.sampled_from([row[1] for row in ROWS]), unique=True, max_size=30))
def test_any_names_have_short_and_distinct_labels(names: list[str]) -> None:
    labels = kernel_labels(names)
    assert list(labels) == names
    assert len(set(labels.values())) == len(names)
    assert all(len(label) <= LONGEST for label in labels.values())


@given(st.text(alphabet="_ZNI01239EaiD<>(){}:,*& voidat::native", max_size=120))
def test_odd_names_are_labeled_too(name: str) -> None:
    assert len(kernel_label(name)) <= LONGEST


@pytest.mark.skipif(REAL is None, reason="the real traces aren't here")
@pytest.mark.parametrize(
    "file",
    [
        "runs/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz",
    ],
)
def test_kernels_of_a_trace_have_distinct_labels(file: str) -> None:
    assert REAL
    names = next(read_traces(str(REAL / file))).kernels["name"].unique().cast(str).to_list()
    labels = kernel_labels(names)
    assert len(set(labels.values())) == len(names) > 20
    assert not any("…" in label[:-6] for label in labels.values())
