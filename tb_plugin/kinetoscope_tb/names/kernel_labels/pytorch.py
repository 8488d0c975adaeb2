"""Labels of PyTorch's own kernels, of generated ones, and of the libraries that PyTorch calls for the rest."""

from __future__ import annotations

import re

from ..kernels import communication_rule
from ..regex import regex
from .cpp import CppName, number_format, opaque_size, snake_case
from .model import Label

_WRAPPERS = regex(
    r"^(?:at::native::|\(anonymous namespace\)::|at::native::binary_internal::|binary_internal::)*"
    r"(?:gpu_kernel_impl(?:_nocast)?|gpu_index_kernel|func_wrapper_t|BinaryFunctor|AUnaryFunctor|BUnaryFunctor"
    r"|ReduceOp|opmath_gpu_kernel_with_scalars|_cuda_scatter_gather_internal_kernel)<"
)
_TYPED = regex(r"(?:Binary|AUnary|BUnary)Functor<([^,<>]*),")
_LAUNCHER = regex(r"type_specialized_broadcast_kernel_launcher<\d+>::apply<")
_LAMBDA = regex(r"\{lambda\(((?:[^(){}]|\([^()]*\))+)\)#\d+\}")
_POINTERS = regex(r"^[\w:]*[aA]rray<char ?\*, ?\d+\w*>$")  # to elements of any format
_OWNER = regex(r"([A-Za-z_]\w*)(?:<[^()]*>)?\((?!anonymous)")
_FUNCTOR = regex(r"([A-Za-z_]\w*)$")
_PREFIXES = regex(r"^(?:cu(?=[A-Z])|CUDAFunctor(?:OnSelf|OnOther)?_|cunn_|launch_|vectorized_|cuda_|fused_(?=softmax))")
_SUFFIXES = regex(
    r"(?:_(?:cuda|kernel|impl|internal|functor|ops|op|vec)|Functor|CUDAKernel\d?|Kernel|KernelImplInternal|Ops|Op"
    r"|_out_frame|_kernel_warp_reduction|Internal|Impl|_with_scalars)+$"
)
_NAMES = {
    "direct_copy": "copy", "bfloat16tofloat32_copy": "copy", "bfloat16_copy": "copy", "float16_copy": "copy",
    "cat_array_batched_copy": "cat",
    "cat_array_batched_copy_aligned16_contig": "cat", "cat_array_batched_copy_contig": "cat",
    "soft_max_forward": "softmax_forward", "soft_max_backward": "softmax_backward",
    "soft_max_forward_smem": "softmax_forward smem", "soft_max_backward_smem": "softmax_backward smem",
    "compare_eq": "eq", "or": "any", "and": "all", "norm_two": "norm", "welford": "var", "arg_max": "argmax",
    "arg_min": "argmin", "max_nan": "max", "min_nan": "min", "tensor_assign": "gather",
    "pow_tensor_scalar": "pow scalar", "pow_tensor_tensor": "pow", "clamp_scalar": "clamp scalar",
    "clamp_min_scalar": "clamp scalar", "compare_scalar": "compare scalar", "mul_scalar": "mul scalar",
    "class_nllcriterion_update_output": "nll_loss_forward", "class_nllcriterion_update_grad_input": "nll_loss_backward",
}  # fmt: skip
_SCALAR = regex(r"[AB]UnaryFunctor<|CUDAFunctorOn(?:Self|Other)_|_scalar_kernel")
_VIEWS = {"view", "reshape", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "slice", "select", "alias",
          "detach", "as_strided", "split", "unbind", "_unsafe_view", "empty_like"}  # fmt: skip
_LONG_OPERATORS = (  # of ATen, as Inductor joins them with underscores
    "_to_copy", "_unsafe_view", "_unsafe_index", "_softmax_backward_data", "_log_softmax_backward_data",
    "_log_softmax", "_softmax", "native_layer_norm_backward", "native_layer_norm", "native_group_norm_backward",
    "native_group_norm", "_native_batch_norm_legit_functional", "_native_batch_norm_legit",
    "native_batch_norm_backward", "native_dropout_backward", "native_dropout", "threshold_backward",
    "nll_loss_forward", "nll_loss_backward", "embedding_dense_backward", "masked_fill", "index_select", "index_put",
    "index_add", "scatter_add", "max_pool2d_with_indices_backward", "max_pool2d_with_indices", "avg_pool2d",
    "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "hardswish_backward", "empty_like",
    "zeros_like", "ones_like", "full_like", "new_zeros", "constant_pad_nd", "log_softmax", "logical_not",
    "logical_and", "bitwise_and", "bitwise_or", "as_strided", "convolution_backward", "var_mean", "cross_entropy",
    "prepare_softmax_online", "_adaptive_avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d", "rms_norm",
    "layer_norm", "group_norm", "batch_norm", "_fused_rms_norm", "_scaled_mm", "scaled_dot_product_attention",
)  # fmt: skip
_OPERATOR = regex("|".join([*sorted(_LONG_OPERATORS, key=len, reverse=True), "[a-z0-9]+"]))
_TRITON = regex(r"triton_(poi|red|per|tem|for|spl|unk)_fused_?(\w*?)_?(\d+)?$")
_MOST_OPERATORS = 30  # characters: the number behind them has to be seen
_NCCL = regex(r"^(?:nccl|rccl)(?:Dev)?Kernel_(\w+)")
_BATCH_NORM = regex(r"bn_(fw_tr|fw_inf|bw)_(\w*)")
_EMBEDDING = regex(r"(split|dense)_embedding_(?:codegen_)?(forward|backward|grad_indice_weights)_?(?:codegen_)?(\w*)")
_CUB = regex(r"^Device(\w+?)(?:Kernel)?$")
_MIOPEN_NORM = regex(r"MIOpenBatchNorm(Fwd|Bwd)(Train|Infer)?(\w*)")
_LIBRARIES = {"DeepEP", "HybridEP", "UCCL", "Mooncake", "NIXL", "MORI", "pplx", "MSCCL++", "DLSlime"}
_ANY_KERNEL = frozenset({"kernel", "Kernel", "device_kernel", "run", "entry"})
_CUTE_DSL = regex(r"^kernel_cutlass_\w*?([A-Z][A-Za-z0-9]*)_object_at")
_MTIA = regex(r"^(?:\w+::)?([\w.]+)-dtype_(\w+?)(?:-(\w+))?$")


def label(name: str, cpp: CppName) -> Label | None:
    """The label of such a kernel; None for others."""
    for rule in (_nccl, _triton, _of_dtype_key):
        if match := rule(name):
            return match
    return _elementwise(name, cpp) or _reduction(cpp) or _multi_tensor(cpp) or _of_library(name, cpp)


def by_own_name(name: str, cpp: CppName) -> Label:
    """Any other kernel: its own name, and the first number format among its template arguments."""
    if name.startswith(("Memcpy", "Memset")) or name.endswith(" (AI_CPU)"):
        return Label(name)
    is_pytorch = cpp.scope[:1] == ("at",) or cpp.name.startswith("cunn_")
    own = _with_flag(_plain(cpp.name), cpp) if is_pytorch else cpp.name
    if own in _ANY_KERNEL and cpp.scope:
        own = cpp.scope[-1]
    arguments = ", ".join(cpp.arguments)
    dtype = opaque_size(arguments) or number_format(arguments)
    more = _last_names(cpp)
    if cpp.name == "kentry":
        inner = next((a for a in more if re.search(r"Kernel$|Fwd$|Bwd$", a)), cpp.name)
        return Label(inner.removesuffix("Kernel"), ("CK",), dtype, more=more)
    if hit := _CUTE_DSL.search(name):
        return Label(hit[1].removesuffix("Kernel"), ("CuTe",), number_format(name), more=(name,))
    library = communication_rule(name) or ""
    if library in _LIBRARIES:
        is_cached = library == "DeepEP" and own == "dispatch" and cpp.arguments[2:3] == ("true",)  # internode.cu
        more = ("cached" if is_cached else "", *more)
        return Label(f"{library} {own}", cpp.scope[-1:] if len(cpp.scope) > 1 else (), dtype, more=more)
    if not cpp.scope and not cpp.arguments:
        return Label(own, more=(name,))
    return Label(own, dtype=dtype if dtype not in own else "", more=(*more, *cpp.scope))


def _with_flag(own: str, cpp: CppName) -> str:
    """The name of what a kernel of PyTorch's computes if a flag among its template arguments is set."""
    if "layer_norm" in own and cpp.arguments[-1:] == ("true",):  # layer_norm_kernel.cu: bool rms_norm
        return own.replace("layer_norm", "rms_norm")
    return f"log_{own}" if own.startswith("softmax_warp") and cpp.arguments[4:5] == ("true",) else own


def _nccl(name: str) -> Label | None:
    hit = _NCCL.match(name)
    if not hit:
        return None
    words = hit[1].replace("int8_t", "int8").replace("uint8_t", "uint8").split("_")
    formats = {
        "float": "fp32",
        "f32": "fp32",
        "half": "fp16",
        "f16": "fp16",
        "double": "fp64",
        "f64": "fp64",
        "u8": "uint8",
    }
    parts = [formats.get(w, w) for w in words]
    dtype = next((w for w in parts[1:] if re.fullmatch(r"b?fp?\d+|u?int\d+|[iu]\d+", w)), "")
    is_reduction = words[0] in {"AllReduce", "ReduceScatter", "Reduce"}
    rest = [w.lower() for w in parts[1:] if w != dtype and (w != "Sum" or is_reduction)]
    library = "RCCL" if name.startswith("rccl") else "NCCL"
    order = sorted(rest, key=lambda w: w in {"sum", "max", "min", "prod", "avg"})
    return Label(f"{library} {words[0]}", (dtype, *order), more=(name,))


def fused_operators(name: str) -> list[str]:
    """The operators of which Inductor says that a kernel fuses them: to_copy, add; none of other kernels."""
    hit = _TRITON.match(name)
    names = _OPERATOR.findall(hit[2]) if hit else []
    return [op.lstrip("_") for op in names if op not in _VIEWS] or [op.lstrip("_") for op in names]


def _triton(name: str) -> Label | None:
    hit = _TRITON.match(name)
    if not hit:
        return None
    kind, _, number = hit.groups()
    text = "+".join(fused_operators(name))
    while len(text) > _MOST_OPERATORS:
        text = text.removesuffix("+…").rpartition("+")[0] + "+…"
    return Label(f"triton {kind}", (text,), last=f"#{number}" if number else "", more=(name,))


def _of_dtype_key(name: str) -> Label | None:
    """MTIA: aten::mul.out-dtype_Float."""
    hit = _MTIA.match(name)
    return Label(hit[1], dtype=number_format(hit[2]) or hit[2], more=(hit[3] or "", name)) if hit else None


def _elementwise(name: str, cpp: CppName) -> Label | None:
    if "elementwise_kernel" not in cpp.name:
        return None
    arguments = [a for a in cpp.arguments if "::" in a]
    if not arguments:
        return None
    if "scatter_gather" in cpp.name:
        does = "scatter" if re.search(r"internal_kernel<true|scatter_fill", name) else "gather"
        return Label(does, dtype=opaque_size(name) or number_format(name), more=(re.sub(r".*::", "", arguments[0]),))
    body = arguments[0]
    inner = _inner_body(body)
    what = _functor(inner)
    if _SCALAR.search(body) and "scalar" not in what:
        what += " scalar"
    is_vectorized = cpp.name.startswith("vectorized_") and cpp.arguments[0].isdigit()
    casts = "cast" if re.search(r"LoadWithCast|gpu_kernel_impl<|vectorized_templated", name) else ""
    kind = re.sub(r"_?elementwise.*", "", cpp.name)
    numbers = "x".join(a for a in cpp.arguments if a.isdigit())
    side = "left" if re.search(r"AUnaryFunctor<|OnOther_", body) else ""
    return Label(
        f"elementwise {what}" if not cpp.name.startswith(("index_", "distribution")) else what,
        dtype=opaque_size(body) or _element_format(body) or number_format(_POINTERS.sub("", cpp.arguments[-1])),
        last=f"x{cpp.arguments[0]}" if is_vectorized else "",
        more=(casts, side, kind, numbers, *re.findall(r"lambda[^}]*#(\d+)", inner)),
    )


def _element_format(body: str) -> str:
    """The format of the elements in memory; a condition (bool) doesn't count."""
    if hit := _TYPED.search(body):
        return number_format(hit[1])
    body = _inner_body(body)
    for parameters in reversed(_LAMBDA.findall(body)):
        formats = [number_format(p) for p in parameters.split(",")]
        if specific := [f for f in formats if f and f != "bool"] or [f for f in formats if f]:
            return specific[0]
    return number_format(re.sub(r"\([^()]*\)", "", body))


def _inner_body(body: str) -> str:
    """The function that wrappers apply to each element."""
    if hit := _LAUNCHER.search(body):
        body = body[hit.end() :]
    while hit := _WRAPPERS.match(body):
        inside = body[hit.end() :]
        parts = [p.strip() for p in _arguments_of(inside)]
        body = next((p for p in reversed(parts) if re.search(r"[A-Za-z_]\w*(?:<|\(|::)", p)), parts[0])
        if "ReduceOp" in hit[0] and len(parts) > 1:
            body = parts[1]
    return body


def _functor(body: str) -> str:
    """Its name."""
    owners = [o for o in _OWNER.findall(body.split("{lambda")[0]) if o not in {"operator", "decltype"}]
    if owners:
        return _plain(owners[0])
    bare = re.sub(r"<.*", "", body).split("::")[-1]
    hit = _FUNCTOR.search(bare)
    return _plain(hit[1]) if hit else bare


def _arguments_of(text: str) -> list[str]:
    """The template arguments at the beginning of a text, up to the bracket that ends them."""
    depth, begin = 0, 0
    parts: list[str] = []
    for at, letter in enumerate(text):
        if letter in "<([{":
            depth += 1
        elif letter in ">)]}":
            if not depth:
                return [*parts, text[begin:at]]
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _plain(name: str) -> str:
    """Such as mul for MulFunctor, layer_norm for vectorized_layer_norm_kernel."""
    bare = _PREFIXES.sub("", name).replace("CUDAKernel", "")
    bare = _SUFFIXES.sub("", bare) or bare
    short = snake_case(bare)
    return _NAMES.get(short, short)


def _reduction(cpp: CppName) -> Label | None:
    if cpp.name != "reduce_kernel" or not cpp.arguments:
        return None
    body = cpp.arguments[-1]
    numbers = "x".join(cpp.arguments[:-1])
    return Label(f"reduce {_functor(_inner_body(body))}", dtype=number_format(body), more=(numbers,))


def _multi_tensor(cpp: CppName) -> Label | None:
    if cpp.name != "multi_tensor_apply_kernel" or len(cpp.arguments) < 2:
        return None
    functor = cpp.arguments[1]
    own = re.sub(r"<.*", "", functor).split("::")[-1]
    operation = next((a for a in cpp.arguments[2:3] if "::" in a), "")
    function = re.sub(r"^(?:binary|unary|pointwise|ternary)_op_", "", _plain(own))
    words = dict.fromkeys([_plain(re.sub(r"<.*", "", operation).split("::")[-1]), function])
    lists = re.findall(r"\d+", cpp.arguments[0])
    return Label("multi_tensor " + " ".join(w for w in words if w), dtype=number_format(functor), more=tuple(lists))


def _last_names(cpp: CppName) -> tuple[str, ...]:
    """Each template argument without namespaces and without arguments of its own."""
    return tuple(re.sub(r"<.*", "", a).split("::")[-1] for a in cpp.arguments)


def _numbers(cpp: CppName) -> list[str]:
    return [a for a in cpp.arguments if a.isdigit()]


def _of_library(name: str, cpp: CppName) -> Label | None:
    arguments = ", ".join(cpp.arguments)
    dtype = number_format(arguments)
    if hit := _BATCH_NORM.match(cpp.name):
        step = {"fw_tr": "forward", "fw_inf": "inference", "bw": "backward"}[hit[1]]
        variant = re.sub(r"_?kernel_?|1C11_?|_?new", "", hit[2])
        return Label("batch_norm " + step, ("cuDNN",), dtype, more=(variant, *_numbers(cpp)))
    if hit := _EMBEDDING.match(cpp.name):  # FBGEMM calls them table batched embeddings
        rest = re.sub(r"_?kernel_?", " ", hit[3]).replace("_per_row_1", "").replace("_", " ").split()
        where = (hit[2], "dense" if hit[1] == "dense" else "", *rest)
        return Label("TBE", where, dtype, more=tuple(_numbers(cpp)))
    if hit := _MIOPEN_NORM.match(name):
        step = "backward" if hit[1] == "Bwd" else "inference" if hit[2] == "Infer" else "forward"
        return Label("batch_norm " + step, ("MIOpen", hit[3]), more=(name,))
    if "cub" in cpp.scope and (hit := _CUB.match(cpp.name)):
        return Label(f"cub {hit[1]}", dtype=dtype, more=_last_names(cpp))
    if "rocprim" in cpp.scope:
        algorithm = re.search(r"(\w+)_impl<", arguments)
        return Label(
            f"rocprim {algorithm[1] if algorithm else cpp.name}", dtype=dtype, more=tuple(re.findall(r"\w+", arguments))
        )
    if {"cudnn", "cask_cudnn", "cask__5x_cudnn", "cask_cudnn_infer"} & set(cpp.scope) or re.match(
        r"fft[12]d_|flip_filter|winograd", cpp.name
    ):
        own = cpp.name.removesuffix("Kernel").removesuffix("_kernel")
        return Label(own, ("cuDNN",), dtype, more=cpp.arguments)
    return None
