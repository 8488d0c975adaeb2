"""A training that torchrun starts on several machines, and that makes no process group.

Run by torchrun as `without_group.py LOGDIR RUN JOB RANKS`; RUN is `-` for none, RANKS are those that know of no store.
"""

import gc
import os
import sys

import torch

from kinetoscope import Tracer, cyclic

logdir, name, job, lonely = sys.argv[1:]
if os.environ["RANK"] in lonely:
    del os.environ["TORCHELASTIC_USE_AGENT_STORE"]
torch.set_num_threads(1)
gc.freeze()  # a process that ends doesn't look through all of torch for garbage
with Tracer(logdir, run=None if name == "-" else name, schedule=cyclic(warmup=1, active=1), system=()) as tracer:
    tracer.add_metadata("job", job)
    for _ in range(3):
        torch.ones(8).relu()
        tracer.step()
