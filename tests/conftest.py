"""What every test may ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from real_traces import FOLDER, MISSING, SEEDS, SEEDS_MISSING

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")
os.environ["KINETOSCOPE_SCALARS"] = "off"  # but for tests about them: a process each
os.environ["KINETOSCOPE_CACHE"] = "off"  # for processes that tests start too; those about the cache name a folder


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
def seeds() -> Path:
    """The folder of torch's and Composer's documents whose names and examples the recorder takes."""
    if not SEEDS.is_dir():
        if os.environ.get("CI"):
            pytest.fail(SEEDS_MISSING)
        pytest.skip(SEEDS_MISSING)
    return SEEDS
