"""What every test may ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from real_traces import FOLDER, MISSING

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")
os.environ["KINETOSCOPE_SCALARS"] = "off"  # but for tests about them: a process each
os.environ["KINETOSCOPE_CACHE"] = "off"  # for processes that tests start too; those about the cache name a folder


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real traces."""
    if not FOLDER.is_dir():
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return FOLDER
