"""The oldest packages that pyproject.toml allows resolve together, start TensorBoard with our tab, and print answers."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from newcomer.installing import ROOT, environment
from support.build import TraceBuilder
from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none; one Python that sees this is enough")
pytestmark = pytest.mark.skipif(sys.version_info[:2] > (3, 12), reason="the oldest NumPy has no wheel for it")

STARTS_WITHIN_S = 90
SETUPTOOLS = "setuptools<81"  # TensorBoard until 2.20 imports pkg_resources, which later ones don't have


def floors() -> dict[str, str]:
    """The oldest version of each dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups() for line in project["dependencies"])


@pytest.fixture(scope="module")
def logdir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("logdir") / "job"
    folder.mkdir()
    trace = TraceBuilder().step(1, 0, 9_000_000).op("aten::mm", 1000, 5_000_000)
    (folder / "rank0.9.pt.trace.json").write_text(trace.text())
    return folder.parent


@contextmanager
def tensorboard(programs: Path, logdir: Path) -> Iterator[str]:
    """The address of a TensorBoard of an environment, which ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [programs / "tensorboard", "--logdir", logdir, "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            wait_for(lambda: _answers(port, process), STARTS_WITHIN_S)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _answers(port: int, process: subprocess.Popen[str]) -> bool:
    assert process.poll() is None, process.communicate()[0]
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_they_start_tensorboard_with_our_tab_and_print_answers(wheel, logdir, tmp_path):
    programs = environment(
        tmp_path / "oldest", wheel, *(f"{name}=={oldest}" for name, oldest in floors().items()), SETUPTOOLS
    )
    shows_our_tab(programs, logdir)
    prints_answers(programs, logdir)


def test_the_oldest_tensorboard_starts_with_the_newest_numpy(wheel, logdir, tmp_path):
    oldest = f"tensorboard=={floors()['tensorboard']}"
    programs = environment(tmp_path / "newest", wheel, oldest, SETUPTOOLS, sees_ours=True)
    version = "import numpy, tensorboard.version; print(tensorboard.version.VERSION, numpy.__version__)"
    shown = subprocess.run([programs / "python", "-c", version], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"{re.escape(floors()['tensorboard'])}\S* [2-9]\..*\n", shown)
    shows_our_tab(programs, logdir)


def shows_our_tab(programs: Path, logdir: Path) -> None:
    with tensorboard(programs, logdir) as address:
        with urllib.request.urlopen(f"{address}data/plugins_listing", timeout=60) as answer:
            assert json.load(answer)["pytorch_profiler"]["enabled"] is not None
        with urllib.request.urlopen(f"{address}data/plugin/pytorch_profiler/static/index.js", timeout=60) as answer:
            assert answer.status == 200


def prints_answers(programs: Path, logdir: Path) -> None:
    for words, expected in ((["summary"], "aten::mm"), (["view", "operators"], "5.000"), (["view", "advice"], "1. ")):
        command = [programs / "kinetoscope", *words, logdir]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        assert expected in shown
