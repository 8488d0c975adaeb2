"""A trace and its views, in a process of its own: `large.py PATH`; prints what it measured as JSON.

CPU seconds of reading and of the first answer of each view; peak megabytes after reading and after all views.
"""

import json
import resource
import sys
import time

from kinetoscope_tb.cli import leave
from kinetoscope_tb.engine.answers import Missing, compute
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.views import VIEWS


def peak_mb():
    """Of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


views = list(VIEWS.values())  # imported before anything is measured
begun = time.process_time()
trace = next(read_traces(sys.argv[1]))
figures = {"events": trace.meta.events, "read_s": time.process_time() - begun, "read_mb": peak_mb(), "views": {}}
for view in views:
    begun = time.process_time()
    if not isinstance(compute(view, trace, {}), Missing):
        figures["views"][view.id] = time.process_time() - begun
print(json.dumps({**figures, "views_mb": peak_mb()}))
leave(0)
