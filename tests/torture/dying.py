"""Three ranks or five of which some die, a job for each scenario: `torchrun --nproc_per_node=5 dying.py FOLDER NAME…`.

`run_scenarios` says how they run. A scenario's run is `FOLDER/NAME`.
"""

import ctypes
import faulthandler
import itertools
import os
import resource
import signal
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope import Tracer, on_request
from torture.control_groups import enter_group
from torture.scenarios import run_scenarios, wait_for_journals

FOLDER, NAMES = Path(sys.argv[1]), sys.argv[2:]
RANK = int(os.environ["RANK"])
STEPS, HANG_AFTER_S = 5, 5
STUCK_AFTER_S = 300
"""After how long a rank that has neither ended nor been ended writes where its threads are: no scenario takes so long."""
WORLD_SIZES = {"size": 5, "dtype": 5}
"""How many ranks a scenario has, if not three."""
TIMEOUTS_S = {
    "gives_up": 4,
    "gives_up_late": 3 * HANG_AFTER_S,
    "barrier": 4,
    "remote_call": 4,
    "remote_call_late": 3 * HANG_AFTER_S,
}
"""How long the others wait for rank 1 in the last step. Before that all wait for each other, on a machine that is busy."""


def load_batch():
    raise KeyError("batch 5")


def write_checkpoint():
    torch.save({"weight": torch.ones(1 << 20)}, "/dev/full")


def write_log():
    with Path("/dev/full").open("w") as file:
        file.write("loss 0.5")


def allocate():
    torch.empty(1 << 60)


def allocate_on_device():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 512.00 MiB free.")


def allocate_beyond_limit():
    """Need more address space than this process may have from now on."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    bytearray(1 << 30)


def fill_memory():
    """Use more memory than the control group of this process has."""
    blocks = []
    while True:
        blocks.append(bytes(1 << 20) + b"1")


def read_object():
    raise ConnectionResetError(104, "Connection reset by peer")


class Samples(torch.utils.data.Dataset):
    """Samples whose worker has an end of its own."""

    def __init__(self, end):
        self.end = end

    def __len__(self):
        return 8

    def __getitem__(self, _index):
        self.end()


def kill_worker():
    os.kill(os.getpid(), signal.SIGKILL)


def load_with_worker(end):
    next(iter(torch.utils.data.DataLoader(Samples(end), num_workers=1)))


def send_to_all(name, number):
    for rank in (0, 2, 1):
        os.kill(int((FOLDER / f"{name}.{rank}").read_text()), number)


def sleep():
    time.sleep(600)


def stop_itself():
    os.kill(os.getpid(), signal.SIGTERM)


ENDS = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "raises": load_batch,
    "exits": lambda: os._exit(7),
    "calls_exit": lambda: sys.exit(4),
    "segfault": lambda: ctypes.string_at(0),
    "aborts": os.abort,
    "stopped": stop_itself,
    "full_disk": write_log,
    "full_disk_of_checkpoint": write_checkpoint,
    "host_memory": allocate,
    "device_memory": allocate_on_device,
    "address_space": allocate_beyond_limit,
    "out_of_memory": fill_memory,
    "object_store": read_object,
    "worker_killed": lambda: load_with_worker(kill_worker),
    "worker_raises": lambda: load_with_worker(load_batch),
    "preempted": lambda: send_to_all("preempted", signal.SIGTERM),
    "all_killed": lambda: send_to_all("all_killed", signal.SIGKILL),
    "gives_up": sleep,
    "gives_up_late": sleep,
    "remote_call": sleep,
    "remote_call_late": sleep,
    "size": lambda: dist.all_reduce(torch.ones(1 << 16)),
    "size_of_three": lambda: dist.all_reduce(torch.ones(1 << 16)),
    "dtype": lambda: dist.all_reduce(torch.ones(8, dtype=torch.float64)),
}
"""How rank 1 ends, or why the others do, while they wait for it in a collective."""


def exchange():
    dist.all_reduce(torch.ones(8))


READY = threading.Event()


def wait_until_ready():
    READY.wait()


def call_rank_1(name):
    """Wait for it as a framework does that asks its workers by RPC, with a timeout of its own."""
    backend_options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{FOLDER}/{name}.rpc")
    rpc.init_rpc(f"rank{RANK}", rank=RANK, world_size=2, rpc_backend_options=backend_options)
    if RANK == 0:
        rpc.rpc_sync("rank1", wait_until_ready, timeout=TIMEOUTS_S[name])


def kill_node(tracer):
    """All processes of a machine are gone, also those that write."""
    os.kill(tracer._trace_writer._client._process.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def act(name, tracer):
    """What the ranks do in the last step."""
    if name in TIMEOUTS_S:
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=TIMEOUTS_S[name]))
    if name.startswith("remote_call") and RANK < 2:
        call_rank_1(name)
    if RANK == 1 and name in ENDS:
        ENDS[name]()
    if name == "all_raise":
        load_batch()
    if name == "node" and RANK:
        kill_node(tracer)
    if name == "barrier" and RANK == 1:
        sleep()
    if name == "barrier":
        dist.monitored_barrier(timeout=timedelta(seconds=TIMEOUTS_S[name] / 2))
    exchange()


def train(name):
    if name == "node":
        socket.gethostname = lambda: f"node{min(RANK, 1)}"
    size, store = WORLD_SIZES.get(name, 3), f"file://{FOLDER}/{name}.store"
    if size <= RANK:
        return
    faulthandler.dump_traceback_later(STUCK_AFTER_S, file=(FOLDER / f"{name}.{RANK}.stacks").open("w"))
    dist.init_process_group("gloo", init_method=store, rank=RANK, world_size=size, timeout=timedelta(seconds=600))
    if name == "out_of_memory" and RANK == 1:
        enter_group(Path((FOLDER / "group").read_text()))
    after_s = HANG_AFTER_S if name.endswith("_late") else 600
    with Tracer(FOLDER, run=name, schedule=on_request, system=(), scalars=False, hang_after_s=after_s) as tracer:
        for step in itertools.count():
            if step == STEPS:
                (FOLDER / f"{name}.{RANK}").write_text(str(os.getpid()))
                wait_for_journals(tracer, FOLDER / name, size, f'["s",{STEPS - 1},')
                exchange()
                if name == "leaves" and RANK == 1:
                    break
                act(name, tracer)
            exchange()
            tracer.step()


def end_the_others(name):
    """Do what a launcher does when a rank ends: the others get SIGTERM."""
    if name in TIMEOUTS_S and RANK == 0:
        os.kill(int((FOLDER / f"{name}.1").read_text()), signal.SIGTERM)


def run(name):
    try:
        train(name)
    finally:
        end_the_others(name)


os.environ["TP_SOCKET_IFNAME"] = "lo"
torch.set_num_threads(1)
run_scenarios(FOLDER, NAMES, run)
