"""Trainings during which the program profiles on another thread, each in a forked process; prints how each ended.

Run as `threads.py FOLDER`. torch is imported once; what a process records lies in FOLDER, in a run of its own name.
"""

import json
import os
import sys
import threading
import traceback
from pathlib import Path

import torch
import torch._inductor.config  # the profiler imports it when it first starts; here, it does so before the processes part
from torch.profiler import profile

from kinetoscope import ProfilerBusyError, Tracer, cyclic
from kinetoscope.profiling import other_profilers

FOLDER = Path(sys.argv[1])


class Other(threading.Thread):
    """A thread that profiles from its start until `may_end` is set."""

    def __init__(self, name):
        super().__init__()
        self.file, self.error = FOLDER / f"{name}.json", None
        self.profiles, self.may_end = threading.Event(), threading.Event()

    def run(self):
        try:
            with profile() as profiler:
                self.profiles.set()
                self.may_end.wait(60)
                work()
            profiler.export_chrome_trace(str(self.file))
        except ProfilerBusyError as error:
            self.error = error


def work():
    torch.ones(8, 8).relu()


def trained(name, at, steps=14, until=None):
    """Train with two windows, steps 2 to 4 and 7 to 9; `at` says what to do in which step."""
    with Tracer(FOLDER, run=name, schedule=cyclic(wait=1, warmup=1, active=3, repeat=2)) as tracer:
        while tracer.completed_steps < steps or (until is not None and not until()):
            work()
            at.get(tracer.completed_steps, lambda: None)()
            tracer.step()


def waits_for_the_step(name):
    other = Other(name)
    other.may_end.set()
    trained(name, {3: other.start, 6: other.join}, until=lambda: not other.is_alive())
    assert other.error is None
    assert other.file.exists()


def is_refused_where_the_step_waits_for_it(name):
    other_profilers.PATIENCE_S = 0.1
    other = Other(name)
    other.may_end.set()
    trained(name, {3: lambda: (other.start(), other.join())})
    assert other.error is not None


def ran_before(name):
    other = Other(name)
    other.start()
    other.profiles.wait(60)
    trained(name, {5: lambda: (other.may_end.set(), other.join())})
    assert other.file.exists()


JOBS = {"waits": waits_for_the_step, "refused": is_refused_where_the_step_waits_for_it, "before": ran_before}


def in_a_process(name):
    """Return the process's exit status, or the negative number of the signal that ended it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        JOBS[name](name)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({name: in_a_process(name) for name in JOBS}))  # noqa: T201
