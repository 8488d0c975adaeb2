"""Folders and names of Composer's traces, and whether a folder is free."""

from __future__ import annotations

import itertools
import logging
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..job.job_store import default_store
from ..job.rank_info import current_rank_info, is_distributed, local_world_size
from ..output.name_template import format_name, rank_values, unknown_variables

if TYPE_CHECKING:
    from .state import State
    from .timestamp import Timestamp

_LOG = logging.getLogger("kinetoscope")

_PATIENCE = timedelta(seconds=120)
_count = itertools.count()


def run_values(state: State) -> dict[str, Any]:
    """Return the variables of folder names."""
    return rank_values(current_rank_info(), state.run_name, local_world_size())


def name_values(state: State, timestamp: Timestamp) -> dict[str, Any]:
    """Return the variables of file names."""
    return {**run_values(state), **timestamp.progress.to_json()}


def remote_name(template: str | None, state: State) -> str | None:
    """Return the URL of a remote file name; None if there is no remote."""
    if template is None:
        return None
    template = format_name(template, run_values(state))
    if "://" in template:
        return template
    return None if state.remote is None else f"{state.remote.rstrip('/')}/{template.lstrip('/')}"


def warn_of_unknown_variables(*templates: str | None) -> None:
    """Log which templates have variables that don't exist: they stay in the names as they are.

    Raises:
        ValueError: The braces of one don't match.
    """
    for problem in filter(None, (unknown_variables(template) for template in templates if template is not None)):
        _LOG.warning("%s It stays in the name as it is.", problem)


def claim_folder(template: str, state: State, *, overwrite: bool) -> Path:
    """Create the folder and return it. All ranks check it before any of them writes.

    Raises:
        FileExistsError: It has files, here or on another rank's machine, and `overwrite` is False.
    """
    folder = Path(format_name(template, run_values(state))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    existing_file = None if overwrite else first_file(folder)
    if not overwrite and _is_occupied_anywhere(is_occupied_here=existing_file is not None):
        where = (
            f"{folder} contains {existing_file.relative_to(folder)}"
            if existing_file
            else f"{folder} isn't empty on another rank"
        )
        raise FileExistsError(f"{where}: choose another folder or run name, or set overwrite=True.")
    return folder


def first_file(folder: Path) -> Path | None:
    """Return any file in the folder, at any depth, except hidden ones; None if there is none."""
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = sorted(name for name in files if not name.startswith("."))
        if visible:
            return Path(parent) / visible[0]
    return None


def _is_occupied_anywhere(*, is_occupied_here: bool) -> bool:
    """Whether the folder of any rank has files; waits for all ranks, since the first one to continue may write at once.

    The wait for a rank that never arrives ends after a timeout.
    """
    store = default_store() if is_distributed() else None
    if store is None:
        return is_occupied_here
    key, size = f"kinetoscope/folder/{next(_count)}", current_rank_info().world_size
    try:
        bad = store.add(f"{key}/bad", int(is_occupied_here))
        if store.add(f"{key}/seen", 1) >= size:
            store.set(f"{key}/all", "")
        store.wait([f"{key}/all"], _PATIENCE)
        bad = store.add(f"{key}/bad", 0)
    except RuntimeError:  # the store's server is gone, or the wait timed out
        return is_occupied_here
    return bool(bad)
