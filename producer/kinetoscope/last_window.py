"""The last window as a file of the program's own, as torch.profiler's `export_chrome_trace` writes one.

While the window is handed out, the profiler's raw file is still there. Later its trace is, which another process
writes.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import SaveError
from .jobs import MOST_OWN_BYTES
from .plain_files import read_json
from .writer import publish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .jobs import Job
    from .saving import Saving

PATIENCE_S = 120.0
"""How long to wait for a trace that is being written."""

_PAUSE_S = 0.02


class LastWindow:
    """The last window of a process.

    Args:
        saving: Saves the windows.
    """

    def __init__(self, saving: Saving) -> None:
        self._saving = saving
        self._job: Job | None = None

    @contextmanager
    def at_hand(self, job: Job) -> Iterator[None]:
        """In the block, `job` is the last window, and its raw file is there."""
        self._job = job
        try:
            yield
        finally:
            self._job = None

    def export(self, path: Path) -> None:
        """Write it, compressed if the name ends in `.gz`; a file of that name is replaced.

        Raises:
            SaveError: There is none, or it is lost.
            OSError: The disk or the folder doesn't allow it.
        """
        if self._job is None:
            _copy(self._trace(), path)
        elif self._job.lost is not None:
            raise SaveError(self._job.lost)
        else:
            own = read_json(self._saving.own_events(self._job), MOST_OWN_BYTES)
            metadata = json.loads(json.dumps(self._job.metadata, default=str))
            publish(Path(self._job.raw), path.absolute(), metadata, own, owner=str(os.getpid()), overwrite=True)

    def _trace(self) -> Path:
        deadline = time.monotonic() + PATIENCE_S
        self._saving.listen()
        while self._saving.is_pending and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            self._saving.listen()
        outcome = self._saving.last_outcome
        if outcome is None:
            raise SaveError("no window is complete")
        if outcome.get("path") is None:
            raise SaveError(str(outcome.get("problem") or "it isn't written"))
        return Path(outcome["path"])


def _copy(source: Path, target: Path) -> None:
    opened = gzip.open if source.suffix == ".gz" else open
    packed = gzip.open if target.suffix == ".gz" else open
    with opened(source, "rb") as read, packed(target, "wb") as written:
        shutil.copyfileobj(read, written)
