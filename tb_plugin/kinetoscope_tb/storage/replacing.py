"""Files that are written: whole, or not at all."""

from __future__ import annotations

import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .places import file_system, is_url, words
from .regular import check_replaceable

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replaced(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of what has this path when all of it is written; who may read it is as for any other.

    Raises:
        OSError: It can't be written there, for the reason that it tells; what was there stays.
    """
    with _remote(path) if is_url(path) else _local(Path(path)) as file:
        yield file


@contextmanager
def _local(path: Path) -> Iterator[IO[bytes]]:
    check_replaceable(str(path))
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    finally:
        with suppress(OSError):  # it has its final name
            part.unlink()


@contextmanager
def _remote(url: str) -> Iterator[IO[bytes]]:
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
