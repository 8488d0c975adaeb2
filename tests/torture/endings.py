"""Trainings that end in many ways, each in a forked process; prints how each of them ended, as JSON.

Run as `endings.py FOLDER`. torch is imported once; what a process records lies in FOLDER, in a run of its ending's name.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
import torch._inductor.config  # the profiler imports it when it first starts; here, it does so before the processes part
from torch.profiler import profile, schedule

from kinetoscope import Tracer, cyclic, on_request

FOLDER = Path(sys.argv[1])
PLAN = {"wait": 1, "warmup": 1, "active": 3, "repeat": 1}


def work():
    return float(torch.ones(8, 8).relu().sum())


def trained(name, end, steps=8, **options):
    """Train, and end in the second step of the window; return what was learned."""
    learned = 0.0
    with Tracer(FOLDER, run=name, schedule=cyclic(**PLAN), **options) as tracer:
        for step in range(steps):
            learned += work()
            if step == 3:
                end(tracer)
            tracer.step()
    return learned


def ends(_tracer):
    """The process gets SIGTERM."""
    os.kill(os.getpid(), signal.SIGTERM)


def during_the_save(name):
    """The signal comes while torch's own code runs."""
    tracer = Tracer(FOLDER, run=name, schedule=cyclic(**PLAN))
    save = tracer._trace_writer.save

    def interrupted(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # here Python would call the handler
            pass
        save(*args, **kwargs)

    tracer._trace_writer.save = interrupted
    with tracer:
        for _ in range(8):
            work()
            tracer.step()


def with_a_handler_of_its_own(name):
    """A program that writes a checkpoint: it ends when it sees fit, and in good order."""
    calls = []
    signal.signal(signal.SIGTERM, lambda *_: calls.append("checkpoint"))
    learned = trained(name, ends)
    os._exit(7 if calls == ["checkpoint"] and learned == 8 * 64 else 1)


def with_a_handler_that_leaves(name):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
    trained(name, ends)


def with_the_signal_ignored(name):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    trained(name, ends)


def with_a_handler_in_front(name):
    """A handler that is installed later and calls the one before, as programs do: the program decides when it ends."""
    calls = []

    def end(_tracer):
        before = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *received: (calls.append(1), before(*received)))
        os.kill(os.getpid(), signal.SIGTERM)

    learned = trained(name, end)
    os._exit(8 if calls == [1] and learned == 8 * 64 else 1)


def with_a_profiler_of_its_own(name):
    """The program's own profiler inside a window: torch alone would crash."""
    inner = []

    def start(_tracer):
        inner.append(profile())
        inner[0].start()
        work()

    with Tracer(FOLDER, run=name, schedule=cyclic(wait=1, warmup=1, active=3, repeat=2)) as tracer:
        for step in range(10):
            work()
            if step == 3:
                start(tracer)
            if step == 5:  # it outlives our window
                inner[0].stop()
                inner[0].export_chrome_trace(str(FOLDER / "inner.json"))
            tracer.step()


def while_warming_up_another_profiler_starts(name):
    with Tracer(FOLDER, run=name, schedule=cyclic(wait=1, warmup=1, active=2, repeat=2)) as tracer:
        for step in range(8):
            work()
            if step == 1:
                with profile(schedule=schedule(wait=0, warmup=1, active=1)) as own:
                    for _ in range(3):
                        work()
                        own.step()
            tracer.step()


def on_a_signal_that_asks(name):
    """Nothing is scheduled; a signal asks for a window."""
    steps = 0
    with Tracer(FOLDER, run=name, schedule=cyclic(skip_first=10**9), signal="SIGUSR2") as tracer:
        work()
        tracer.step()
        os.kill(os.getpid(), signal.SIGUSR2)
        deadline = time.monotonic() + 60
        while not tracer.saved_traces and time.monotonic() < deadline:
            work()
            tracer.step()
            steps += 1
    os._exit(0 if tracer.saved_traces else 1)


def after_a_slow_step(name):
    """Nothing is scheduled or requested, but one step takes much longer than the others."""
    with Tracer(FOLDER, run=name, schedule=on_request, slow_step=3) as tracer:
        for step in range(40):
            work()
            time.sleep(1.0 if step == 30 else 0.002)
            tracer.step()


def left_to_die(name):
    """SIGKILL: only the sidecar is left."""
    with Tracer(FOLDER, run=name, schedule=cyclic(**PLAN)) as tracer:
        for step in range(10**9):
            with tracer.marker("épreuve"):
                work()
            tracer.counter("loss", {"loss": step})
            if step == 2:
                tracer._supervisor._background.end()  # else the time would decide what is written
            if step == 5:
                with tracer.marker("checkpoint"), tracer.marker("upload"):
                    tracer._supervisor._journal.write()
                    os.kill(os.getpid(), signal.SIGKILL)
            tracer.step()


ENDINGS = {
    "sigterm-unguarded": lambda name: trained(name, ends, save_on_signal=False),
    "sigterm-during-save": during_the_save,
    "own-handler": with_a_handler_of_its_own,
    "leaving-handler": with_a_handler_that_leaves,
    "ignored": with_the_signal_ignored,
    "handler-in-front": with_a_handler_in_front,
    "own-profiler": with_a_profiler_of_its_own,
    "own-profiler-warmup": while_warming_up_another_profiler_starts,
    "signal": on_a_signal_that_asks,
    "slow-step": after_a_slow_step,
    "sigkill": left_to_die,
}


def in_a_process(name):
    """Return the process's exit status, or the negative number of the signal that ended it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 0
    try:
        ENDINGS[name](name)
    except SystemExit as left:
        code = left.code
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        code = 1
    os._exit(code)


if __name__ == "__main__":
    torch.set_num_threads(1)
    gc.freeze()  # no process looks through all of torch for garbage
    print(json.dumps({name: in_a_process(name) for name in sys.argv[2:] or ENDINGS}))  # noqa: T201
