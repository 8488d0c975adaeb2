"""The timeline's routes: metadata as JSON, labels, and tiles of slices and counters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..engine.answers import ask_all
from ..engine.engine import Engine
from ..errors import BadParameter
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.serving.iteration_labels import labels_of_iterations
from ..timeline.core.model import CATEGORIES, activity
from ..timeline.core.pyramid import batch_bytes
from ..timeline.counters.counters import batch_bytes as bytes_of_counters
from ..timeline.counters.counters import counters
from . import encode, slices
from .queries import NAMES, STAMPED_NAMES, current_file, file_of, query_of, whole_number

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..timeline.core.model import Timeline
    from ..timeline.counters.counters import Counter
    from ..trace import Trace
    from .responses import Handler

LABELS_PER_PAGE = 1 << 14
MOST_TILES = 512  # of one request
COARSEST = 44  # five hours in one bucket


def _timeline(engine: Engine, request: Request) -> object:
    file = file_of(engine, query_of(request, NAMES))
    meta, curves = ask_all(lambda: engine.about(file, _meta, reads_captures=False), lambda: counters_of(engine, file))
    counters = [counter.describe(number) for number, counter in enumerate(curves)]
    return {"state": "ready", "stamp": encode.short_stamp(file.version), **meta, "counters": counters}


def counters_of(engine: Engine, file: TraceFile) -> tuple[Counter, ...]:
    """The counters of a file's trace."""
    return engine.about(file, _counters_in, reads_captures=False)


def _counters_in(trace: Trace, _timeline: Timeline) -> tuple[Counter, ...]:
    return counters(trace)


def _meta(trace: Trace, timeline: Timeline) -> dict[str, Any]:
    steps = trace.steps.select("name", "start_ns", "end_ns", "is_complete", "phase", "part", "batch")
    return {
        "window": timeline.window,
        "origin_ns": str(trace.common_origin_ns),
        "clock_offset_ns": None if trace.meta.clock is None else trace.meta.clock[0],
        "clock_error_ns": None if trace.meta.clock is None else trace.meta.clock[1],
        "slices": timeline.size,
        "labels": len(timeline.labels.texts),
        "categories": CATEGORIES,
        "tracks": [encode.track(track) for track in timeline.tracks],
        "steps": steps.filter(steps["name"] != "all").to_dicts(),
        "activity": activity(timeline),
    }


def _labels(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "page"))
    first = whole_number(query, "page", "the number of a page of labels") * LABELS_PER_PAGE
    file = current_file(engine, query)
    timeline = engine.timeline(file)
    page = slice(first, first + LABELS_PER_PAGE)
    labels, trace = timeline.labels, engine.trace(file, reads_captures=False)
    readable = labels_of_kernels(trace)
    texts, categories = labels.texts[page], labels.categories[page].tolist()
    of_marks = labels_of_iterations(trace)
    marks = [text for text, of in zip(texts, categories, strict=True) if CATEGORIES[of] == "Annotation"]
    return {
        "state": "ready",
        "texts": texts,
        "labels": {text: readable[text] for text in texts if text in readable}
        | {text: of_marks[text] for text in marks if text in of_marks},
        "categories": categories,
    }


def _tiles(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "k"), optional=("find",))
    file = current_file(engine, query)
    timeline = engine.timeline(file)
    pyramid = slices.matching_pyramid(engine, file, query["find"]) if "find" in query else timeline.pyramid
    tiles = []
    for track, level, index in _keys(query["k"], "TRACK", len(timeline.tracks)):
        rows = timeline.tracks[track]
        tiles.append(pyramid.tile(rows.first_row, rows.first_row + rows.lanes, level, index))
    return batch_bytes(tiles)


def _counters(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "k"))
    curves = counters_of(engine, current_file(engine, query))
    keys = _keys(query["k"], "COUNTER", len(curves))
    return bytes_of_counters([curves[counter].tile(level, index) for counter, level, index in keys])


def _keys(text: str, of: str, count: int) -> list[tuple[int, int, int]]:
    """(track or counter, level, index) of each requested tile; `count` is the number of tracks or counters.

    Raises:
        BadParameter: It isn't spelt TRACK.LEVEL.INDEX,…, or there is no such tile.
    """
    keys = text.split(",")
    matches = [re.fullmatch(r"(\d{1,9})\.(\d{1,2})\.(\d{1,18})", key, re.ASCII) for key in keys]
    tiles = [(int(key[1]), int(key[2]), int(key[3])) for key in matches if key]
    if len(tiles) < len(keys) or len(keys) > MOST_TILES:
        raise BadParameter(f"k={text[:80]!r} isn't possible; it is at most {MOST_TILES} times {of}.LEVEL.INDEX.")
    for which, level, index in tiles:
        if which >= count or level > COARSEST or (index + 1) << (level + 9) >= 1 << 62:
            raise BadParameter(f"There is no tile {which}.{level}.{index}; {of} is less than {count}.")
    return tiles


ROUTES: dict[str, Handler] = {
    "/timeline": _timeline,
    "/timeline/labels": _labels,
    "/timeline/tiles": _tiles,
    "/timeline/counters": _counters,
}
