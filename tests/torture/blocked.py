"""A rank that waits in a collective for one that doesn't come; run as `blocked.py FOLDER RANK`.

Rank 0 leaves the file `blocked` once it waits: a signal before that would end it.
"""

import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

from kinetoscope import Tracer, cyclic

FOLDER, RANK = Path(sys.argv[1]), int(sys.argv[2])


def leave_file_once_waiting():
    """Leave the file once the training's thread has been in one instruction of `all_reduce` for half a second."""
    training, last = threading.main_thread().ident, None
    while True:
        frame = sys._current_frames()[training]
        now = (frame.f_code.co_name, frame.f_lasti)
        if now[0] == "all_reduce" and now == last:
            (FOLDER / "blocked").touch()
            return
        last = now
        time.sleep(0.5)


torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=RANK, world_size=2)
with Tracer(FOLDER / "logdir", run="job", schedule=cyclic(wait=1, warmup=1, active=100)) as tracer:
    for step in range(6):
        if step == 5 and RANK == 1:
            time.sleep(600)  # until it is killed
        if step == 5:
            threading.Thread(target=leave_file_once_waiting, daemon=True).start()
        with tracer.marker("exchange"):
            dist.all_reduce(torch.ones(4))
        tracer.step()
