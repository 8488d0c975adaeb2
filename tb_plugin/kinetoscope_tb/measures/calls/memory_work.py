"""Bytes that memory-bound operators must move, from the recorded shapes and types of their inputs.

Elementwise operators, normalization, softmax, reductions, copies, concatenation, embeddings and optimizers do so little
arithmetic per byte that memory bandwidth is their limit. Bytes are the minimum: each input once and the output once, as
if caches were perfect. An input that is an expanded view occupies less memory than its shape says; then the minimum is
too high, and the operator looks closer to its limit than it is. Operators whose output the shapes don't determine have
no model: nothing is guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ...names.collectives import element_bytes
from ...names.regex import regex
from .matrix_work import NO_SHAPES, ODD_SHAPES, Shape, UnknownWork, parse_list

NO_MODEL = "No model of its work exists."
NO_LIST_SHAPES = "Its inputs are lists of tensors, of which torch recorded no shapes."
NO_DIMENSIONS = "Its tensors have no dimensions: it moves next to nothing."
NO_TENSORS = "By the recording none of its inputs is a tensor."
NO_TYPE = "The number format of its tensors isn't recorded."
NO_EXPERTS = "Which experts its tokens chose isn't recorded, so the weights that it reads aren't known."
_EXPERTS = regex(r"(?i)(?:^|[:_.])(?:fused_?)?moe(?:[:_.]|$)|_experts")
_MOST_BYTES = 2**50  # of one call: beyond it shapes are damage

_POINTWISE = (
    r"add|sub|rsub|mul|div|pow|sqrt|rsqrt|exp|exp2|log|log2|log1p|neg|abs|sign|sin|cos|tanh|erf|reciprocal|square"
    r"|floor|ceil|round|sigmoid|relu|relu6|gelu|silu|mish|elu|leaky_relu|hardtanh|hardswish|hardsigmoid|softplus"
    r"|clamp|clamp_min|clamp_max|maximum|minimum|where|lerp|addcmul|addcdiv|masked_fill|fmod|remainder|atan2"
    r"|bitwise_\w+|logical_\w+|threshold_backward|(?:gelu|silu|sigmoid|tanh|elu|hardswish|leaky_relu|softplus)_backward"
    r"|_?native_dropout_backward|native_dropout|fused_dropout|bernoulli|sum_to_size"
)
_ROWWISE = (
    r"_softmax|_log_softmax|_safe_softmax|_masked_softmax|_softmax_backward_data|_log_softmax_backward_data"
    r"|native_layer_norm|native_layer_norm_backward|native_group_norm|native_group_norm_backward"
    r"|_?fused_rms_norm|_fused_rms_norm_backward|rms_norm"
    r"|cumsum|masked_scale"
)
_COMPARED = r"eq|ne|lt|le|gt|ge|isnan|isinf|isfinite|logical_\w+"
_REDUCED = r"sum|mean|amax|amin|max|min|argmax|argmin|any|all|norm|linalg_vector_norm|prod|std|var|var_mean|logsumexp"


class _Inputs:
    """The tensors among the inputs of a call: (elements, bytes of an element) by position; lists of tensors apart."""

    def __init__(self, shapes: str, types: str | None, kernel: str) -> None:
        self.shapes, self.types = parse_list(shapes), parse_list(types)
        self.kernel = kernel

    def shape(self, index: int) -> Shape:
        """The sizes of a tensor.

        Raises:
            UnknownWork: There is none.
        """
        sizes = self.shapes[index] if index < len(self.shapes) else []
        if not _is_shape(sizes):
            raise UnknownWork(ODD_SHAPES)
        return tuple(sizes)

    def element(self, index: int) -> int:
        """Bytes of an element of the tensor at an index.

        Raises:
            UnknownWork: Its type isn't recorded.
        """
        size = element_bytes(str(self.types[index])) if index < len(self.types) else None
        if size is None:
            raise UnknownWork(NO_TYPE)
        return size

    def bytes(self, index: int) -> int:
        """Bytes of the tensor at an index."""
        return math.prod(self.shape(index)) * self.element(index)

    @property
    def tensors(self) -> list[int]:
        """The indices of all tensors; scalars and tensors without dimensions have no size worth counting."""
        return [index for index, sizes in enumerate(self.shapes) if _is_shape(sizes)]

    def lists(self) -> list[int]:
        """The elements of each list of tensors."""
        return [
            sum(math.prod(sizes) for sizes in shapes)
            for shapes in self.shapes
            if isinstance(shapes, list) and shapes and all(map(_is_shape, shapes))
        ]

    @property
    def why_no_sizes(self) -> str:
        """Why no tensor and no list among the inputs has a size."""
        if "TensorList" in self.types:
            return NO_LIST_SHAPES
        return NO_DIMENSIONS if any(element_bytes(str(name)) for name in self.types) else NO_TENSORS


def _is_shape(sizes: Any) -> bool:
    return isinstance(sizes, list) and bool(sizes) and all(isinstance(n, int) and n >= 0 for n in sizes)


def _broadcast(shapes: Sequence[Shape]) -> int:
    """Elements of the broadcast shape; of the largest input where the shapes don't broadcast, as a group norm's."""
    width = max(map(len, shapes))
    aligned_shapes = [(1,) * (width - len(shape)) + shape for shape in shapes]
    sizes = [max(column) if 0 not in column else 0 for column in zip(*aligned_shapes, strict=True)]
    fits = all(size in (1, most) for shape in aligned_shapes for size, most in zip(shape, sizes, strict=True))
    return math.prod(sizes) if fits else max(math.prod(shape) for shape in shapes)


def _pointwise(inputs: _Inputs, *, is_in_place: bool, result_element: int | None = None) -> int:
    """Read all tensors and write one; `result_element`: bytes of an element of the result, if it has its own type."""
    tensors = inputs.tensors
    if not tensors:
        raise UnknownWork(inputs.why_no_sizes)
    read = sum(map(inputs.bytes, tensors))
    if is_in_place:
        return read + inputs.bytes(tensors[0])
    return read + _broadcast([inputs.shape(p) for p in tensors]) * (result_element or max(map(inputs.element, tensors)))


def _batch_norm_bytes(inputs: _Inputs) -> int:
    """Two passes over the batch, since its statistics must be known before the first element can be written."""
    whole = max(math.prod(inputs.shape(index)) for index in inputs.tensors) if inputs.tensors else 0
    return sum(inputs.bytes(p) for p in inputs.tensors if math.prod(inputs.shape(p)) == whole) + _pointwise(
        inputs, is_in_place=False
    )


def _copy_bytes(inputs: _Inputs) -> int:
    """aten::copy_(to, from): read one tensor, write the other."""
    return inputs.bytes(0) + inputs.bytes(1)


def _embedding_bytes(inputs: _Inputs) -> int:
    """aten::embedding(weight, indices): read each index and its row (a repeated one once), write the rows."""
    rows, width = inputs.shape(0)[0], math.prod(inputs.shape(0)[1:])
    lookups, size = math.prod(inputs.shape(1)), inputs.element(0)
    return inputs.bytes(1) + (min(rows, lookups) + lookups) * width * size


_IN_KERNEL = regex(r"(?:Functor|Op)<(?P<type>float|double|c10::Half|c10::BFloat16)\b")
_OF_CAT = regex(r"CatArrayBatchedCopy(?:_contig|_aligned16_contig)?<.*?OpaqueType<(?P<bytes>[1-8])u")


def _cat_bytes(inputs: _Inputs) -> int:
    """aten::cat: lists have no type in the trace, but the kernel's name has the size of an element."""
    match, lists = _OF_CAT.search(inputs.kernel), inputs.lists()
    if not match or not lists:
        raise UnknownWork(NO_TYPE if lists else inputs.why_no_sizes)
    return 2 * sum(lists) * int(match["bytes"])


def _of_lists(written_lists: int) -> Callable[[_Inputs], int]:
    """Read every tensor of all lists, and write the tensors of so many lists."""

    def work(inputs: _Inputs) -> int:
        match, lists = _IN_KERNEL.search(inputs.kernel), inputs.lists()
        if not match or not lists:
            raise UnknownWork(NO_TYPE if lists else inputs.why_no_sizes)
        return (sum(lists) + written_lists * lists[0]) * (element_bytes(match["type"]) or 0)

    return work


def _every_tensor(inputs: _Inputs) -> int:
    """A kernel whose outputs are among its arguments, as those of servers are: each of them once."""
    if not inputs.tensors:
        raise UnknownWork(inputs.why_no_sizes)
    return sum(map(inputs.bytes, inputs.tensors))


def _inductor(inputs: _Inputs) -> int:
    """A kernel of TorchInductor: which of its arguments it both reads and writes isn't recorded.

    The largest counts twice, so that the kernel never looks further from its limit than it is.
    """
    return _every_tensor(inputs) + max(map(inputs.bytes, inputs.tensors))


_MODELS: tuple[tuple[re.Pattern[str], Callable[[_Inputs], int]], ...] = tuple(
    (regex(names if "::" in names or names.startswith("triton_") else rf"aten::(?:{names})"), model)
    for names, model in (
        (r"copy_", _copy_bytes),
        (r"(?:fill|zero)_", lambda inputs: inputs.bytes(0)),
        (rf"(?:{_POINTWISE})_", lambda inputs: _pointwise(inputs, is_in_place=True)),
        (rf"(?:{_COMPARED})", lambda inputs: _pointwise(inputs, is_in_place=False, result_element=1)),
        (rf"(?:{_POINTWISE}|{_ROWWISE})", lambda inputs: _pointwise(inputs, is_in_place=False)),
        (r"(?:native|cudnn|miopen)_batch_norm(?:_backward)?", _batch_norm_bytes),
        (rf"(?:{_REDUCED})", lambda inputs: inputs.bytes(0)),
        (r"embedding", _embedding_bytes),
        (r"cat", _cat_bytes),
        (r"_fused_adamw?_", _of_lists(3)),  # parameters, gradients, two moments; all but the gradients are written
        (r"_foreach_\w+_", _of_lists(1)),
        (r"triton_(?:poi|red|per)_fused_\w+", _inductor),
        (r"(?:aiter|sgl_kernel|_C)::(?:rms_?norm|(?:silu|gelu|gelu_tanh)_and_mul)", _every_tensor),
    )
)


def memory_work(name: str, shapes: str | None, types: str | None, kernel: str = "") -> int:
    """Return the bytes that a call of an operator must move; the texts are as in the trace.

    Args:
        name: Of the operator.
        shapes: Of its inputs.
        types: Of its inputs.
        kernel: A kernel that it launched: where the inputs are lists, only its name has their type.

    Raises:
        UnknownWork: They aren't known; the message says why.
    """
    model = next((model for pattern, model in _MODELS if pattern.fullmatch(name)), None)
    if model is None:
        raise UnknownWork(NO_EXPERTS if _EXPERTS.search(name) else NO_MODEL)
    if shapes is None:
        raise UnknownWork(NO_SHAPES)
    moved_bytes = model(_Inputs(shapes, types, kernel))
    if not 0 <= moved_bytes <= _MOST_BYTES:
        raise UnknownWork(ODD_SHAPES)
    return moved_bytes
