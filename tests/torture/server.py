"""Imports torch once, and forks a process for each requested training: importing takes longer than training.

It reads one request a line, in JSON, and answers with one line:

    {"start": FOLDER, "arguments": {…}, "environ": {…}, "is_weak": …} → the process's number
    {"wait": N, "limit_s": N}                   → its exit status, or the negative number of the signal that ended it
    {"stopped": N, "limit_s": N}                → null, when it is stopped

Whatever lasts too long is killed. The processes end with this one.
"""

import ctypes
import faulthandler
import gc
import json
import os
import select
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import torch
import torch._inductor.config  # the profiler imports it when it first starts; here, it does so before the processes part

from support.waiting import wait_for
from torture import training
from torture.permissions import heed_permissions

PR_SET_PDEATHSIG = 1
STACKS_S = 240  # a training that lasts as long writes its stacks, before it is killed


def start(folder, arguments, environ, *, is_weak=False):
    """Fork a process that trains in a folder, and return its number."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        become(folder, environ, is_weak=is_weak)
        faulthandler.dump_traceback_later(STACKS_S)
        training.Training(**arguments).run()
        code = 0
    except SystemExit as left:
        code = left.code
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def become(folder, environ, *, is_weak):
    """Be a process of its own session, with its own folder and environment; permissions count for a weak one."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    if is_weak:
        heed_permissions()
    os.chdir(folder)
    os.environ.update(environ, TORTURE=folder, TMPDIR=str(Path(folder, "scratch")))
    tempfile.tempdir = os.environ["TMPDIR"]  # what was found before is of the process that forked
    for descriptor, file, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, "stdout", os.O_CREAT | os.O_WRONLY),
        (2, "stderr", os.O_CREAT | os.O_WRONLY),
    ):
        opened = os.open(file, flags | os.O_APPEND, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # they may be ignored in the process that runs the tests
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait(pid, limit_s):
    """Wait for a process to end, and return how."""
    ending = os.pidfd_open(pid)
    try:
        if not select.select([ending], [], [], limit_s)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "it was killed: it didn't end in time"
    finally:
        os.close(ending)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def stopped(pid, limit_s):
    """Wait for a process to be stopped."""
    try:
        wait_for(lambda: os.waitpid(pid, os.WUNTRACED | os.WNOHANG) != (0, 0), limit_s)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        return "it was killed: it wasn't stopped in time"
    return None


def main():
    """Answer requests until the end of the input."""
    torch.set_num_threads(1)
    gc.freeze()  # no process looks through all of torch for garbage
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer = start(request["start"], request["arguments"], request["environ"], is_weak=request["is_weak"])
        elif "wait" in request:
            answer = wait(request["wait"], request["limit_s"])
        else:
            answer = stopped(request["stopped"], request["limit_s"])
        print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
