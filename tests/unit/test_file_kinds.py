"""Whatever opens a file is on the list of tests/support/file_kinds.py, so that the fuzzers damage what it reads."""

import ast
from pathlib import Path

import pytest

from support.file_kinds import BESIDE, KINDS, OWN

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "producer" / "kinetoscope", ROOT / "tb_plugin" / "kinetoscope_tb")
OPENERS = {
    *("open", "os.open", "io.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open"),
    *("sqlite3.connect", "mmap.mmap", "numpy.load", "numpy.memmap", "numpy.fromfile", "pickle.load", "json.load"),
    *("polars.read_csv", "polars.read_parquet", "polars.read_ipc", "polars.read_json", "polars.scan_parquet"),
    *(f"kinetoscope.untrusted_files.{name}" for name in ("open_plain", "read_plain", "read_json")),
    *(f"kinetoscope_tb.filesystem.{name}" for name in ("stored_bytes", "StoredFile", "Database")),
    *("kinetoscope_tb.filesystem.files.stored_bytes", "kinetoscope_tb.filesystem.regular_files.open_regular"),
    "kinetoscope_tb.reader.input.source.Source",
}
STANDARD_INPUT = {"json.load(sys.stdin)", "pickle.load(sys.stdin.buffer)"}


def modules():
    for folder in PACKAGES:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            yield ".".join(parts[:-1] if is_package else parts), is_package, path


def imported_names(tree, module, *, is_package):
    """What each name of a module stands for, as far as it is imported."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            names |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
    return names


def opens_a_file(call, names):
    """Whether a call opens a file for reading: a known function, or a method of a path."""
    if ast.unparse(call) in STANDARD_INPUT:
        return False
    function = ast.unparse(call.func)
    first, _, rest = function.partition(".")
    if ".".join(filter(None, [names.get(first, first), rest])) in OPENERS:
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    mode = call.args[0] if call.args else ast.Constant("r")
    is_for_reading = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and mode.value.startswith("r")
    return call.func.attr in ("read_text", "read_bytes") or (call.func.attr == "open" and is_for_reading)


def openers():
    """The modules that open files."""
    for module, is_package, path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = imported_names(tree, module, is_package=is_package)
        if any(isinstance(node, ast.Call) and opens_a_file(node, names) for node in ast.walk(tree)):
            yield module


def test_each_module_that_opens_a_file_is_on_the_list():
    listed = {reader for kind in KINDS.values() for reader in kind.readers}
    assert listed.isdisjoint(OWN)
    found = set(openers())
    assert found - listed - OWN.keys() == set(), "say in tests/support/file_kinds.py what these modules read"
    assert (listed | OWN.keys()) - found == set(), "these modules open nothing any more"


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_damaged_by_a_test(name):
    kind = KINDS[name]
    assert kind.tests
    assert [test for test in kind.tests if not (ROOT / "tests" / "fuzz" / test).is_file()] == []
    assert (kind.whole is not None) == (BESIDE in kind.tests)


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("from pathlib import Path\nPath('a').read_text()", True),
        ("import gzip as g\ng.open('a')", True),
        ("from ...filesystem import stored_bytes as content\ncontent('a', 0, 1)", True),
        ("with path.open('rb') as file: pass", True),
        ("with path.open('wb') as file: pass", False),
        ("journal.open(folder, 1)", False),
        ("import json\njson.loads('1')", False),
    ],
)
def test_calls_that_open_a_file_are_recognized(text, opens):
    tree = ast.parse(text)
    names = imported_names(tree, "kinetoscope_tb.reader.nsight.event", is_package=False)
    assert any(isinstance(node, ast.Call) and opens_a_file(node, names) for node in ast.walk(tree)) == opens
