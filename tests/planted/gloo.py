"""Record real trainings of two ranks over gloo with planted causes: `python -m planted.gloo FOLDER SEED`."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from planted.cpu import compute
from planted.generator import generator

STEPS, WARMUP, RANKS = 10, 2, 2


class Job(NamedTuple):
    """What ranks do in a step: compute, then reduce.

    Attributes:
        compute_ms: Of each rank.
        late_ms: What one rank takes longer.
        late_rank: Which one.
        megabytes: That are reduced.
        sleeps: Whether a rank is late since it sleeps, not since it computes.
    """

    compute_ms: float
    late_ms: float
    late_rank: int
    megabytes: float
    sleeps: bool


def late_rank(rng) -> Job:
    """One rank has more to do in each step."""
    busy = float(rng.uniform(4, 8))
    return Job(busy, busy * float(rng.uniform(1.5, 3)), int(rng.integers(RANKS)), 0.1, bool(rng.integers(2)))


def balanced(rng) -> Job:
    """Both do the same, and little communication."""
    return Job(float(rng.uniform(10, 20)), 0.0, 0, 0.1, False)


def communicating(rng) -> Job:
    """Reducing takes much longer than computing."""
    return Job(float(rng.uniform(1, 2)), 0.0, 0, float(rng.uniform(20, 50)), False)


JOBS = ((late_rank, 4), (balanced, 4), (communicating, 3))
"""What is recorded, and how often."""


def names() -> list[str]:
    """Of all runs."""
    return [f"{make.__name__}.{number}" for make, count in JOBS for number in range(count)]


def _work(job: Job, rank: int, data) -> None:
    import torch.distributed as dist

    compute(job.compute_ms)
    if job.late_ms and rank == job.late_rank:
        (time.sleep(job.late_ms / 1000) if job.sleeps else compute(job.late_ms))
    dist.all_reduce(data)


def _rank(rank: int, rendezvous: str, folder: str, seed: int) -> None:
    import torch
    import torch.distributed as dist

    from kinetoscope import Tracer, cyclic

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=RANKS)
    makers = {make.__name__: make for make, _ in JOBS}
    for name in names():
        job = makers[name.split(".")[0]](generator(seed, name))
        data = torch.zeros(int(job.megabytes * 2**18))
        step = partial(_work, job, rank, data)
        dist.barrier()
        schedule = cyclic(wait=0, warmup=WARMUP, active=STEPS, repeat=1)
        with Tracer(folder, run=name, schedule=schedule, requests=False) as tracer:
            for _ in range(WARMUP + STEPS):
                step()
                tracer.step()
    dist.destroy_process_group()


def record_all(folder: Path, seed: int) -> None:
    """Record all jobs, one after the other, by the same two processes."""
    from torch import multiprocessing

    rendezvous = (folder / "rendezvous").as_uri()
    multiprocessing.spawn(_rank, (rendezvous, str(folder), seed), nprocs=RANKS)


if __name__ == "__main__":
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    record_all(Path(sys.argv[1]), int(sys.argv[2]))
