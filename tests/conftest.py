"""What every test may ask for."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real traces from many torch versions and devices; they are others' data and not in the repository."""
    default = Path(__file__).resolve().parents[1].parent / "shared" / "traces"
    folder = Path(os.environ.get("KINETOSCOPE_TRACES", default))
    if not folder.is_dir():
        reason = f"the real traces aren't at {folder}; set KINETOSCOPE_TRACES"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
