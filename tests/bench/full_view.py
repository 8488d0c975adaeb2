"""The tiles of a whole run, in a process of its own: `full_view.py LOGDIR`; prints what it measured as JSON.

What the page asks for when it shows all of all workers: every track of each, in buckets of one to two pixels. Timelines
come from the cache, as they do in a server that has seen the traces before.
"""

import json
import sys
import time

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.engine.cache import configured_cache
from kinetoscope_tb.engine.files import open_or_arrange, open_or_read
from kinetoscope_tb.timeline.core.pyramid import BUCKETS, batch_bytes

PIXELS = 1380
ROUNDS, VIEWS = 5, 40


def arranged(file):
    """The timeline of a file, mapped from the cache if it is there."""
    cache = configured_cache()
    trace, _ = open_or_read(file, cache)
    return open_or_arrange(file, trace, cache)[0]


def full_view(timelines) -> bytes:
    """All tiles of the whole, as one answer."""
    first = min(made.window[0] for made in timelines)
    last = max(made.window[1] for made in timelines)
    level = ((last - first) // PIXELS).bit_length()
    span = BUCKETS << level
    tiles = [
        made.pyramid.tile(track.first_row, track.first_row + track.lanes, level, index)
        for made in timelines
        for track in made.tracks
        for index in range(first // span, last // span + 1)
    ]
    return batch_bytes(tiles)


timelines = [arranged(file) for file in list_path(sys.argv[1]).files]
begun = time.perf_counter()
size = len(full_view(timelines))
first_s, again = time.perf_counter() - begun, []
for _ in range(ROUNDS):
    times = []
    for _ in range(VIEWS):
        begun = time.perf_counter()
        full_view(timelines)
        times.append(1000 * (time.perf_counter() - begun))
    again.append(times)
slices = sum(made.size for made in timelines)
print(json.dumps({"slices": slices, "bytes": size, "first_ms": 1000 * first_s, "ms": again}))
