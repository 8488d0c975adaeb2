"""File → `steps` + `operators`, in a process of its own."""

import sys

from kinetoscope_tb.analyses import VIEWS
from kinetoscope_tb.reader import read

trace = read(sys.argv[1])
for name in ("steps", "operators"):
    print(VIEWS[name].run(trace).height, name)
