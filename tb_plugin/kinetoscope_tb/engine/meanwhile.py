"""What advice about a large trace needs late, computed in another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ..arrays.allocator import release_free_memory
from ..critical_path.explanation import path_explanation, prepare_simulations, share_on_device
from ..diagnostics.diagnose import diagnose
from ..trace import Trace
from .workers import Workers


def compute_meanwhile(trace: Trace, of_views: Iterable[Callable[[], object]]) -> None:
    """Compute what advice about a trace needs late, and some views, in another thread.

    One after another: what is needed before that thread has begun with it is computed at once. The diagnosis comes
    first, since it needs memory for a moment, and the graph stays.
    """
    workers = Workers(1)
    of_graph = (partial(function, trace) for function in (path_explanation, prepare_simulations, share_on_device))
    jobs: tuple[Callable[[], object], ...] = (partial(diagnose, trace), *of_graph, *of_views)
    for job in jobs:
        workers.submit(job)
        workers.submit(release_free_memory)
