"""Recordings that their owner doesn't end, each in a forked process that leaves as a program does; prints how each ended.

Run as `owners.py FOLDER [NAME …]`. torch is imported once; no process before the forks uses the profiler. What a
process records lies in FOLDER, in a logdir of its scenario's name, and what it logs in a file `NAME.log` there.
"""

import _thread
import gc
import json
import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch._inductor.config  # the profiler imports it when it first starts

import kinetoscope
from kinetoscope import ProfilerBusyError, Tracer, UsageError, cyclic
from support.waiting import wait_for

FOLDER = Path(sys.argv[1])
PLAN = {"wait": 1, "warmup": 1, "active": 3, "repeat": 2}
CELL = """
t = Tracer(logdir, run=f"cell {number}", schedule=cyclic(wait=0, warmup=1, active=3, repeat=0), system=())
t.start()
for step in range(20):
    work()
    if step == 3 and number < 3:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    t.step()
t.stop()
"""


def work():
    torch.ones(8, 8).relu().sum()


def in_thread(function, **options):
    thread = threading.Thread(target=function, **options)
    thread.start()
    return thread


def interrupted_cells(logdir):
    """A notebook's cell is interrupted, twice, and run again."""
    notebook = {**globals(), "logdir": logdir}
    for number in (1, 2, 3):
        notebook["number"] = number
        try:
            exec(compile(CELL, "<cell>", "exec"), notebook)
            assert number == 3
        except KeyboardInterrupt:
            assert kinetoscope.current() is notebook["t"]
    assert kinetoscope.current() is None
    with Tracer(logdir, run="block", system=()) as tracer:
        assert kinetoscope.current() is tracer
        work()
    tracer.stop()


def open_block(logdir):
    """A `with` that is open, which nobody else may end unasked."""
    with Tracer(logdir, run="outer", system=()) as outer:
        for starts in (Tracer(logdir, run="inner").start, Tracer(logdir, run="inner").__enter__):
            with pytest.raises(ProfilerBusyError, match=r"owners\.py:\d+; kinetoscope\.current\(\)\.stop\(\) ends it"):
                starts()
        work()
        kinetoscope.current().stop()
        with Tracer(logdir, run="inner", system=()):
            work()
    assert len(outer.saved_traces) == 1


def started_on_a_thread(logdir, **options):
    tracer = Tracer(logdir, run="job", system=(), **options)

    def start():
        tracer.start()
        work()

    in_thread(start).join()
    return tracer


def thread_that_ended(logdir):
    """It starts a Tracer and ends; another one stops it."""
    tracer = started_on_a_thread(logdir)
    tracer.stop()


def nobody_stops(logdir):
    """The thread ends, and nobody stops its Tracer."""
    started_on_a_thread(logdir, with_stack=True)


def handlers_in_a_pool(logdir):
    """Two requests to a server, which its pool handles on two threads that both stay."""
    tracer, barrier = Tracer(logdir, run="job", system=()), threading.Barrier(2)

    def start():
        tracer.start()
        work()
        barrier.wait()

    def stop():
        barrier.wait()
        with pytest.raises(UsageError, match=r"owners\.py:\d+, can stop torch's profiler.* schedule=on_request"):
            tracer.stop()

    pool = ThreadPoolExecutor(2)
    for handler in [pool.submit(start), pool.submit(stop)]:
        handler.result()
    assert kinetoscope.current() is tracer


def idle_daemon(logdir):
    """A daemon thread starts a Tracer and waits forever, with its window open."""
    tracer, started = Tracer(logdir, run="job", system=()), threading.Event()

    def start():
        with tracer:
            work()
            started.set()
            threading.Event().wait()

    in_thread(start, daemon=True)
    started.wait()


def foreign_thread(logdir):
    """A thread that Python doesn't know starts a Tracer and ends."""

    def start():
        Tracer(logdir, run="job", system=()).start()
        work()

    thread = _thread.start_new_thread(start, ())
    wait_for(lambda: kinetoscope.current() is not None and thread not in sys._current_frames())


def training_thread(logdir, *, stops):
    """A training on a daemon thread that goes on while the main thread stops its Tracer, or leaves."""
    tracer, is_stopped = Tracer(logdir, run="job", system=()), threading.Event()

    def train():
        with tracer:
            while not is_stopped.is_set():
                if not stops and kinetoscope.current() is None:  # Python ends daemon threads, which aborts inside torch
                    is_stopped.wait()
                work()
                time.sleep(0.01)
                tracer.step()

    training = in_thread(train, daemon=True)
    wait_for(lambda: tracer.completed_steps > 3)
    if stops:
        tracer.stop()
        assert len(tracer.saved_traces) == 1
        assert kinetoscope.current() is None
        steps = tracer.completed_steps
        wait_for(lambda: tracer.completed_steps > steps + 20)
        is_stopped.set()
        training.join()


def fork(leave):
    """Fork a process that leaves; return its exit status, 99 if it doesn't end."""
    pid = os.fork()
    if not pid:
        work()
        leave()
        os._exit(98)

    def has_ended():
        ended, status = os.waitpid(pid, os.WNOHANG)
        return (os.waitstatus_to_exitcode(status),) if ended else None

    try:
        return wait_for(has_ended, 100)[0]
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return 99


def leaves():
    sys.exit(5)


def fails():
    raise KeyError("of the forked process")


def returns():
    """Leave as a program does that comes to its end."""
    raise _Return


class _Return(Exception):
    """Leaves the scenario."""


def forks(logdir, **options):
    """Processes are forked in each phase of a recording, and after it."""
    ways = {1: [leaves], 3: [leaves, fails, returns, lambda: os._exit(7)], 5: [leaves], "after": [leaves]}
    statuses = {}
    try:
        with Tracer(logdir, run="job", schedule=cyclic(**PLAN), **options) as tracer:
            for step in range(12):
                work()
                statuses[step] = [fork(leave) for leave in ways.get(step, ())]
                tracer.step()
        statuses["after"] = [fork(leave) for leave in ways["after"]]
    except _Return:
        return
    assert {step: statuses[step] for step in ways} == {1: [5], 3: [5, 1, 0, 7], 5: [5], "after": [5]}, statuses
    assert len(tracer.saved_traces) == 2


SCENARIOS = {
    "interrupted-cells": interrupted_cells,
    "open-block": open_block,
    "thread-that-ended": thread_that_ended,
    "nobody-stops": nobody_stops,
    "handlers-in-a-pool": handlers_in_a_pool,
    "idle-daemon": idle_daemon,
    "foreign-thread": foreign_thread,
    "stopped-elsewhere": lambda logdir: training_thread(logdir, stops=True),
    "daemon-that-trains": lambda logdir: training_thread(logdir, stops=False),
    "forks": forks,
    "forks-with-stacks": lambda logdir: forks(logdir, with_stack=True),
}


def main():
    """Fork each scenario in turn; a forked process returns, and so leaves through the interpreter's own end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in what runs in the background
    statuses = {}
    for name in sys.argv[2:] or SCENARIOS:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            logging.basicConfig(filename=FOLDER / f"{name}.log", format="%(message)s")
            return SCENARIOS[name](FOLDER / name)
        statuses[name] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps(statuses))  # noqa: T201
    return None


if __name__ == "__main__":
    torch.set_num_threads(1)
    gc.freeze()  # a process that ends doesn't look through all of torch for garbage
    main()
