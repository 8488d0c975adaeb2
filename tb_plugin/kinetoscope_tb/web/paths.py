"""The timeline's routes for critical paths: that of one worker, what of that across ranks is on it, and who has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..engine import Missing
from ..errors import NotFound
from .queries import KNOWN, a_time, file_as_known, query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..distributed import Ranks
    from ..distributed.path.path_segments import PathSegments
    from ..engine import Engine
    from ..timeline import Timeline
    from ..timeline.paths.path_across_slices import PathAcrossSlices
    from ..timeline.paths.path_slices import PathSlices
    from ..trace import Trace
    from .responses import Handler

Slices = TypeVar("Slices", bound="PathSlices | PathAcrossSlices")

BUCKETS = 2000  # of the range that a path is asked for: shorter stretches in one are told as one
RANGE = ("from_ns", "to_ns")
ASKED_FROM = ("main_worker", "main_span")  # whose span it is that the path leads across


def _path(engine: Engine, request: Request) -> object:
    query = query_of(request, (*KNOWN, *RANGE))
    window = _window(query)
    return _path_within(engine, file_as_known(engine, query), window, "path", _path_slices)


def _window(query: Mapping[str, str]) -> tuple[int, int]:
    return a_time(query, "from_ns"), a_time(query, "to_ns")


def _path_slices(trace: Trace, timeline: Timeline) -> PathSlices:
    from ..timeline.paths.path_slices import PathSlices

    return PathSlices.of(trace, timeline)


def _path_within(
    engine: Engine, file: TraceFile, window: tuple[int, int], name: str, make: Callable[..., Slices], *given: object
) -> object:
    """What of a path lies in a range."""
    from ..critical_path import Explanation

    path = engine.about(file, name, make, *given, most=1, shares=Explanation.of)
    return {"state": "ready", "stretches": path.within(engine.timeline(file), *window, BUCKETS)}


def _across_ranks(engine: Engine, request: Request) -> object:
    query = query_of(request, (*KNOWN, *RANGE, *ASKED_FROM))
    window = _window(query)
    file = file_as_known(engine, query)
    stretches = _stretches(engine, engine.find(query["run"], query["main_worker"], query["main_span"]))
    if isinstance(stretches, Missing):
        return _missing(stretches)
    member = _member(stretches, file)
    return _path_within(engine, file, window, "path across ranks", _across_slices, stretches, member)


def _across_slices(trace: Trace, timeline: Timeline, stretches: PathSegments, member: int) -> PathAcrossSlices:
    from ..timeline.paths.path_across_slices import PathAcrossSlices

    return PathAcrossSlices.of(trace, timeline, stretches, member)


def _shares(engine: Engine, request: Request) -> object:
    query = query_of(request, (*KNOWN, *RANGE))
    window = _window(query)
    file = file_as_known(engine, query)
    stretches = _stretches(engine, file)
    if isinstance(stretches, Missing):
        return _missing(stretches)
    shares = stretches.shares(_member(stretches, file), *window)
    return {"state": "ready", "shares": shares, "notes": stretches.notes}


def _missing(answer: Missing) -> dict[str, Any]:
    return {"state": "missing", "hint": answer.hint}


def _stretches(engine: Engine, file: TraceFile) -> PathSegments | Missing:
    """The paths across the ranks of a file's span."""
    return engine.about_ranks(file, "path across ranks", _stretches_of)


def _stretches_of(ranks: Ranks) -> PathSegments | Missing:
    from ..distributed.path.path_segments import PathSegments
    from ..views import EVERY_VIEW

    view = EVERY_VIEW["path_across_ranks"]
    return Missing(view.hint) if view.is_missing(ranks) else PathSegments.of(ranks)


def _member(stretches: PathSegments, file: TraceFile) -> int:
    """Which of the ranks a file is.

    Raises:
        NotFound: None of them.
    """
    member = stretches.member(file.worker, file.span)
    if member is None:
        known = [f"{one.worker} {one.span}" for one in stretches.ranks.members if one.summary is not None]
        raise NotFound("recording among those of the path across ranks", f"{file.worker} {file.span}", known)
    return member


ROUTES: dict[str, Handler] = {
    "/timeline/path": _path,
    "/timeline/path_across_ranks": _across_ranks,
    "/timeline/path_shares": _shares,
}
