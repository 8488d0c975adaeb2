"""Labels of kernels that multiply matrices, convolve, or compute attention."""

from __future__ import annotations

import re

from ..regex import regex
from .cpp import CppName, number_format
from .model import Label

_BLAS_FORMATS = {"s": "fp32", "h": "fp16", "d": "fp64", "c": "complex64", "z": "complex128", "gc": "complex64"}
_SHORT_FORMATS = {
    "f32": "fp32", "f16": "fp16", "bf16": "bf16", "tf32": "tf32", "f64": "fp64", "i8": "int8", "e4m3": "fp8",
    "e5m2": "fp8", "fp16": "fp16", "fp32": "fp32", "i4": "int4", "e2m1": "fp4", "int8": "int8", "s8": "int8",
    "u8": "uint8", "s4": "int4", "u4": "uint4", "b1": "int1", "ue4m3": "fp8", "ue8m0": "fp8",
}  # fmt: skip
_TYPES = "bf16|tf32|f16|f32|f64|fp16|fp32|int8|i8|i4|s8|u8|s4|u4|b1|e4m3|e5m2|e2m1"
_TENSILE = regex(r"Cijk_A(ilk|lik)_B(ljk|jlk)_([A-Z0-9]+)_\w*?MT(\d+x\d+x\d+)")
_TENSILE_FORMATS = (("F8", "fp8"), ("B8", "fp8"), ("I8", "int8"), ("B", "bf16"), ("H", "fp16"), ("S", "fp32"),
                    ("D", "fp64"), ("C", "complex64"), ("Z", "complex128"))  # fmt: skip
_CUBLAS = regex(
    r"(?:cudnn_(?:infer_|train_)?|_5x_cudnn_)?(maxwell|pascal|volta|turing|ampere|hopper)_"
    rf"(?:({_TYPES})_)?(gc|[shdczi])?(\d*)({_TYPES})?(gemm|cudnn)(?:_({_TYPES}))?_(winograd_)?"
    r"(\d+x\d+)(\w*)"
)
_XMMA = regex(
    rf"(?:sm(\d+)_)?xmma_(gemm|\w*?(?:fprop|dgrad|wgrad)\w*?)_({_TYPES})((?:{_TYPES})?(?:_({_TYPES}))?"
    r"\w*?)_tilesize(\d+x\d+x\d+)(\w*)"
)
_NVJET = regex(r"nvjet_(?:(sm\d+)_)?([a-z]+)_(?:(tf32|mma)_)?(\d+x\d+)(?:x\d+)?_?(\w*)")
_CUTLASS_2 = regex(
    rf"cutlass_(?:(\d\d+)_)?(?:(wmma)_)?(tensorop|simt)_(?:({_TYPES})_)?([shdciz])(\d*)\w*?({_TYPES})?"
    r"(gemm|fprop|dgrad|wgrad)(?:_(?:optimized|analytic|few_channels|fixed_channels))?"
    rf"(?:_(?:relu|gelu|identity|grouped))?(?:_({_TYPES}))?_(\d+x\d+)_(\w+?)(?:_(align\d+))?(?=[(>:]|$)"
)
_CUTLASS_3_LIBRARY = regex(  # cutlass_library's name of a kernel of CUTLASS 3; up to 3.8 with the MMA's shape
    rf"cutlass3x_sm(\d+)_(?:bs|sp)?tensorop_(?:[a-z]\d+x\d+x\d+)?({_TYPES})?\w*?gemm_(?:grouped_|block_scaled_)?u?"
    rf"({_TYPES})\w*?_(\d+x\d+x\d+)_(\w*)"
)
_MMA_ATOM = regex(r"SM\d+_\d+x\d+x\d+_F\d\d(TF32|BF16|F16|E4M3|E5M2)")  # of CuTe: accumulator, then operands
_LAYOUT = regex(r"(?:^|_)([nt][nt]|nhwc|nchw)(?:_|$)")
_VARIANT = regex(r"relu|splitK|small|medium|large|interior|sliced\dx\d|stages?_?\d+x?\d*|ldg\d|xregs|exp|coop[AB]")
_IGEMM = regex(r"igemm_(fwd|bwd|wrw)_\w+?_(nhwc|nchw)_(bf16|fp16|fp32)_\w*?bt(\d+x\d+x\d+)(\w*)")
_CUDNN_CONV = regex(r"(dgrad|wgrad)\w*(?:engine|alg\w*)|(implicit|explicit)_convolve_sgemm|precomputed_convolve_\w+")
_GEMV = regex(r"gemv(2[TN]|NSP|\w*?)_kernel\w*|gemv\w*")
_SMALL_GEMM = regex(r"gemmSN_([NT][NT])_kernel|(gemmk1)_kernel|([sdcz])gemm_largek\w*")
_FLASH_2 = regex(r"flash_(fwd|bwd)(\w*?)_kernel")
_TRAITS = regex(r"kernel_traits<(\d+), (\d+), (\d+)")
_FLASH_3 = regex(r"FlashAttn(Fwd|Bwd)(\w*)")
_EFFICIENT = regex(r"fmha_cutlass([FB])_(bf16|f16|f32)_(aligned|notaligned)_(\d+x\d+)\w*?_sm(\d+)")
_TRTLLM = regex(r"fmhaSm(\d+)\w*?_Qkv([A-Z][a-z0-9]+)O\w*?H(\d+)(\w*)")
_FMHA_ASM = regex(r"fmha_(fwd|bwd)_hd(\d+)_(bf16|fp16)(\w*)")
_CUDNN_SDPA = regex(r"cudnn_generated_\w*sdpa_sm(\d+)_flash_([fb]prop)\w*?_(f16|bf16)(\w*)")
_TRTLLM_GEMM = regex(r"^bmm_\w+?_([A-Z]\w*?\d)[A-Z]\w*?_Fp32_(?:\w+?_)??t(\d+x\d+x\d+)(\w*)")
# triton_kernels/matmul_ogs_details/_common.py: layouts, formats and tile, then the fused activation
_TRITON = regex(r"_+((?:p_)?matmul_ogs)_([NT]{3})_(\w+?)_(\d+x\d+x\d+x\d+)(?:_(\w+))?$")
_TILE_OF_THREE = regex(r"cute::tuple<cute::C<(\d{2,})>, cute::C<(\d+)>, cute::C<(\d+)> ?>")  # no cluster of blocks
_SM = regex(r"[sS]m_?(\d{2,3})")
_FIRST_WITH_TF32 = 80


def label(name: str, cpp: CppName) -> Label | None:
    """The label of such a kernel; None for others."""
    for rule in (
        _tensile,
        _cublas,
        _xmma,
        _nvjet,
        _cutlass_2,
        _cutlass_3_library,
        _fused_attention,
        _flash_attention,
        _miopen,
        _of_trtllm,
        _triton,
    ):
        if match := rule(name):
            return match
    return _cutlass_3(name, cpp) or _by_own_name(cpp)


def _tensile(name: str) -> Label | None:
    if "Cijk_" not in name:
        return None
    if reduction := re.search(r"PostGSU\d*", name):
        return Label("split-K reduce", ("Tensile",), more=(reduction[0], name))
    hit = _TENSILE.search(name)
    if not hit:
        return None
    a, b, formats, tile = hit.groups()
    dtype = next((fmt for prefix, fmt in _TENSILE_FORMATS if formats.startswith(prefix)), "")
    if re.search(r"_S_?MX_|_S_?X_", name[: hit.start(4)]):  # Tensile's F32XdlMathOp
        dtype = "tf32"
    layout = ("t" if a == "lik" else "n") + ("t" if b == "jlk" else "n")
    rest = name[hit.end() :].split("_")
    return Label("GEMM", ("Tensile", tile), dtype, more=(layout, *rest))


def _cublas(name: str) -> Label | None:
    hit = _CUBLAS.match(name)
    if not hit:
        return None
    arch, output, letter, shape, inner, kind, operand, winograd, tile, rest = hit.groups()
    dtype = _computes_in(letter or "", inner or operand or output, uses_mma=bool(shape) or letter in (None, "i"))
    what = "GEMM" if kind == "gemm" else "conv winograd" if winograd else "conv"
    more = (*_LAYOUT.findall(rest), *_VARIANT.findall(rest), *rest.strip("_").split("_"), name.split("_")[0])
    return Label(what, ("cuBLAS" if kind == "gemm" else "cuDNN", arch, tile), dtype, more=more)


def _xmma(name: str) -> Label | None:
    hit = _XMMA.search(name)
    if not hit:
        return None
    arch, kind, storage, middle, compute, tile, rest = hit.groups()
    what = "GEMM" if kind == "gemm" else "conv " + re.search(r"fprop|dgrad|wgrad", kind)[0]  # type: ignore[index]
    library = "cuBLAS" if kind == "gemm" and "cudnn" not in rest else "cuDNN"
    more = (*_LAYOUT.findall(middle), *rest.strip("_").split("_"), *middle.split("_"))
    return Label(what, (library, f"sm{arch}" if arch else "", tile), _SHORT_FORMATS[compute or storage], more=more)


def _computes_in(letter: str, operand: str | None, *, uses_mma: bool) -> str:
    """The number format that a kernel of cuBLAS, cuDNN or CUTLASS 2 multiplies.

    Args:
        letter: Of its accumulator, as in `s1688gemm`: s, h, d, c, z, i.
        operand: What the name says of the operands; floats are converted on their way to a tensor core.
        uses_mma: Whether tensor cores multiply; other units multiply what they accumulate, whatever is stored.
    """
    own = _BLAS_FORMATS.get(letter, "int8")
    if not uses_mma:
        return own
    dtype = _SHORT_FORMATS[operand] if operand else own
    return {"fp32": "tf32", "complex64": "complex tf32"}.get(dtype, dtype)


def _nvjet(name: str) -> Label | None:
    hit = _NVJET.match(name)
    if not hit:
        return None
    arch, formats, unit, tile, rest = hit.groups()
    letters = {"t": "bf16", "h": "fp16", "s": "fp32", "d": "fp64", "q": "fp8", "o": "fp4", "i": "int8"}
    dtype = "tf32" if unit == "tf32" else letters.get(formats[0], formats)
    return Label("GEMM", ("cuBLAS", arch or "", tile), dtype, more=tuple(rest.split("_")))


def _cutlass_2(name: str) -> Label | None:
    hit = _CUTLASS_2.search(name)
    if not hit:
        return None
    arch, wmma, unit, output, letter, _shape, inner, kind, operand, tile, rest, align = hit.groups()
    uses_mma = unit == "tensorop" or letter == "i"
    dtype = _computes_in(letter, inner or operand or output, uses_mma=uses_mma)
    what = "GEMM" if kind == "gemm" else f"conv {kind}"
    layouts = tuple(_LAYOUT.findall(rest))
    layout = layouts if kind != "gemm" else ()
    where = ("cutlass", f"sm{arch}" if arch else "", "wmma" if wmma else "", tile, *layout, align or "")
    return Label(what, where, dtype, more=(*layouts, *rest.split("_"), unit, name.split("<")[0]))


def _cutlass_3_library(name: str) -> Label | None:
    hit = _CUTLASS_3_LIBRARY.search(name)
    if not hit:
        return None
    arch, inner, operand, tile, rest = hit.groups()
    dtype = _computes_in("s", inner or operand, uses_mma=True)
    return Label("GEMM", ("cutlass", f"sm{arch}", tile), dtype, more=tuple(rest.split("_")))


def _fused_attention(name: str) -> Label | None:
    """PyTorch's memory-efficient attention, TensorRT-LLM's, AITER's and cuDNN's."""
    if hit := _EFFICIENT.search(name):
        side, storage, alignment, tile, arch = hit.groups()
        step = "fwd" if side == "F" else "bwd"
        # kernel_forward.h, OpMultiplyAddFastF32: from Ampere on, three TF32 products make one of floats
        dtype = "3xTF32" if storage == "f32" and int(arch) >= _FIRST_WITH_TF32 else _SHORT_FORMATS[storage]
        return Label(f"mem_eff_attention {step}", ("cutlass", f"sm{arch}", tile), dtype, more=(alignment,))
    if hit := _TRTLLM.search(name):
        arch, dtype, head, rest = hit.groups()
        words = tuple(re.findall(r"[A-Z][a-z]*\d*", rest))
        return Label("attention", ("TensorRT-LLM", f"sm{arch}", f"d{head}"), number_format(dtype), more=words)
    if hit := _FMHA_ASM.search(name):
        side, head, dtype, rest = hit.groups()
        return Label(f"attention {side}", ("AITER", f"d{head}"), dtype, more=tuple(rest.strip("_").split("_")))
    if hit := _CUDNN_SDPA.search(name):
        arch, side, dtype, rest = hit.groups()
        tile = "".join(re.findall(r"\d+x\d+x\d+", rest)[:1])
        words = tuple(rest.split("_"))
        precision = "16-bit" if dtype == "f16" else dtype  # cuDNN 9 calls its kernels for bf16 f16, too
        return Label(f"attention {side}", ("cuDNN", f"sm{arch}", tile), precision, more=words)
    return None


def _flash_attention(name: str) -> Label | None:
    traits = _TRAITS.search(name)
    head = f"d{traits[1]}" if traits else ""
    if "compute_attn_ws" in name:
        return Label("flash_attention 3 fwd", (head,), number_format(name))
    if hit := _FLASH_3.search(name):
        step = re.sub(r"Sm\d+$", "", hit[2]).lower()
        tile = _TILE_OF_THREE.search(name)
        what = f"flash_attention 3 {hit[1].lower()}" + (f"_{step}" if step else "")
        numbers = tuple(re.findall(r"true|false|\d+", name))
        return Label(what, (f"d{tile[3]}" if tile else "",), number_format(name), more=numbers)
    if hit := _FLASH_2.search(name):
        tiles = f"{traits[2]}x{traits[3]}" if traits else ""
        flags = re.findall(r"\b(?:true|false)\b", name.partition(traits[0])[2].partition(">")[2]) if traits else []
        is_split = (
            "splitkv" in hit[2]
        )  # has no dropout: <traits, Is_causal, …>, else <traits, Is_dropout, Is_causal, …>
        words = [word for word, flag in zip(("dropout", "causal")[is_split:], flags, strict=False) if flag == "true"]
        return Label(f"flash_attention {hit[1]}{hit[2]}", (head,), number_format(name), more=(tiles, *words))
    return None


def _miopen(name: str) -> Label | None:
    hit = _IGEMM.search(name)
    if not hit:
        return None
    side, layout, dtype, tile, rest = hit.groups()
    return Label(f"conv {side}", ("MIOpen", layout, tile), dtype, more=tuple(rest.strip("_").split("_")))


def _of_trtllm(name: str) -> Label | None:
    hit = _TRTLLM_GEMM.match(name)
    if not hit:
        return None
    return Label("GEMM", ("TensorRT-LLM", hit[2]), number_format(hit[1]), more=tuple(hit[3].split("_")))


def _triton(name: str) -> Label | None:
    hit = _TRITON.match(name)
    if not hit:
        return None
    what, layouts, formats, tile, activation = hit.groups()
    return Label(what, (activation or "", tile), formats, more=(layouts,))


def _cutlass_3(name: str, cpp: CppName) -> Label | None:
    if cpp.name not in {"device_kernel", "Kernel", "Kernel2"} or "cutlass" not in name:
        return None
    arch = _SM.search(name)
    where = ("cutlass", f"sm{arch[1]}" if arch else "")
    more = tuple(re.findall(r"\w+", name))
    name = re.sub(r"\bint\b", "", name)  # of sizes
    if step := re.search(r"Conv2d(Fprop|Dgrad|Wgrad)", name):
        sizes = re.search(r"GemmShapeILi(\d+)ELi(\d+)", name)
        shape = f"{sizes[1]}x{sizes[2]}" if sizes else ""
        return Label(f"conv {step[1].lower()}", (*where, shape), number_format(name), more=more)
    if "ReduceSplitK" in name:
        return Label("split-K reduce", where, number_format(name), more=more)
    if re.search(r"[gG]emm", name):
        tile, atom = _TILE_OF_THREE.search(name), _MMA_ATOM.search(name)
        size = "x".join(tile.groups()) if tile else ""
        dtype = _SHORT_FORMATS[atom[1].lower()] if atom else "tf32" if "tfloat32_t" in name else number_format(name)
        return Label("GEMM", (*where, size), dtype, more=more)
    inner = re.findall(r"(\w+)(?=<|>|$)", cpp.arguments[0] if cpp.arguments else "")
    return Label(inner[-1] if inner else cpp.name, where, number_format(name), more=more)


def _by_own_name(cpp: CppName) -> Label | None:
    """Kernels of cuBLAS, cuDNN, DeepGEMM and CK that say by their own name what they do."""
    arguments = ", ".join(cpp.arguments)
    dtype = number_format(", ".join(a for a in cpp.arguments if a != "int"))
    numbers = tuple(re.findall(r"\b(\d+)u?\b", arguments))
    if "deep_gemm" in cpp.scope:
        arch = _SM.search(cpp.name)
        where = ("DeepGEMM", f"sm{arch[1]}" if arch else "")
        what = "GEMM" if "gemm" in cpp.name else cpp.name
        return Label(what, where, number_format(cpp.name) or dtype, more=(cpp.name, *numbers))
    if hit := _CUDNN_CONV.search(cpp.name):
        kind = hit[1] or f"{hit[2] or 'precomputed'}_gemm"
        algorithm = "".join(re.findall(r"alg\d+|engine", cpp.name)[:1])
        dtype = "fp32" if "sgemm" in cpp.name else dtype  # it multiplies floats, whatever is stored
        return Label(f"conv {kind}", ("cuDNN", *numbers[:1]), dtype, more=(algorithm, *numbers, *cpp.scope))
    if cpp.scope[:1] == ("ck",) and (hit := re.search(r"conv_(fwd|bwd_data|bwd_weight)", cpp.name)):
        return Label(f"conv {hit[1]}", ("CK",), dtype, more=numbers)
    if cpp.scope[:1] == ("ck",) and "gemm" in cpp.name:
        dtype = "bf16" if dtype == "int16" else dtype  # ck::bhalf_t is unsigned short
        return Label("MoE GEMM" if "moe" in cpp.name else "GEMM", ("CK",), dtype, more=numbers)
    return _of_cublas(cpp, dtype)


def _of_cublas(cpp: CppName, dtype: str) -> Label | None:
    more = cpp.arguments
    if hit := _SMALL_GEMM.match(cpp.name):
        kind = f"small_n {hit[1].lower()}" if hit[1] else "k1" if hit[2] else "large_k"
        dtype = _BLAS_FORMATS[hit[3]] if hit[3] else dtype
        return Label("GEMM", ("cuBLAS", kind), dtype, more=(cpp.name, *more))
    if "gemvx" in cpp.scope:
        return Label("GEMV", ("cuBLAS", "gemvx"), dtype, more=more)
    if hit := _GEMV.match(cpp.name):
        return Label("GEMV", ("cuBLAS", hit[1] or ""), dtype, more=(cpp.name, *more))
    if cpp.name.startswith("splitKreduce"):
        return Label("split-K reduce", ("cuBLAS",), dtype, more=more)
    return Label("GEMM epilogue", ("cuBLAS",), dtype, more=more) if "epilogue" in cpp.scope else None
