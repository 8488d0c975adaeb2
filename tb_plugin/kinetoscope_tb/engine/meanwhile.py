"""What advice about a large trace needs late, computed in another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ..critical_path.explanation import explanation_for_advice
from ..diagnostics.diagnose import diagnose
from ..trace import Trace
from .workers import Workers


def compute_meanwhile(trace: Trace, of_views: Iterable[Callable[[], object]]) -> None:
    """Compute what advice about a trace needs late, and some views, in another thread.

    One after another: what is needed before that thread has begun with it is computed at once.
    """
    workers = Workers(1)
    graph = partial(explanation_for_advice, trace)
    jobs: tuple[Callable[[], object], ...] = (partial(diagnose, trace), *of_views, graph)
    for job in jobs:
        workers.submit(job)
