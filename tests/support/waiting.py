"""The one way in which tests wait: for a condition, and never for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.01
LIMIT_S = 300  # a busy machine is no failure


def wait_for(
    ask: Callable[[], Any],
    within_s: float = LIMIT_S,
    *,
    is_right: Callable[[Any], object] = bool,
    unless: Callable[[], object] = bool,
    context: Callable[[], object] = str,
    pause_s: float = PAUSE_S,
) -> Any:
    """Return the answer of `ask` as soon as it is right.

    Args:
        ask: Is called until its answer is right.
        within_s: After how long the test fails.
        is_right: Says whether an answer is right; by default one that is true.
        unless: Makes the test fail at once when it returns true, for example because a process has ended.
        context: Returns what the failure message shows besides the last answer, such as a log.
        pause_s: How long to wait before asking again.
    """
    start = time.monotonic()
    while not is_right(answer := ask()):
        waited_s = time.monotonic() - start
        if unless() or waited_s > within_s:
            raise AssertionError(f"still {answer!r} after {waited_s:.0f} s {context()}".rstrip())
        time.sleep(pause_s)
    return answer
