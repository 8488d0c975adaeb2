import json

import pytest

from kinetoscope_tb.measures.calls.matrix_work import UnknownWork
from kinetoscope_tb.measures.calls.memory_work import memory_work

BF16, FLOAT, LONG = "c10::BFloat16", "float", "long int"
CAT = (
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, 4>"
)
ADAM = (
    "void at::native::multi_tensor_apply_kernel<…, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>"
)


@pytest.mark.parametrize(
    ("name", "shapes", "types", "kernel", "moved"),
    [
        ("aten::add", [[8, 4], [8, 4], []], [FLOAT, FLOAT, "Scalar"], "", 3 * 32 * 4),
        ("aten::add_", [[8, 4], [4], []], [FLOAT, FLOAT, "Scalar"], "", 2 * 128 + 16),
        ("aten::mul", [[8, 1], [1, 4]], [BF16, BF16], "", 2 * (8 + 4 + 32)),
        ("aten::mul", [[8, 4], []], [BF16, "double"], "", 2 * 64),
        ("aten::add", [[8, 4], [8, 4], []], [BF16, FLOAT, "Scalar"], "", 64 + 128 + 128),  # the result is float
        ("aten::eq", [[8, 4], [8, 4]], [FLOAT, FLOAT], "", 2 * 128 + 32),
        ("aten::copy_", [[8, 4], [8, 4], []], [FLOAT, BF16, "Scalar"], "", 128 + 64),
        ("aten::zero_", [[8, 4]], [FLOAT], "", 128),
        ("aten::_softmax", [[8, 4], [], []], [BF16, "Scalar", "Scalar"], "", 2 * 64),
        ("aten::native_layer_norm", [[8, 4], [], [4], [4], []], [FLOAT, "", FLOAT, FLOAT, ""], "", 2 * 128 + 32),
        ("aten::native_group_norm", [[2, 8, 5], [8], [8]], [FLOAT] * 3, "", 2 * 320 + 64),
        ("aten::sum", [[8, 4], [], []], [FLOAT, "", ""], "", 128),
        ("aten::embedding", [[1000, 16], [5, 2]], [BF16, LONG], "", 80 + 2 * (10 + 10) * 16),
        ("aten::embedding", [[3, 16], [100]], [BF16, LONG], "", 800 + 2 * (3 + 100) * 16),
        ("aten::cat", [[[8, 4], [8, 2]], []], ["TensorList", "Scalar"], CAT, 2 * 48 * 2),
        ("aten::_fused_adamw_", [[[8], [4]]] * 4 + [[]], ["TensorList"] * 4, ADAM, 7 * 12 * 4),
        ("sgl_kernel::silu_and_mul", [[8, 4], [8, 8]], [BF16, BF16], "", 2 * (32 + 64)),
        ("triton_poi_fused_mul_silu_2", [[8, 4], [8, 4], []], [BF16, BF16, "Scalar"], "", 3 * 64),
    ],
)
def test_bytes_by_shapes(name, shapes, types, kernel, moved):
    assert memory_work(name, json.dumps(shapes), json.dumps(types), kernel) == moved


@pytest.mark.parametrize(
    ("name", "shapes", "types", "said"),
    [
        ("vllm::rocm_aiter_fused_moe", [[16, 4096]], ["BFloat16"], "experts its tokens chose"),
        ("custom::op", [[16, 4096]], ["BFloat16"], "No model"),
        ("aten::max_pool2d_with_indices", [[1, 3, 8, 8]], [FLOAT], "No model"),
        ("aten::add", None, None, "Shapes weren't recorded"),
        (
            "aten::_foreach_mul_",
            [[], []],
            ["TensorList", "float"],
            "lists of tensors, of which torch recorded no shapes",
        ),
        ("aten::cat", [[], []], ["TensorList", "Scalar"], "lists of tensors, of which torch recorded no shapes"),
        ("aten::mul", [[], []], ["float", "double"], "no dimensions"),
        ("aten::add", [[8]], ["some type"], "number format"),
        ("aten::cat", [[[8, 4], [8, 2]], []], ["TensorList"], "number format"),
        ("aten::copy_", [[8], []], [FLOAT, "Scalar"], "don't fit"),
        ("aten::add", [[2**40, 2**20]], [FLOAT], "don't fit"),
    ],
)
def test_what_is_not_known_is_not_guessed(name, shapes, types, said):
    with pytest.raises(UnknownWork, match=said):
        memory_work(name, shapes and json.dumps(shapes), types and json.dumps(types))
