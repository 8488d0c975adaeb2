"""Programs in processes that are forked from one that has imported their libraries: importing torch takes 2 s, forking 20 ms.

A program then sees what it sees in a process that Python starts: its own arguments, environment, folder, session and
files, and it leaves through the interpreter's own end. Tests about a start, an import or a launcher start a process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import ENVIRON
from support.waiting import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TORCH = ("torch", "torch._inductor.config", "torch.distributed.run")  # a profiler imports the second at its start
IS_POSSIBLE = sys.platform == "linux"
FORKING = Path(__file__).with_name("forking.py")


class Program:
    """A forked process, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, server: Server, pid: int, files: tuple[Path, ...]) -> None:
        self._server, self.pid, self._files = server, pid, files
        self.returncode: int | None = None

    def communicate(self, timeout: float = LIMIT_S) -> tuple[str, ...]:
        """Both outputs of the program at its end, if it writes them to files.

        Raises:
            AssertionError: It was killed, because it didn't end in time.
        """
        self.wait(timeout)
        return self._outputs()

    def wait(self, timeout: float = LIMIT_S) -> int:
        """The exit status of the program at its end.

        Raises:
            AssertionError: It was killed, because it didn't end in time.
        """
        if self.returncode is None:
            self.returncode = self._server.ask({"wait": self.pid, "limit_s": timeout})
        assert self.returncode is not None, f"a program was killed: it didn't end in {timeout} s\n{self._outputs()}"
        return self.returncode

    def poll(self) -> int | None:
        """The exit status of the program; None while it runs."""
        if self.returncode is None:
            ending = os.pidfd_open(self.pid)
            has_ended = select.select([ending], [], [], 0)[0]
            os.close(ending)
            return self.wait() if has_ended else None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the program to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program as the system does."""
        self.send_signal(signal.SIGKILL)

    def _outputs(self) -> tuple[str, ...]:
        return tuple(file.read_text() for file in self._files)


class Server:
    """The process that forks programs, and imports these modules before; on other systems than Linux, nothing is forked.

    Args:
        folder: Where the outputs of its programs are written.
        modules: What it imports.
        environ: The variables of its programs, and its own.
        python: The Python of another environment; by default ours, with what the tests can import.
    """

    def __init__(
        self, folder: Path, *modules: str, environ: Mapping[str, str] = ENVIRON, python: Path | None = None
    ) -> None:
        self._folder, self._environ, self._count = folder, environ, 0
        command = [python or sys.executable, FORKING, *modules]
        if python is None:
            environ = {**environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environ, **pipes) if IS_POSSIBLE else None

    def start(
        self, *command: object, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> Program | subprocess.Popen[str]:
        """Start a program as `python COMMAND…` would: a file, `-m MODULE` or `-c TEXT`, and its arguments."""
        environ = self._environ if environ is None else environ
        if self._process is None:
            outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            return subprocess.Popen([sys.executable, *command], env=environ, cwd=folder, **outputs)
        self._count += 1
        files = (self._folder / f"{self._count}.out", self._folder / f"{self._count}.err")
        return Program(self, self._fork(command, environ, folder, (os.devnull, *files)), files)

    def start_in_terminal(self, terminal: str, *command: object, environ: Mapping[str, str], folder: Path) -> Program:
        """Start a program, on Linux, whose three streams are a terminal, given by its path."""
        return Program(self, self._fork(command, environ, folder, (terminal,) * 3), ())

    def start_into(self, file: Path, *command: object, environ: Mapping[str, str]) -> Program:
        """Start a program, on Linux, that writes both outputs into one file."""
        return Program(self, self._fork(command, environ, None, (os.devnull, file, file)), (file,))

    def _fork(
        self, command: Sequence[object], environ: Mapping[str, str], folder: Path | None, streams: Sequence[object]
    ) -> int:
        """The number of the process, whose streams are open."""
        where = {"environ": dict(environ), "folder": str(folder or Path.cwd())}
        return self.ask({"command": [*map(str, command)], "streams": [*map(str, streams)], **where})

    def run(self, *command: object, **options: Any) -> tuple[int, str, str]:
        """The exit status and both outputs of a program at its end."""
        program = self.start(*command, **options)
        out, err = program.communicate()
        return program.returncode, out, err

    def ask(self, request: Mapping[str, Any]) -> Any:
        """The answer to a request; see `main` in support/forking.py."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate(timeout=60)
            assert self._process.returncode == 0


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Forks programs that use torch."""
    server = Server(tmp_path_factory.mktemp("forks"), *TORCH)
    yield server
    server.end()
