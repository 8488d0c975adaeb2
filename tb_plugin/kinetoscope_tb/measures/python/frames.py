"""Names of Python calls: the frames of torch's stacks.

A frame is `file.py(12): function`, `<built-in function len>` or `nn.Module: Linear_0`. Some built-in frames contain the
address of their object, which differs from call to call and is removed.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, categories_of, category_codes
from ...names.python_frames import FRAME
from ..calls.call_tree import MergedTree, Rows

_ADDRESS = r" at 0x[0-9a-fA-F]+"
MOST_FRAMES = 1000  # of one stack: Python's own recursion limit
OUTER = "[more frames]"
SEPARATOR = "\n"  # between the frames of a stack, the innermost of which comes first
IN_TEXT = ";"  # between them in torch's text


def functions(names: pl.Series) -> tuple[Rows, list[str]]:
    """(index of each call's function, the functions): names without addresses; NONE if there is no name."""
    texts = without_addresses(categories_of(names))
    distinct = texts.unique(maintain_order=True)
    indices = texts.replace_strict(distinct, pl.Series(range(distinct.len())), return_dtype=pl.Int32)
    index = np.append(indices.to_numpy(), NONE).astype(np.int32)
    return index[category_codes(names)], distinct.to_list()


def without_addresses(names: pl.Series) -> pl.Series:
    """Names of built-in functions without the addresses of their objects."""
    return names.str.replace_all(_ADDRESS, "")


def frames_of_text(text: str) -> list[str]:
    """The frames of a `Call stack` as torch writes it: innermost first, each ending with a semicolon."""
    return [frame.strip() for frame in text.split(IN_TEXT) if frame.strip()]


def parse_frames(frames: pl.Series) -> pl.DataFrame:
    """Columns `function`, `file` and `line`; without a file the function is the whole frame."""
    parts = frames.to_frame("frame").select("frame", at=pl.col("frame").str.extract_groups(FRAME))
    return parts.select(
        function=pl.coalesce(pl.col("at").struct.field("function"), "frame"),
        file=pl.col("at").struct.field("file"),
        line=pl.col("at").struct.field("line").cast(pl.Int64),
    )


def stack_texts(tree: MergedTree, functions: list[str], nodes: Rows, *, separator: str = SEPARATOR) -> list[str]:
    """The frames from each node to its root, joined; at most the MOST_FRAMES innermost."""
    code, parent = tree.code.data, tree.parent.data  # faster than arrays for single elements
    texts = []
    for node in nodes.tolist():
        frames: list[str] = []
        while node >= 0 and len(frames) < MOST_FRAMES:
            frames.append(functions[code[node]])
            node = parent[node]
        if node >= 0:
            frames.append(OUTER)
        texts.append(separator.join(frames))
    return texts
