"""Files that commands write."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import KinetoscopeError
from ..storage import check_replaceable

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def saved(out: str) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is complete, in place of one that had it, or goes away.

    Raises:
        KinetoscopeError: It can't be written there.
    """
    path = Path(out)
    try:
        check_replaceable(out)
        with ExitStack() as undo:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
                undo.callback(Path(part.name).unlink, missing_ok=True)
                yield part
            Path(part.name).chmod(0o644)
            Path(part.name).replace(path)
    except OSError as error:
        raise KinetoscopeError(f"{path} can't be written: {error.strerror or error}.") from error
