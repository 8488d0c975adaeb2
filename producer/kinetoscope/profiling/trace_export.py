"""Writes a torch.profiler's window into a file of exactly the name that was asked for."""

from __future__ import annotations

import logging
from pathlib import Path

from torch.profiler import profile

from ..errors import SaveError

_LOG = logging.getLogger("kinetoscope")
_NO_GPU_WORK = (
    "torch's in-process CUPTI profiler (Cuspy) couldn't start, so the trace has no GPU work; it needs cupti-python "
    "and a matching libcupti, and torch's warnings say what is missing."
)
_IN_PROCESS = ("_use_cuspy", "_use_cupti_monitor")
"""Attributes of torch.profiler.profile (2.15, 2.14): whether such a writer is in use."""


def export_trace(profiler: profile, path: str) -> None:
    """Write the window with torch's own `export_chrome_trace`; a callback may have replaced the instance's.

    torch's in-process CUPTI writers (2.14: CUPTI monitor, 2.15: Cuspy) append `.gz` to any name, may write later
    (`cuspy_async_export`), and only warn and write nothing if they couldn't start. Then kineto writes what it has.

    Raises:
        SaveError: Such a writer couldn't start, and kineto has nothing either.
    """
    profile.export_chrome_trace(profiler, path)
    wait = getattr(profiler, "wait_for_exports", None)
    if wait is not None:
        wait()
    file, gzip_file = Path(path), Path(f"{path}.gz")
    if file.exists():
        return
    if gzip_file.exists():
        gzip_file.replace(file)
    elif any(getattr(profiler, name, False) for name in _IN_PROCESS):
        if profiler.profiler is None:
            raise SaveError("torch's in-process CUPTI profiler (Cuspy) couldn't start, and there is no recording")
        profiler.profiler.export_chrome_trace(path)
        _LOG.warning("%s", _NO_GPU_WORK)
