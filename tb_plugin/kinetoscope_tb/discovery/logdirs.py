"""The folders that are searched for traces."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..filesystem import is_url, last_part


@dataclass(frozen=True)
class Logdir:
    """A folder (or one trace file) to list, and the name that its runs begin with."""

    path: str
    name: str = ""


def parse_logdirs(logdir: str | None, logdir_spec: str | None = None) -> tuple[Logdir, ...]:
    """The logdirs of TensorBoard's two flags, by TensorBoard's own rules.

    `--logdir` is one path. `--logdir_spec` is a comma list of `path` or `name:path`; a name is put before the names of
    its runs, and where several paths have none, the last part of the path is.
    """
    parts = [logdir] if logdir else [part for part in (logdir_spec or "").split(",") if part]
    pairs = [("", logdir)] if logdir else [_name_and_path(part) for part in parts]
    is_only_one = len(pairs) == 1
    return tuple(Logdir(absolute(path), name or ("" if is_only_one else last_part(path))) for name, path in pairs)


def _name_and_path(part: str) -> tuple[str, str]:
    name, colon, path = part.partition(":")
    is_path = not colon or part.startswith("/") or is_url(part) or os.path.splitdrive(part)[0]
    return ("", part) if is_path else (name, path)


def absolute(path: str) -> str:
    """The absolute path; for a URL, without a trailing slash."""
    return path.rstrip("/") if is_url(path) else os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
