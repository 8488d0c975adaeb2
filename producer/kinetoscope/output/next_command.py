"""Says how to look at a run's traces when a training has ended: in one line, once a process.

The line is a message of the logger `kinetoscope` where that shows messages of level INFO, and else on standard error. A
logger of level ERROR or above shows neither.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

_LOG = logging.getLogger("kinetoscope")
_pids: set[int] = set()
"""The processes that have said it; one that was forked is another one."""


def say_next_command(traces: int, logdir: Path, folder: Path) -> None:
    """Say it, unless this process has.

    Args:
        traces: How many traces were saved.
        logdir: The folder of all runs.
        folder: The run's folder.
    """
    if os.getpid() in _pids or not _LOG.isEnabledFor(logging.WARNING):
        return
    _pids.add(os.getpid())
    commands = [f"kinetoscope summary {_shell_path(folder)}"] if find_spec("kinetoscope_tb") is not None else []
    commands.append(f"tensorboard --logdir {_shell_path(logdir)}")
    what = "1 trace" if traces == 1 else f"{traces} traces"
    text = f"{what} in {_shell_path(folder)}. Next: {' or '.join(commands)}"
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s", text)
    elif sys.stderr is not None:
        print(f"kinetoscope: {text}", file=sys.stderr)  # noqa: T201


def _shell_path(path: Path) -> str:
    """Return a path as an argument for a shell in the current folder."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here)) if path.is_relative_to(here) else str(path))
