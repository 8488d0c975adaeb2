"""File → `steps` + `operators`, in a process of its own: `ours.py PATH [--again]`; prints what it measured as JSON."""

import json
import resource
import sys
import time

began = time.perf_counter()

from kinetoscope_tb.cli import leave  # noqa: E402
from kinetoscope_tb.reader import read  # noqa: E402
from kinetoscope_tb.views import VIEWS  # noqa: E402  # importing is part of what is measured

AGAIN = 7  # times that a trace is opened from the cache


def again(path: str, trace) -> dict[str, float]:
    """Seconds of a second reading in this process, and of opening from the cache: the median of some."""
    import statistics
    import tempfile
    from pathlib import Path

    from kinetoscope_tb.engine.cache import Cache

    begun = time.perf_counter()
    read(path)
    warm_s, seconds = time.perf_counter() - begun, []
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        cache.write(trace, path, "stamp")
        for _ in range(AGAIN):
            begun = time.perf_counter()
            cached = cache.open(path, "stamp")
            seconds.append(time.perf_counter() - begun)
            assert cached.meta.events == trace.meta.events
    return {"warm_s": warm_s, "reopen_s": statistics.median(seconds)}


path = sys.argv[1]
begun = time.perf_counter()
trace = read(path)
read_s, read_mb = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
for name in ("steps", "operators"):
    assert VIEWS[name].run(trace).height
measured = {"events": trace.meta.events, "read_s": read_s, "read_mb": read_mb, "all_s": time.perf_counter() - began}
if "--again" in sys.argv:
    measured |= again(path, trace)
print(json.dumps(measured))
leave(0)  # as every command of the command line ends
