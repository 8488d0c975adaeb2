"""A page that `kinetoscope open` serves, and what it answers."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from contract.running import Answer, forked_server, server_process
from support import forks
from support.waiting import LIMIT_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CODE = "from kinetoscope_tb.cli import main; main()"
STARTED = (sys.executable, "-c", CODE)
"""What starts a process as a user does."""


@dataclass
class OpenPage:
    """A page at the printed address."""

    address: str
    process: subprocess.Popen[str] | forks.Program
    output: Path
    cookie: str = ""

    @property
    def base(self) -> str:
        """The address without token and place."""
        return self.address.partition("?")[0]

    @property
    def place(self) -> dict[str, str]:
        """The run, worker and span that the address chooses."""
        pairs = parse_qsl(urlsplit(self.address).fragment.partition("&")[2])
        return {key.removeprefix("p.pytorch_profiler."): value for key, value in pairs}

    def request(
        self, url: str, *, headers: dict[str, str] | None = None, method: str = "GET", data: bytes | None = None
    ) -> Answer:
        request = urllib.request.Request(url, data=data, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def enter(self) -> Answer:
        """Open the printed address, as a browser does; it gives the cookie."""
        answer = self.request(self.address.partition("#")[0])
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return answer

    def ask(self, route: str, *, headers: dict[str, str] | None = None, **query: str) -> Answer:
        """Ask as the page does."""
        if not self.cookie:
            self.enter()
        url = f"{self.base}{route}?{urlencode(query)}"
        return self.request(url, headers={"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin", **(headers or {})})

    def send(self, route: str, data: bytes, headers: dict[str, str] | None = None, **query: str) -> Answer:
        """Send as the page does."""
        own = {"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        return self.request(f"{self.base}{route}?{urlencode(query)}", headers=own, method="POST", data=data)

    def cut_upload(self, data: bytes, **query: str) -> None:
        """Send a part of a file, and go away."""
        authority, path = self.base.split("/")[2], "/" + self.base.partition("//")[2].partition("/")[2]
        lines = [f"POST {path}upload?{urlencode(query)} HTTP/1.1", f"Host: {authority}", "Sec-Fetch-Site: same-origin"]
        lines += [f"Cookie: {self.cookie}", f"Content-Length: {len(data) + 1}", "", ""]
        host, _, port = authority.partition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall("\r\n".join(lines).encode() + data)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # it has answered

    def settled(self, route: str, **query: str) -> Answer:
        """The answer once it is no longer `loading`."""
        return wait_for(lambda: self.ask(route, **query), is_right=lambda answer: answer.json["state"] != "loading")

    def wait_for_end(self) -> int:
        """The exit status, once the process has ended."""
        return self.process.wait(timeout=LIMIT_S)


@contextmanager
def opening(
    *arguments: str | Path,
    stdin: IO[bytes] | None = None,
    program: Sequence[str | Path] = (),
    **environment: str,
) -> Iterator[OpenPage]:
    """The page of `kinetoscope open` with these arguments; its process ends with the block.

    Args:
        arguments: Of the command.
        stdin: Its standard input.
        program: What starts it; by default it is forked, where that is possible and nothing is on standard input.
        environment: More variables of its environment.
    """
    address = re.compile(r"^  (http://\S+)\n\n.*ends with", re.MULTILINE | re.DOTALL)
    variables = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "SSH_CONNECTION")}
    variables |= environment
    words = ("open", *map(str, arguments))
    if stdin is None and not program and forks.IS_POSSIBLE:
        running = forked_server(("-c", CODE, *words), address, variables)
    else:
        command = [*(program or STARTED), *words]
        running = server_process(command, address, stdin=stdin or subprocess.DEVNULL, env=variables)
    with running as (url, process, output):
        yield OpenPage(url, process, output)
