"""A training of one rank, of which a step never ends; run as `alone.py FOLDER stands|stops`."""

import os
import signal
import sys
import time
from pathlib import Path

import torch

from kinetoscope import Tracer, on_request

FOLDER, KIND = Path(sys.argv[1]), sys.argv[2]


def read_shard():
    if KIND == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


torch.set_num_threads(1)
with Tracer(FOLDER, run=KIND, schedule=on_request, scalars=False, hang_after_s=1.5) as tracer:
    for step in range(40):
        time.sleep(0.02)
        if step == 30:
            time.sleep(1.1)  # so that the journal has the steps before
            read_shard()
        tracer.step()
