"""The command line: `kinetoscope`."""

from .commands import leave, main

__all__ = ["leave", "main"]
