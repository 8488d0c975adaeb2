"""How pytest's processes share the files of tests, so that no core is idle while a test waits, and all end together."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest


def processes() -> int:
    """One more than cores: while one waits, for a browser, a server or a training, the others use all cores."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def sort_by_start(items: list[pytest.Item], waiting: Sequence[Path]) -> None:
    """Sort tests file by file: those that mostly wait, those that compute, the fast ones; of each the longest files first.

    Args:
        items: The tests, which stay in their order within a file.
        waiting: Folders whose tests mostly wait; those of the first one start first.
    """
    tests_of = Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    ranks = {path: (_rank(path, waiting), path not in slow, -count, path) for path, count in tests_of.items()}
    items.sort(key=lambda item: ranks[item.path])


def _rank(path: Path, waiting: Sequence[Path]) -> int:
    """Which of the waiting folders a file lies in; their number if in none."""
    return next((i for i, folder in enumerate(waiting) if folder in path.parents), len(waiting))
