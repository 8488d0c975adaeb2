"""Imports point down only, importing is cheap where it must be, and functions stay readable.

First what holds, as data; then how it is held. Each test names all that breaks its rule.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from support.syntax import syntax

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Package:
    """The order of what lies directly in a package: its modules, and its packages each as a whole.

    Args:
        folder: Where it lies.
        layers: Its parts from the top. None imports one of its own row or of a row above.
        entry_points: Parts above the rows, or that import what is above them by its name, and what each imports.
    """

    folder: str
    layers: list[set[str]]
    entry_points: dict[str, set[str]] = field(default_factory=dict)


PACKAGES = {
    "kinetoscope_tb": Package(
        "tb_plugin/kinetoscope_tb",
        layers=[
            {"plugin", "cli", "api"},
            {"web", "notebook"},
            {"answer", "engine", "export", "views"},
            {"advice", "diagnostics", "history", "timeline"},
            {"compare", "distributed"},
            {"critical_path", "reader", "terminal_table", "view"},
            {"discovery", "measures", "text_table"},
            {"filesystem", "table", "text_query", "trace"},
            {"arrays", "docstrings", "entries", "errors", "names", "pictures"},
        ],
        entry_points={"loader": {"plugin"}, "__init__": {"api"}, "__main__": {"cli"}},
    ),
    "kinetoscope": Package(
        "producer/kinetoscope",
        layers=[
            {"demo", "integrations", "selftest"},
            {"__init__", "composer", "profiler"},
            {"tracer"},
            {"handler", "session"},
            {"journal", "profiling"},
            {"output", "sampling"},
            {"error_log", "job", "progress", "scheduling", "signals"},
            {"argument_checks", "atomic_write", "byte_sizes", "untrusted_files"},
            {
                "_version",
                "child_process",
                "errors",
                "events",
                "naming",
                "optional_packages",
                "path_below",
                "process_id",
            },
        ],
        entry_points={"__main__": {"integrations", "selftest"}},
    ),
    "kinetoscope.composer": Package(
        "producer/kinetoscope/composer",
        layers=[
            {"__init__"},
            {"profiler"},
            {"system_profiler", "json_traces", "marker"},
            {"torch_profiler"},
            {"folders", "schedule", "trace_handler"},
            {"state"},
            {"actions", "timestamp"},
        ],
    ),
}

WITHOUT_A_CIRCLE = ["kinetoscope_tb", "kinetoscope"]  # module by module

FROM_THE_PRODUCER = {  # what the viewer's parts import of the recorder: names and formats that both must agree about
    "__init__": {"kinetoscope._version"},
    "engine": {"kinetoscope.optional_packages"},
    "filesystem": {"kinetoscope.optional_packages"},
    "discovery": {
        *("kinetoscope.output.manifest", "kinetoscope.naming", "kinetoscope.errors"),
        *(
            "kinetoscope.scheduling.request",
            "kinetoscope.journal.journal",
            "kinetoscope.journal.status",
            "kinetoscope.job.rank_info",
            "kinetoscope.path_below",
        ),
    },
    "reader": {*(f"kinetoscope.journal.{name}" for name in ("ending", "journal", "status")), "kinetoscope.output.ring"},
    "distributed": {"kinetoscope.journal.ending", "kinetoscope.journal.status", "kinetoscope.output.ring"},
    "export": {"kinetoscope._version", "kinetoscope.naming", "kinetoscope.atomic_write", "kinetoscope.path_below"},
    "cli": {
        *("kinetoscope.journal.recover", "kinetoscope.journal.status", "kinetoscope.journal.unfinished_windows"),
        *("kinetoscope.integrations.program", "kinetoscope.selftest.command"),
        *("kinetoscope.journal.prune", "kinetoscope.byte_sizes", "kinetoscope.optional_packages"),
    },
}
WITHOUT_TORCH = [
    "naming",
    "scheduling.request",
    "journal.status",
    "journal.journal",
    "journal.recover",
    "journal.prune",
    "selftest.command",
]  # of the recorder, for readers too

IMPORT_INSIDE = ["kinetoscope_tb.plugin._site_of_logdirs"]  # TensorBoard's start waits for no Polars

VIEWS = "kinetoscope_tb.views"  # a view imports no other view

MOST_LAYERS = 9
MOST_LINES_OF_A_FUNCTION = 40


# ---- the graph of imports


@cache
def modules():
    """The path of each module by its name; a package's name is that of its `__init__`."""
    paths = {}
    for folder in (ROOT / "producer" / "kinetoscope", ROOT / "tb_plugin" / "kinetoscope_tb"):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


@cache
def imports(module):
    """The modules that a module imports anywhere: also inside functions, by their names, and for annotations alone."""
    names = set()
    for node in syntax(modules()[module]).imports:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            origin = _origin(module, node)
            members = {f"{origin}.{alias.name}" for alias in node.names}
            names |= members & modules().keys()
            if members - modules().keys():
                names.add(origin)
    return frozenset(names)


def _origin(module, node):
    """What stands behind `from`, as a whole name."""
    if not node.level:
        return node.module
    package = module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def part_of(module, package):
    """What a module belongs to among the parts of a package: `__init__` is the package itself."""
    return module.removeprefix(package).lstrip(".").split(".")[0] or "__init__"


def within(name, package):
    return name == package or name.startswith(f"{package}.")


# ---- what holds of it


@pytest.mark.parametrize("name", PACKAGES)
def test_every_part_of_a_package_has_its_row(name):
    package = PACKAGES[name]
    rows = [part for row in package.layers for part in row]
    assert len(package.layers) <= MOST_LAYERS
    assert sorted([*rows, *package.entry_points]) == sorted({part_of(m, name) for m in modules() if within(m, name)})


@pytest.mark.parametrize("name", PACKAGES)
def test_imports_point_down(name):
    package = PACKAGES[name]
    row = {part: number for number, parts in enumerate(package.layers) for part in parts}
    upward = []
    for module in filter(lambda module: within(module, name), modules()):
        part = part_of(module, name)
        for other in {part_of(other, name) for other in imports(module) if within(other, name)} - {part}:
            is_below = other in package.entry_points.get(part, ()) or row.get(other, -1) > row.get(part, len(row))
            upward += [] if is_below else [f"{module} imports {name}.{other}"]
    assert upward == []


@pytest.mark.parametrize("package", WITHOUT_A_CIRCLE)
def test_no_imports_go_in_a_circle(package):
    graph = {m: {o for o in imports(m) if within(o, package)} for m in modules() if within(m, package)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_imports_are_at_the_top_of_a_module():
    names = ((module, name) for module, path in modules().items() for name in syntax(path).importing_functions)
    assert [f"{module}.{name}" for module, name in names] == IMPORT_INSIDE


def test_what_is_imported_by_name_is_there():
    missing = []
    for module in modules():
        for name, attribute in syntax(modules()[module]).attributes:
            level = len(name) - len(name.lstrip("."))
            other = _origin(module, ast.ImportFrom(name[level:], [], level))
            is_ours = other.partition(".")[0] in WITHOUT_A_CIRCLE
            if is_ours and (other not in modules() or attribute not in syntax(modules()[other]).names):
                missing.append(f"{module}: {other}.{attribute}")
    assert missing == []


def test_views_do_not_import_each_other():
    views = [module for module in modules() if within(module, VIEWS) and module != VIEWS]
    assert [(view, other) for view in views for other in imports(view) if within(other, VIEWS)] == []


def test_the_viewer_never_imports_torch_and_of_the_recorder_only_what_both_must_agree_about():
    foreign = {
        (part_of(module, "kinetoscope_tb"), name)
        for module in modules()
        if within(module, "kinetoscope_tb")
        for name in imports(module)
        if within(name, "torch") or within(name, "kinetoscope")
    }
    allowed = {(part, name) for part, names in FROM_THE_PRODUCER.items() for name in names}
    assert foreign - allowed == set()
    assert allowed - foreign == set()  # what nobody imports any more


def test_functions_are_short():
    functions = ((module, *function) for module, path in modules().items() for function in syntax(path).functions)
    assert [f"{module}.{name}" for module, name, lines in functions if lines > MOST_LINES_OF_A_FUNCTION] == []


# ---- what importing costs


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


def test_what_is_for_readers_too_needs_no_torch():
    assert "torch" not in modules_after("; ".join(f"import kinetoscope.{module}" for module in WITHOUT_TORCH))
