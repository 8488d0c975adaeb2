"""Which names of the standard library some promised system or Python lacks, by typeshed's stubs, which come with mypy."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import mypy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
SYSTEMS = ("linux", "darwin", "win32")
PYTHONS = tuple((3, minor) for minor in range(10, 15))


@cache
def lacking(module: str) -> frozenset[str]:
    """The names of a module that aren't on every system under every Python; all of them if some system lacks the module."""
    path = _stub(module)
    if path is None:
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [frozenset(_names(body, system, python)) for system in SYSTEMS for python in PYTHONS]
    return frozenset.union(*names) - frozenset.intersection(*names)


def posix_only(module: str) -> frozenset[str]:
    """The names of a module that Windows lacks."""
    path = _stub(module)
    body = ast.parse(path.read_text(encoding="utf-8")).body if path else []
    pairs = ((set(_names(body, system, python)), python) for system in ("linux", "darwin") for python in PYTHONS)
    return frozenset().union(*(names - set(_names(body, "win32", python)) for names, python in pairs))


@cache
def modules_lacking() -> frozenset[str]:
    """The modules that some promised system or Python lacks, such as `fcntl` and `tomllib`."""
    versions = {}
    for line in (STUBS / "VERSIONS").read_text(encoding="utf-8").splitlines():
        name, _, span = line.partition("#")[0].partition(":")
        if span.strip():
            first, _, last = span.strip().partition("-")
            versions[name] = tuple(tuple(int(part) for part in text.split(".")) for text in (first, last or "9.9"))
    of_pythons = {name for name, (first, last) in versions.items() if first > PYTHONS[0] or last < PYTHONS[-1]}
    return frozenset(of_pythons | {name for name in versions if _is_empty_on_windows(name)})


def _is_empty_on_windows(module: str) -> bool:
    path = _stub(module)
    if path is None or path.name == "__init__.pyi":
        return False
    body = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if not isinstance(node, ast.ImportFrom)]
    windows, linux = (
        {name for name in _names(body, system, PYTHONS[0]) if name != "sys" and name[0] != "_"}
        for system in ("win32", "linux")
    )
    return bool(linux) and not windows


def _stub(module: str) -> Path | None:
    base = STUBS.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".pyi"), base / "__init__.pyi") if path.exists()), None)


def _names(body: Iterable[ast.stmt], system: str, python: tuple[int, int]) -> Iterator[str]:
    """What the statements of a stub define there."""
    for node in body:
        match node:
            case ast.If():
                is_true = _is_true(node.test, system, python)
                yield from _names(node.body if is_true else node.orelse, system, python)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _is_true(test: ast.expr, system: str, python: tuple[int, int]) -> bool:
    known = {"sys": SimpleNamespace(platform=system, version_info=python), "TYPE_CHECKING": True}
    return bool(eval(compile(ast.Expression(test), "stub", "eval"), known))  # mypy's own files
