"""A Firefox driven by Marionette, the protocol that is part of every Firefox.

Messages are JSON with their length before them, over a socket on this machine; the commands are those of WebDriver.
https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

STARTS_WITHIN_S = 90
PREFERENCES = {
    "marionette.port": 0,  # any free port; a file of the profile holds it
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}
COMMAND, ANSWER = 0, 1


class Firefox:
    """A running Firefox, controlled over a socket."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=STARTS_WITHIN_S)
        self._received, self._asked = b"", 0
        self._receive()  # the handshake
        self.tell("WebDriver:NewSession", {})

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    def tell(self, command: str, parameters: dict[str, Any]) -> Any:
        """What comes of a command."""
        self._asked += 1
        text = json.dumps([COMMAND, self._asked, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(text), text))
        kind, number, error, result = self._receive()
        assert (kind, number, error) == (ANSWER, self._asked, None), error
        return result

    def _receive(self) -> Any:
        while b":" not in self._received:
            self._received += self._more()
        length, _, self._received = self._received.partition(b":")
        while len(self._received) < int(length):
            self._received += self._more()
        message, self._received = self._received[: int(length)], self._received[int(length) :]
        return json.loads(message)

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 16)
        assert data, "Firefox has ended"
        return data

    def go(self, url: str) -> None:
        """Open an address afresh."""
        for address in ("about:blank", url):
            self.tell("WebDriver:Navigate", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """The return value of a function body that runs in the page."""
        parameters = {"script": script, "args": arguments, "sandbox": None}
        return self.tell("WebDriver:ExecuteScript", parameters)["value"]

    def press(self, key: str, milliseconds: int) -> None:
        """Hold a key."""
        pressed = [{"type": "keyDown", "value": key}, {"type": "pause", "duration": milliseconds}]
        keys = {"type": "key", "id": "keys", "actions": [*pressed, {"type": "keyUp", "value": key}]}
        self.tell("WebDriver:PerformActions", {"actions": [keys]})

    def click(self, x: float, y: float) -> None:
        """Click a point of the page."""
        move = {"type": "pointerMove", "x": round(x), "y": round(y), "origin": "viewport"}
        click = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [move, *click]}
        self.tell("WebDriver:PerformActions", {"actions": [mouse]})

    def drag(self, start: tuple[float, float], *stops: tuple[float, float], hold_ms: int = 0) -> None:
        """Drag from a point of the page over others to the last one, and hold there before letting go."""
        moves = [
            {"type": "pointerMove", "x": round(x), "y": round(y), "origin": "viewport", "duration": 50}
            for x, y in (start, *stops)
        ]
        ends = [{"type": "pause", "duration": hold_ms}, {"type": "pointerUp", "button": 0}]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], *ends]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self.tell("WebDriver:PerformActions", {"actions": [mouse]})


@contextmanager
def running(program: str, profile: Path) -> Iterator[Firefox]:
    """A Firefox without a window, with a profile of its own; it ends afterwards."""
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines))
    command = [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    with (profile / "firefox.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with closing(Firefox(_port(process, profile))) as driven:
            yield driven
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], profile: Path) -> int:
    """Where it listens, as soon as it does."""
    path = profile / "MarionetteActivePort"

    def log() -> str:
        return (profile / "firefox.log").read_text(errors="replace")[-2000:]

    def port() -> str:
        assert process.poll() is None, f"Firefox ended:\n{log()}"
        return path.read_text().strip() if path.exists() else ""

    return int(wait_for(port, STARTS_WITHIN_S, context=log))
