"""The training of a self-test: `python -m kinetoscope.selftest.training LOGDIR RUN`.

Steps 2 to 4 are a window, steps 7 to 9 another one, and the last one begins a third. It prints where it is, and goes
on when it reads a line. As `ranks`, it is one of two ranks that torchrun started, and the second one hangs.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Thread

import torch
import torch.distributed as dist

from .. import Tracer, cyclic
from .steps import BETWEEN, STEPS

if sys.platform != "win32":
    import resource

_HANG_S, _LOOK_S = 600.0, 0.5
RANKS_HANG_AFTER_S = 1.0


def main(logdir: str, run: str) -> None:
    """Train."""
    Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    torch.set_num_threads(1)
    is_job = run == "ranks"
    rank = int(os.environ.get("RANK", "0"))
    if is_job:
        dist.init_process_group("gloo")
    schedule = cyclic(wait=1, warmup=1, active=3, repeat=0)
    weights = torch.ones(32, 32)
    with Tracer(
        logdir, run=run, schedule=schedule, scalars=False, system=(), hang_after_s=RANKS_HANG_AFTER_S
    ) as tracer:
        for step in range(STEPS):
            weights = (weights @ weights).relu() / 32
            if is_job:
                if step == BETWEEN and rank == 1:
                    _say(f"hangs {os.getpid()}")
                    time.sleep(_HANG_S)
                dist.all_reduce(weights)
            else:
                _pause(step, run, tracer)
            tracer.step()


def _end_with_parent(parent: int) -> None:
    """End when the process that started this one has ended, as that of a test that is interrupted."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _pause(step: int, run: str, tracer: object) -> None:
    """Say where the training is, and wait until it may go on."""
    if step == BETWEEN and run == "full-disk" and sys.platform != "win32":
        while not tracer.saved_traces:  # type: ignore[attr-defined]
            time.sleep(0.01)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, resource.RLIM_INFINITY))
    writer = tracer._trace_writer._client._process  # type: ignore[attr-defined]
    _say(f"step {step} {getattr(writer, 'pid', 0)}")
    sys.stdin.readline()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
