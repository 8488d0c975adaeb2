"""The timeline's routes for what is asked about slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import BadParameter
from ..store import Loading, Store
from . import encode
from .queries import file_as_known, query_of, whole_number
from .timeline import KNOWN

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..timeline import Timeline
    from ..timeline.links import Links
    from ..trace import Trace
    from .responses import Handler


def _slice(store: Store, request: Request) -> object:
    query = query_of(request, (*KNOWN, "slice"))
    number = whole_number(query, "slice", "the number of a slice")
    file = file_as_known(store, query)
    if isinstance(file, Loading):
        return encode.loading(file)
    links = store.about(file, "links", _links)
    if isinstance(links, Loading):
        return encode.loading(links)
    said = store.about(file, "slice", _details, number, links)
    return encode.loading(said) if isinstance(said, Loading) else {"state": "ready", **said}


def _links(trace: Trace, _timeline: Timeline) -> Links:
    from ..timeline.links import Links

    return Links.of(trace)


def _details(trace: Trace, timeline: Timeline, number: int, links: Links) -> dict[str, Any]:
    from ..analyses import VIEWS
    from ..timeline.details import details

    if number >= timeline.size:
        raise BadParameter(f"There is no slice {number}; the trace has {timeline.size}, counted from 0.")
    said = details(trace, timeline, number, links)
    said["rows"] = [
        {**row, "title": VIEWS[row["view"]].title} for row in said["rows"] if not VIEWS[row["view"]].is_missing(trace)
    ]
    return said


ROUTES: dict[str, Handler] = {"/timeline/slice": _slice}
