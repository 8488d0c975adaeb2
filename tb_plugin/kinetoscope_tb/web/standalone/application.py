"""Requests → the page, what the page says about itself, and the routes of `web.app`."""

from __future__ import annotations

import html
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from ...errors import KinetoscopeError
from ..contents import content_response, page_file, page_response
from ..json_text import failure, json_text
from .access import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from ..app import Site
    from .access import PageAccess
    from .presence import Presence
    from .uploads import Uploads

    Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_PAGE = Path(__file__).with_name("page.html")


class PageApplication:
    """The WSGI application of one page.

    Args:
        title: The page's title.
        site: What answers the page's questions; it may still be imported.
        access: Who may see the page.
        presence: Which pages are open.
        uploads: Where files go that were dropped onto the page.
    """

    def __init__(
        self, title: str, site: Future[Site], access: PageAccess, presence: Presence, uploads: Uploads
    ) -> None:
        self._title, self._site = title, site
        self._access, self._presence, self._uploads = access, presence, uploads
        self._drops = itertools.count(1)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        try:
            self._access.check(request)
        except Refusal as error:
            response = content_response(request, str(error).encode(), "text/plain", code=error.status)
            return response(environ, start_response)
        folder = self._access.folder
        inside = {**environ, "SCRIPT_NAME": folder, "PATH_INFO": request.path.removeprefix(folder)}
        return self._application(Request(inside))(inside, start_response)

    def _application(self, request: Request) -> Application:
        """What answers a request: the page's own routes, or those of `web.app`."""
        if (request.method, request.path) == ("POST", "/presence"):
            return self._note_presence(request)
        answers = {("GET", "/"): self._page, ("POST", "/upload"): self._upload}
        if request.path == "/static/index.js":  # before the others are imported
            answers["GET", request.path] = page_file
        answer = answers.get((request.method, request.path))
        if answer is None:
            return self._site.result().application(request.path)
        try:
            return answer(request)
        except HTTPException as error:  # such as a browser that went away before all of a file was sent
            return error
        except (KinetoscopeError, OSError) as error:  # such as a full disk
            status = error.status if isinstance(error, KinetoscopeError) else 507
            problem = error if isinstance(error, KinetoscopeError) else KinetoscopeError(f"{error.strerror or error}.")
            return content_response(request, json_text(failure(problem)).encode(), "application/json", code=status)

    def _page(self, request: Request) -> Response:
        page = _PAGE.read_text(encoding="utf-8").replace("{most_bytes}", str(self._uploads.most_bytes))
        page = page.replace("{page}", str(self._presence.new_page()))
        page = page.replace("{title}", html.escape(self._title))  # last: what it holds is text
        response = page_response(request, page.encode())
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "no-referrer"
        self._access.admit(response)
        return response

    def _note_presence(self, request: Request) -> Response:
        """Note that a page is open or was closed."""
        page, number = (request.args.get(name, -1, type=int) for name in ("page", "number"))
        self._presence.note(page, number, is_open=request.get_data(as_text=True) != "closed")
        return Response(status=204)

    def _upload(self, request: Request) -> Response:
        """Save a file that was dropped, and show it; those of one drop are one run."""
        drop = request.args.get("run") or f"dropped {next(self._drops)}"
        path = self._uploads.save(request.stream, request.args.get("name", ""))
        file = self._site.result().show(str(path), drop)
        answer = {"state": "ready", "drop": drop, "run": file.run, "worker": file.worker, "span": file.span}
        return content_response(request, json_text(answer).encode(), "application/json")
