"""Files and texts as HTTP responses. It imports nothing that is slow: a page is there before what answers it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from .assets import asset, compressed_asset

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

_LEVEL = 3  # of gzip for texts
_TEXT_TYPES = ("application/json", "image/svg+xml")
_SCRIPT = re.compile(rb"<script\b[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_POLICY = (
    "default-src 'self'; connect-src 'self'; font-src 'self' data:; img-src 'self' data: blob:; "
    "style-src 'self' data: 'unsafe-inline'; object-src 'none'; frame-ancestors 'self'"
)


def page_file(request: Request) -> Response:
    """A file of the page.

    Raises:
        NotFound: There is no such file.
    """
    name = request.path.partition("/static/")[2]
    content, media_type = asset(name)
    return content_response(request, content, media_type, gzip_content=compressed_asset(name))


def content_response(
    request: Request, content: bytes, media_type: str, *, gzip_content: bytes | None = None, code: int = 200
) -> Response:
    """The content, compressed if the browser accepts gzip and that saves something.

    Args:
        request: What is answered.
        content: The content.
        media_type: Its type, without a charset: texts are UTF-8.
        gzip_content: The content compressed with gzip, if that is at hand.
        code: The HTTP status.
    """
    is_text = media_type.startswith("text/") or media_type in _TEXT_TYPES
    headers = {"Cache-Control": "no-cache, must-revalidate", "X-Content-Type-Options": "nosniff"}
    if (gzip_content is not None or is_text) and request.accept_encodings["gzip"] > 0:
        content = gzip_content or gzip.compress(content, compresslevel=_LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(content, code, headers, content_type=f"{media_type}; charset=utf-8" if is_text else media_type)


def page_response(request: Request, page: bytes, *, allows_eval: bool = False) -> Response:
    """An HTML page that may run its own scripts, and may contact no other address.

    Args:
        request: What is answered.
        page: The page.
        allows_eval: Whether its scripts may compile other ones.
    """
    response = content_response(request, page, "text/html")
    hashes = [f"'sha256-{script_hash}'" for script_hash in script_hashes(page)]
    sources = " ".join(["'self'", *(["'unsafe-eval'"] if allows_eval else []), *hashes])
    response.headers["Content-Security-Policy"] = f"{_POLICY}; script-src {sources}"
    return response


def script_hashes(page: bytes) -> list[str]:
    """The hash of each inline script of the page, as a Content-Security-Policy spells it."""
    return [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in _SCRIPT.findall(page) if text.strip()]
