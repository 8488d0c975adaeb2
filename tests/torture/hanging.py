"""Ranks whose collectives stop, one job for each scenario: `torchrun --nproc_per_node=8 hanging.py FOLDER NAME…`.

`run_scenarios` says how they run. A scenario's run is `FOLDER/NAME`; it has three ranks, unless WORLD_SIZES says others.
"""

import ctypes
import itertools
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope import Tracer, on_request
from torture.hang_runs import STEP, WORLD_SIZES
from torture.scenarios import run_scenarios, wait_for_journals

FOLDER, NAMES = Path(sys.argv[1]), sys.argv[2:]
RANK = int(os.environ["RANK"])
AFTER_S = 1.5
RING_SIZES = {"wrapped": 4}
"""How many collectives the flight recorder of a rank has room for."""


def load_batch():
    time.sleep(600)


def spin():
    """Compute in its own code until the report is written; another thread looks for that, which calls functions."""
    written = []
    threading.Thread(target=lambda: written.append(wait_for_report()), daemon=True).start()
    while not written:
        pass
    time.sleep(600)


def wait_for_report():
    while not (FOLDER / "spins" / "hang" / f"rank1.{STEP}.json").exists():
        time.sleep(0.1)


def hold_the_interpreter():
    """Wait in C with Python's lock, as a library does that doesn't release it; a loop in C would take a processor."""
    ctypes.PyDLL(None).sleep(600)


def spawn():
    """Wait uninterruptibly, as for a dead file server: for a child that shares its memory to execute a program.

    The child can't, since it opens a pipe before that nobody writes to.
    """
    libc, actions = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    os.mkfifo(FOLDER / "pipe")
    libc.posix_spawn_file_actions_init(actions)
    libc.posix_spawn_file_actions_addopen(actions, 0, bytes(FOLDER / "pipe"), os.O_RDONLY, 0)
    arguments = (ctypes.c_char_p * 2)(b"true", None)
    libc.posix_spawn(ctypes.byref(ctypes.c_int()), b"/bin/true", actions, None, arguments, None)


def take_lock(lock):
    with lock:
        pass


def wait_for_reports(name):
    """Go on as soon as all ranks have written where they are; on a busy machine they also did in the first step."""
    while len(list((FOLDER / name / "hang").glob(f"rank*.{STEP}.json"))) < 3:
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


def write_output():
    """Write to a pipe that nobody reads, as to the output of a process whose parent doesn't."""
    _, end = os.pipe()
    while True:
        os.write(end, b"step 5: loss 0.5\n")


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
    "spawns": spawn,
    "file": wait_for_file,
    "writes": write_output,
    "worker": wait_for_worker,
    "evaluates": evaluate,
    "saves": save_slowly,
}
"""What rank 1 does while the others wait for it in a collective."""


def act(name, tracer, group):
    """What the ranks do in the step that hangs."""
    if name in DELAYS and RANK == 1:
        with tracer.marker(name):
            DELAYS[name]()
    if name == "absent_in_group":  # rank 2 waits in the world for ranks 0 and 1, rank 0 in their pair
        if RANK == 1:
            load_batch()
        if RANK == 0:
            exchange(group)
    if name == "wrapped":  # the rings have none of the pair's collectives any more
        for _ in range(RING_SIZES[name]):
            exchange()
        if RANK == 1:
            load_batch()
        if RANK == 0:
            exchange(group)
    if name == "recv" and RANK == 0:  # rank 1 never sends
        dist.recv(torch.ones(4), 1)
    if name == "recv" and RANK == 1:
        load_batch()
    if name == "unsent" and RANK == 0:  # rank 1 goes on without having sent
        dist.recv(torch.ones(4), 1)
    if name == "receives" and RANK < 2:  # each from the other one
        dist.recv(torch.ones(4), 1 - RANK)
    if name == "broadcasts" and RANK == 1:
        dist.broadcast(torch.ones(8), 1)
    if name == "orders" and RANK == 0:  # the others come to the world first
        exchange(group)
    if name == "goes_on" and RANK == 1:
        wait_for_reports(name)
    if name == "pipeline":
        pass_through_pipeline(is_hanging=True)
    if name == "split" and RANK == 2:  # rank 3 waits in their half, ranks 0 and 1 in the world
        load_batch()
    if name == "mesh" and RANK == 5:
        load_batch()
    if name in ("split", "mesh"):
        exchange(group)
    if name == "node" and RANK > 3:
        stop()
    exchange()


def pass_through_pipeline(*, is_hanging=False):
    """Pass a tensor from stage to stage and back; stage 1 may hang before it passes it on."""
    last = WORLD_SIZES["pipeline"] - 1
    if RANK:
        dist.recv(torch.ones(4), RANK - 1)
    if is_hanging and RANK == 1:
        load_batch()
    if last > RANK:
        dist.send(torch.ones(4), RANK + 1)
        dist.recv(torch.ones(4), RANK + 1)
    if RANK:
        dist.send(torch.ones(4), RANK - 1)


def half_of_same_name():
    """The own half of the world; both have the same name, as halves of a group that is split on a GPU."""
    ranks = [0, 1] if RANK < 2 else [2, 3]
    store = dist.PrefixStore(str(ranks), dist.distributed_c10d._get_default_store())
    arguments = (2, ranks.index(RANK), ranks, dist.Backend("gloo"), store, "half")
    options = {"timeout": timedelta(minutes=30), "group_desc": "half"}
    group, _ = dist.distributed_c10d._new_process_group_helper(*arguments, **options)
    dist.distributed_c10d._world.pg_group_ranks[group] = {rank: nth for nth, rank in enumerate(ranks)}
    return group


def group_of(name):
    """The group of this rank next to the world; None if it has none."""
    if name == "split":
        return half_of_same_name()
    if name == "mesh":
        mesh = dist.device_mesh.init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
        return mesh["tp"].get_group()
    pair = dist.new_group([0, 1])
    return pair if RANK < 2 else None


def train(name):
    size = WORLD_SIZES.get(name, 3)
    if size <= RANK:
        return
    if name in RING_SIZES:
        os.environ["TORCH_FR_BUFFER_SIZE"] = str(RING_SIZES[name])
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/{name}.store", rank=RANK, world_size=size)
    group = group_of(name)
    if name == "node":
        socket.gethostname = lambda: f"node{RANK // 4}"
    with Tracer(FOLDER, run=name, schedule=on_request, system=(), scalars=False, hang_after_s=AFTER_S) as tracer:
        for step in itertools.count():
            if step == STEP - 1:  # not in the next one, whose reports then might be of this
                wait_for_journals(tracer, FOLDER / name, size)
            if step == STEP:
                if name == "leaves" and RANK == 1:
                    break
                act(name, tracer, group)
            exchange()
            if group is not None:
                exchange(group)
            if name == "pipeline":
                pass_through_pipeline()
            time.sleep(0.02 if step <= STEP else 0.5)
            tracer.step()
    time.sleep(600)  # of a rank that left: without its process the collectives of the others would fail


torch.set_num_threads(1)
run_scenarios(FOLDER, NAMES, train)
with suppress(FileNotFoundError):  # the child of `spawn` waits for a writer
    os.close(os.open(FOLDER / "pipe", os.O_RDWR))
