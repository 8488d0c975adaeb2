"""Servers on this machine that stand for places far away, and can be told to fail."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class S3:
    """moto's S3, empty at first; `answer` may answer a request in its place."""

    def __init__(self) -> None:
        self.answer: Callable[[Request], Response | None] = lambda request: None
        self.asked: list[Request] = []
        get_backend("s3").reset()  # one for the whole process
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._app, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _app(self, environ: dict[str, Any], start: Any) -> Any:
        request = Request(environ, populate_request=False)
        self.asked.append(request)
        return (self.answer(request) or self._moto)(environ, start)

    @property
    def environ(self) -> dict[str, str]:
        """The usual environment variables that lead to it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def ranges(self) -> list[str]:
        """The parts of objects that were asked for."""
        return [request.headers["Range"] for request in self.asked if "Range" in request.headers]

    @contextmanager
    def running(self) -> Iterator[S3]:
        with _in_thread(self._server):
            yield self


@contextmanager
def _in_thread(server: Any) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Python's own web server: pages of links, whole files only."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with _http_server(Handler) as url:
        yield url


class Answers:
    """A web server that answers as it is told: `answer(method, path, headers)` gives status, headers and body."""

    def __init__(self, answer: Callable[[str, str, Any], tuple[int, dict[str, str | None], bytes]]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    @contextmanager
    def running(self) -> Iterator[str]:
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                told.asked.append((self.command, self.headers.get("Range", "")))
                status, headers, body = told.answer(self.command, self.path, self.headers)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    if value is not None:
                        self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815  # the handler's names

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        with _http_server(Handler) as url:
            yield url


@contextmanager
def _http_server(handler: Any) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with _in_thread(server):
        yield f"http://127.0.0.1:{server.server_port}"
