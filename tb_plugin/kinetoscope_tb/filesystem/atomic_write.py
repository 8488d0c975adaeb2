"""Writes files completely or not at all: the way in which Kinetoscope's viewer writes what its user and its cache name.

Below a logdir, which others may write to, `publish` uses the recorder's way, which follows no link.

A file is written in the same folder under a hidden name, `.<name>.<random>.part`, and renamed when it is complete.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .regular_files import check_replaceable
from .urls import file_system, is_url, words

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def atomic_write(path: str, *, is_private: bool = False) -> Iterator[IO[bytes]]:
    """A file that replaces an existing one after all of it is written; if writing fails, the old one stays.

    Args:
        path: A local path, or a URL.
        is_private: Whether only this user may read it, if it is local; else its permissions are the default ones.

    Raises:
        OSError: It can't be written there; its text says why.
    """
    with _write_remote(path) if is_url(path) else _write_local(Path(path), 0o600 if is_private else 0o666) as file:
        yield file


@contextmanager
def _write_local(path: Path, mode: int) -> Iterator[IO[bytes]]:
    check_replaceable(str(path))
    part = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:  # has opener
            yield file
        part.replace(path)
    finally:
        with suppress(OSError):  # it has its final name
            part.unlink()


@contextmanager
def _write_remote(url: str) -> Iterator[IO[bytes]]:
    try:
        files, key = file_system(url)
        file = files.open(key, "wb")
        try:
            yield file
        except BaseException:
            file.discard()
            raise
        file.close()
    except OSError:
        raise
    except Exception as error:  # each library has errors of its own
        raise OSError(words(error, url)) from error
