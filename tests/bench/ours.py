"""File → `steps` + `operators`, in a process of its own: `ours.py PATH [--reopen]`; prints what it measured as JSON."""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

began = time.perf_counter()

from kinetoscope_tb.analyses import VIEWS  # noqa: E402  # importing is part of what is measured
from kinetoscope_tb.reader import read  # noqa: E402

REOPENED = 7  # times


def reopened(trace) -> float:
    """Seconds that the trace takes to come back from the cache to a warm process; the median of some."""
    from kinetoscope_tb.cache import Cache

    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        cache.write(trace, trace.path, "stamp")
        for _ in range(REOPENED):
            begun = time.perf_counter()
            found = cache.open(trace.path, "stamp")
            seconds.append(time.perf_counter() - begun)
            assert found.meta.events == trace.meta.events
    return statistics.median(seconds)


path = sys.argv[1]
begun = time.perf_counter()
trace = read(path)
read_s = time.perf_counter() - begun
for name in ("steps", "operators"):
    assert VIEWS[name].run(trace).height
measured = {"events": trace.meta.events, "read_s": read_s, "all_s": time.perf_counter() - began}
if "--reopen" in sys.argv:
    measured["reopen_s"] = reopened(trace)
print(json.dumps(measured))
