"""Docstrings that users read, of tables and commands; they work under `python -OO` too."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any

ARE_LEFT_OUT = sys.flags.optimize > 1
"""Whether Python has removed all docstrings, as with -OO."""


def docstring(target: type | Callable[..., Any]) -> str:
    """The docstring of a class or function, from its source if Python removed it; empty if there is none."""
    text = target.__doc__
    if text is None and ARE_LEFT_OUT:
        text = _in_source(target)
    return inspect.cleandoc(text or "")


def _in_source(target: type | Callable[..., Any]) -> str | None:
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(target))).body
    except (OSError, TypeError, SyntaxError, ValueError):  # no source, as in an archive of compiled files
        return None
    is_documented = isinstance(node, (ast.ClassDef, ast.FunctionDef))
    return ast.get_docstring(node) if is_documented else None  # type: ignore[arg-type]  # checked above
