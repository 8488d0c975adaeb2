"""Side-car files about the nodes of CUDA graphs (torch 2.15): where each was launched, and its marks.

`torch.cuda.graph_annotations.dump_kernel_py_stacks` writes an object with a text per node: `file:line:function`, one
frame per line, the innermost first. Marks are a pickle,
unless a recorder writes them as JSON: {"node": [{"name": …}]}. Pickles are never opened.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from ..errors import TraceError
from .input.encodings import whole_characters
from .input.source import Source

SCHEMA = {"node": pl.Int64, "mark": pl.String, "stack": pl.String}
_MOST_BYTES = 256 << 20
_LARGEST = 1 << 63


def read_node_notes(path: str) -> pl.DataFrame:
    """The notes of a side-car file: one row per node (SCHEMA).

    Raises:
        TraceError: It isn't such a file.
    """
    size, parts = 0, []
    with Source(path, 1 << 20) as blocks:
        for block in blocks:
            size += len(block)
            if size > _MOST_BYTES:
                raise TraceError(path, f"it is too large for notes about graphs: over {_MOST_BYTES >> 20} MiB.")
            parts.append(bytes(block))
    try:
        notes = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        problem = "are nested too deeply" if isinstance(error, RecursionError) else "aren't valid JSON"
        raise TraceError(path, f"these notes about graphs {problem}.") from error
    if not isinstance(notes, dict):
        raise TraceError(path, "these notes about graphs aren't an object with a text or a list per node.")
    rows = [
        (int(node), _mark(note), whole_characters(note) if isinstance(note, str) else None)
        for node, note in notes.items()
        if _fits(node)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _fits(node: str) -> bool:
    return node.isdecimal() and node.isascii() and len(node) < 20 and int(node) < _LARGEST


def _mark(note: Any) -> str | None:
    first = note[0] if isinstance(note, list) and note else None
    name = first.get("name") if isinstance(first, dict) else first
    return whole_characters(name) if isinstance(name, str) else None
