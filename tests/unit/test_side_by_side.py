"""Processes of pytest side by side: one more than cores, and what waits starts first."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.side_by_side import processes, sort_by_start

pytest_plugins = ["pytester"]

CONFTEST = """
from pathlib import Path

from support.side_by_side import sort_by_start

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: slow")

def pytest_collection_modifyitems(items):
    sort_by_start(items, [Path(__file__).parent / "browser"])
"""
TESTS = Path(__file__).parents[1]
WAITING = ("browser", "unit/trainings")
FILES = {  # name: tests, whether they are slow
    "unit/test_names.py": (9, False),
    "unit/trainings/test_windows.py": (1, True),
    "property/test_sums.py": (2, True),
    "property/test_trees.py": (3, True),
    "browser/test_page.py": (1, True),
}


def items_of(root):
    """The tests of the files, in the order in which pytest finds them."""
    marks = {True: "mark of slow tests", False: None}
    return [
        SimpleNamespace(path=root / name, number=number, get_closest_marker=lambda _, is_slow=is_slow: marks[is_slow])
        for name, (count, is_slow) in FILES.items()
        for number in range(count)
    ]


def test_files_that_wait_start_first_and_fast_ones_last(tmp_path):
    items = items_of(tmp_path)
    sort_by_start(items, [tmp_path / folder for folder in WAITING])
    assert list(dict.fromkeys(str(item.path.relative_to(tmp_path)) for item in items)) == [
        "browser/test_page.py",
        "unit/trainings/test_windows.py",
        "property/test_trees.py",
        "property/test_sums.py",
        "unit/test_names.py",
    ]
    assert [item.number for item in items[-9:]] == list(range(9))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs the cores that a process may use")
def test_there_is_one_process_more_than_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5})
    assert processes() == 3


@pytest.mark.slow
def test_processes_of_pytest_take_what_waits_first(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(**{"test_names": "def test_names(): pass", "browser/test_page": "def test_page(): pass"})
    options = ("-n", "auto", "--dist=loadfile", "--no-loadscope-reorder", "--maxprocesses=1", "-v")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:playwright", *options)
    result.stdout.fnmatch_lines(["*1 worker*", "*PASSED*test_page*", "*PASSED*test_names*"])
