"""Programs in processes that are forked from one that has imported their libraries: importing torch takes 2 s, forking 20 ms.

A program then sees what it sees in a process that Python starts: its own arguments, environment, folder, session and
files, and it leaves through the interpreter's own end. Tests about a start, an import or a launcher start a process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import ENVIRON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TORCH = ("torch", "torch._inductor.config", "torch.distributed.run")  # a profiler imports the second at its start
LIMIT_S = 600
_PR_SET_PDEATHSIG = 1


class Program:
    """A forked process, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, server: Server, pid: int, files: tuple[Path, Path]) -> None:
        self._server, self.pid, self._files = server, pid, files
        self.returncode: int | None = None

    def communicate(self, timeout: float = LIMIT_S) -> tuple[str, str]:
        """Both outputs of the program at its end.

        Raises:
            AssertionError: It was killed, because it didn't end in time.
        """
        if self.returncode is None:
            self.returncode = self._server.ask({"wait": self.pid, "limit_s": timeout})
        out, err = (file.read_text() for file in self._files)
        assert self.returncode is not None, f"a program was killed: it didn't end in {timeout} s\n{err}"
        return out, err


class Server:
    """The process that forks programs, and imports these modules before; on other systems than Linux, nothing is forked."""

    def __init__(self, folder: Path, *modules: str, environ: Mapping[str, str] = ENVIRON) -> None:
        self._folder, self._environ, self._count = folder, environ, 0
        command = [sys.executable, __file__, *modules]
        environ = {**environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environ, **pipes) if sys.platform == "linux" else None

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
        request = {"command": [*map(str, command)], "environ": dict(environ), "folder": str(folder or Path.cwd())}
        return Program(self, self.ask({**request, "files": [*map(str, files)]}), files)

    def run(self, *command: object, **options: Any) -> tuple[int, str, str]:
        """The exit status and both outputs of a program at its end."""
        program = self.start(*command, **options)
        out, err = program.communicate()
        return program.returncode, out, err

    def ask(self, request: Mapping[str, Any]) -> Any:
        """The answer to a request; see `main`."""
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


def main(modules: list[str]) -> None:
    """Answer requests, one a line, in JSON: with the number of a process, or with the exit status of one."""
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # a process that ends doesn't look through all of torch for garbage
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = wait(request["wait"], request["limit_s"])
        elif not (answer := os.fork()):
            return run(**request)
        print(json.dumps(answer), flush=True)  # noqa: T201
    return None


def run(command: list[str], environ: dict[str, str], folder: str, files: list[str]) -> None:
    """Be the process of a program."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # what was found before is of the process that forked
    write = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    for descriptor, (file, flags) in enumerate([(os.devnull, os.O_RDONLY), *((file, write) for file in files)]):
        source = os.open(file, flags, 0o600)
        os.dup2(source, descriptor)
        os.close(source)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # they may be ignored in the process that runs the tests
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    kind, *rest = command
    if kind == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]) | {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv, sys.path[0] = rest, folder
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = command, str(Path(kind).parent)
        runpy.run_path(kind, run_name="__main__")


def wait(pid: int, limit_s: float) -> int | None:
    """The exit status of a process at its end, or the negative number of its signal; None if it had to be killed."""
    ending = os.pidfd_open(pid)
    try:
        has_ended = select.select([ending], [], [], limit_s)[0]
    finally:
        os.close(ending)
    if not has_ended:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if has_ended else None


if __name__ == "__main__":
    main(sys.argv[1:])
