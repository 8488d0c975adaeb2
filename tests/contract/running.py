"""A real TensorBoard, and what it answers."""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import forks
from support.build import TraceBuilder
from support.waiting import LIMIT_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ASKS_EVERY_S = 0.05  # each question takes a TensorBoard about 5 ms of what it waits for
PLUGIN = "data/plugin/pytorch_profiler/"
ADDRESS = re.compile(r"^TensorBoard \S+ at (http://\S+/) ", re.MULTILINE)
IMPORTED = ("tensorboard.main", "kinetoscope_tb.plugin", "kinetoscope_tb.cli.open", "kinetoscope_tb.web.app")
"""What servers that are forked need not import: 2 s of each one's start."""


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
    process: subprocess.Popen[str] | forks.Program

    def cpu_seconds(self) -> float:
        """What its process has taken since it began."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """End it as the system does: without a moment to tidy up."""
        self.process.kill()
        self.process.wait()

    def ask(self, path: str, method: str = "GET", **query: str) -> Answer:
        url = self.base + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=LIMIT_S) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def plugin(self, path: str, method: str = "GET", **query: str) -> Answer:
        return self.ask(PLUGIN + path, method, **query)

    def settled(self, path: str, **query: str) -> Answer:
        """The answer once it is no longer `loading`."""
        is_settled = {"is_right": lambda answer: answer.json["state"] != "loading", "pause_s": ASKS_EVERY_S}
        return wait_for(lambda: self.plugin(path, **query), **is_settled)


@contextmanager
def serving(*flags: str, python: str | Path | None = None) -> Iterator[Server]:
    """A TensorBoard with these flags, at a port that it chooses itself; it ends with the block.

    Args:
        flags: Of TensorBoard.
        python: What starts it as a user does; by default it is forked, where that is possible.
    """
    words = ("--host=127.0.0.1", "--port=0", *flags)
    if python is None and forks.IS_POSSIBLE:
        program = ("-c", "from tensorboard.main import run_main; run_main()")
        running = forked_server((*program, *words), ADDRESS, os.environ)
    else:
        running = server_process([python or sys.executable, "-m", "tensorboard.main", *words], ADDRESS)
    with running as (base, process, _):
        server = Server(base, process)
        server.ask("data/plugins_listing")
        yield server


@contextmanager
def server_process(
    command: Sequence[str | Path], address: re.Pattern[str], **options: Any
) -> Iterator[tuple[str, subprocess.Popen[str], Path]]:
    """A server, which ends with the block: its address, its process, and the file of its output.

    A pipe that nobody reads would stop it once it is full.

    Args:
        command: Starts it.
        address: Finds in its output where it is.
        options: More arguments of Popen.
    """
    with (
        tempfile.NamedTemporaryFile("w") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, text=True, **options) as process,
    ):
        try:
            yield _address(process, Path(file.name), address), process, Path(file.name)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def forked_server(
    command: Sequence[str | Path], address: re.Pattern[str], environ: Mapping[str, str]
) -> Iterator[tuple[str, forks.Program, Path]]:
    """The same of a program in Python, which is forked from a process that has imported what servers need."""
    with tempfile.NamedTemporaryFile("w") as file:
        process = _forks().start_into(Path(file.name), *command, environ=environ)
        try:
            yield _address(process, Path(file.name), address), process, Path(file.name)
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def _address(process: subprocess.Popen[str] | forks.Program, output: Path, address: re.Pattern[str]) -> str:
    """Where a server is, once it says so."""
    has_ended = {"unless": lambda: process.poll() is not None, "context": output.read_text}
    return wait_for(lambda: address.search(output.read_text()), **has_ended)[1]


@cache
def _forks() -> forks.Server:
    server = forks.Server(Path(tempfile.gettempdir()), *IMPORTED, environ=os.environ)
    atexit.register(server.end)
    return server


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
