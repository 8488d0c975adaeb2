"""The command line: `kinetoscope`. A command is one file; `commands` lists them.

traces       options that select a recording, and progress while it is read
text_table   tables as text      streams   standard output and error      output_file   files that commands write
"""

from .commands import leave, main

__all__ = ["leave", "main"]
