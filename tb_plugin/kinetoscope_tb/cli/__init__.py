"""The command line: `kinetoscope`."""

from .commands import main

__all__ = ["main"]
