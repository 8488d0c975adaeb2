"""What every test may ask for."""

import gc
import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from support.cpu_budget import CpuBudget
from support.real_traces import CASES, FOLDER, MISSING, SEEDS, SEEDS_MISSING
from support.side_by_side import processes, sort_by_start
from support.torch_2_15 import FOLDER_2_15, MISSING_2_15

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # some containers set it: then each process compiles all it imports
sys.dont_write_bytecode = False
os.environ["KINETOSCOPE_SCALARS"] = "off"  # but for tests about them: a process each
os.environ["KINETOSCOPE_CACHE"] = "off"  # for processes that tests start too; those about the cache name a folder


def import_polars_with_one_thread() -> None:
    """Import Polars as it is with one thread in this process; those that tests start have as many threads as users'.

    Frames of tests are small: to wake a second thread for each takes longer than what it does, and other tests run on the
    other cores.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("POLARS_MAX_THREADS", "1")
        if import_module("polars").thread_pool_size() != 1:
            raise pytest.UsageError("Polars was imported before tests/conftest.py")


import_polars_with_one_thread()
TESTS = Path(__file__).parent
SLOW = {  # folders and files that `make check` leaves out, each with the kind of its tests
    "blind/test_scores.py": None,
    "blind/test_what_if.py": None,
    "browser": "browser",
    "contract": None,
    "fuzz": "fuzz",
    "integrations": "recorder",
    "newcomer": None,
    "oracle": None,
    "planted": None,
    "property": None,
    "torture": "torture",
    "unit/advice/test_compiled_code.py": "recorder",
    "unit/advice": None,
    "unit/compare/test_host_changes.py": None,
    "unit/diagnostics/test_physics.py": None,
    "unit/distributed/test_identities.py": None,
    "unit/distributed/test_pipeline.py": None,
    "unit/distributed/test_run_advice.py": None,
    "unit/distributed/test_views.py": None,
    "unit/engine": None,
    "unit/producer": "recorder",
    "unit/reader": None,
    "unit/test_dependencies.py": None,
    "unit/test_file_kinds.py": None,
    "unit/test_run_change.py": None,
    "unit/test_systems.py": None,
    "unit/test_work.py": None,
    "unit/views/test_advice.py": None,
    "unit/views/test_kernel_advice.py": None,
    "unit/views/test_serving_advice.py": None,
    "unit/web": None,
}
SLOW_PATHS = {TESTS / place: place for place in SLOW}
OUTSIDE = {MISSING: "traces", SEEDS_MISSING: "seeds", MISSING_2_15: "torch_2_15"}  # why a test is skipped, the fixture


# Folders whose tests mostly wait. The browser's come last, since its event loop stays in the process.
WAITING = ("torture", "contract", "newcomer", "integrations", "unit/producer", "browser")


FAST_CPU_SECONDS = 120  # of all fast tests, with the start of pytest's processes: other work adds up to a third


def pytest_configure(config: pytest.Config) -> None:
    """Refuses names in `SLOW` of what was moved: its tests would count as fast. Gives the fast tests their budget."""
    if gone := [place for place in (*SLOW, *WAITING) if not (TESTS / place).exists()]:
        raise pytest.UsageError(f"SLOW in tests/conftest.py names what isn't there: {', '.join(gone)}")
    if config.option.markexpr == "not slow":
        config.pluginmanager.register(CpuBudget(FAST_CPU_SECONDS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Says how many processes `--numprocesses=auto` is. The fast tests never wait: for them xdist decides."""
    return None if config.option.markexpr == "not slow" else processes()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests for xdist, whose processes take files in this order with `--no-loadscope-reorder`."""
    if hasattr(config, "workerinput"):
        sort_by_start(items, [TESTS / folder for folder in WAITING])


def pytest_collection_finish() -> None:
    """Spares the collector of garbage what stays until the end: it would look through all modules and tests again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@cache
def slow_place_of(path: Path) -> str | None:
    """Which of the slow folders and files a test lies in, the nearest one."""
    return next((SLOW_PATHS[parent] for parent in (path, *path.parents) if parent in SLOW_PATHS), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out what is slow before it is imported, with torch, browsers and servers."""
    is_left_out = config.option.markexpr == "not slow" and slow_place_of(collection_path)
    return True if is_left_out else None  # None leaves it to pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each test with what its folder and its form say of it."""
    place = slow_place_of(item.path)
    if place or needs_files_outside(item) or is_property(item):
        item.add_marker("slow")
    if place and (kind := SLOW[place]):
        item.add_marker(kind)


def needs_files_outside(item: pytest.Item) -> bool:
    """Whether the test reads real traces or documents, which a clone of the repository lacks."""
    reasons = {mark.kwargs.get("reason") for mark in item.iter_markers("skipif")}
    return bool(reasons & OUTSIDE.keys() or set(OUTSIDE.values()) & set(getattr(item, "fixturenames", ())))


def is_property(item: pytest.Item) -> bool:
    """Whether the test runs on many random examples."""
    return hasattr(getattr(item, "obj", None), "hypothesis")


def pytest_make_parametrize_id(val: object) -> None:
    """Wants a name for gzip's bytes: they hold the time, and pytest's processes must agree about what a test is called."""
    if isinstance(val, bytes) and val.startswith(b"\x1f\x8b\x08"):
        raise pytest.UsageError('gzip\'s bytes hold the time: name the case, pytest.param(gzip.compress(…), id="…")')


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real traces."""
    if not FOLDER.is_dir():
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return FOLDER


@pytest.fixture(scope="session")
def cases(traces: Path) -> Path:
    """The folder of small recordings that were once misread; it lies beside the real traces."""
    assert CASES.is_dir()
    return CASES


@pytest.fixture(scope="session")
def seeds() -> Path:
    """The folder of torch's and Composer's documents whose names and examples the recorder takes."""
    if not SEEDS.is_dir():
        if os.environ.get("CI"):
            pytest.fail(SEEDS_MISSING)
        pytest.skip(SEEDS_MISSING)
    return SEEDS


@pytest.fixture(scope="session")
def torch_2_15() -> Path:
    """The folder of files that torch 2.15's writers made."""
    if not FOLDER_2_15.is_dir():
        if os.environ.get("CI"):
            pytest.fail(MISSING_2_15)
        pytest.skip(MISSING_2_15)
    return FOLDER_2_15
