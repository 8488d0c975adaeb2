"""Three ranks whose collectives stop, one job for each scenario: `torchrun --nproc_per_node=3 hanging.py FOLDER NAME…`.

Each process of torchrun forks one process per scenario, so that torch is imported three times in all. They end when the
file `stop` is there. A scenario's run is `FOLDER/NAME`.
"""

import itertools
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

from kinetoscope import Tracer, on_request

FOLDER, NAMES = Path(sys.argv[1]), sys.argv[2:]
RANK = int(os.environ["RANK"])
STEPS, AFTER_S = 5, 1.5


def load_batch():
    time.sleep(600)


def spin():
    while True:
        pass


def hold_the_interpreter():
    re.match(r"(a+)+$", "a" * 60 + "b")


def take_lock(lock):
    with lock:
        pass


def wait_for_reports(name):
    """Go on as soon as all ranks have written where they are."""
    while len(list((FOLDER / name / "hang").glob("rank*.json"))) < 3:
        time.sleep(0.02)


def evaluate():
    time.sleep(600)


class SlowFile:
    """A file on a disk that takes its time."""

    def write(self, _data):
        time.sleep(600)

    def flush(self):
        pass


def save_slowly():
    torch.save({"weight": torch.ones(8)}, SlowFile())


def block_on_lock():
    lock = threading.Lock()
    lock.acquire()
    take_lock(lock)


def wait_for_file():
    while not (FOLDER / "never written").exists():
        time.sleep(0.1)


class Samples(torch.utils.data.Dataset):
    """Samples of which none is ever there."""

    def __init__(self):
        self.training = os.getpid()

    def __len__(self):
        return 8

    def __getitem__(self, _index):
        while os.getppid() == self.training:
            time.sleep(0.1)


def wait_for_worker():
    next(iter(torch.utils.data.DataLoader(Samples(), num_workers=1)))


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def exchange(group=None):
    dist.all_reduce(torch.ones(8), group=group)


DELAYS = {
    "sleeps": load_batch,
    "spins": spin,
    "holds": hold_the_interpreter,
    "locks": block_on_lock,
    "stops": stop,
    "file": wait_for_file,
    "worker": wait_for_worker,
    "evaluates": evaluate,
    "saves": save_slowly,
}
"""What rank 1 does while the others wait for it in a collective."""


def act(name, tracer, pair):
    """What the ranks do in the step that hangs."""
    if name in DELAYS and RANK == 1:
        with tracer.marker(name):
            DELAYS[name]()
    if name == "absent_in_group":  # rank 2 waits in the world for ranks 0 and 1, rank 0 in their pair
        if RANK == 1:
            load_batch()
        if RANK == 0:
            exchange(pair)
    if name == "recv" and RANK == 0:  # rank 1 never sends
        dist.recv(torch.ones(4), 1)
    if name == "recv" and RANK == 1:
        load_batch()
    if name == "receives" and RANK < 2:  # each from the other one
        dist.recv(torch.ones(4), 1 - RANK)
    if name == "broadcasts" and RANK == 1:
        dist.broadcast(torch.ones(8), 1)
    if name == "orders" and RANK == 0:  # the others come to the world first
        exchange(pair)
    if name == "goes_on" and RANK == 1:
        wait_for_reports(name)
    exchange()


def wait_for_journals(name):
    """Wait for what a training of many steps has long since; with it, `why` knows a rank that can't write any more."""
    while len(list((FOLDER / name / ".work").glob("rank*.jsonl"))) < 3:
        time.sleep(0.02)


def train(name):
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/{name}.store", rank=RANK, world_size=3)
    pair = dist.new_group([0, 1])
    with Tracer(FOLDER, run=name, schedule=on_request, system=(), scalars=False, hang_after_s=AFTER_S) as tracer:
        for step in itertools.count():
            if step == STEPS:
                wait_for_journals(name)
                if name == "leaves" and RANK == 1:
                    break
                act(name, tracer, pair)
            exchange()
            if RANK < 2:
                exchange(pair)
            time.sleep(0.02)
            tracer.step()
    time.sleep(600)  # of a rank that left: without its process the collectives of the others would fail


def run_in_child(name):
    pid = os.fork()
    if not pid:
        try:
            train(name)
        finally:
            os._exit(1)
    return pid


torch.set_num_threads(1)
children = [run_in_child(name) for name in NAMES]
while not (FOLDER / "stop").exists():
    time.sleep(0.1)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
