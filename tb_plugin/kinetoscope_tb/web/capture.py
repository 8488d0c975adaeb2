"""Requests to running jobs from the page: the only thing that the page can change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..discovery.jobs import ask, job_called, jobs
from ..errors import BadParameter, RequestError
from .queries import query_of

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..engine.engine import Engine
    from .access import WriteAccess

MOST_BYTES = 4096


class TooLarge(RequestError):
    """A request with a body that is too long."""

    status = 413


class NotJSON(RequestError):
    """A request of another media type, which a page of another site may send without a preflight request."""

    status = 415


def list_jobs(access: WriteAccess, engine: Engine, request: Request) -> object:
    """The jobs that record, or the one of a run, and the token for requests to them."""
    query = query_of(request, (), optional=("run",))
    matches = [job_called(engine.logdirs, query["run"])] if "run" in query else jobs(engine.logdirs)
    return {"state": "ready", "jobs": [job.to_json() for job in matches], **_token(access, request)}


def _token(access: WriteAccess, request: Request) -> dict[str, str | None]:
    """The token for a request, or why there is none."""
    try:
        return {"token": access.token_for(request), "refusal": ""}
    except RequestError as error:
        return {"token": None, "refusal": str(error)}


def request_recording(access: WriteAccess, engine: Engine, request: Request) -> object:
    """Leave a request for the job of a run.

    Raises:
        RequestError: It may not come from our page.
        NotJSON: Its media type isn't JSON.
        TooLarge: It is too long.
        BadParameter: Its content isn't valid.
    """
    query_of(request, ())
    access.check(request)
    if request.mimetype != "application/json":
        raise NotJSON(f"A request must be application/json, not {request.mimetype[:100]!r}.")
    value = _body(request)
    run = value.pop("run", None)
    if not isinstance(run, str):
        raise BadParameter("A request must name its run.")
    extra_keys = set(value) - {"steps", "warmup", "options"}
    if extra_keys:
        raise BadParameter(f"A request has no key {min(extra_keys)!r}; it has run, steps, warmup and options.")
    return {"state": "ready", "request": ask(job_called(engine.logdirs, run), value, "page").id}


def _body(request: Request) -> dict[str, Any]:
    if request.content_length is None or request.content_length > MOST_BYTES:
        raise TooLarge(f"A request has at most {MOST_BYTES} bytes, and a Content-Length.")
    try:
        value = json.loads(request.get_data())
    except (ValueError, RecursionError) as error:
        raise BadParameter(f"A request must be JSON: {error}.") from error
    if not isinstance(value, dict):
        raise BadParameter("A request must be a JSON object.")
    return value
