"""Requests to running jobs from the page: the only thing that the page can change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import BadParameter, RequestError
from ..jobs import ask, job_called, jobs
from .queries import query_of

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..store import Store

MOST_BYTES = 4096


class NotOurPage(RequestError):
    """A request that another site's page may have sent."""

    status = 403


class TooLarge(RequestError):
    """A request with more in it than any that makes sense."""

    status = 413


def listed(store: Store, request: Request) -> object:
    """The jobs that record, or the one of a run."""
    query = query_of(request, (), optional=("run",))
    found = [job_called(store.logdirs, query["run"])] if "run" in query else jobs(store.logdirs)
    return {"state": "ready", "jobs": [job.to_json() for job in found]}


def asked(store: Store, request: Request) -> object:
    """Leave a request for the job of a run.

    Raises:
        NotOurPage: It doesn't come from our page.
        TooLarge: It is too long.
        BadParameter: It can't be followed.
    """
    query_of(request, ())
    _check_origin(request)
    value = _body(request)
    run = value.pop("run", None)
    if not isinstance(run, str):
        raise BadParameter("A request names its run.")
    unknown = set(value) - {"steps", "warmup", "options"}
    if unknown:
        raise BadParameter(f"The page asks for steps, warmup and options, not for {min(unknown)!r}.")
    return {"state": "ready", "request": ask(job_called(store.logdirs, run), value, "page").id}


def _check_origin(request: Request) -> None:
    """Let no other site's page use the browser of someone who can reach this server.

    A browser says itself whether a page of the same origin asks, where the address is one that it trusts (https, or
    this machine). Elsewhere its `Origin` has to be the address that was asked. And a page of another origin may not
    send JSON without asking first, which is never granted.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    is_same = site == "same-origin" if site else origin is not None and urlsplit(origin).netloc == request.host
    if not is_same:
        raise NotOurPage("Only the plugin's own page may ask a job to record; another program uses the command line.")
    if request.mimetype != "application/json":
        raise NotOurPage(f"A request is application/json, not {request.mimetype!r}.")


def _body(request: Request) -> dict[str, Any]:
    if request.content_length is None or request.content_length > MOST_BYTES:
        raise TooLarge(f"A request has at most {MOST_BYTES} bytes, and says how many.")
    try:
        value = json.loads(request.get_data())
    except (ValueError, RecursionError) as error:
        raise BadParameter(f"A request is JSON: {error}.") from error
    if not isinstance(value, dict):
        raise BadParameter("A request is a JSON object.")
    return value
