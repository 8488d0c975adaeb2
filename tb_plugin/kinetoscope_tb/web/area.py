"""The timeline's routes about an area: its slices by group, its flame graph, its counters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from ..errors import BadParameter
from ..timeline.area.counter_values import counter_values
from ..timeline.area.flame import AreaFlames, area_flames
from ..timeline.area.groups import By, groups
from ..timeline.area.pivot import Area, area
from . import encode
from .queries import STAMPED_NAMES, current_file, query_of, time_parameter
from .timeline import counters_of

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..engine.engine import Engine
    from ..timeline.area.groups import Groups
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from .responses import Handler

SIDES = ("device", "host")
MOST_GROUPS = 3  # groupings cached per trace: each has a number per slice


def _area(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "from_ns", "to_ns", "tracks"), optional=("by",))
    by = _choice(query, "by", get_args(By))
    times, tracks, file = _times(query), _tracks(query), current_file(engine, query)
    of_slices = engine.about(file, groups, by, most=MOST_GROUPS)
    return engine.about(file, _rows, of_slices, times, tracks)


def _rows(
    _trace: Trace, timeline: Timeline, of_slices: Groups, times: tuple[int, int], tracks: tuple[int, ...]
) -> object:
    return encode.table(Area.columns, area(timeline, of_slices, *times, _check_tracks(timeline, tracks)))


def _flame(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "from_ns", "to_ns", "tracks", "side"))
    side = _choice(query, "side", SIDES)
    return engine.about(current_file(engine, query), _boxes, _times(query), _tracks(query), side)


def _boxes(_trace: Trace, timeline: Timeline, times: tuple[int, int], tracks: tuple[int, ...], side: str) -> object:
    boxes = area_flames(timeline, *times, _check_tracks(timeline, tracks), is_device=side == "device")
    return encode.table(AreaFlames.columns, boxes)


def _counters(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "from_ns", "to_ns"))
    times = _times(query)
    curves = counters_of(engine, current_file(engine, query))
    values: list[dict[str, Any]] = [{"id": i, **counter_values(curve, *times)} for i, curve in enumerate(curves)]
    return {"state": "ready", "counters": values}


def _choice(query: dict[str, str], name: str, choices: tuple[str, ...]) -> Any:
    """The value of a parameter that is one of some words; the first is the default.

    Raises:
        BadParameter: It is something else.
    """
    value = query.get(name, choices[0])
    if value not in choices:
        raise BadParameter(f"{name}={value[:80]!r} isn't possible; choose one of {', '.join(choices)}.")
    return value


def _times(query: dict[str, str]) -> tuple[int, int]:
    """The range of time.

    Raises:
        BadParameter: It isn't one.
    """
    begin, end = time_parameter(query, "from_ns"), time_parameter(query, "to_ns")
    if end < begin:
        raise BadParameter(f"to_ns={end} isn't possible; it is no earlier than from_ns={begin}.")
    return begin, end


def _tracks(query: dict[str, str]) -> tuple[int, ...]:
    """The numbers of the tracks.

    Raises:
        BadParameter: They aren't numbers.
    """
    tracks = query["tracks"].split(",") if query["tracks"] else []
    if not all(re.fullmatch(r"\d{1,9}", track, re.ASCII) for track in tracks):
        raise BadParameter(f"tracks={query['tracks'][:80]!r} isn't possible; it is numbers of tracks with commas.")
    return tuple(map(int, tracks))


def _check_tracks(timeline: Timeline, tracks: tuple[int, ...]) -> tuple[int, ...]:
    """The tracks, if there are such.

    Raises:
        BadParameter: One isn't there.
    """
    if missing := [track for track in tracks if track >= len(timeline.tracks)]:
        raise BadParameter(f"There is no track {missing[0]}; there are {len(timeline.tracks)}, counted from 0.")
    return tracks


ROUTES: dict[str, Handler] = {
    "/timeline/area": _area,
    "/timeline/area/flame": _flame,
    "/timeline/area/counters": _counters,
}
