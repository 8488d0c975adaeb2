"""What a self-test found, and the table of it."""

from __future__ import annotations

import shutil
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Outcome = Literal["ok", "limited", "FAILED", "not tried"]


@dataclass(frozen=True)
class Result:
    """One row.

    Args:
        what: What was tried.
        outcome: `ok`; `limited`: something is missing that the recorder can do without; `FAILED`; or `not tried`.
        detail: What happened.
        advice: What to do about it; empty for nothing.
        seconds: How long it took.
    """

    what: str
    outcome: Outcome
    detail: str
    advice: str = ""
    seconds: float = 0.0


Try = Callable[[], tuple[Outcome, str, str]]
"""Tries something: outcome, detail and advice."""


def result_of(what: str, attempt: Try) -> Result:
    """Try something; an error of the system is its failure."""
    start_s = time.monotonic()
    try:
        outcome, detail, advice = attempt()
    except (OSError, ValueError, RuntimeError, AttributeError, TimeoutError) as error:
        outcome, detail, advice = "FAILED", f"{type(error).__name__}: {error}", ""
    return Result(what, outcome, detail, advice, time.monotonic() - start_s)


def table(results: Sequence[Result]) -> str:
    """Return the table of results, as wide as the terminal."""
    width = min(120, shutil.get_terminal_size().columns)
    first = max(len(result.what) for result in results)
    lines = []
    for result in results:
        text = result.detail + (f". {result.advice}" if result.advice else "")
        head = f"{result.what:<{first}}  {result.outcome:<9}  {result.seconds:5.1f} s"
        if len(head) + 2 + len(text) <= width:
            lines.append(f"{head}  {text}")
        else:
            lines += [head, *textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)
