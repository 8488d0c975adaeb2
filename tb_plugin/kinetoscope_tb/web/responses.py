"""Turns what a handler returns or raises into HTTP; no other module does."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from werkzeug.wrappers import Request, Response

from ..engine.answers import NotReady
from ..engine.engine import Engine
from ..errors import KinetoscopeError, TraceError
from . import encode
from .contents import content_response
from .json_text import failure, json_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Download:
    """A file that is written while it is sent.

    Args:
        name: The name that the browser saves it under.
        parts: Its bytes, compressed with gzip.
    """

    name: str
    parts: Iterator[bytes]


Handler = Callable[[Engine, Request], object]

FOREVER_S = 31_536_000  # a year, the longest that is usual
LEAST_TO_COMPRESS = 1 << 16  # bytes; compressing less saves no time


def answer_response(engine: Engine, handler: Handler, request: Request, *, post: Handler | None = None) -> Response:
    """The handler's answer or error; `post` handles requests that change something."""
    if request.method == "POST" and post is not None:
        handler = post
    elif request.method != "GET":
        return _wrong_method(request, "GET" if post is None else "GET, POST")
    try:
        return _respond(request, handler(engine, request))
    except NotReady as waiting:
        return _respond(request, encode.loading_state(waiting.progress, request.args.get("view")))
    except TraceError as error:
        return _failure(request, error.with_path(engine.path_on_page(error.path)))
    except Exception as error:  # noqa: BLE001  # the boundary of one request
        return _failure(request, error)


def file_response(file: Callable[[Request], Response], request: Request) -> Response:
    """A file of a page, or an error."""
    if request.method != "GET":
        return _wrong_method(request)
    try:
        return file(request)
    except Exception as error:  # noqa: BLE001  # as above
        return _failure(request, error)


def _wrong_method(request: Request, methods: str = "GET") -> Response:
    message = f"{request.method} isn't possible here; use {methods}."
    body = {"state": "failed", "code": "method_not_allowed", "message": message}
    response = _respond(request, body, 405)
    response.headers["Allow"] = methods
    return response


def _failure(request: Request, error: Exception) -> Response:
    if not isinstance(error, KinetoscopeError):
        logger.error("%.500r failed", request.full_path, exc_info=error)
    status = error.status if isinstance(error, KinetoscopeError) else 500
    return _respond(request, failure(error, request.args.get("view")), status)


def _respond(request: Request, value: object, status: int = 200) -> Response:
    """JSON, which isn't cached; bytes, cached forever because their address includes the stamp; or a download."""
    if isinstance(value, bytes):
        return _bytes(request, value)
    if isinstance(value, Download):
        return _download(value)
    content = json_text(value)
    response = content_response(request, content.encode(), "application/json", code=status)
    response.headers["Cache-Control"] = "no-store"  # a trace may grow, and another may replace it
    return response


def _bytes(request: Request, value: bytes) -> Response:
    gzip_content = gzip.compress(value, compresslevel=1, mtime=0) if len(value) >= LEAST_TO_COMPRESS else None
    response = content_response(request, value, "application/octet-stream", gzip_content=gzip_content)
    response.headers["Cache-Control"] = f"private, max-age={FOREVER_S}, immutable"
    return response


def _download(file: Download) -> Response:
    """The compressed file as it is: its reader decompresses it, so it is never whole in memory."""
    response = Response(file.parts, content_type="application/gzip", direct_passthrough=True)
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in file.name)
    response.headers["Content-Disposition"] = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name)}"
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
