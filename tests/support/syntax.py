"""What tests ask of the sources' syntax. Each file is parsed once, and its tree is dropped: all trees are a million objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
FIELD = (ast.Assign, ast.AnnAssign)  # in the body of a class


@dataclass(frozen=True)
class Syntax:
    """Facts of a file.

    Args:
        imports: Its statements that import something, also those inside functions and for annotations alone.
        functions: The name of each function, and its lines without its docstring.
        names: See `names_given`.
    """

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    functions: tuple[tuple[str, int], ...]
    names: frozenset[str]


@cache
def syntax(path: Path) -> Syntax:
    """The facts of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports, functions = [], []
    for statement in statements(tree):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((statement.name, body_lines(statement)))
    return Syntax(tuple(imports), tuple(functions), frozenset(names_given(tree)))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a node, each before those in it; expressions, which are most of a tree, have none."""
    for block in BLOCKS:
        for inner in getattr(node, block, ()):
            yield inner
            yield from statements(inner)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or 0) - first.lineno + 1


def names_given(tree: ast.Module) -> set[str]:
    """What a module calls its functions, classes, variables and arguments; fields are read behind their objects' names."""
    names, fields = set(), set()
    for node in ast.walk(tree):  # a class before what it holds
        match node:
            case ast.ClassDef(name=name, body=body):
                names.add(name)
                fields |= {id(target) for item in body if isinstance(item, FIELD) for target in ast.walk(item)}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                names.add(name)
    return names
