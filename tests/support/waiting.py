"""The one way in which tests wait: for a condition, and never for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.01


def wait_for(
    ask: Callable[[], Any],
    within_s: float = 120,
    *,
    is_right: Callable[[Any], object] = bool,
    context: Callable[[], object] = str,
) -> Any:
    """Return what `ask` returns as soon as it is right: true, unless `is_right` says otherwise.

    Where `within_s` pass before, the test fails with the last answer and what `context` returns, a log for instance.
    """
    deadline = time.monotonic() + within_s
    while not is_right(answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {within_s:g} s {context()}".rstrip())
        time.sleep(PAUSE_S)
    return answer
