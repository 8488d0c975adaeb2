"""Trainings that die inside a window, each in a forked process. Run as `deaths.py FOLDER`; each has a run of its own."""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch._inductor.config  # the profiler imports it when it first starts; here, it does so before the processes part

sys.path.insert(0, str(Path(__file__).parents[3]))

from kinetoscope import Tracer, cyclic
from kinetoscope.journal.status import last_steps
from support.waiting import wait_for

FOLDER = Path(sys.argv[1])
DEATHS = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "left": lambda: os._exit(3),
    "crashed": lambda: ctypes.string_at(0),
}


def train(name):
    """Save a window of steps 0 and 1, and die in the next one."""
    with Tracer(FOLDER, run=name, schedule=cyclic(warmup=0, active=2, repeat=2), system=()) as tracer:
        for step in range(4):
            torch.ones(8).relu()
            if step == 3:
                wait_for(lambda: tracer.saved_traces)
                wait_for(lambda: any(number == 2 for number, *_ in last_steps(FOLDER / name, 0)))
                DEATHS[name]()
            tracer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    codes = {}
    for name in DEATHS:
        pid = os.fork()
        if not pid:
            train(name)
            os._exit(1)
        codes[name] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps(codes))  # noqa: T201
