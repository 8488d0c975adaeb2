"""The timeline's routes for critical paths: of one worker, across ranks, and the share of each rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..critical_path.explanation import path_explanation
from ..distributed.path.path_segments import PathSegments
from ..engine.answers import Missing
from ..errors import NotFound
from ..timeline.critical_path.cross_rank_pieces import CrossRankPieces
from ..timeline.critical_path.path_pieces import PathPieces
from ..views import EVERY_VIEW
from .queries import STAMPED_NAMES, current_file, query_of, time_parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..distributed.run import Ranks
    from ..engine.engine import Engine
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from .responses import Handler

Pieces = TypeVar("Pieces", bound="PathPieces | CrossRankPieces")

BUCKETS = 2000  # of the requested range: shorter pieces in one bucket are grouped
RANGE = ("from_ns", "to_ns")
MAIN_RECORDING = ("main_worker", "main_span")  # the recording whose span the path across ranks is of


def _path(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, *RANGE))
    window = _window(query)
    return _path_within(engine, current_file(engine, query), window, _path_pieces)


def _window(query: Mapping[str, str]) -> tuple[int, int]:
    return time_parameter(query, "from_ns"), time_parameter(query, "to_ns")


def _path_pieces(trace: Trace, timeline: Timeline) -> PathPieces:
    return PathPieces.of(trace, timeline)


def _path_within(
    engine: Engine, file: TraceFile, window: tuple[int, int], make: Callable[..., Pieces], *arguments: Hashable
) -> object:
    """The part of a path in a range."""
    path = engine.about(file, make, *arguments, most=1, shares=path_explanation)
    return {"state": "ready", "pieces": path.within(engine.timeline(file), *window, BUCKETS)}


def _across_ranks(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, *RANGE, *MAIN_RECORDING))
    window = _window(query)
    file = current_file(engine, query)
    segments = _path_segments(engine, engine.find(query["run"], query["main_worker"], query["main_span"]))
    if isinstance(segments, Missing):
        return _missing(segments)
    member = _member(segments, file)
    return _path_within(engine, file, window, _cross_rank_pieces, segments, member)


def _cross_rank_pieces(trace: Trace, timeline: Timeline, segments: PathSegments, member: int) -> CrossRankPieces:
    return CrossRankPieces.of(trace, timeline, segments, member)


def _shares(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, *RANGE))
    window = _window(query)
    file = current_file(engine, query)
    segments = _path_segments(engine, file)
    if isinstance(segments, Missing):
        return _missing(segments)
    shares = segments.shares(_member(segments, file), *window)
    return {"state": "ready", "shares": shares, "notes": segments.notes}


def _missing(answer: Missing) -> dict[str, Any]:
    return {"state": "missing", "hint": answer.hint}


def _path_segments(engine: Engine, file: TraceFile) -> PathSegments | Missing:
    """The paths across the ranks of a file's span."""
    return engine.about_ranks(file, _path_segments_of)


def _path_segments_of(ranks: Ranks) -> PathSegments | Missing:
    view = EVERY_VIEW["path_across_ranks"]
    return Missing(view.hint) if view.is_missing(ranks) else PathSegments.of(ranks)


def _member(segments: PathSegments, file: TraceFile) -> int:
    """The member of the path that a file is.

    Raises:
        NotFound: The file isn't part of the path.
    """
    member = segments.member(file.worker, file.span)
    if member is None:
        members = [f"{rank.worker} {rank.span}" for rank in segments.ranks.members if rank.summary is not None]
        raise NotFound("recording among those of the path across ranks", f"{file.worker} {file.span}", members)
    return member


ROUTES: dict[str, Handler] = {
    "/timeline/path": _path,
    "/timeline/path_across_ranks": _across_ranks,
    "/timeline/path_shares": _shares,
}
