"""Which folder a run gets if its name exists already: `{run}.1`, `{run}.2` and so on.

A job that restarts, or another one of the same name, must not mix its traces with existing ones. Each attempt has a
token that all its processes know, and writes it into the folder that it claims: `.work/attempt`. Files of other
programs, such as TensorBoard's own, don't claim a folder.

Processes without a common store find each other through the logdir. The first one writes a record of its attempt,
named by the launcher's variables; those that began in the same minute join it, each rank once. By default torchrun
sets the same variables for all jobs of several machines, so such a process can't be sure whose attempt it joins.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_write import create_file, replace_file
from ..naming import parse
from ..path_below import PathBelow
from ..untrusted_files import read_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_JOBS = (  # equal in all processes of one attempt, and different in those of another one
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
    ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
    ("PMIX_NAMESPACE",),
    ("OMPI_MCA_ess_base_jobid",),
)
_JOIN_FOLDER = ".kinetoscope"
_MOST_BYTES = 1 << 16

START_WINDOW_S = 60
"""Within this time launchers start all processes of an attempt, including clock differences."""

DOUBT = (
    "can't be sure that these ranks belong to one job: the processes share only the logdir, and their launcher "
    "sets the same variables for each job (give each job its own --rdzv-id and --master-port, or a run name)"
)


@dataclass(frozen=True)
class LauncherFacts:
    """The identity of an attempt according to the launcher.

    Args:
        text: The same in all its processes; empty if there is no launcher.
        is_unique: Whether no other attempt has the same text.
    """

    text: str
    is_unique: bool


@dataclass(frozen=True)
class Attempt:
    """An attempt, as known to one of its processes.

    Args:
        name: The run's name.
        token: Common to its processes, and only to these.
        started_ns: When the process began, in Unix time.
        agreed_by: The store through which the processes agreed on it: `group`, `agent`, or empty.
    """

    name: str
    token: str
    started_ns: int
    agreed_by: str = ""


def launcher_facts(environ: Mapping[str, str], number: int) -> LauncherFacts:
    """Return the attempt's identity from a launcher's variables.

    Args:
        environ: The variables.
        number: The number of the recorder in this process.
    """
    values = [environ.get(name, "") for names in _JOBS if names[0] in environ for name in names]
    if not values:
        return LauncherFacts("", is_unique=False)
    folder = _launcher(environ)
    has_step = bool(environ.get("SLURM_STEP_ID"))
    is_shared = "TORCHELASTIC_RUN_ID" in environ or "SLURM_JOB_ID" in environ
    return LauncherFacts("/".join([*values, folder, str(number)]), is_unique=bool(folder) or has_step or not is_shared)


def _launcher(environ: Mapping[str, str]) -> str:
    """Return what distinguishes one torchrun from the next, if a single one starts all processes; else an empty text.

    By default torchrun names each job `none` and uses the same port; only its folder for errors is new.
    """
    file, size = environ.get("TORCHELASTIC_ERROR_FILE", ""), environ.get("WORLD_SIZE")
    return str(Path(file).parents[1]) if len(Path(file).parents) > 2 and size == environ.get("LOCAL_WORLD_SIZE") else ""


def claim_folder(logdir: Path, name: str, token: str, *, overwrite: bool = False) -> str:
    """Return the run's name with the number of the attempt, and claim its folder.

    Args:
        logdir: The folder of all runs.
        name: The run's name.
        token: The token of the attempt.
        overwrite: Whether to claim the folder of that name, whatever it has.

    Raises:
        OSError: No folder can be created there.
    """
    for number in itertools.count():
        attempt = f"{name}.{number}" if number else name
        mark = PathBelow(logdir / attempt, ".work", "attempt")
        if overwrite:
            mark.parent.make()
            replace_file(mark, os.fsencode(token))
            return attempt
        owner = _owner(mark)
        if owner is None and not _has_traces(logdir / attempt):
            owner = _claim(mark, token)
        if owner == token:
            return attempt
    raise AssertionError


def join_attempt(logdir: Path, facts: LauncherFacts, own: Attempt, rank: int) -> tuple[Attempt, bool]:
    """Return the attempt that this process belongs to according to the logdir, and whether that is certain.

    Args:
        logdir: The folder of all runs.
        facts: The attempt's identity according to the launcher.
        own: The attempt as this process would start it; used if no record exists.
        rank: The process's rank.

    Raises:
        OSError: The folder isn't writable.
    """
    key = hashlib.sha256(facts.text.encode()).hexdigest()[:16]
    for number in itertools.count():
        folder = PathBelow(logdir, _JOIN_FOLDER, f"{key}.{number}")
        folder.make()
        attempt = _attempt_in(folder / "attempt")
        if attempt is None:
            create_file(folder / "attempt", json.dumps(asdict(own)).encode())
            attempt = _attempt_in(folder / "attempt") or own
        if not _may_be_same(attempt, own, facts) or not (facts.is_unique or _is_registered(folder, own, rank)):
            continue
        return attempt, facts.is_unique or (attempt.token == own.token and bool(own.agreed_by))
    raise AssertionError


def _may_be_same(attempt: Attempt, own: Attempt, facts: LauncherFacts) -> bool:
    if attempt.token == own.token:
        return True
    if attempt.agreed_by and attempt.agreed_by == own.agreed_by:
        return False
    return facts.is_unique or abs(attempt.started_ns - own.started_ns) <= START_WINDOW_S * 10**9


def _is_registered(folder: PathBelow, own: Attempt, rank: int) -> bool:
    """Claim a rank of the attempt for this process; return whether it is its own."""
    file, process = folder / f"rank{rank}", f"{socket.gethostname()} {os.getpid()} {own.started_ns}"
    create_file(file, process.encode())
    return read_plain(file, _MOST_BYTES).decode(errors="replace") == process


def _attempt_in(file: PathBelow) -> Attempt | None:
    """Return the attempt of a record; None if there is none, or it is another user's and unreadable."""
    with suppress(FileNotFoundError, ValueError, TypeError, RecursionError):
        attempt = Attempt(**json.loads(read_plain(file, _MOST_BYTES)))
        texts = (attempt.name, attempt.token, attempt.agreed_by)
        if all(isinstance(text, str) for text in texts) and type(attempt.started_ns) is int:
            os.fsencode(attempt.token)  # a ValueError: it can't be written
            return attempt
    return None


def _owner(mark: PathBelow) -> str | None:
    try:
        return os.fsdecode(read_plain(mark))
    except FileNotFoundError:
        return None


def _has_traces(folder: Path) -> bool:
    return folder.is_dir() and any(parse(path.name) is not None for path in folder.iterdir())


def _claim(mark: PathBelow, token: str) -> str:
    """Write the token unless another process was faster; return the token in the folder."""
    mark.parent.make()
    create_file(mark, os.fsencode(token))
    return _owner(mark) or ""
