"""Readable labels of kernels: what a kernel does, its library, tile and number format, in at most 48 characters.

cpp       C++ names and mangled ones, taken apart
model     the parts of a label
matrix    matmuls, convolutions and attention
pytorch   PyTorch's own kernels, generated ones, and other libraries

Labels are for reading; filters, keys and copies use the full names. tests/unit/names/test_kernel_labels.py holds a
table of real names.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from ..regex import regex
from . import matrix, pytorch
from .cpp import parse
from .model import Label

__all__ = ["LONGEST", "kernel_label", "kernel_labels"]

LONGEST = 48
_RESIDUE = regex(r"(?:true|false|nullptr|decltype|type|void|[A-Za-z])$|.*[(){}<>]", re.DOTALL)
"""Template arguments that say nothing without their parameter's name."""
_MOST_LETTERS = 8192  # of a name that are looked at: the longest real ones have 6,000
_MOST_PARTS = 3  # more parts of a name than this tell people less than a number does


def kernel_label(name: str) -> str:
    """The label of one kernel by itself."""
    return _cut(_label(name).text())


def kernel_labels(names: Iterable[str]) -> dict[str, str]:
    """A label for each name. Distinct kernels have distinct labels: more parts of the name are added where needed."""
    parts_of: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    texts = {name: kernel_label(name) for name in parts_of}
    position = dict.fromkeys(parts_of, 0)
    while groups := _same(texts, parts_of, position):
        for group in groups:
            _add_part(group, parts_of, position)
            texts |= {name: _cut(_label(name).text(parts_of[name])) for name in group}
    for group in _groups(texts):
        for name in group:
            mark = f" ~{zlib.crc32(name.encode()):08x}"[:6]
            texts[name] = _cut(_label(name).text(parts_of[name]), LONGEST - len(mark)) + mark
    return texts


@lru_cache(maxsize=20_000)
def _label(name: str) -> Label:
    name = name[:_MOST_LETTERS]
    cpp = parse(name)
    label = matrix.label(name, cpp) or pytorch.label(name, cpp) or pytorch.by_own_name(name, cpp)
    return replace(label, more=tuple("" if _RESIDUE.match(part) else part for part in label.more))


def _groups(texts: dict[str, str]) -> list[list[str]]:
    """The names that have the same text, where there are several."""
    names = defaultdict(list)
    for name, text in texts.items():
        names[text].append(name)
    return [group for group in names.values() if len(group) > 1]


def _same(texts: dict[str, str], parts_of: dict[str, tuple[str, ...]], position: dict[str, int]) -> list[list[str]]:
    """The names with the same text that have parts left to add."""
    return [
        group
        for group in _groups(texts)
        if len(parts_of[group[0]]) < _MOST_PARTS and any(position[n] < len(_label(n).more) for n in group)
    ]


def _add_part(group: list[str], parts_of: dict[str, tuple[str, ...]], position: dict[str, int]) -> None:
    """Adds to each the next part in which they differ."""
    most = max(len(_label(name).more) for name in group)
    for at in range(max(position[name] for name in group), most):
        parts = {name: (*_label(name).more, *[""] * most)[at] for name in group}
        if len(set(parts.values())) > 1 and all(len(part) <= LONGEST // 2 for part in parts.values()):
            for name, part in parts.items():
                parts_of[name] = (*parts_of[name], part) if part else parts_of[name]
                position[name] = at + 1
            return
    for name in group:
        position[name] = most


def _cut(text: str, longest: int = LONGEST) -> str:
    """The text, cut at its end."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
