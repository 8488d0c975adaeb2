"""Files that commands write."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import KinetoscopeError
from ..filesystem import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def open_output(out: str) -> Iterator[IO[bytes]]:
    """A file that replaces an existing one when it is complete, or is removed after an error.

    Raises:
        KinetoscopeError: It can't be written there.
    """
    try:
        with atomic_write(out) as file:
            yield file
    except OSError as error:
        raise KinetoscopeError(f"{Path(out)} can't be written: {error.strerror or error}.") from error
