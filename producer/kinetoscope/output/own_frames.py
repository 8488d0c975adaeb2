"""Leaves the recorder's own Python calls out of a trace with call stacks.

A step or marker begins in the middle of the recorder's call that begins it, and ends in the middle of another one: such
slices overlap partially, which no viewer can draw (pytorch#174555). The program's own calls, and torch's, stay; those
that the recorder made get its caller as their parent. The time of what is left out is its caller's own.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

_FRAME = re.compile(
    rb'  \{\s*"ph": "X",\s*"cat": "python_function",\s*"name": "((?:[^"\\]|\\.)*)",\s*"pid": \d+,\s*"tid": (\d+),'
    rb'[^{}]*"args": \{\s*"Python parent id": (null|\d+),(\s*"Python id": (\d+)[^{}]*\}\s*\},\n)'
)
"""A Python call as kineto writes it: name, thread, parent's id, the rest of the event, and its own id."""

_PACKAGE = (b"kinetoscope/", f"{Path(__file__).parents[1].as_posix()}/".encode())
"""torch cuts the entries of `sys.path` off the names of files."""
_HELPERS = (b"<built-in ", b"<frozen ", b"torch/autograd/profiler.py(", b"torch/_ops.py(")
_MODULE = re.compile(rb"(\w+)[/.]")
_NEXT = b"<built-in function next>"
"""The call of a program's loader."""


class OwnFrames:
    """The recorder's calls in one trace, which has each call before the calls that it makes.

    Args:
        threads: The native ids of the recorder's own threads.
    """

    def __init__(self, threads: Collection[int]) -> None:
        self._threads = {str(tid).encode() for tid in threads}
        self._parents: dict[bytes, bytes] = {}
        """By each call that is left out the nearest caller that stays."""

    def remove(self, text: bytes) -> bytes:
        """Return whole events without the recorder's calls."""
        return _FRAME.sub(self._replace, text) if b'"python_function"' in text else text

    def _replace(self, match: re.Match[bytes]) -> bytes:
        name, tid, parent, rest, number = match.groups()
        caller = self._parents.get(parent)
        if (caller is not None and _is_helper(name)) or tid in self._threads or name.startswith(_PACKAGE):
            self._parents[number] = parent if caller is None else caller
            return b""
        return match[0] if caller is None else match[0][: match.start(3) - match.start()] + caller + b"," + rest


def _is_helper(name: bytes) -> bool:
    """Whether what the recorder calls is its own business: a builtin, the standard library, or torch's ranges."""
    module = _MODULE.match(name)
    is_library = module is not None and module[1].decode() in sys.stdlib_module_names
    return is_library or (name.startswith(_HELPERS) and name != _NEXT)
