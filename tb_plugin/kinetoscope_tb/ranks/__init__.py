"""Runs of many ranks: what is kept of each recording, and what follows from all of them together.

model       the columns that are kept
summary     a trace as a summary: groups, sizes, calls, traffic, activity; collective_kinds says what a collective is
run         summaries side by side: matching, waits, clocks
"""

from .model import FRAMES, Summary
from .run import Member, Ranks
from .summary import summary
from .validation import problem_of

__all__ = ["FRAMES", "Member", "Ranks", "Summary", "problem_of", "summary"]
