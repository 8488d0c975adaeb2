"""A training of several ranks over gloo that goes on until it is ended; nothing is recorded unless requested.

Run by torchrun, or alone, as `listening.py FOLDER`.
"""

import gc
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from kinetoscope import Tracer, on_request

FOLDER = Path(sys.argv[1])


def work():
    if dist.is_initialized():
        dist.all_reduce(torch.ones(8))
    torch.ones(64, 64).relu().sum()


torch.set_num_threads(1)
gc.freeze()  # a process that ends doesn't look through all of torch for garbage
if "RANK" in os.environ:
    dist.init_process_group("gloo")
with Tracer(FOLDER / "logdir", run="job", schedule=on_request, signal="SIGUSR2") as tracer:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        with tracer.marker("exchange"):
            work()
        time.sleep(0.005)
        tracer.step()
