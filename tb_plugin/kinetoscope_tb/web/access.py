"""Who may change something through this server: only the plugin's own page, opened at an address of this server.

Three checks, because each alone can be bypassed:

- `Host` is an IP address, localhost, or a known name of the server. DNS rebinding makes a name of another site point
  here, and the browser takes both for one origin; but that name is never one of these.
- `Sec-Fetch-Site` is same-origin. If the browser doesn't send it, `Origin` must equal the requested address.
- The request carries a token. Each process generates a new one, and only a page of the same origin can read it.

`X-Forwarded-Host` is ignored because any client can send it. Requests that only read are not checked, as in the rest of
TensorBoard (see SECURITY.md).
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from werkzeug.wrappers import Request

HOSTS = "KINETOSCOPE_HOSTS"
TOKEN_HEADER = "X-Kinetoscope-Token"  # noqa: S105  # the name of a header

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
_MOST_SHOWN = 100  # characters of a name in a message
_COMMAND = "kinetoscope trigger RUN does the same without a page, on a machine that can write to the logdir"


class UnknownHost(RequestError):
    """A request under a name that the server doesn't have."""

    status = 403

    def __init__(self, host: str) -> None:
        super().__init__(
            f"The server doesn't know the name {host[:_MOST_SHOWN]!r} under which this page was opened, so the page "
            f"can't ask a job to record: another site could have pointed that name here. If it is the name of your "
            f"proxy or machine, start TensorBoard with the environment variable {HOSTS} set to it; or open the page "
            f"under localhost or an IP address. {_COMMAND}."
        )


class NotOurPage(RequestError):
    """A request that another site's page may have sent."""

    status = 403

    def __init__(self) -> None:
        super().__init__(f"Only the plugin's own page may ask a job to record. {_COMMAND}.")


class WrongToken(RequestError):
    """A request without the token of this server's process."""

    status = 403

    def __init__(self) -> None:
        super().__init__(f"The page was opened before this server started. Reload the page. {_COMMAND}.")


class ServerNames:
    """The names of a server: IP addresses, localhost, the machine's own, and those that its user gave.

    Args:
        hosts: What the user gave; `*.example.org` is every name below example.org.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        names = [_plain(host.strip()) for host in (*hosts, socket.gethostname())]
        self._names = {name for name in names if name and not name.startswith("*.")}
        self._endings = tuple(name[1:] for name in (*names, "*.localhost") if name.startswith("*."))

    def include(self, host: str) -> bool:
        """Whether a header `Host` has one of them."""
        match = _HOST.fullmatch(host)
        return match is not None and self._is_ours(_plain(match[1]))

    def _is_ours(self, name: str) -> bool:
        return _is_address(name) or name == "localhost" or name in self._names or name.endswith(self._endings)


def configured_hosts(host: str | None) -> list[str]:
    """The names that `--host` and the environment variable KINETOSCOPE_HOSTS give."""
    return [host or "", *os.environ.get(HOSTS, "").split(",")]


class WriteAccess:
    """Decides which requests may change something.

    Args:
        hosts: Names of the server, as `ServerNames` takes them.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._token = secrets.token_urlsafe(32)
        self._names = ServerNames(hosts)

    @classmethod
    def from_settings(cls, host: str | None) -> WriteAccess:
        """Return what the server's `--host` and the environment variable KINETOSCOPE_HOSTS allow."""
        return cls(configured_hosts(host))

    def token_for(self, request: Request) -> str:
        """The token for the page that sent the request.

        Raises:
            UnknownHost: The page was opened under a name that isn't the server's.
            NotOurPage: It is a page of another origin.
        """
        self._check_host(request)
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise NotOurPage
        return self._token

    def check(self, request: Request) -> None:
        """Check that a request may change something.

        Raises:
            UnknownHost: It was sent under a name that isn't the server's.
            NotOurPage: A page of another origin may have sent it.
            WrongToken: Its token is missing or wrong.
        """
        self._check_host(request)
        if not is_same_origin(request):
            raise NotOurPage
        token = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token.encode()):
            raise WrongToken

    def _check_host(self, request: Request) -> None:
        host = request.environ.get("HTTP_HOST", "")
        if not self._names.include(host):
            raise UnknownHost(host)


def _plain(host: str) -> str:
    """A host's name for comparison."""
    return host.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_same_origin(request: Request) -> bool:
    """Whether the page that sent the request has the same origin.

    Browsers send `Sec-Fetch-Site` only to addresses that they trust: https, or this machine.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site:
        return site == "same-origin"
    try:
        return origin is not None and urlsplit(origin).netloc == request.environ.get("HTTP_HOST", "")
    except ValueError:  # such as http://[
        return False
