"""A training of two ranks over gloo that torchrun restarts when one dies, as one does in the first attempt.

Run by torchrun as `attempts.py FOLDER`. After the second attempt, only rank 1 is selected to record; then a
request names rank 0.
"""

import gc
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.testing._internal.distributed import fake_pg  # noqa: F401  the backend without communication

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope import Tracer, cyclic
from kinetoscope.scheduling.request import Request, write_request
from support.waiting import wait_for

FOLDER = Path(sys.argv[1])


def work():
    dist.all_reduce(torch.ones(8))


def is_any(flag):
    """Whether the flag is set on any rank."""
    votes = torch.tensor(int(bool(flag)))
    dist.all_reduce(votes)
    return bool(votes)


def only_one():
    with Tracer(FOLDER, run="chosen", ranks="1", schedule=cyclic(wait=1, warmup=1, active=2)) as tracer:
        for step in range(100_000):
            work()
            if step == 5 and rank == 0:
                assert not tracer.saved_traces
                write_request(FOLDER / "chosen", Request(steps=2, ranks=(0,)))
            tracer.step()
            if is_any(rank == 0 and tracer.saved_traces):
                break


def training():
    with Tracer(FOLDER, schedule=cyclic(wait=1, warmup=1, active=2, repeat=0)) as tracer:
        for step in range(8):
            torch.ones(8).relu()
            if step == 6 and attempt == 0:
                wait_for(lambda: tracer.saved_traces)
                (FOLDER / f"waits{rank}").touch()
                wait_for(lambda: rank != 0 and (FOLDER / "waits0").exists())  # torchrun ends rank 0
                os._exit(3)
            tracer.step()


torch.set_num_threads(1)
gc.freeze()  # a process that ends doesn't look through all of torch for garbage
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# torchrun's own store has all that the attempt before left there: gloo would sometimes look for processes that are gone.
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
dist.init_process_group("fake", store=store, rank=rank, world_size=2)
training()
dist.destroy_process_group()
dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=rank, world_size=2)
only_one()
dist.destroy_process_group()
