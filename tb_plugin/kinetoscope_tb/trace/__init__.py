"""The trace: what one worker did in one span, as columns, with what follows from them."""

from .model import NONE, Finding, Trace

__all__ = ["NONE", "Finding", "Trace"]
