"""The timeline's routes for other viewers: a file of a range, and how large it would be."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import BadParameter
from ..export.chrome_json.writer import EXTRAS, Source, Window, export_pieces, size
from .queries import NAMES, current_file, query_of
from .responses import Download

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..engine.engine import Engine
    from ..export.chrome_json.writer import Extra
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from .responses import Handler

OPTIONAL = ("from_ns", "to_ns", "workers", "include")
MOST_SIZES = 16  # cached per trace
_WORKER = {"worker": str, "span": str, "shift_ns": int}


@dataclass(frozen=True)
class _ExportRequest:
    """The requested export: recordings, each with the shift of its times; the range; the extras."""

    files: list[tuple[TraceFile, int]]
    window: tuple[int | None, int | None]
    extras: tuple[Extra, ...]

    @property
    def name(self) -> str:
        """What the file is called."""
        first = self.files[0][0]
        who = f"{first.worker}.{first.span}" if len(self.files) == 1 else f"{len(self.files)}_workers"
        return f"{first.run.replace('/', '_')}.{who}.timeline.json.gz"


def _export(engine: Engine, request: Request) -> object:
    order = _export_request(engine, request)
    sources = []
    for file, shift_ns in order.files:
        label = "" if len(order.files) == 1 else file.worker
        trace = engine.trace(file, reads_captures=False).recording
        sources.append(Source(trace, engine.timeline(file), shift_ns, label))
    return Download(order.name, export_pieces(sources, Window(*order.window), order.extras))


def _size(engine: Engine, request: Request) -> object:
    order = _export_request(engine, request)
    sizes = [
        engine.about(file, _size_of, shift_ns, order.window, order.extras, most=MOST_SIZES, reads_captures=False)
        for file, shift_ns in order.files
    ]
    total = {"slices": sum(size.slices for size in sizes), "bytes": sum(size.bytes for size in sizes)}
    is_exact = len(sizes) == 1 and sizes[0].is_exact
    return {"state": "ready", "name": order.name, **total, "is_exact": is_exact}


def _size_of(
    trace: Trace,
    timeline: Timeline,
    shift_ns: int,
    window: tuple[int | None, int | None],
    extras: tuple[Extra, ...],
) -> Any:
    return size(Source(trace, timeline, shift_ns), Window(*window), extras)


def _export_request(engine: Engine, request: Request) -> _ExportRequest:
    """The parsed request.

    Raises:
        BadParameter: A parameter isn't valid.
        NotFound: There is no such recording.
        Changed: The first recording changed since it was opened.
    """
    query = query_of(request, (*NAMES, "stamp"), optional=OPTIONAL)
    extras = _extras(query.get("include", ""))
    window = (_number(query, "from_ns"), _number(query, "to_ns"))
    files = [(current_file(engine, query), 0)]
    files += [
        (engine.find(query["run"], worker["worker"], worker["span"]), worker["shift_ns"])
        for worker in _workers(query.get("workers", "[]"))
    ]
    return _ExportRequest(files, window, extras)


def _number(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    if not re.fullmatch(r"-?\d{1,18}", query[name], re.ASCII):
        raise BadParameter(f"{name}={query[name]!r} isn't possible; it is a time in whole ns.")
    return int(query[name])


def _extras(text: str) -> tuple[Extra, ...]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in EXTRAS:
            raise BadParameter(f"include={text[:80]!r} isn't possible; it is some of {', '.join(EXTRAS)}.")
    return tuple(extra for extra in EXTRAS if extra in names)


def _workers(text: str) -> list[dict[str, Any]]:
    try:
        workers = json.loads(text)
    except (ValueError, RecursionError):
        workers = None
    is_right = isinstance(workers, list) and all(
        isinstance(worker, dict)
        and worker.keys() == _WORKER.keys()
        and all(type(worker[name]) is kind for name, kind in _WORKER.items())
        and abs(worker["shift_ns"]) < 1 << 62
        for worker in workers
    )
    if not is_right:
        form = '[{"worker": W, "span": S, "shift_ns": N}, …]'
        raise BadParameter(f"workers={text[:80]!r} isn't possible; it is a list of further recordings: {form}.")
    return list(workers)


ROUTES: dict[str, Handler] = {"/timeline/export": _export, "/timeline/export/size": _size}
