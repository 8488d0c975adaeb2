"""Who may see a page that was opened for one user: that user's browser, and the page itself there.

Other users of the machine, and other sites in the user's browser, can reach a port of this machine too:

- The address that is printed has a token. Opening it gives the browser a cookie, which scripts can't read. Nothing is
  answered without one of the two.
- Browsers send a cookie to each port of a host. So everything is below a random folder, to which the cookie is limited:
  a page of another user's server can't collect it.
- `Host` is a name of this server, which DNS rebinding can't forge.
- `Sec-Fetch-Site` and `Origin` are of the page itself. Only the page as a whole may be opened from elsewhere; no other
  page may frame it.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

from ...errors import RequestError
from ..access import HOSTS, ServerNames, is_same_origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from werkzeug.wrappers import Request, Response

TOKEN = "token"  # noqa: S105  # the name of a parameter
COOKIE = "kinetoscope"
_MOST_SHOWN = 100  # characters of a name in a message


class Refusal(RequestError):
    """A request that isn't answered."""

    status = 403


class PageAccess:
    """Decides which requests are answered.

    Args:
        hosts: Names of the server, as `ServerNames` takes them.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._names = ServerNames(hosts)
        self._token, self._session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.folder = f"/{secrets.token_hex(8)}"

    @property
    def path(self) -> str:
        """The page's path, with the token."""
        return f"{self.folder}/?{TOKEN}={self._token}"

    def is_page(self, request: Request) -> bool:
        """Whether a request is for the page as a whole."""
        return request.method == "GET" and request.path == f"{self.folder}/"

    def check(self, request: Request) -> None:
        """Check that a request may be answered.

        Raises:
            Refusal: It was sent under a name that isn't the server's, by another page, or without token and cookie.
        """
        host = request.environ.get("HTTP_HOST", "")
        if not self._names.include(host):
            raise Refusal(
                f"This server doesn't know the name {host[:_MOST_SHOWN]!r}. Open the page under localhost or an IP "
                f"address, or start it with the environment variable {HOSTS} set to that name."
            )
        if not (self.is_page(request) or _is_from_page(request)):
            raise Refusal("Only the page itself may ask this server.")
        is_below = request.path.startswith(f"{self.folder}/")
        if not is_below or not (self._has_cookie(request) or self._has_token(request)):
            raise Refusal("The address lacks its token. Open the whole address that `kinetoscope open` printed.")

    def admit(self, response: Response) -> None:
        """Give the browser the cookie."""
        response.set_cookie(COOKIE, self._session, path=f"{self.folder}/", httponly=True, samesite="Strict")

    def _has_cookie(self, request: Request) -> bool:
        return _is_equal(request.cookies.get(COOKIE, ""), self._session)

    def _has_token(self, request: Request) -> bool:
        return self.is_page(request) and _is_equal(request.args.get(TOKEN, ""), self._token)


def _is_from_page(request: Request) -> bool:
    """Whether the page sent a request, or the user, who opened its address in another tab."""
    if request.method != "GET":
        return is_same_origin(request)
    if site := request.headers.get("Sec-Fetch-Site"):
        return site in ("same-origin", "none")
    return "Origin" not in request.headers or is_same_origin(request)


def _is_equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), secret.encode())
