"""The page's modules import downward only, and none imports itself by way of others."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "frontend" / "src"

LAYERS = [  # folders from the bottom; a module imports those of its own folder and of the ones before it
    "format",
    "api",
    "app",
    "ui",
    "table",
    "charts",
    "timeline/model",
    "timeline/state",
    "timeline/draw",
    "timeline/input",
    "timeline/search",
    "timeline/panels",
    "timeline/toolbar",
    "timeline",
    "views",
    "views/overview",
    "shell",
    ".",
]

IMPORT = re.compile(r'\bfrom "(\.[^"]+\.tsx?)"')


def imports():
    """The modules that each module imports, types included."""
    return {
        path: {(path.parent / target).resolve() for target in IMPORT.findall(path.read_text(encoding="utf-8"))}
        for path in sorted(SOURCES.rglob("*.ts*"))
    }


def name(path):
    return path.relative_to(SOURCES).as_posix()


def level(path):
    return LAYERS.index(path.parent.relative_to(SOURCES).as_posix())


def test_every_folder_has_its_layer():
    assert sorted({path.parent.relative_to(SOURCES).as_posix() for path in imports()}) == sorted(LAYERS)


def test_imports_point_downward():
    arrows = [(path, target) for path, targets in imports().items() for target in targets]
    assert [f"{name(a)} imports {name(b)}" for a, b in arrows if level(b) > level(a)] == []


def test_no_module_imports_itself():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as cycle:
        raise AssertionError(" <- ".join(map(name, cycle.args[1]))) from None


def test_every_module_is_imported():
    reached = set().union(*imports().values())
    assert [name(path) for path in imports() if path not in reached] == ["index.tsx"]
