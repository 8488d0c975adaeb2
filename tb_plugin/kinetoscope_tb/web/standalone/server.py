"""The server of the page: it listens, and answers until the page is left."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from werkzeug.serving import WSGIRequestHandler, make_server

from ...errors import KinetoscopeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

LOOKS_EVERY_S = 0.5


class PortError(KinetoscopeError):
    """An address that can't be listened on."""


class _Handler(WSGIRequestHandler):
    timeout = 60  # seconds after which a silent connection is closed

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing for each request."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one.

    Raises:
        PortError: The port is used already, or this machine doesn't have that address.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PortError(f"The server can't listen on port {port} of {host}: {reason}.") from error


def serve(listener: socket.socket, application: Application, is_over: Callable[[], bool]) -> None:
    """Answer requests, each in a thread of its own, until `is_over`."""
    host, port = listener.getsockname()[:2]
    server = make_server(host, port, application, threaded=True, request_handler=_Handler, fd=listener.fileno())
    server.timeout = LOOKS_EVERY_S
    with server:
        while not is_over():
            server.handle_request()
