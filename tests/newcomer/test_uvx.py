"""uv runs the wheels without an installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from contract.opening import opening
from newcomer.installing import ROOT, pack, with_its_needs

if TYPE_CHECKING:
    from pathlib import Path

TRACE = ROOT / "samples" / "h100" / "compiled" / "rank0.25.pt.trace.json.gz"
INSTALLS_WITHIN_S = 600
OURS = ("kinetoscope", "kinetoscope-recorder")


@pytest.fixture(scope="module")
def index(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our wheels and those of all that they need."""
    folder = tmp_path_factory.mktemp("index")
    for wheel in wheels:
        shutil.copy(wheel, folder)
    for name, found in with_its_needs("kinetoscope").items():
        if name not in OURS:
            pack(found, folder)
    return folder


def test_uvx_opens_a_trace_without_an_installation(wheels: list[Path], index: Path, tmp_path: Path):
    environment = {
        "HOME": str(tmp_path),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }
    options = ("--offline", "--no-index", "--find-links", str(index))
    uvx = (sys.executable, "-m", "uv", "tool", "run", *options, "--from", str(wheels[0]), "kinetoscope")
    # The first run installs it, which takes long on a busy machine.
    version = [*uvx, "--version"]
    run = subprocess.run(
        version,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=INSTALLS_WITHIN_S,
    )
    assert (run.returncode, "kinetoscope" in run.stdout.lower()) == (0, True), run.stdout + run.stderr
    with opening(TRACE, "--stay", program=uvx, **environment) as page:
        assert page.enter().status == 200
        assert page.settled("state", **page.place).json["state"] == "ready"
        assert page.settled("answer", **page.place).json["state"] == "ready"
