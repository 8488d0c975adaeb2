"""C++ names of kernels: where a name begins, its template arguments, its number formats, and mangled names."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ..regex import regex

_ANONYMOUS = regex(r"\(anonymous namespace\)::")
_CLONE = regex(r"\s*\[clone [^\]]*\]$|\.kd$")
_RETURN_TYPE = regex(  # with parentheses, or with a `>` that compares numbers, also as Nsight Systems spells it
    r"^(?:typename )?(?:decltype\s*\([^()]*\)\s*|(?:\w+::){0,3}enable_if\b.*?>::type\s+(?=[\w:(]))"
)
_BRACKET = regex(r"[<>()\[\]{}]")
_PAIRS = {">": "<", ")": "(", "]": "[", "}": "{"}
_LITERAL = regex(r"L([a-z])(n?\d+)E")  # a number as a template argument of a mangled name
_OPERATORS = frozenset({"operator", "operator()"})
_FLAGS = {"0": "false", "1": "true"}
_LENGTH = regex(r"\d+")
_FORMATS = (  # the first that fits
    ("bf16", r"[bB][fF](?:loat)?_?16|DF16b"),
    ("fp16", r"Half|__half2?\b|\bhalf(?:_t)?\b|_Float16|(?<![bB])float16|\bf(?:p)?16|Fp16|DF16_"),
    ("tf32", r"tf(?:loat)?32"),
    ("fp4", r"e2m1|fp4|E2m1"),
    ("fp8", r"e4m3|e5m2|[Ff]p8|[Ff]loat8|E4m3|E5m2|bf8_t|f8\b"),
    ("complex64", r"c10::complex<float>|\bfloat2\b|cuComplex"),
    ("complex128", r"c10::complex<double>|\bdouble2\b|cuDoubleComplex"),
    ("fp64", r"\bdouble\b|\bf64\b|Double"),
    ("fp32", r"\bfloat\b|\bf32\b|\bfp32\b|Float(?!8|16)"),
    ("uint8", r"unsigned char|uint8"),
    ("int8", r"signed char|\bchar\b|int8|\bi8\b"),
    ("int16", r"\bshort\b|int16"),
    ("int64", r"\blong\b|int64|Long"),
    ("int32", r"\bint\b|int32|\bi32\b|Int\b"),
    ("bool", r"\bbool\b|Bool"),
)
_ANY_FORMAT = tuple((name, regex(pattern)) for name, pattern in _FORMATS)
_CAST = regex(r"\((?:unsigned )?\w[\w:]*\)(?=\d)")  # of a number, as a template argument
_OPAQUE = regex(r"OpaqueType<(\d+)u?>")


@dataclass(frozen=True)
class CppName:
    """A kernel's name without its return type and parameters.

    Args:
        scope: The namespaces and classes around it, outermost first, without template arguments.
        name: Its own name, without template arguments.
        arguments: Its template arguments, as written.
        is_mangled: Whether it was mangled; then the arguments are the identifiers among them.
    """

    scope: tuple[str, ...]
    name: str
    arguments: tuple[str, ...] = ()
    is_mangled: bool = False


def parse(name: str) -> CppName:
    """The parts of a name as a driver, or a demangler, gives it."""
    name = _CLONE.sub("", name)
    if name.startswith("_ZN") or re.match(r"_Z\d", name):
        return _parse_mangled(name)
    bare = _RETURN_TYPE.sub("", _ANONYMOUS.sub("", name.removeprefix("void ")))
    bare = split(bare[: _outside(bare, "(")].strip(), " ")[-1]  # without a return type
    parts = split(bare, "::")
    while len(parts) > 1 and (parts[-1] in _OPERATORS or parts[-1].startswith("{")):  # a function object
        parts.pop()
    own = parts[-1] if parts else bare
    begin = _outside(own, "<")
    arguments = split(own[begin + 1 : own.rfind(">")], ",") if begin < len(own) else []
    scope = tuple(part[: _outside(part, "<")] for part in parts[:-1])
    return CppName(scope, own[:begin].strip() or name, tuple(a.strip() for a in arguments))


def split(text: str, separator: str) -> list[str]:
    """The parts between separators that no bracket encloses."""
    parts, begin, depths = [], 0, _depths(text)
    at = text.find(separator)
    while at >= 0:
        if depths[at]:
            at = text.find(separator, at + 1)
            continue
        parts.append(text[begin:at])
        begin = at + len(separator)
        at = text.find(separator, begin)
    return [*parts, text[begin:]]


def number_format(text: str) -> str:
    """The first number format that a text names, such as bf16 for `c10::BFloat16 const*`; empty if there is none."""
    text = _CAST.sub("", text)
    hits = [(hit.start(), -len(hit[0]), name) for name, pattern in _ANY_FORMAT if (hit := pattern.search(text))]
    return min(hits)[2] if hits else ""


def opaque_size(text: str) -> str:
    """Such as 4B, where PyTorch moves elements of four bytes whatever their format; empty otherwise."""
    hit = _OPAQUE.search(text)
    return f"{hit[1]}B" if hit else ""


def snake_case(name: str) -> str:
    """Such as group_norm for GroupNorm, and gather_topk for gatherTopK."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"_+", "_", apart).strip("_").lower()


def _outside(text: str, letter: str) -> int:
    """Where a letter first occurs outside all brackets, or the text's length."""
    if letter not in text:
        return len(text)
    return next((at for at, depth in enumerate(_depths(text)) if text[at] == letter and not depth), len(text))


def _depths(text: str) -> list[int]:
    """How many brackets enclose each character; a bracket itself is outside of what it encloses.

    Within `(…)` an angle bracket without a partner compares numbers, as in `std::enable_if<((8)>(0)), void>`.
    """
    depths, open_brackets, count = list[int](), list[str](), Counter[str]()
    for bracket in _BRACKET.finditer(text):
        depths += [len(open_brackets)] * (bracket.start() - len(depths))
        letter = bracket[0]
        partner = _PAIRS.get(letter)
        if partner == "<" and open_brackets[-1:] == ["<"]:
            count[open_brackets.pop()] -= 1
        elif partner and partner != "<" and count[partner]:
            while (last := open_brackets.pop()) != partner:
                count[last] -= 1
            count[partner] -= 1
        depths.append(len(open_brackets))
        if partner is None:
            open_brackets.append(letter)
            count[letter] += 1
    return depths + [len(open_brackets)] * (len(text) - len(depths))


def _parse_mangled(name: str) -> CppName:
    """The identifiers of a mangled name (Itanium C++ ABI, 5.1): each comes after its own length."""
    scopes, at = [], 3 if name.startswith("_ZN") else 2
    if name.startswith("_ZN12_GLOBAL__N_1"):
        at += len("12_GLOBAL__N_1")
    while length := _LENGTH.match(name, at):
        begin = length.end()
        at = begin + int(length[0])
        scopes.append(name[begin:at].removesuffix("E") if at >= len(name) else name[begin:at])
    if not scopes:
        return CppName((), name)
    return CppName(tuple(scopes[:-1]), scopes[-1], tuple(_identifiers(name[at:])), is_mangled=True)


def _identifiers(name: str) -> list[str]:
    """The identifiers and built-in floating-point types in the rest of a mangled name."""
    identifiers, at = [], 0
    while at < len(name):
        if literal := _LITERAL.match(name, at):
            identifiers.append(_FLAGS.get(literal[2], literal[2]) if literal[1] == "b" else literal[2])
            at = literal.end()
        elif length := _LENGTH.match(name, at):
            end = length.end() + int(length[0])
            identifiers.append(name[length.end() : end])
            at = max(end, at + 1)
        elif name.startswith(("DF16b", "DF16_"), at):
            identifiers.append(name[at : at + 5])
            at += 5
        else:
            at += 1
    return identifiers
