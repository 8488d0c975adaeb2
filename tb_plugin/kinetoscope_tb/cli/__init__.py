"""The command line: `kinetoscope`. `commands` lists the commands; the module of each is imported when it is called.

process      streams, failures and exit status of a command
options      options that several commands share         traces        the recording that they choose
ranks        all recordings of a run                     progress      bars while they are read
print_rows   tables of a terminal                        row_options   rows and columns of a printed table
output_file  files that commands write                   view          the commands of the views
view_answer  what these print
"""

from .process import leave, main

__all__ = ["leave", "main"]
