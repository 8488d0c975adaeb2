"""Which folder a run gets when one of that name is there: `{run}.1`, `{run}.2` and so on.

A job that starts again, or another one of the same name, must not mix its traces with what is there. Each attempt has
a token that all its processes know, and leaves it in the folder that it takes: `.work/attempt`. Files of others, such
as TensorBoard's own, take no folder.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import itertools
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from .naming import parse
from .plain_files import make_folder_below, read_plain, replace_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_JOBS = (  # what the processes of one attempt have in common, and those of another one have not
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
    ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
    ("PMIX_NAMESPACE",),
    ("OMPI_MCA_ess_base_jobid",),
)


def token_from(environ: Mapping[str, str], number: int) -> str:
    """Return what a launcher's variables say of the attempt; something random where they say nothing.

    Args:
        environ: The variables.
        number: Which of the process's recorders it is.
    """
    for names in _JOBS:
        if names[0] in environ:
            return "/".join([*(environ.get(name, "") for name in names), _launcher(environ), str(number)])
    return uuid.uuid4().hex


def _launcher(environ: Mapping[str, str]) -> str:
    """Return what tells one torchrun from the next, where one alone starts all processes; else nothing.

    By default torchrun calls each job `none` and has it meet at the same port; only its folder for errors is new.
    """
    file, size = environ.get("TORCHELASTIC_ERROR_FILE", ""), environ.get("WORLD_SIZE")
    return str(Path(file).parents[1]) if len(Path(file).parents) > 2 and size == environ.get("LOCAL_WORLD_SIZE") else ""


def claimed(logdir: Path, name: str, token: str, *, overwrite: bool = False) -> str:
    """Return the run's name with the number of the attempt, and take its folder.

    Args:
        logdir: Where runs have their folders.
        name: The run's name.
        token: Whose attempt it is.
        overwrite: Whether to take the folder of that name, whatever is there.

    Raises:
        OSError: No folder can be made there.
    """
    for number in itertools.count():
        attempt = f"{name}.{number}" if number else name
        mark = logdir / attempt / ".work" / "attempt"
        if overwrite:
            make_folder_below(logdir / attempt, ".work")
            replace_plain(mark, token.encode())
            return attempt
        owner = _owner(mark)
        if owner is None and not _has_traces(logdir / attempt):
            owner = _taken(mark, token)
        if owner == token:
            return attempt
    raise AssertionError


def _owner(mark: Path) -> str | None:
    try:
        return read_plain(mark).decode(errors="replace")
    except FileNotFoundError:
        return None


def _has_traces(folder: Path) -> bool:
    return folder.is_dir() and any(parse(path.name) is not None for path in folder.iterdir())


def _taken(mark: Path, token: str) -> str:
    """Leave the token unless somebody else was faster; return whose is there."""
    make_folder_below(mark.parent.parent, ".work")
    own = mark.with_name(f"attempt-{uuid.uuid4().hex}")
    own.write_text(token, encoding="utf-8")
    try:
        os.link(own, mark)  # unlike a new file, it has its content from the first moment
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        own.replace(mark)
    finally:
        own.unlink(missing_ok=True)
    return _owner(mark) or ""
