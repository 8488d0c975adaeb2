"""The page in a frame without a server: what it asks comes as messages, and is answered as HTTP requests are."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from ..errors import KinetoscopeError
from ..names.text import file_size
from .contents import content_response
from .inline_page import inline_page
from .json_text import failure, json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .app import Site

BASE = "https://kinetoscope.invalid/"  # no name ends so (RFC 2606): what the page asks never leaves its frame
MOST_BYTES = 64 << 20  # of an answer: it is a message, whole in memory
_FRAME = Path(__file__).with_name("frame.js")
_OF_A_SERVER = "/timeline/perfetto"  # pages that open in a tab of their own


class LargeAnswer(KinetoscopeError):
    """More than goes through a message."""

    status = 413


class FramePage:
    """A page, and the answers to what it asks. Anyone who can send messages to this process may ask everything.

    Args:
        site: What answers.
        title: The page's title.
        address: What the page opens: the keys of its address, such as run, worker, span and view.
    """

    def __init__(self, site: Site, title: str, address: Mapping[str, str]) -> None:
        self._site, self._title = site, title
        pairs = [f"p.pytorch_profiler.{key}={quote(value, safe='')}" for key, value in address.items()]
        self._address = f"#{'&'.join(['pytorch_profiler', *pairs])}"

    def answer(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Answer a message of the page: `method`, `target` (path and query), `headers` and `body`, as `fetch` has them.

        Returns:
            `status` and `headers`, and the content.
        """
        target = urlsplit(str(message["target"]))
        headers = {**message.get("headers", {}), "Accept-Encoding": "gzip", "Sec-Fetch-Site": "same-origin"}
        builder = EnvironBuilder(
            path=target.path,
            query_string=target.query,
            base_url="http://localhost",
            method=str(message.get("method", "GET")),
            headers=headers,
            data=str(message.get("body") or ""),
        )
        request = builder.get_request()
        response = self._page(request) if request.path == "/" else self._site_response(request)
        return {"status": response.status_code, "headers": dict(response.headers)}, response.get_data()

    def _page(self, request: Request) -> Response:
        head = f'<base href="{BASE}">\n<meta name="address" content="{html.escape(self._address)}">\n'
        page = inline_page(self._title, head=head, preparation=_FRAME.read_text(encoding="utf-8"))
        return content_response(request, page.encode(), "text/html")

    def _site_response(self, request: Request) -> Response:
        path = "/*" if request.path.startswith(_OF_A_SERVER) else request.path
        response = Response.from_app(self._site.application(path), request.environ)
        parts, size = [], 0
        for part in response.iter_encoded():
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                response.close()
                problem = LargeAnswer(f"A notebook gets at most {file_size(MOST_BYTES)}. Use `kinetoscope export`.")
                return content_response(
                    request, json_text(failure(problem)).encode(), "application/json", code=problem.status
                )
        response.close()
        return Response(parts, response.status_code, response.headers)
