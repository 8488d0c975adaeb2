"""What tests ask of the sources' syntax. Each file is parsed once, and its tree is dropped: all trees are a million objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
BY_NAME = ("import_module", "optional_package")
FIELD = (ast.Assign, ast.AnnAssign)  # in the body of a class


@dataclass(frozen=True)
class Syntax:
    """Facts of a file.

    Args:
        imports: Its statements that import something, also those inside functions and for annotations alone, and its
            calls that import a module by its name, as such statements.
        attributes: What it takes of each module that a call imports, as that call names it.
        importing_functions: The name of each function with an import statement inside.
        functions: The name of each function, and its lines without its docstring.
        names: See `names_given`.
    """

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    attributes: frozenset[tuple[str, str]]
    importing_functions: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]
    names: frozenset[str]


@cache
def syntax(path: Path) -> Syntax:
    """The facts of a file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imports_some_by_name = any(f"{function}(" in text for function in BY_NAME)
    imports, importing, functions = list(imports_by_name(tree)) if imports_some_by_name else [], [], []
    for statement in statements(tree):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((statement.name, body_lines(statement)))
            if any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in statements(statement)):
                importing.append(statement.name)
    attributes = frozenset(attributes_by_name(tree) if imports_some_by_name else ())
    return Syntax(tuple(imports), attributes, tuple(importing), tuple(functions), frozenset(names_given(tree)))


def name_of_import(node: ast.AST) -> str | None:
    """The module that a call imports; None if it isn't such a call, or finds the name in a table."""
    match node:
        case ast.Call(func=ast.Name(id=function), args=[ast.Constant(value=str(name)), *_]) if function in BY_NAME:
            return name
    return None


def imports_by_name(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The calls that import a module by its name, as statements that do the same."""
    for name in filter(None, map(name_of_import, ast.walk(tree))):
        path = name.lstrip(".")
        parent, _, last = path.rpartition(".")
        level = len(name) - len(path)
        alias = ast.alias(last if level else name)
        yield ast.ImportFrom(parent or None, [alias], level) if level else ast.Import([alias])


def attributes_by_name(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module as a call names it, attribute): what each function takes of the modules that it imports by their names."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        nodes, variables = list(ast.walk(function)), {}
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=variable)], value=value) if name := name_of_import(value):
                    variables[variable] = name
        for node in nodes:
            match node:
                case ast.Attribute(value=value, attr=attribute) if name := name_of_import(value):
                    yield name, attribute
                case ast.Attribute(value=ast.Name(id=variable), attr=attribute) if variable in variables:
                    yield variables[variable], attribute


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
