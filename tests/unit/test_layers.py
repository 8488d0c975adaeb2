"""Imports point down only, importing is cheap where it must be, and functions stay readable."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VIEWER = ROOT / "tb_plugin" / "kinetoscope_tb"
PRODUCER = ROOT / "producer" / "kinetoscope"

LAYERS = [  # from the top; a unit is a module, or a package whose own modules may import each other
    {"plugin", "cli", "profile"},
    {"web"},
    {"store"},
    {"cache"},
    {"analyses", "compare", "timeline", "rewriting", "verification", "jobs"},
    {"views", "discovery", "reader", "checks", "advice", "ranks"},
    {"dependencies"},
    {"trace", "storage"},
    {"tables", "intervals", "curves", "kernel_names", "tensor_cores", "call_names", "device_peaks", "errors"},
    {"compiling"},
    {"private_folders"},
    {"docstrings"},
]
APART = {"loader": {"plugin"}, "__init__": {"profile"}}  # entry points: they import it inside a function
FROM_PRODUCER = {  # the arrows between the packages
    "discovery": {"kinetoscope.manifest", "kinetoscope.naming"},
    "rewriting": {"kinetoscope.naming"},
    "jobs": {"kinetoscope.errors", "kinetoscope.requests", "kinetoscope.sidecar", "kinetoscope.status"},
    "cli": {"kinetoscope.recover", "kinetoscope.status", "kinetoscope.unfinished"},
}
COMPOSER_LAYERS = [  # from the top, imports for annotations included; no module imports one of its own row
    {"__init__"},
    {"profiler"},
    {"system_profiler", "json_trace_handler", "marker"},
    {"torch_profiler"},
    {"folders", "schedule", "trace_handler"},
    {"state"},
    {"actions", "timestamp"},
]
VIEWS_APART = "analyses"  # here even the package's own modules don't import each other

MOST_LINES_OF_A_FUNCTION = 40


def sources(package):
    return sorted(p for p in package.rglob("*.py") if "static" not in p.parts)


def unit_of(path):
    return path.relative_to(VIEWER).with_suffix("").parts[0]


def imported(path):
    """The module of each import, at any depth of the file; a relative one as a path from the package."""
    package = path.relative_to(VIEWER.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            yield from (".".join(filter(None, [*base, "" if node.module else alias.name])) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def level(unit):
    return next(i for i, row in enumerate(LAYERS) if unit in row)


@pytest.mark.parametrize("path", sources(VIEWER), ids=lambda p: p.relative_to(VIEWER).as_posix())
def test_imports_point_down(path):
    unit = unit_of(path)
    others = {name.split(".")[1] for name in imported(path) if name.startswith("kinetoscope_tb.")} - {unit}
    if unit in APART:
        assert others <= APART[unit]
    else:
        assert [other for other in others if level(other) <= level(unit)] == []


def test_composer_s_modules_import_downward_only():
    package = PRODUCER / "composer"
    rows = {name: row for row, names in enumerate(COMPOSER_LAYERS) for name in names}
    assert {path.stem for path in sources(package)} == set(rows)
    upward = []
    for path in sources(package):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                others = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
                upward += [(path.stem, other) for other in others if rows[other] <= rows[path.stem]]
    assert upward == []


@pytest.mark.parametrize("path", sources(VIEWER / VIEWS_APART), ids=lambda p: p.name)
def test_views_do_not_import_each_other(path):
    if path.name != "__init__.py":
        assert [name for name in imported(path) if name.startswith(f"kinetoscope_tb.{VIEWS_APART}")] == []


@pytest.mark.parametrize("path", sources(VIEWER), ids=lambda p: p.relative_to(VIEWER).as_posix())
def test_the_viewer_never_imports_torch_and_knows_only_the_producer_s_names(path):
    foreign = {name for name in imported(path) if name.split(".")[0] in ("torch", "kinetoscope")}
    assert foreign <= FROM_PRODUCER.get(unit_of(path), set())


def test_functions_are_compiled_in_one_way():
    apart = {"compiling.py", "scan.py"}  # the way itself, and what is inlined into compiled functions
    by_hand = [p.name for p in sources(VIEWER) if "njit(" in p.read_text(encoding="utf-8") and p.name not in apart]
    assert by_hand == []


@pytest.mark.parametrize("path", [*sources(VIEWER), *sources(PRODUCER)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_functions_are_short(path):
    functions = (
        n
        for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert [f.name for f in functions if body_lines(f) > MOST_LINES_OF_A_FUNCTION] == []


def body_lines(function):
    """Lines of a function without its docstring."""
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return function.end_lineno - first.lineno + 1


def modules_after(statement):
    code = f"import sys; {statement}; print(*sorted(m.split('.')[0] for m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_entry_point_imports_nothing_heavy():
    loaded = modules_after("import kinetoscope_tb.loader") - modules_after(
        "from tensorboard.plugins import base_plugin"
    )
    assert loaded - sys.stdlib_module_names == {"kinetoscope_tb"}


def test_the_package_imports_nothing_until_something_is_opened():
    loaded = modules_after("import kinetoscope_tb") - modules_after("pass")
    assert loaded - sys.stdlib_module_names == {"kinetoscope_tb"}


@pytest.mark.parametrize("module", ["naming", "requests", "status", "sidecar", "recover"])
def test_what_is_for_readers_too_needs_no_torch(module):
    assert "torch" not in modules_after(f"import kinetoscope.{module}")
