"""The processes of a file that holds several."""

from __future__ import annotations

from dataclasses import dataclass

UNRANKED = "process "
"""In front of the number of a process whose rank isn't known: the name of its worker."""


@dataclass(frozen=True)
class Process:
    """One of the processes of a file that holds several.

    Args:
        id: Its number in the file, or what else is unique there.
        worker: What the worker is called.
    """

    id: str
    worker: str
