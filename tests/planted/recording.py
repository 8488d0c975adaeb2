"""One recording of the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Make = Callable[[np.random.Generator, Path], Path]
Also = Callable[[np.random.Generator], frozenset[str]]


@dataclass(frozen=True)
class Recording:
    """A recording and what may be said first about it.

    Args:
        name: Its cause, with a number.
        cause: What is planted.
        make: Writes it into a folder; returns the trace's file, or the run's folder.
        accepted: Rules that a fair expert would accept as the first answer.
        must_abstain: Whether the recording can't bear a verdict.
        may_abstain: Whether "cannot tell" is a fair answer.
        clean: Writes the same without its fault, if it has one that must be found.
        also: Works out further right answers from the program itself; needed only if the headline isn't accepted.
        evidence: Texts of which the headline must name one; empty if any will do.
        is_run: Whether advice is the run's.
    """

    name: str
    cause: str
    make: Make
    accepted: frozenset[str]
    must_abstain: bool = False
    may_abstain: bool = False
    clean: Make | None = None
    also: Also | None = None
    evidence: tuple[str, ...] = ()
    is_run: bool = False
