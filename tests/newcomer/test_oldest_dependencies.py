"""The oldest packages that pyproject.toml allows resolve together, start TensorBoard with our tab, and print answers."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from contract.running import serving
from newcomer.installing import ROOT, environment
from support.build import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none; one Python that sees this is enough")
pytestmark = pytest.mark.skipif(sys.version_info[:2] > (3, 12), reason="the oldest NumPy has no wheel for it")

SETUPTOOLS = "setuptools<81"  # TensorBoard until 2.20 imports pkg_resources, which later ones don't have


def floors() -> dict[str, str]:
    """The oldest version of each dependency."""
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    lines = hatch["metadata"]["hooks"]["custom"]["dependencies"]
    return dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups() for line in lines)


@pytest.fixture(scope="module")
def logdir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("logdir") / "job"
    folder.mkdir()
    trace = TraceBuilder().step(1, 0, 9_000_000).op("aten::mm", 1000, 5_000_000)
    (folder / "rank0.9.pt.trace.json").write_text(trace.text())
    return folder.parent


def test_they_start_tensorboard_with_our_tab_and_print_answers(wheels, logdir, tmp_path):
    programs = environment(
        tmp_path / "oldest", wheels, *(f"{name}=={oldest}" for name, oldest in floors().items()), SETUPTOOLS
    )
    shows_our_tab(programs, logdir)
    prints_answers(programs, logdir)


def test_the_oldest_tensorboard_starts_with_the_newest_numpy(wheels, logdir, tmp_path):
    oldest = f"tensorboard=={floors()['tensorboard']}"
    programs = environment(tmp_path / "newest", wheels, oldest, SETUPTOOLS, sees_ours=True)
    version = "import numpy, tensorboard.version; print(tensorboard.version.VERSION, numpy.__version__)"
    shown = subprocess.run([programs / "python", "-c", version], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"{re.escape(floors()['tensorboard'])}\S* [2-9]\..*\n", shown)
    shows_our_tab(programs, logdir)


def shows_our_tab(programs: Path, logdir: Path) -> None:
    with serving("--logdir", str(logdir), python=programs / "python") as server:
        assert server.ask("data/plugins_listing").json["pytorch_profiler"]["enabled"] is not None
        assert server.plugin("static/index.js").status == 200


def prints_answers(programs: Path, logdir: Path) -> None:
    for words, expected in (
        (["summary"], "aten::mm"),
        (["view", "operators"], "aten::mm"),
        (["view", "advice"], "1. "),
    ):
        command = [programs / "kinetoscope", *words, logdir]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        assert expected in shown
