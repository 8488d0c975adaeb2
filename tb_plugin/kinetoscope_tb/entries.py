"""The entries of the page's panel: each is a question, and the views that answer it are its tabs.

A view names its entry and its place there. The page, the command line and the docs draw the same structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EntryTitle = Literal[
    "Overview",
    "Idle",
    "Critical path",
    "Operators",
    "Modules",
    "Python",
    "Annotations",
    "Kernels",
    "Memory",
    "Ranks",
    "Trace health",
]


@dataclass(frozen=True)
class Figure:
    """A number of a view: of its first row the value of a column, or without one how many rows it has."""

    view: str
    column: str | None = None


@dataclass(frozen=True)
class Entry:
    """One entry of the panel.

    Args:
        title: Its name.
        question: The question that it answers.
        section: Entries of one section stand together.
        figure: The number next to its title, once the page knows it.
        sentence: The view whose first row is the answer in a sentence, with its evidence, above the tabs.
    """

    title: EntryTitle
    question: str
    section: Literal["trace", "time", "host", "device", "ranks", "health"]
    figure: Figure | None = None
    sentence: str | None = None


_ENTRIES = (
    Entry("Overview", "What costs most, and what do I do?", "trace"),
    Entry("Idle", "Why is my GPU idle?", "time", Figure("idle", "idle_frac")),
    Entry("Critical path", "What would make the step shorter?", "time"),
    Entry("Operators", "Which operators cost time, and how near the hardware limit?", "host", Figure("operators")),
    Entry("Modules", "Which part of my model costs time?", "host"),
    Entry("Python", "Which line of my code costs time?", "host"),
    Entry("Annotations", "How long do my named ranges take, on host and GPU?", "host"),
    Entry("Kernels", "Which kernels cost time, and who launches them?", "device", Figure("kernels")),
    Entry(
        *("Memory", "What fills memory, and when?", "device", Figure("memory_devices", "peak_allocated_bytes")),
        sentence="snapshot_summary",
    ),
    Entry("Ranks", "Which rank is late, and what does it cost?", "ranks", sentence="run_advice"),
    Entry("Trace health", "Can I trust these numbers?", "health"),
)

ENTRIES = {entry.title: entry for entry in _ENTRIES}
"""Every entry with a table, in the order of the panel. The timeline, which has none, is the page's own."""
