"""The timeline's routes for critical paths: that of one worker, what of that across ranks is on it, and who has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import NotFound
from ..store import Loading, Missing, Store
from . import encode
from .queries import KNOWN, a_time, file_as_known, query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..ranks import Ranks
    from ..ranks.stretches import Stretches
    from ..timeline import Timeline
    from ..timeline.path_across_slices import PathAcrossSlices
    from ..timeline.path_slices import PathSlices
    from ..trace import Trace
    from .responses import Handler

Slices = TypeVar("Slices", bound="PathSlices | PathAcrossSlices")

BUCKETS = 2000  # of the range that a path is asked for: shorter stretches in one are told as one
RANGE = ("from_ns", "to_ns")
ASKED_FROM = ("main_worker", "main_span")  # whose span it is that the path leads across


def _path(store: Store, request: Request) -> object:
    query = query_of(request, (*KNOWN, *RANGE))
    window = _window(query)
    file = file_as_known(store, query)
    return encode.loading(file) if isinstance(file, Loading) else _told(store, file, window, "path", _path_slices)


def _window(query: Mapping[str, str]) -> tuple[int, int]:
    return a_time(query, "from_ns"), a_time(query, "to_ns")


def _path_slices(trace: Trace, timeline: Timeline) -> PathSlices:
    from ..timeline.path_slices import PathSlices

    return PathSlices.of(trace, timeline)


def _told(
    store: Store, file: TraceFile, window: tuple[int, int], name: str, make: Callable[..., Slices], *given: object
) -> object:
    """What of a path lies in a range."""
    from ..dependencies import Explanation

    path = store.about(file, name, make, *given, most=1, shares=Explanation.of)
    if isinstance(path, Loading):
        return encode.loading(path)
    timeline = store.timeline(file)
    if isinstance(timeline, Loading):
        return encode.loading(timeline)
    return {"state": "ready", "stretches": path.within(timeline, *window, BUCKETS)}


def _across_ranks(store: Store, request: Request) -> object:
    query = query_of(request, (*KNOWN, *RANGE, *ASKED_FROM))
    window = _window(query)
    file = file_as_known(store, query)
    if isinstance(file, Loading):
        return encode.loading(file)
    main = store.find(query["run"], query["main_worker"], query["main_span"])
    stretches = main if isinstance(main, Loading) else _stretches(store, main)
    if isinstance(stretches, (Loading, Missing)):
        return _instead(stretches)
    member = _member(stretches, file)
    return _told(store, file, window, "path across ranks", _across_slices, stretches, member)


def _across_slices(trace: Trace, timeline: Timeline, stretches: Stretches, member: int) -> PathAcrossSlices:
    from ..timeline.path_across_slices import PathAcrossSlices

    return PathAcrossSlices.of(trace, timeline, stretches, member)


def _shares(store: Store, request: Request) -> object:
    query = query_of(request, (*KNOWN, *RANGE))
    window = _window(query)
    file = file_as_known(store, query)
    if isinstance(file, Loading):
        return encode.loading(file)
    stretches = _stretches(store, file)
    if isinstance(stretches, (Loading, Missing)):
        return _instead(stretches)
    shares = stretches.shares(_member(stretches, file), *window)
    return {"state": "ready", "shares": shares, "notes": stretches.notes}


def _instead(answer: Loading | Missing) -> dict[str, Any]:
    return encode.loading(answer) if isinstance(answer, Loading) else {"state": "missing", "hint": answer.hint}


def _stretches(store: Store, file: TraceFile) -> Stretches | Missing | Loading:
    """The paths across the ranks of a file's span."""
    return store.about_ranks(file, "path across ranks", _stretches_of)


def _stretches_of(ranks: Ranks) -> Stretches | Missing:
    from ..analyses import EVERY_VIEW
    from ..ranks.stretches import Stretches

    view = EVERY_VIEW["path_across_ranks"]
    return Missing(view.hint) if view.is_missing(ranks) else Stretches.of(ranks)


def _member(stretches: Stretches, file: TraceFile) -> int:
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
