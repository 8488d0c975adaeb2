"""The command `selftest`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..output.scratch import VARIABLE, scratch_root
from .abilities import abilities
from .deaths import Deadline, Deaths
from .results import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .results import Result

_PREFIX = "kinetoscope-selftest-"
_MOST_S, _QUICK_S = 120.0, 60.0


def main(words: Sequence[str]) -> int:
    """Test a folder, and print what survives there; return the exit status: 1 if anything failed."""
    options = _parser().parse_args(words)
    try:
        results = list(selftest(options.folder, is_quick=options.quick))
    except UsageError as error:
        _parser().error(str(error))
    failures = sum(result.outcome == "FAILED" for result in results)
    left_out = sum(result.outcome == "not tried" for result in results)
    sys.stdout.write(f"{table(results)}\n{_summary(failures, left_out, options.folder)}\n")
    return 1 if failures or left_out else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "kinetoscope selftest",
        description="Record small trainings into DIR, kill them in several ways, and say what survives on this machine "
        "and this disk. It takes two minutes at most, and removes what it made.",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder on the disk of your runs")
    parser.add_argument("--quick", action="store_true", help="only what the disk can do, and two trainings")
    return parser


def _summary(failures: int, left_out: int, folder: Path) -> str:
    if failures:
        return f"{failures} failed: recordings into {folder} may be lost in these cases."
    if left_out:
        return f"{left_out} weren't tried."
    return f"Recordings into {folder} survive all of this."


def selftest(folder: Path, *, is_quick: bool = False) -> Iterator[Result]:
    """Yield what survives in a folder.

    Args:
        folder: It must exist; a folder is made in it and removed again.
        is_quick: Whether to leave out most trainings.

    Raises:
        UsageError: The folder can't be written, or torch isn't installed, or this system has no signals.
    """
    if find_spec("torch") is None:
        raise UsageError("A self-test trains with PyTorch, which isn't installed.")
    if not hasattr(os, "killpg"):
        raise UsageError("A self-test kills trainings as Linux and macOS do; this system has no such signals.")
    try:
        own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
    except OSError as error:
        raise UsageError(f"{folder} can't be tested: {error.strerror}.") from error
    before, scratch = os.environ.get(VARIABLE), ""
    try:
        (own / "disk").mkdir()
        yield from abilities(own / "disk")
        scratch = os.environ[VARIABLE] = tempfile.mkdtemp(prefix=_PREFIX, dir=scratch_root().parent)
        yield from Deaths(own / "runs", Deadline(_QUICK_S if is_quick else _MOST_S)).results(is_quick=is_quick)
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before
        for path in filter(None, (str(own), scratch)):
            shutil.rmtree(path, ignore_errors=True)
