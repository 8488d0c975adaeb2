"""The logdir and the server that the contract tests share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from contract.running import Server, put, serving
from support.read_once import shared_readings  # noqa: F401  a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
from kinetoscope_tb.cli import main


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, two workers, two spans, and files that can't be used."""
    folder = tmp_path_factory.mktemp("logdir")
    put(folder, *(f"job/rank{r}.{s}.pt.trace.json" for r in (0, 1) for s in (2, 10)), "other/host_1.pt.trace.json")
    put(folder, "broken/garbage.pt.trace.json", text="\x00\x01 no trace at all")
    put(folder, "broken/empty.pt.trace.json", text="")
    put(folder, "broken/left.pt.trace.json.tmp", text="{")
    (folder / "secret.txt").write_text("the secret")
    return folder


@pytest.fixture(scope="module")
def server(logdir: Path) -> Iterator[Server]:
    """A TensorBoard that starts as a user starts it."""
    with serving(f"--logdir={logdir}", python=sys.executable) as running:
        yield running


@pytest.fixture
def kinetoscope(capsys):
    """Runs one command; gives its exit status, standard output and standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    return run
