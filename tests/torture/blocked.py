"""A rank that waits in a collective for one that doesn't come; run as `blocked.py FOLDER RANK`.

Rank 0 leaves the file `blocked` when it is about to wait.
"""

import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from kinetoscope import Tracer, cyclic

FOLDER, RANK = Path(sys.argv[1]), int(sys.argv[2])

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=RANK, world_size=2)
with Tracer(FOLDER / "logdir", run="job", schedule=cyclic(wait=1, warmup=1, active=100)) as tracer:
    for step in range(6):
        if step == 5 and RANK == 1:
            time.sleep(600)  # until it is killed
        if step == 5:
            (FOLDER / "blocked").touch()
        with tracer.marker("exchange"):
            dist.all_reduce(torch.ones(4))
        tracer.step()
