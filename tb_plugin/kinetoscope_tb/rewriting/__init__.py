"""Trace files made from trace files.

merged       the ranks of one span in one file, on one clock
publication  what other writers left, as runs and workers
"""

from __future__ import annotations

from .merged import Merged, merge
from .publication import Published, publish

__all__ = ["Merged", "Published", "merge", "publish"]
