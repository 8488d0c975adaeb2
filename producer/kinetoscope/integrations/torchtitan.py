"""For torchtitan, whose traces other tools don't find: each gets a second name in a logdir once it is written.

    profiler.trace_post_processor = Function.Config(fn=publisher("runs/llama"))

torchtitan calls the function with `…/iteration_{step}/[folder/]rank{rank}_trace.json.gz`.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_write import link_file
from ..naming import TraceName, file_name, worker_of_rank
from ..path_below import PathBelow

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger("kinetoscope")

_PATH = re.compile(r"(?:^|.*/)iteration_(?P<step>\d+)/(?:(?P<leaf>[^/]+)/)?rank(?P<rank>\d+)_trace\.json(?P<gz>\.gz)?")


def publisher(folder: str | os.PathLike[str]) -> Callable[[str], None]:
    """Return a function that links torchtitan's traces into a run's folder; errors are only logged.

    Args:
        folder: The run's folder, below the folder that TensorBoard reads.
    """
    run = Path(folder)

    def publish(trace_path: str) -> None:
        target = target_of(trace_path, run)
        if target is None:
            _LOG.warning("%s: torchtitan's traces are called iteration_20/rank3_trace.json.gz; left alone.", trace_path)
            return
        try:
            below = PathBelow.of(target, run)
            below.parent.make()
            link_file(Path(trace_path), below)
        except OSError as error:
            _LOG.warning("%s wasn't published as %s: %s", trace_path, target, error)

    return publish


def target_of(trace_path: str, run: Path) -> Path | None:
    """Return a trace's path in the run's folder; None if its path isn't one of torchtitan's."""
    match = _PATH.fullmatch(trace_path.replace(os.sep, "/"))
    if match is None:
        return None
    name = file_name(TraceName(worker_of_rank(int(match["rank"])), int(match["step"])))
    return run / (match["leaf"] or "") / (name if match["gz"] else name.removesuffix(".gz"))
