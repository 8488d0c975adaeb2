"""Trainings that share a logdir, or whose disk is full, each in a forked process; prints how each ended.

Run as `places.py FOLDER`. FOLDER/small is a small file system where the tests could make one; else files are limited.
"""

import json
import logging
import os
import resource
import sys
import time
import traceback
from pathlib import Path

import torch
import torch._inductor.config  # the profiler imports it when it first starts; here, it does so before the processes part

from kinetoscope import Tracer, cyclic
from kinetoscope.recover import finished

FOLDER = Path(sys.argv[1])
IS_SMALL = sys.argv[2:] == ["small"]


def trained(logdir, run=None, between=lambda _tracer: None):
    """Train with two windows, steps 1 and 2 and steps 4 and 5; return what was learned."""
    learned = 0.0
    with Tracer(logdir, run=run, schedule=cyclic(warmup=1, active=2, repeat=2), system=()) as tracer:
        for step in range(7):
            for _ in range(100):  # a trace of some kilobytes
                learned += float(torch.ones(8, 8).relu().sum())
            tracer.step()
            if step == 2:
                while not tracer.saved_traces:
                    time.sleep(0.01)
                between(tracer)
    assert learned == 7 * 6400


def by_its_default_name():
    os.environ["RUN_NAME"] = "same"
    trained(FOLDER / "shared")


def of_another_name():
    trained(FOLDER / "shared", "other")


def on_a_full_disk():
    """The second window finds no room; when there is some again, it is finished."""
    logdir, filler = FOLDER / "small" / "logdir", FOLDER / "small" / "filler"

    def fill(tracer):
        if not IS_SMALL:
            writer = tracer._saving._finishing._finisher.pid
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            return
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 10)):
                    pass
            except OSError:
                pass

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("kinetoscope").addHandler(handler)
    trained(logdir, "run", fill)
    filler.unlink(missing_ok=True)
    there = sorted(path.name for path in (logdir / "run").glob("*.gz"))
    states = [window["state"] for process in finished(logdir / "run") for window in process.windows]
    later = sorted(path.name for path in (logdir / "run").glob("*.gz"))
    told = json.loads((logdir / "run" / "run.json").read_text())
    outcomes = [window["ranks"]["0"]["state"] for window in told["windows"]]
    (FOLDER / "full.json").write_text(json.dumps([said, there, states, later, outcomes]))


JOBS = {"same": [by_its_default_name] * 2 + [of_another_name], "full": [on_a_full_disk]}


def together(jobs):
    """Return the exit statuses of processes that run at the same time."""
    sys.stdout.flush()
    pids = []
    for job in jobs:
        pids.append(os.fork())
        if not pids[-1]:
            try:
                job()
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({name: together(jobs) for name, jobs in JOBS.items()}))  # noqa: T201
