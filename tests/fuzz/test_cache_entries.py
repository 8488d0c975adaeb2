"""Made-up entries of the cache: each is refused, or every view and the timeline can be made of what it holds."""

import random

import numpy as np

from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.timeline.area.flame import area_flames
from kinetoscope_tb.timeline.area.groups import groups
from kinetoscope_tb.timeline.area.pivot import area
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import FRAMES, activity
from kinetoscope_tb.timeline.counters.counters import counters
from kinetoscope_tb.timeline.details.details import details
from kinetoscope_tb.timeline.details.duration_stats import duration_stats
from kinetoscope_tb.timeline.details.slice_summary import slice_summary
from kinetoscope_tb.timeline.search.search import search
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.web import encode
from kinetoscope_tb.web.json_text import json_text
from support.apart import run_apart
from support.build import TraceBuilder
from support.entries import made_up
from support.fuzzing import case_numbers

PATH, STAMP = "/logdir/run/rank0.pt.trace.json", (1, 2, 3, 4)


def recorded():
    built = TraceBuilder(
        deviceProperties=[{"id": 0, "name": "GPU"}],
        distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2},
    )
    for i in range(12):
        at = 10_000 * i
        built.step(i, at, 9_000).op("aten::mm", at + 10, 3_000, **{"Input Dims": [[2, 2], [2, 2]], "External id": i})
        built.op(f"op {i % 5}", at + 20, 900).launch(at + 50, 20, i + 1)
        built.kernel(f"gemm {i % 3}", at + 100, 2_000, i + 1).memory(512, at + 60).python("f.py(1): f", at, 8_000)
        built.kernel("ncclDevKernel_AllReduce", at + 3_000, 1_000, 100 + i)
    for i in range(300):
        built.op("small", 200_000 + 40 * i, 30)
    return built.build()


def test_made_up_entries_break_nothing(tmp_path):
    run_apart(__file__, case_numbers(0, 1, share=0.15), tmp_path)


TRACE = recorded()
WHOLE = {}


def prepare(folder):
    """Both entries, and everything compiled."""
    cache = Cache(folder)
    cache.write(TRACE, PATH, STAMP)
    cache.write_timeline(timeline(TRACE), PATH, STAMP)
    WHOLE.update((path, path.read_bytes()) for path in folder.iterdir())
    look_at(cache.open(PATH, STAMP))
    look_at_timeline(cache.open_timeline(PATH, STAMP, TRACE))
    for number in range(30):
        case(number, folder)


def case(number, folder):
    """One made-up entry."""
    numbers = random.Random(number)
    cache = Cache(folder)
    path = numbers.choice(sorted(WHOLE))
    path.unlink(missing_ok=True)
    path.write_bytes(made_up(WHOLE[path], numbers))
    if path.suffix == ".trace":
        trace = cache.open(PATH, STAMP)
        if trace is not None:
            look_at(trace)
    else:
        opened = cache.open_timeline(PATH, STAMP, TRACE)
        if opened is not None:
            look_at_timeline(opened)
    assert all(entry.path is None or entry.path for entry in cache.entries())


def look_at(trace):
    """Make every view, and the timeline."""
    with np.errstate(all="ignore"):
        for view in VIEWS.values():
            json_text(encode.view_answer(view, compute(view, trace, {})))
        for one in counters(trace):
            one.tile(10, 0)
        timeline(trace)


def look_at_timeline(opened):
    """Draw all of it at several zooms, and ask for what people ask for."""
    rows = opened.pyramid.rows.first.size - 1
    for level in (0, 3, 8, 9, 12, 20, 40):
        for index in (0, 1, 7):
            opened.pyramid.tile(0, rows, level, index)
    json_text([encode.track(track) for track in opened.tracks])
    activity(opened)
    everywhere = range(len(opened.tracks))
    area(opened, groups(TRACE, opened, "name"), 0, 300_000, everywhere)
    area_flames(opened, 0, 300_000, everywhere, is_device=False)
    search(TRACE, opened, '{"text":"mm"}', {}).histogram()
    for number in {0, opened.size // 2, opened.size - 1}:
        details(TRACE, opened, number)
        slice_summary(opened, number)
        duration_stats(opened, number)
        assert 0 <= opened.track_of(number) < len(opened.tracks)
    for name in FRAMES:
        opened.slices_of(name, np.arange(getattr(TRACE, name).height))
