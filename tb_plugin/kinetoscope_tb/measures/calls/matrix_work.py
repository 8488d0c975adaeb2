"""FLOPs and bytes of an operator's call, from the recorded shapes of its inputs.

A multiply-add counts as two operations. Bytes are the minimum: each input and output once, as if caches were perfect.
Missing information raises `UnknownWork` with a reason; nothing is guessed. The formulas for matmuls, convolutions and
attention are those of torch.utils.flop_counter, except that causal attention counts only the pairs attended to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...names.regex import regex

Shape = tuple[int, ...]

NO_SHAPES = "Shapes weren't recorded; record_shapes=True records them."
NO_VALUES = "Stride and padding weren't recorded with the shapes; torch 2.1 and later record them."
NO_MASK = "The required gradients weren't recorded with the shapes; torch 2.1 and later record them."
ODD_SHAPES = "The recorded shapes don't fit the operator."
_MOST_FLOP = _MOST_BYTES = 2**50  # of one call: beyond it shapes are damage
_CODE = regex(r"[0-9]{1,9}")
_TUPLE = str.maketrans("()", "[]")  # some writers print lists as tuples

DTYPES = {
    "double": ("fp64", 8),
    "float": ("fp32", 4),
    "c10::Half": ("fp16", 2),
    "c10::BFloat16": ("bf16", 2),
    "c10::Float8_e4m3fn": ("fp8", 1),
    "c10::Float8_e5m2": ("fp8", 1),
    "c10::Float8_e4m3fnuz": ("fp8", 1),
    "c10::Float8_e5m2fnuz": ("fp8", 1),
    "signed char": ("int8", 1),
    "Float": ("fp32", 4),
    "Half": ("fp16", 2),
    "BFloat16": ("bf16", 2),
}
"""From the trace's type names to number formats and bytes; some writers use c10's names of scalar types."""

_SCALAR_TYPE_BYTES = {5: 2, 6: 4, 7: 8, 15: 2, 23: 1, 24: 1}  # c10::ScalarType of an output: Half, Float, Double …


class UnknownWork(Exception):
    """The work of the call isn't known; the message says why."""


@dataclass(frozen=True)
class MatrixWork:
    """The work of one call.

    Args:
        flop: Operations.
        moved_bytes: The minimum that must be read and written; None if the size of the output's elements is unknown.
        dtype: Number format of the inputs, such as bf16; None if it is unknown or not in the table.
    """

    flop: int
    moved_bytes: int | None
    dtype: str | None


@dataclass(frozen=True)
class Inputs:
    """The recorded inputs of a call, by position."""

    shapes: Sequence[Any]
    types: Sequence[Any]
    values: Sequence[Any]

    def shape(self, index: int, dimensions: tuple[int, ...] = ()) -> Shape:
        """A tensor's sizes.

        Raises:
            UnknownWork: It isn't recorded, or has another number of dimensions.
        """
        sizes = self.shapes[index] if index < len(self.shapes) else []
        if not sizes or not isinstance(sizes, list) or not all(isinstance(n, int) and n >= 0 for n in sizes):
            raise UnknownWork(ODD_SHAPES)
        if dimensions and len(sizes) not in dimensions:
            raise UnknownWork(ODD_SHAPES)
        return tuple(sizes)

    def value(self, index: int, otherwise: str) -> Any:
        """A number, bool or list argument.

        Raises:
            UnknownWork: It isn't recorded; the message is `otherwise`.
        """
        text = self.values[index] if index < len(self.values) else ""
        try:
            return json.loads(str(text).lower().translate(_TUPLE))
        except (ValueError, RecursionError):
            raise UnknownWork(otherwise) from None

    def format(self, index: int) -> tuple[str | None, int | None]:
        """Number format and bytes per element of a tensor."""
        return DTYPES.get(str(self.types[index]) if index < len(self.types) else "", (None, None))


def matrix_work(name: str, shapes: str | None, types: str | None, values: str | None) -> MatrixWork:
    """Return the work of a call of an operator of FORMULAS; the texts are as in the trace.

    Raises:
        UnknownWork: It can't be computed; the message says why.
    """
    if shapes is None:
        raise UnknownWork(NO_SHAPES)
    work = FORMULAS[name](Inputs(*(parse_list(text) for text in (shapes, types, values))))
    if not 0 <= work.flop <= _MOST_FLOP or not 0 <= (work.moved_bytes or 0) <= _MOST_BYTES:
        raise UnknownWork(ODD_SHAPES)
    return work


def parse_list(text: str | None) -> list[Any]:
    """The list that an argument of an event holds as JSON; empty if it holds something else, or nothing.

    Raises:
        UnknownWork: It isn't JSON.
    """
    try:
        value = json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise UnknownWork(ODD_SHAPES) from None
    return value if isinstance(value, list) else []


_MOST_ELEMENTS = 1 << 40


def element_count(shapes: str | None) -> int:
    """The elements of all tensors in the shapes of an operator's inputs, as the file spells them.

    0 if it has none, and for what can't be shapes; no more than any device holds.
    """
    try:
        return min(max(_sum_of(parse_list(shapes)), 0), _MOST_ELEMENTS)
    except (UnknownWork, RecursionError):
        return 0


def input_elements(shapes: str | None) -> list[int]:
    """The same of each of the inputs; none where they can't be shapes."""
    try:
        return [min(max(_sum_of([part]), 0), _MOST_ELEMENTS) for part in parse_list(shapes)]
    except (UnknownWork, RecursionError):
        return []


def _sum_of(sizes: list[Any]) -> int:
    if sizes and all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    return sum(_sum_of(size) for size in sizes if isinstance(size, list))


def _work(inputs: Inputs, index: int, flop: int, numbers: int, outputs: int = 0, size: int | None = None) -> MatrixWork:
    """`numbers` elements have the format of the input at `index`; `outputs` elements have `size` bytes, or the same."""
    dtype, element_bytes = inputs.format(index)
    output_bytes = element_bytes if size is None else size
    byte_count = None if element_bytes is None else numbers * element_bytes + outputs * (output_bytes or 0)
    return MatrixWork(flop, byte_count, dtype)


def _matmul(first: int, second: int, *, addend: int | None = None) -> Callable[[Inputs], MatrixWork]:
    """[…, n, k] × […, k, m], plus the input at place `addend`, if given."""

    def work(inputs: Inputs) -> MatrixWork:
        a, b = inputs.shape(first, (2, 3)), inputs.shape(second, (2, 3))
        if a[:-2] != b[:-2] or a[-1] != b[-2]:
            raise UnknownWork(ODD_SHAPES)
        out = math.prod(a[:-1]) * b[-1]
        addend_size = math.prod(inputs.shape(addend)) if addend is not None else 0
        return _work(inputs, first, 2 * out * a[-1], math.prod(a) + math.prod(b) + out + addend_size)

    return work


def _matvec(first: int, second: int) -> Callable[[Inputs], MatrixWork]:
    def work(inputs: Inputs) -> MatrixWork:
        (n, k), (length,) = inputs.shape(first, (2,)), inputs.shape(second, (1,))
        if k != length:
            raise UnknownWork(ODD_SHAPES)
        return _work(inputs, first, 2 * n * k, n * k + k + n)

    return work


def _linear(inputs: Inputs) -> MatrixWork:
    """[…, k] × [m, k] transposed, plus bias."""
    a, (m, k) = inputs.shape(0), inputs.shape(1, (2,))
    if a[-1] != k:
        raise UnknownWork(ODD_SHAPES)
    rows = math.prod(a[:-1])
    return _work(inputs, 0, 2 * rows * m * k, rows * k + m * k + rows * m)


def _other_output(output: int | None) -> Callable[[Inputs], MatrixWork]:
    """A low-precision matmul with another output type: the value at `output`, or int32 if `output` is None."""

    def work(inputs: Inputs) -> MatrixWork:
        (n, k), (k2, m) = inputs.shape(0, (2,)), inputs.shape(1, (2,))
        if k != k2:
            raise UnknownWork(ODD_SHAPES)
        size: int | None = 4
        if output is not None:
            kind = inputs.values[output] if output < len(inputs.values) else ""
            size = _SCALAR_TYPE_BYTES.get(int(kind)) if _CODE.fullmatch(str(kind)) else None
        dtype, element_bytes = inputs.format(0)
        byte_count = None if element_bytes is None or size is None else (n * k + k * m) * element_bytes + n * m * size
        return MatrixWork(2 * n * k * m, byte_count, dtype)

    return work


def _grouped_work(inputs: Inputs) -> MatrixWork:
    """Each row of [n, k] belongs to one of the groups of [g, k, m]; other forms split k or have a group per matrix."""
    a, b = inputs.shape(0, (2, 3)), inputs.shape(1, (2, 3))
    if a[-1] != b[-2] or (len(a) == len(b) == 3 and a[0] != b[0]):
        raise UnknownWork(ODD_SHAPES)
    rows = math.prod(a[:-1])
    flop = 2 * rows * a[-1] * b[-1]
    if len(a) == len(b) == 2:  # k is split among groups, and no shape has their number
        return MatrixWork(flop, None, inputs.format(0)[0])
    return _work(inputs, 0, flop, math.prod(a) + math.prod(b) + rows * b[-1])


def _convolution_flop(x: Shape, w: Shape, out: Sequence[int], *, is_transposed: bool) -> int:
    """Operations of a convolution; `out` are the output's spatial sizes."""
    flop = 2 * x[0] * math.prod(w)
    return flop * math.prod(x[2:] if is_transposed else out)


def _per_dimension(values: Any, dimensions: int) -> list[int]:
    numbers_in = values if isinstance(values, list) else [values]
    if len(numbers_in) not in (1, dimensions) or not all(isinstance(v, int) for v in numbers_in):
        raise UnknownWork(ODD_SHAPES)
    return numbers_in * dimensions if len(numbers_in) == 1 else numbers_in


def _convolution(inputs: Inputs) -> MatrixWork:
    """aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    x, w = inputs.shape(0, (3, 4, 5)), inputs.shape(1, (3, 4, 5))
    if len(x) != len(w):
        raise UnknownWork(ODD_SHAPES)
    n = len(x) - 2
    stride, padding, dilation = (_per_dimension(inputs.value(index, NO_VALUES), n) for index in (3, 4, 5))
    is_transposed = bool(inputs.value(6, NO_VALUES))
    rows = zip(x[2:], w[2:], stride, padding, dilation, strict=True)
    if is_transposed:
        extra = _per_dimension(inputs.value(7, NO_VALUES), n)
        out = [(i - 1) * s - 2 * p + d * (k - 1) + e + 1 for (i, k, s, p, d), e in zip(rows, extra, strict=True)]
        channels = w[1] * _per_dimension(inputs.value(8, NO_VALUES), 1)[0]
    else:
        out = [(i + 2 * p - d * (k - 1) - 1) // s + 1 if s > 0 else -1 for i, k, s, p, d in rows]
        channels = w[0]
    if min(out) < 0:
        raise UnknownWork(ODD_SHAPES)
    numbers = math.prod(x) + math.prod(w) + x[0] * channels * math.prod(out)
    return _work(inputs, 0, _convolution_flop(x, w, out, is_transposed=is_transposed), numbers)


def _convolution_backward(inputs: Inputs) -> MatrixWork:
    """aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, …, transposed, …, output_mask)."""
    grad, x, w = (inputs.shape(index, (3, 4, 5)) for index in range(3))
    if not len(grad) == len(x) == len(w):
        raise UnknownWork(ODD_SHAPES)
    is_transposed = bool(inputs.value(7, NO_MASK))
    mask = inputs.value(10, NO_MASK)
    if not isinstance(mask, list) or len(mask) < 2:
        raise UnknownWork(ODD_SHAPES)
    to_input, to_weight = bool(mask[0]), bool(mask[1])
    once = _convolution_flop(x, w, grad[2:], is_transposed=is_transposed)
    sizes = math.prod(grad), math.prod(x), math.prod(w)
    numbers = sizes[0] * (to_input or to_weight) + to_input * (sizes[2] + sizes[1]) + to_weight * (sizes[1] + sizes[2])
    return _work(inputs, 0, once * (to_input + to_weight), numbers)


def _attention(query: int, causal: Callable[[Inputs], int], *, backward: bool) -> Callable[[Inputs], MatrixWork]:
    """Attention over [batch, heads, length, size]; `causal` returns the position of is_causal.

    Forward takes two matmuls; backward takes five, since it recomputes the scores.
    """

    def work(inputs: Inputs) -> MatrixWork:
        q, k, v = (inputs.shape(query + i, (4,)) for i in range(3))
        if q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3]:
            raise UnknownWork(ODD_SHAPES)
        is_causal = bool(inputs.value(causal(inputs), "Whether attention was causal wasn't recorded."))
        pairs = q[0] * q[1] * _pairs(q[2], k[2], is_causal=is_causal)
        out = math.prod(q[:3]) * v[3]
        read = math.prod(q) + math.prod(k) + math.prod(v)
        flop = 2 * pairs * (3 * q[3] + 2 * v[3] if backward else q[3] + v[3])
        return _work(inputs, query, flop, 2 * (read + out) if backward else read + out)

    return work


def _pairs(queries: int, keys: int, *, is_causal: bool) -> int:
    """Number of (query, key) pairs; causal: the first query attends only to the first key, as PyTorch aligns them."""
    if not is_causal:
        return queries * keys
    square = min(queries, keys)
    return square * (square + 1) // 2 + (queries - square) * keys


def _at(index: int) -> Callable[[Inputs], int]:
    return lambda _inputs: index


def _cudnn_causal(inputs: Inputs) -> int:
    """In torch 2.4 dropout_p follows value; later versions have attn_bias and compute_log_sumexp in between."""
    return 6 if len(inputs.types) > 7 else 4


_SDPA = "aten::_scaled_dot_product_"
FORMULAS: dict[str, Callable[[Inputs], MatrixWork]] = {
    "aten::mm": _matmul(0, 1),
    "aten::bmm": _matmul(0, 1),
    "aten::addmm": _matmul(1, 2, addend=0),
    "aten::addmm_": _matmul(1, 2, addend=0),
    "aten::_addmm_activation": _matmul(1, 2, addend=0),
    "aten::baddbmm": _matmul(1, 2, addend=0),
    "aten::baddbmm_": _matmul(1, 2, addend=0),
    "aten::mv": _matvec(0, 1),
    "aten::addmv": _matvec(1, 2),
    "aten::addmv_": _matvec(1, 2),
    "aten::mkldnn_linear": _linear,
    "aten::_int_mm": _other_output(None),
    "aten::_scaled_mm": _other_output(6),
    "aten::_grouped_mm": _grouped_work,
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    f"{_SDPA}flash_attention": _attention(0, _at(4), backward=False),
    f"{_SDPA}flash_attention_for_cpu": _attention(0, _at(4), backward=False),
    f"{_SDPA}efficient_attention": _attention(0, _at(6), backward=False),
    f"{_SDPA}cudnn_attention": _attention(0, _cudnn_causal, backward=False),
    f"{_SDPA}fused_attention_overrideable": _attention(0, _at(5), backward=False),
    f"{_SDPA}flash_attention_backward": _attention(1, _at(11), backward=True),
    f"{_SDPA}flash_attention_for_cpu_backward": _attention(1, _at(7), backward=True),
    f"{_SDPA}efficient_attention_backward": _attention(1, _at(11), backward=True),
    f"{_SDPA}cudnn_attention_backward": _attention(1, _at(14), backward=True),
}
"""By operator. Composite operators, such as matmul, einsum and linear, have no formula: the operators they call do."""

_OPERANDS = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::_int_mm", "aten::_scaled_mm"), 0),
    **dict.fromkeys(("aten::addmm", "aten::addmm_", "aten::_addmm_activation", "aten::baddbmm", "aten::baddbmm_"), 1),
}


@dataclass(frozen=True)
class ProductSizes:
    """A matmul: `batch` products of [m, k] × [k, n]."""

    batch: int
    m: int
    n: int
    k: int


def product_sizes(name: str, shapes: str | None) -> ProductSizes | None:
    """The sizes of a matmul of two matrices, or of two batches of them; None if it isn't one, or they don't fit."""
    if name not in _OPERANDS or shapes is None:
        return None
    first = _OPERANDS[name]
    try:
        inputs = Inputs(parse_list(shapes), (), ())
        a, b = inputs.shape(first, (2, 3)), inputs.shape(first + 1, (2, 3))
    except UnknownWork:
        return None
    if len(a) != len(b) or a[-1] != b[-2] or a[:-2] != b[:-2]:
        return None
    return ProductSizes(math.prod(a[:-2]), a[-2], b[-1], a[-1])
