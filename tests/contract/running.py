"""A real TensorBoard, and what it answers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.build import TraceBuilder
from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STARTS_WITHIN_S = 90
PLUGIN = "data/plugin/pytorch_profiler/"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    """A TensorBoard that answers at `base`."""

    base: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End it as the system does: without a moment to tidy up."""
        self.process.kill()
        self.process.wait()

    def ask(self, path: str, method: str = "GET", **query: str) -> Answer:
        url = self.base + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def plugin(self, path: str, method: str = "GET", **query: str) -> Answer:
        return self.ask(PLUGIN + path, method, **query)

    def settled(self, path: str, **query: str) -> Answer:
        """The answer once it is no longer `loading`."""
        return wait_for(lambda: self.plugin(path, **query), is_right=lambda answer: answer.json["state"] != "loading")


@contextmanager
def serving(*flags: str) -> Iterator[Server]:
    """A TensorBoard with these flags, which ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    prefix = next((flag.partition("=")[2] for flag in flags if flag.startswith("--path_prefix=")), "")
    command = [sys.executable, "-m", "tensorboard.main", "--host=127.0.0.1", f"--port={port}", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            server = Server(f"http://127.0.0.1:{port}{prefix}/", process)
            wait_for(lambda: _answers(server, process), STARTS_WITHIN_S)
            yield server
        finally:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


def _answers(server: Server, process: subprocess.Popen[str]) -> bool:
    """Whether a TensorBoard has started; it fails where it ended instead."""
    assert process.poll() is None, process.communicate()[0]
    try:
        server.ask("data/plugins_listing")
    except OSError:
        return False
    return True


def a_trace() -> TraceBuilder:
    """Two steps with operators, launches, kernels, a copy and memory."""
    trace = TraceBuilder(distributedInfo={"rank": 3, "world_size": 8, "backend": "nccl"})
    for step in (5, 6):
        at = (step - 5) * 1_000_000
        trace.step(step, at, 900_000)
        trace.op("aten::mm", at + 10_000, 200_000).launch(at + 20_000, 5_000, step)
        trace.kernel("ampere_sgemm_128x64_tn", at + 50_000, 300_000, step, **{"est. achieved occupancy %": 37})
        trace.op("aten::copy_", at + 300_000, 50_000).launch(at + 310_000, 5_000, 10 + step, name="cudaMemcpyAsync")
        trace.memcpy(at + 400_000, 20_000, 10 + step, bytes=4096).memory(1024, at + 30_000)
    return trace.window(0, 2_000_000)


def put(folder: Path, *names: str, text: str | None = None) -> None:
    """Write a trace under each of these names."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(a_trace().text() if text is None else text)
