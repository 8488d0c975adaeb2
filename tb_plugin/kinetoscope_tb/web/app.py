"""Routes to answers. Each handler returns JSON values or raises; here and nowhere else that becomes HTTP."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorboard.backend import http_util
from werkzeug.wrappers import Request, Response

from ..errors import BadParameter, KinetoscopeError, NotFound
from ..store import Loading, Store
from . import encode
from .assets import asset

if TYPE_CHECKING:
    from ..discovery import TraceFile
    from ..views import View

logger = logging.getLogger(__name__)

NAMES = ("run", "worker", "span")
BASE_NAMES = ("base_run", "base_worker", "base_span")

Handler = Callable[[Store, Request], object]


def routes(store: Store) -> dict[str, Callable[..., Any]]:
    """The WSGI applications by route."""
    answers: dict[str, Handler] = {"/runs": _runs, "/views": _views, "/state": _state, "/view": _view}
    answers |= {"/compare": _compare, "/event": _event, "/*": _elsewhere}
    apps = {route: Request.application(partial(_json_response, store, handler)) for route, handler in answers.items()}
    return {**apps, "/static/*": Request.application(_asset_response)}


def _runs(store: Store, request: Request) -> object:
    _query(request, ())
    return encode.runs(store.listing())


def _views(_store: Store, request: Request) -> object:
    from ..views import catalogue

    _query(request, ())
    return catalogue(_catalogue().values())


def _state(store: Store, request: Request) -> object:
    file = _file(store, _query(request, NAMES))
    if isinstance(file, Loading):
        return encode.loading(file)
    trace, views = store.trace(file), _catalogue()
    if isinstance(trace, Loading):
        return encode.loading(trace)
    health = store.frame(views["health"], file, {})
    return encode.loading(health) if isinstance(health, Loading) else encode.state(trace, file.shown, views, health)


def _view(store: Store, request: Request) -> object:
    query = _query(request, ("view", *NAMES), others=True)
    view = _find_view(query["view"])
    arguments = view.arguments({k: v for k, v in query.items() if k not in ("view", *NAMES)})
    file = _file(store, query)
    result = file if isinstance(file, Loading) else store.frame(view, file, arguments)
    return encode.view_answer(view, result)


def _compare(store: Store, request: Request) -> object:
    names = ("view", *NAMES, *BASE_NAMES)
    query = _query(request, names, others=True)
    view = _find_view(query["view"])
    arguments = view.arguments({k: v for k, v in query.items() if k not in (*names, "columns")})
    columns = [name for name in query.get("columns", "").split(",") if name]
    new, base = _file(store, query), store.find(*(query[name] for name in BASE_NAMES))
    if isinstance(new, Loading) or isinstance(base, Loading):
        return {"view": view.id, **encode.loading(Loading("listing"))}
    return encode.comparison(view, store.comparison(view, base, new, arguments, columns))


def _event(store: Store, request: Request) -> object:
    query = _query(request, (*NAMES, "offset"))
    if not re.fullmatch(r"\d{1,18}", query["offset"], re.ASCII):
        raise BadParameter(f"offset={query['offset']!r} isn't possible; it is the byte at which an event begins.")
    file = _file(store, query)
    event = file if isinstance(file, Loading) else store.event(file, int(query["offset"]))
    return encode.loading(event) if isinstance(event, Loading) else encode.event(event)


def _elsewhere(_store: Store, request: Request) -> object:
    raise NotFound("route", request.path, ("runs", "views", "state", "view", "compare", "event", "static/…"))


def _query(request: Request, needed: tuple[str, ...], *, others: bool = False) -> dict[str, str]:
    """The request's parameters.

    Raises:
        BadParameter: One is missing, or given twice, or not known.
    """
    query = request.args.to_dict(flat=False)
    for name in needed:
        if name not in query:
            raise BadParameter(f"The parameter {name!r} is missing; {request.path} needs {', '.join(needed)}.")
    for name, values in query.items():
        if len(values) > 1:
            raise BadParameter(f"The parameter {name!r} is given {len(values)} times; give it once.")
        if name not in needed and not others:
            takes = ", ".join(needed) or "none"
            raise BadParameter(f"There is no parameter {name!r} here; {request.path} takes {takes}.")
    return {name: values[0] for name, values in query.items()}


def _file(store: Store, query: Mapping[str, str]) -> TraceFile | Loading:
    return store.find(query["run"], query["worker"], query["span"])


def _find_view(name: str) -> View:
    views = _catalogue()
    if name not in views:
        raise NotFound("view", name, views)
    return views[name]


def _catalogue() -> Mapping[str, View]:
    from ..analyses import VIEWS  # imports Polars and numba, which TensorBoard's start must not wait for

    return VIEWS


def _json_response(store: Store, handler: Handler, request: Request) -> Response:
    if request.method != "GET":
        return _wrong_method(request)
    try:
        return _respond(request, handler(store, request))
    except Exception as error:  # noqa: BLE001  # one of the two places: a request
        return _failure(request, error)


def _asset_response(request: Request) -> Response:
    if request.method != "GET":
        return _wrong_method(request)
    try:
        content, media_type = asset(request.path.partition("/static/")[2])
    except Exception as error:  # noqa: BLE001  # as above
        return _failure(request, error)
    response: Response = http_util.Respond(request, content, media_type)
    return response


def _wrong_method(request: Request) -> Response:
    message = f"{request.method} isn't possible here; use GET."
    failed = {"state": "failed", "code": "method_not_allowed", "message": message}
    response = _respond(request, failed, 405)
    response.headers["Allow"] = "GET"
    return response


def _failure(request: Request, error: Exception) -> Response:
    if not isinstance(error, KinetoscopeError):
        logger.error("%s failed", request.full_path, exc_info=error)
    status = error.status if isinstance(error, KinetoscopeError) else 500
    return _respond(request, encode.failure(error, request.args.get("view")), status)


def _respond(request: Request, value: object, status: int = 200) -> Response:
    content = encode.text(value)
    response: Response = http_util.Respond(request, content, "application/json; charset=utf-8", code=status)
    response.headers["Cache-Control"] = "no-store"  # a trace may grow, and a new one may take its name
    return response
