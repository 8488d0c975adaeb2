"""How many operations an operator's call takes, and how many bytes it must move, by what is recorded of its inputs.

A multiplication with an addition counts as two operations. Bytes are the least that can be: each input and output once,
as if caches were perfect. What isn't recorded is told, never guessed. The formulas for products, convolutions and
attention are those of torch.utils.flop_counter, but for causal attention, which counts the pairs that are attended to.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]

NO_SHAPES = "Shapes weren't recorded; record_shapes=True records them."
NO_VALUES = "Stride and padding weren't recorded; torch 2.1 and later record them with record_shapes=True."
NO_MASK = "Which gradients were asked for wasn't recorded; torch 2.1 and later record it with record_shapes=True."
ODD_SHAPES = "The recorded shapes don't fit the operator."
_MOST_FLOP = _MOST_BYTES = 2**50  # of one call: beyond it shapes are damage
_CODE = re.compile(r"[0-9]{1,9}")

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
}
"""From the trace's type names to number formats and bytes."""

_SCALAR_TYPE_BYTES = {5: 2, 6: 4, 7: 8, 15: 2, 23: 1, 24: 1}  # c10::ScalarType of an output: Half, Float, Double …


class Unknown(Exception):
    """What is recorded doesn't tell the work; the message says why."""


@dataclass(frozen=True)
class MatrixWork:
    """The work of one call.

    Args:
        flop: Operations.
        moved_bytes: The least that must be read and written; None if the size of the result's numbers is unknown.
        dtype: Number format of the inputs, such as bf16; None if it isn't known or counted.
    """

    flop: int
    moved_bytes: int | None
    dtype: str | None


@dataclass(frozen=True)
class Inputs:
    """What is recorded of a call's inputs, by place."""

    shapes: Sequence[Any]
    types: Sequence[Any]
    values: Sequence[Any]

    def shape(self, place: int, dimensions: tuple[int, ...] = ()) -> Shape:
        """A tensor's sizes.

        Raises:
            Unknown: There is none, or it has another number of dimensions.
        """
        found = self.shapes[place] if place < len(self.shapes) else []
        if not found or not isinstance(found, list) or not all(isinstance(n, int) and n >= 0 for n in found):
            raise Unknown(ODD_SHAPES)
        if dimensions and len(found) not in dimensions:
            raise Unknown(ODD_SHAPES)
        return tuple(found)

    def value(self, place: int, otherwise: str) -> Any:
        """A number, a truth or a list that was passed.

        Raises:
            Unknown: It isn't recorded; the message is `otherwise`.
        """
        text = self.values[place] if place < len(self.values) else ""
        try:
            return json.loads(str(text).lower())
        except (ValueError, RecursionError):
            raise Unknown(otherwise) from None

    def format(self, place: int) -> tuple[str | None, int | None]:
        """Number format and bytes of a tensor's numbers."""
        return DTYPES.get(str(self.types[place]) if place < len(self.types) else "", (None, None))


def matrix_work(name: str, shapes: str | None, types: str | None, values: str | None) -> MatrixWork:
    """Return the work of a call of an operator of FORMULAS; the texts are as the trace spells them.

    Raises:
        Unknown: The trace doesn't tell it; the message says why.
    """
    if shapes is None:
        raise Unknown(NO_SHAPES)
    work = FORMULAS[name](Inputs(*(_listed(text) for text in (shapes, types, values))))
    if not 0 <= work.flop <= _MOST_FLOP or not 0 <= (work.moved_bytes or 0) <= _MOST_BYTES:
        raise Unknown(ODD_SHAPES)
    return work


def _listed(text: str | None) -> list[Any]:
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise Unknown(ODD_SHAPES) from None
    return found if isinstance(found, list) else []


def _work(inputs: Inputs, place: int, flop: int, numbers: int, written: int = 0, size: int | None = None) -> MatrixWork:
    """`numbers` are of the format at `place`; `written` ones have `size` bytes, or the same if it is None."""
    dtype, each = inputs.format(place)
    moved = None if each is None else numbers * each + written * (each if size is None else size)
    return MatrixWork(flop, moved, dtype)


def _product(first: int, second: int, *, beside: int | None = None) -> Callable[[Inputs], MatrixWork]:
    """[…, n, k] × […, k, m], with what is added `beside`, if that is a tensor."""

    def work(inputs: Inputs) -> MatrixWork:
        a, b = inputs.shape(first, (2, 3)), inputs.shape(second, (2, 3))
        if a[:-2] != b[:-2] or a[-1] != b[-2]:
            raise Unknown(ODD_SHAPES)
        out = math.prod(a[:-1]) * b[-1]
        added = math.prod(inputs.shape(beside)) if beside is not None else 0
        return _work(inputs, first, 2 * out * a[-1], math.prod(a) + math.prod(b) + out + added)

    return work


def _vector(first: int, second: int) -> Callable[[Inputs], MatrixWork]:
    def work(inputs: Inputs) -> MatrixWork:
        (n, k), (length,) = inputs.shape(first, (2,)), inputs.shape(second, (1,))
        if k != length:
            raise Unknown(ODD_SHAPES)
        return _work(inputs, first, 2 * n * k, n * k + k + n)

    return work


def _linear(inputs: Inputs) -> MatrixWork:
    """[…, k] × [m, k] transposed, plus bias."""
    a, (m, k) = inputs.shape(0), inputs.shape(1, (2,))
    if a[-1] != k:
        raise Unknown(ODD_SHAPES)
    rows = math.prod(a[:-1])
    return _work(inputs, 0, 2 * rows * m * k, rows * k + m * k + rows * m)


def _other_output(output: int | None) -> Callable[[Inputs], MatrixWork]:
    """A product of narrow numbers whose result is of another type: the value at `output`, or int32 if it is None."""

    def work(inputs: Inputs) -> MatrixWork:
        (n, k), (k2, m) = inputs.shape(0, (2,)), inputs.shape(1, (2,))
        if k != k2:
            raise Unknown(ODD_SHAPES)
        size: int | None = 4
        if output is not None:
            kind = inputs.values[output] if output < len(inputs.values) else ""
            size = _SCALAR_TYPE_BYTES.get(int(kind)) if _CODE.fullmatch(str(kind)) else None
        dtype, each = inputs.format(0)
        moved = None if each is None or size is None else (n * k + k * m) * each + n * m * size
        return MatrixWork(2 * n * k * m, moved, dtype)

    return work


def _grouped(inputs: Inputs) -> MatrixWork:
    """Rows of [n, k] each belong to one of the groups of [g, k, m]; other forms split k or have a group per matrix."""
    a, b = inputs.shape(0, (2, 3)), inputs.shape(1, (2, 3))
    if a[-1] != b[-2] or (len(a) == len(b) == 3 and a[0] != b[0]):
        raise Unknown(ODD_SHAPES)
    rows = math.prod(a[:-1])
    flop = 2 * rows * a[-1] * b[-1]
    if len(a) == len(b) == 2:  # k is split among groups whose number isn't a shape's
        return MatrixWork(flop, None, inputs.format(0)[0])
    return _work(inputs, 0, flop, math.prod(a) + math.prod(b) + rows * b[-1])


def _convolved(x: Shape, w: Shape, out: Sequence[int], *, is_transposed: bool) -> int:
    """Operations of a convolution; `out` is its output's sizes behind batch and channels."""
    each = 2 * x[0] * math.prod(w)
    return each * math.prod(x[2:] if is_transposed else out)


def _each(values: Any, dimensions: int) -> list[int]:
    listed = values if isinstance(values, list) else [values]
    if len(listed) not in (1, dimensions) or not all(isinstance(v, int) for v in listed):
        raise Unknown(ODD_SHAPES)
    return listed * dimensions if len(listed) == 1 else listed


def _convolution(inputs: Inputs) -> MatrixWork:
    """aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    x, w = inputs.shape(0, (3, 4, 5)), inputs.shape(1, (3, 4, 5))
    if len(x) != len(w):
        raise Unknown(ODD_SHAPES)
    n = len(x) - 2
    stride, padding, dilation = (_each(inputs.value(place, NO_VALUES), n) for place in (3, 4, 5))
    is_transposed = bool(inputs.value(6, NO_VALUES))
    rows = zip(x[2:], w[2:], stride, padding, dilation, strict=True)
    if is_transposed:
        extra = _each(inputs.value(7, NO_VALUES), n)
        out = [(i - 1) * s - 2 * p + d * (k - 1) + e + 1 for (i, k, s, p, d), e in zip(rows, extra, strict=True)]
        channels = w[1] * _each(inputs.value(8, NO_VALUES), 1)[0]
    else:
        out = [(i + 2 * p - d * (k - 1) - 1) // s + 1 if s > 0 else -1 for i, k, s, p, d in rows]
        channels = w[0]
    if min(out) < 0:
        raise Unknown(ODD_SHAPES)
    numbers = math.prod(x) + math.prod(w) + x[0] * channels * math.prod(out)
    return _work(inputs, 0, _convolved(x, w, out, is_transposed=is_transposed), numbers)


def _convolution_backward(inputs: Inputs) -> MatrixWork:
    """aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, …, transposed, …, output_mask)."""
    grad, x, w = (inputs.shape(place, (3, 4, 5)) for place in range(3))
    if not len(grad) == len(x) == len(w):
        raise Unknown(ODD_SHAPES)
    is_transposed = bool(inputs.value(7, NO_MASK))
    mask = inputs.value(10, NO_MASK)
    if not isinstance(mask, list) or len(mask) < 2:
        raise Unknown(ODD_SHAPES)
    to_input, to_weight = bool(mask[0]), bool(mask[1])
    once = _convolved(x, w, grad[2:], is_transposed=is_transposed)
    sizes = math.prod(grad), math.prod(x), math.prod(w)
    numbers = sizes[0] * (to_input or to_weight) + to_input * (sizes[2] + sizes[1]) + to_weight * (sizes[1] + sizes[2])
    return _work(inputs, 0, once * (to_input + to_weight), numbers)


def _attention(query: int, causal: Callable[[Inputs], int], *, backward: bool) -> Callable[[Inputs], MatrixWork]:
    """Attention over [batch, heads, length, size]; `causal` tells the place of is_causal.

    Forward are two products; backward five, since the scores are computed anew.
    """

    def work(inputs: Inputs) -> MatrixWork:
        q, k, v = (inputs.shape(query + i, (4,)) for i in range(3))
        if q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3]:
            raise Unknown(ODD_SHAPES)
        is_causal = bool(inputs.value(causal(inputs), "Whether attention was causal wasn't recorded."))
        pairs = q[0] * q[1] * _pairs(q[2], k[2], is_causal=is_causal)
        out = math.prod(q[:3]) * v[3]
        read = math.prod(q) + math.prod(k) + math.prod(v)
        flop = 2 * pairs * (3 * q[3] + 2 * v[3] if backward else q[3] + v[3])
        return _work(inputs, query, flop, 2 * (read + out) if backward else read + out)

    return work


def _pairs(queries: int, keys: int, *, is_causal: bool) -> int:
    """How many keys all queries attend to; causal: the first query to the first key alone, as PyTorch aligns them."""
    if not is_causal:
        return queries * keys
    square = min(queries, keys)
    return square * (square + 1) // 2 + (queries - square) * keys


def _at(place: int) -> Callable[[Inputs], int]:
    return lambda _inputs: place


def _cudnn_causal(inputs: Inputs) -> int:
    """In torch 2.4 dropout_p follows value; later attn_bias and compute_log_sumexp stand between."""
    return 6 if len(inputs.types) > 7 else 4


_SDPA = "aten::_scaled_dot_product_"
FORMULAS: dict[str, Callable[[Inputs], MatrixWork]] = {
    "aten::mm": _product(0, 1),
    "aten::bmm": _product(0, 1),
    "aten::addmm": _product(1, 2, beside=0),
    "aten::addmm_": _product(1, 2, beside=0),
    "aten::_addmm_activation": _product(1, 2, beside=0),
    "aten::baddbmm": _product(1, 2, beside=0),
    "aten::baddbmm_": _product(1, 2, beside=0),
    "aten::mv": _vector(0, 1),
    "aten::addmv": _vector(1, 2),
    "aten::addmv_": _vector(1, 2),
    "aten::mkldnn_linear": _linear,
    "aten::_int_mm": _other_output(None),
    "aten::_scaled_mm": _other_output(6),
    "aten::_grouped_mm": _grouped,
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
"""By operator. Those that only call others, such as matmul, einsum and linear, have none: what they call has."""
