"""Runs scenarios of a job in processes of their own, so that each rank of torchrun imports torch once for all of them."""

import multiprocessing
import os
import signal
import time
import traceback
from pathlib import Path


def run_scenarios(folder, names, run):
    """Fork a process for each name, which calls `run(name)`; end them when the file `stop` is in the folder."""
    children = [_fork(run, name) for name in names]
    while not (folder / "stop").exists():
        time.sleep(0.1)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _fork(run, name):
    pid = os.fork()
    if not pid:
        try:
            run(name)
        except BaseException:  # noqa: BLE001  what any end of a scenario says; nobody else prints it
            traceback.print_exc()
        finally:
            for worker in multiprocessing.active_children():  # as at Python's own end: they have its connections
                worker.kill()
            os._exit(1)
    return pid


def wait_for_journals(tracer, run, world_size, line=""):
    """Wait for what a training of many steps has long since; with it, `why` knows a rank that can't write any more.

    The journal of this rank is opened here if the logdir answered after the training had begun.
    """
    files = [Path(run, ".work", f"rank{rank}.jsonl") for rank in range(world_size)]
    while not all(file.exists() and line in file.read_text() for file in files):
        tracer._supervisor.open_journal()
        time.sleep(0.02)
