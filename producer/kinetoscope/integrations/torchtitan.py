"""For torchtitan, whose traces other tools don't find: each gets a second name in a logdir as soon as it is written.

    profiler.trace_post_processor = Function.Config(fn=published("runs/llama"))

torchtitan calls the function with `…/iteration_{step}/[folder/]rank{rank}_trace.json.gz`.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ..naming import TraceName, file_name, worker_of_rank

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger("kinetoscope")

_PATH = re.compile(r"(?:^|.*/)iteration_(?P<step>\d+)/(?:(?P<leaf>[^/]+)/)?rank(?P<rank>\d+)_trace\.json(?P<gz>\.gz)?")


def published(folder: str | os.PathLike[str]) -> Callable[[str], None]:
    """Return what puts a trace that torchtitan has written into a run's folder; whatever goes wrong is logged only.

    Args:
        folder: The run's folder, below what TensorBoard is given.
    """
    run = Path(folder)

    def publish(trace_path: str) -> None:
        target = target_of(trace_path, run)
        if target is None:
            _LOG.warning("%s: torchtitan's traces are called iteration_20/rank3_trace.json.gz; left alone.", trace_path)
            return
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(Path(trace_path), target)
        except OSError as error:
            _LOG.warning("%s wasn't published as %s: %s", trace_path, target, error)

    return publish


def target_of(trace_path: str, run: Path) -> Path | None:
    """Where a trace goes; None if its path isn't of torchtitan's form."""
    told = _PATH.fullmatch(trace_path.replace(os.sep, "/"))
    if told is None:
        return None
    name = file_name(TraceName(worker_of_rank(int(told["rank"])), int(told["step"])))
    return run / (told["leaf"] or "") / (name if told["gz"] else name.removesuffix(".gz"))


def _link(source: Path, target: Path) -> None:
    """Give the file a second name; copy it where that can't be, so that the name appears with all of it."""
    hidden = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    try:
        try:
            os.link(source, hidden)
        except OSError:
            shutil.copyfile(source, hidden)
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
