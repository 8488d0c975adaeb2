"""Side-car files about the nodes of CUDA graphs (torch 2.15): where each was launched, and its marks.

`torch.cuda.graph_annotations.dump_kernel_py_stacks` writes an object with a text per node: `file:line:function`, one
frame per line, the innermost first. Marks are a pickle,
unless a recorder writes them as JSON: {"node": [{"name": …}]}. Pickles are never opened.

One member is read at a time, and a text that several nodes share is stored once.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from typing import Any

import polars as pl

from ..errors import TraceError
from .input.document import BOM, walk_members
from .input.encodings import whole_characters
from .input.source import Source

SCHEMA = {"node": pl.Int64, "mark": pl.String, "stack": pl.String}
_BLOCK_BYTES = 1 << 20
_MOST_BYTES, _LONGEST_NOTE, _MOST_NODES = 256 << 20, 1 << 20, 1 << 22
_LARGEST = 1 << 63


def read_node_notes(path: str) -> pl.DataFrame:
    """The notes of a side-car file: one row per node with a mark or a stack (SCHEMA).

    Raises:
        TraceError: It isn't such a file, or has more notes than any recording.
    """
    texts: dict[str, int] = {}
    nodes, marks, stacks = array("q"), array("q"), array("q")
    for node, note in _notes(path):
        mark, stack = _mark(note), note if isinstance(note, str) else None
        if _fits(node) and (mark is not None or stack is not None):
            if len(nodes) == _MOST_NODES:
                raise TraceError(path, f"it has notes about more than {_MOST_NODES:,} nodes of graphs.")
            nodes.append(int(node))
            marks.append(_code(mark, texts))
            stacks.append(_code(stack, texts))
    text = pl.Series([None, *texts], dtype=pl.String)
    rows = pl.DataFrame({"node": nodes, "mark": marks, "stack": stacks}, schema=dict.fromkeys(SCHEMA, pl.Int64))
    rows = rows.unique("node", keep="last", maintain_order=True)
    return rows.with_columns(text.gather(rows[name]).alias(name) for name in ("mark", "stack"))


def _notes(path: str) -> Iterator[tuple[str, Any]]:
    """The members of a file's object; without those of which the value can't be read.

    Raises:
        TraceError: The file isn't an object, or isn't whole, or a member is larger than any note.
    """
    rest, size, has_begun, has_ended = b"", 0, False, False
    with Source(path, _BLOCK_BYTES) as blocks:
        for block in blocks:
            size += len(block)
            if size > _MOST_BYTES:
                raise TraceError(path, f"it is too large for notes about graphs: over {_MOST_BYTES >> 20} MiB.")
            text = (rest + bytes(block)).lstrip(b" \t\r\n")
            if not has_begun and (text := text.removeprefix(BOM)) and text[:1] != b"{":
                raise _not_notes(
                    path, "an object with a text or a list per node" if text[:1] in b'["' else "valid JSON"
                )
            has_begun = bool(text)
            walk = walk_members(text, 0)
            for key_start, key_end, begin, end in walk.places.tolist():
                if end < 0:  # `traceEvents`
                    raise _not_notes(path, "an object with a text or a list per node")
                yield text[key_start + 1 : key_end - 1].decode("utf-8", "replace"), _value(text[begin:end])
            rest, has_ended = text[walk.following :], walk.has_ended
            if has_ended or len(rest) > _LONGEST_NOTE:
                break
    if len(rest) > _LONGEST_NOTE and not has_ended:
        raise TraceError(path, f"a note about a graph in it is longer than {_LONGEST_NOTE >> 20} MiB.")
    if rest[:1] != b"}":
        raise _not_notes(path, "valid JSON")


def _not_notes(path: str, form: str) -> TraceError:
    return TraceError(path, f"these notes about graphs aren't {form}.")


def _value(text: bytes) -> Any:
    """A value; None if it can't be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _code(text: str | None, texts: dict[str, int]) -> int:
    """The place of a text behind the place of none."""
    return 0 if text is None else texts.setdefault(whole_characters(text), len(texts) + 1)


def _fits(node: str) -> bool:
    return node.isdecimal() and node.isascii() and len(node) < 20 and int(node) < _LARGEST


def _mark(note: Any) -> str | None:
    first = note[0] if isinstance(note, list) and note else None
    name = first.get("name") if isinstance(first, dict) else first
    return name if isinstance(name, str) else None
