"""The timeline's routes: what is drawn, as JSON and as tiles, and what is asked about slices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import BadParameter
from ..store import Loading, Store
from . import encode, slices
from .queries import KNOWN, NAMES, file_as_known, file_of, query_of, whole_number

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..timeline import Timeline
    from ..trace import Trace
    from .responses import Handler

LABELS_PER_PAGE = 1 << 14
MOST_TILES = 512  # of one request
COARSEST = 44  # the whole of five hours in one bucket


def _timeline(store: Store, request: Request) -> object:
    file = file_of(store, query_of(request, NAMES))
    if isinstance(file, Loading):
        return encode.loading(file)
    said = store.about(file, "meta", _meta)
    if isinstance(said, Loading):
        return encode.loading(said)
    return {"state": "ready", "stamp": encode.short_stamp(file.stamp), **said}


def _meta(trace: Trace, timeline: Timeline) -> dict[str, Any]:
    from ..timeline import CATEGORIES, activity

    steps = trace.steps.select("name", "start_ns", "end_ns", "is_complete")
    return {
        "window": timeline.window,
        "origin_ns": str(trace.origin_ns),
        "slices": timeline.size,
        "labels": len(timeline.labels.texts),
        "categories": CATEGORIES,
        "tracks": [encode.track(track) for track in timeline.tracks],
        "steps": steps.filter(steps["name"] != "all").to_dicts(),
        "activity": activity(timeline),
    }


def _labels(store: Store, request: Request) -> object:
    query = query_of(request, (*KNOWN, "page"))
    first = whole_number(query, "page", "the number of a page of labels") * LABELS_PER_PAGE
    file = file_as_known(store, query)
    timeline = file if isinstance(file, Loading) else store.timeline(file)
    if isinstance(timeline, Loading):
        return encode.loading(timeline)
    page = slice(first, first + LABELS_PER_PAGE)
    labels = timeline.labels
    return {"state": "ready", "texts": labels.texts[page], "categories": labels.categories[page].tolist()}


def _tiles(store: Store, request: Request) -> object:
    from ..timeline.encoding import batch_bytes

    query = query_of(request, (*KNOWN, "k"), optional=("find",))
    file = file_as_known(store, query)
    if isinstance(file, Loading):
        return encode.loading(file)
    timeline = store.timeline(file)
    if isinstance(timeline, Loading):
        return encode.loading(timeline)
    pyramid = slices.found_alone(store, file, query["find"]) if "find" in query else timeline.pyramid
    if isinstance(pyramid, Loading):
        return encode.loading(pyramid)
    tiles = []
    for track, level, index in _keys(query["k"], len(timeline.tracks)):
        rows = timeline.tracks[track]
        tiles.append(pyramid.tile(rows.first_row, rows.first_row + rows.lanes, level, index))
    return batch_bytes(tiles)


def _keys(text: str, tracks: int) -> list[tuple[int, int, int]]:
    """(track, level, index) of each tile that is asked for.

    Raises:
        BadParameter: It isn't spelt TRACK.LEVEL.INDEX,…, or there is no such tile.
    """
    keys = text.split(",")
    spelt = [re.fullmatch(r"(\d{1,9})\.(\d{1,2})\.(\d{1,18})", key, re.ASCII) for key in keys]
    found = [(int(key[1]), int(key[2]), int(key[3])) for key in spelt if key]
    if len(found) < len(keys) or len(keys) > MOST_TILES:
        raise BadParameter(f"k={text[:80]!r} isn't possible; it is at most {MOST_TILES} times TRACK.LEVEL.INDEX.")
    for track, level, index in found:
        if track >= tracks or level > COARSEST or (index + 1) << (level + 9) >= 1 << 62:
            raise BadParameter(f"There is no tile {track}.{level}.{index}; there are {tracks} tracks.")
    return found


ROUTES: dict[str, Handler] = {"/timeline": _timeline, "/timeline/labels": _labels, "/timeline/tiles": _tiles}
