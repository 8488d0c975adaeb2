"""What every test may ask for."""

import os
from pathlib import Path

import pytest

from real_traces import FOLDER, MISSING


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real traces."""
    if not FOLDER.is_dir():
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return FOLDER
