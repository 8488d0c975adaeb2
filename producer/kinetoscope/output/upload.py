"""Uploads of traces to any place that fsspec supports, such as `s3://bucket/folder/rank0.42.pt.trace.json.gz`.

Only the writer process uploads, so that a slow or failing server doesn't delay the training. fsspec, and its package
for the protocol, are imported when something is uploaded.
"""

from __future__ import annotations

import random
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import SaveError
from ..optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

TRIES = 4
_FIRST_PAUSE_S = 1.0
_LEAST_LIMIT_S = 300.0
_SLOWEST_BYTES_PER_S = 1 << 20
_BLOCK_BYTES = 4 << 20


def upload(path: Path, url: str, *, overwrite: bool, tries: int = TRIES, pause_s: float = _FIRST_PAUSE_S) -> None:
    """Copy a file to a URL, with retries and exponential backoff.

    Raises:
        SaveError: It failed, with the last reason; or something of that name exists and must stay.
    """
    limit_s = _LEAST_LIMIT_S + path.stat().st_size / _SLOWEST_BYTES_PER_S
    for attempt in range(tries):
        try:
            # An object that exists after a failed try may be its own.
            _run_with_timeout(partial(_put, path, url, overwrite=overwrite or attempt > 0), limit_s)
            return
        except SaveError:
            raise
        except (PermissionError, FileNotFoundError) as error:  # no key, or no bucket: a retry doesn't help
            raise SaveError(f"{url} wasn't written: {error}") from error
        except Exception as error:
            if attempt == tries - 1:
                raise SaveError(f"{url} wasn't written: {type(error).__name__}: {error}") from error
        time.sleep(pause_s * 2**attempt * random.uniform(0.75, 1.25))  # noqa: S311  spreads the ranks' tries


def _put(path: Path, url: str, *, overwrite: bool) -> None:
    try:
        system, name = optional_package("fsspec.core", "fsspec").url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise SaveError(f"{url} wasn't written: {error}") from error
    system.invalidate_cache()
    if not overwrite and system.exists(name):
        if _is_copy(system, name, path):  # of a writer that was killed before it knew
            return
        raise SaveError(f"{url} wasn't written: something of that name exists already, and overwrite is off.")
    parent = system._parent(name)
    if "file" in (system.protocol if isinstance(system.protocol, tuple) else (system.protocol,)):
        system.makedirs(parent, exist_ok=True)
    system.put_file(str(path), name)


def _is_copy(system: Any, name: str, path: Path) -> bool:
    """Whether an object of a file system of fsspec's has the content of a file."""
    if system.size(name) != path.stat().st_size:
        return False
    with system.open(name, "rb") as copy, path.open("rb") as original:
        while block := original.read(_BLOCK_BYTES):
            if copy.read(len(block)) != block:
                return False
    return True


def _run_with_timeout(action: Callable[[], object], limit_s: float) -> None:
    """Run `action`, and wait for it at most `limit_s`.

    Raises:
        TimeoutError: It is still running.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="kinetoscope-upload")
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise TimeoutError(f"no end after {limit_s:.0f} s")
    if errors:
        raise errors[0]


def object_url(folder: str, name: str) -> str:
    """Return the URL of a name below another URL; leading slashes of the name are stripped."""
    return f"{folder.rstrip('/')}/{name.lstrip('/')}"


def is_allowed(url: str, url_prefixes: Collection[str]) -> bool:
    """Whether a URL is below one of the prefixes that the program or the user allows."""
    return ".." not in url.split("/") and any(_is_below(url, prefix) for prefix in url_prefixes)


def _is_below(url: str, prefix: str) -> bool:
    return url == prefix or url.startswith(prefix if prefix.endswith("/") or not prefix else f"{prefix}/")
