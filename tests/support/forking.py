"""The process that forks programs for support/forks.py: it runs in any environment, so it needs Python alone."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import sys
import tempfile
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def main(modules: list[str]) -> None:
    """Answer requests, one a line, in JSON: with the number of a process, or with the exit status of one."""
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # a process that ends doesn't look through all of torch for garbage
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = wait(request["wait"], request["limit_s"])
        else:
            streams = opened(*request.pop("streams"))
            if not (answer := os.fork()):
                return run(streams, **request)
            for stream in streams:
                os.close(stream)
        print(json.dumps(answer), flush=True)  # noqa: T201
    return None


def opened(given: str, *written: str) -> list[int]:
    """The descriptors of a program's three streams. A terminal among them is nobody's controlling terminal."""
    write = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    return [os.open(given, os.O_RDONLY | os.O_NOCTTY), *(os.open(path, write | os.O_NOCTTY, 0o600) for path in written)]


def run(streams: list[int], command: list[str], environ: dict[str, str], folder: str) -> None:
    """Be the process of a program."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # what was found before is of the process that forked
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    kinds = (("r", -1, sys.stdin), ("w", -1, sys.stdout), ("w", 1, sys.stderr))
    (
        sys.stdin,
        sys.stdout,
        sys.stderr,
    ) = (  # those there are know whether the streams of the process that forked can seek
        open(descriptor, mode, buffering, errors=stream.errors, closefd=False)  # noqa: SIM115  until the process ends
        for descriptor, (mode, buffering, stream) in enumerate(kinds)
    )
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
