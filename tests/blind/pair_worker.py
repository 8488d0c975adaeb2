"""Trains on this machine's CPU, before and after changes: measures steps without a profiler in turns, then records both.

Runs in a process of its own: `python pair_worker.py PAIRS OUT SECONDS`. PAIRS is a JSON list of pairs, each with a name
and two jobs; OUT is a folder. Every rank runs all pairs, until the seconds are over. Rank 0 writes the times.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from pair_noise import noise  # a script finds its neighbor
from torch.nn import functional
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from kinetoscope import Tracer, cyclic

RANKS = 2
TURNS, STEPS = 31, 3  # steps of a turn
TURNS_OF_WORKERS, STEPS_OF_WORKERS = 11, 12
"""As many steps for each of 1 to 4 workers, whose batches may come all at once."""
ROUNDS = 5  # of so many turns, until the ratio of a pair is certain enough
ENOUGH = 0.045  # two standard errors of it
TIMED_STEPS = 8  # before a recording
RECORDINGS = 5  # of each job: the one counts whose steps are most like those that were measured
PREFETCHED = 2  # batches of a worker


@dataclass(frozen=True)
class Job:
    """A training: what its step does."""

    hidden: int = 384
    layers: int = 2
    batch: int = 192
    loading_ms: float = 0  # of a worker for a batch
    workers: int = 0
    payload: int = 0  # numbers that all ranks add up
    buckets: int = 1
    overlaps: bool = False  # the reduction runs while the forward pass does
    ranks: int = 1
    reads: int = 0  # numbers that are read one by one
    is_fused: bool = True  # the activation is one operator
    width: int = 1_000_000  # of the activation
    words: int = 0  # that Python counts


class Batches(Dataset[torch.Tensor]):
    """Batches that take a while."""

    def __init__(self, job: Job):
        self.job = job

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> torch.Tensor:
        """A batch, after a while."""
        time.sleep(self.job.loading_ms / 1000)
        return torch.ones(self.job.batch, self.job.hidden)


class Loop:
    """A training that can do a step."""

    def __init__(self, job: Job, rank: int, groups: dict[int, Any]):
        self.job, self.takes_part = job, rank < job.ranks
        self.group = groups[job.ranks]
        self.weights = [torch.randn(job.hidden, job.hidden) for _ in range(job.layers)]
        self.gradients = list(torch.ones(max(job.payload, 1)).chunk(job.buckets))
        self.values = torch.randn(job.width)
        loader = DataLoader(
            Batches(job),
            batch_size=None,
            num_workers=job.workers,
            prefetch_factor=PREFETCHED if job.workers else None,
        )
        self.batches: Iterator[torch.Tensor] = iter(loader)

    @property
    def steps(self) -> int:
        """How many steps show what one takes."""
        return STEPS_OF_WORKERS if self.job.workers else STEPS

    def warm_up(self) -> None:
        """Use up what workers loaded while the other job ran, and let the allocator get used to the job."""
        for _ in range(2 + PREFETCHED * self.job.workers):
            self.step()

    def step(self) -> None:
        """One step."""
        job = self.job
        data = next(self.batches)
        begun = self.reduce(is_async=True) if job.overlaps else []
        with record_function("layers"):
            for weights in self.weights:
                data = data @ weights
        with record_function("activation"):
            activation = functional.gelu(self.values, approximate="tanh") if job.is_fused else unfused(self.values)
        with record_function("reads"):
            for number in range(job.reads):
                activation[number].item()
        with record_function("words"):
            counts: dict[int, int] = {}
            for number in range(job.words):
                counts[number % 1000] = counts.get(number % 1000, 0) + 1
        with record_function("reduction"):
            for work in begun or ([] if job.overlaps else self.reduce(is_async=False)):
                work.wait()

    def reduce(self, *, is_async: bool) -> list[Any]:
        """Add up the gradients of all ranks."""
        if not self.job.payload:
            return []
        works = [dist.all_reduce(bucket, group=self.group, async_op=is_async) for bucket in self.gradients]
        return [work for work in works if work is not None]


def unfused(values: torch.Tensor) -> torch.Tensor:
    """The activation as its formula."""
    return 0.5 * values * (1 + torch.tanh(0.79788456 * (values + 0.044715 * values * values * values)))


def seconds_of_step(loop: Loop) -> float:
    """How long a step takes, on average; all ranks begin together."""
    loop.warm_up()
    begin = time.perf_counter()
    for _ in range(loop.steps):
        loop.step()
    return (time.perf_counter() - begin) / loop.steps


def record(loop: Loop, path: Path) -> None:
    """Record some steps, after some that the recorder times."""
    os.environ["LOCAL_WORLD_SIZE"] = str(loop.job.ranks)  # as launchers do
    loop.warm_up()
    schedule = cyclic(wait=TIMED_STEPS, warmup=2, active=max(6, loop.steps))
    with tempfile.TemporaryDirectory() as folder:
        with Tracer(folder, run="pair", schedule=schedule, record_shapes=True, system=(), scalars=False) as tracer:
            for _ in tracer.steps(range(schedule.steps_needed)):
                loop.step()
        shutil.copy(*tracer.saved_traces, path)


def run_pair(pair: dict[str, Any], rank: int, groups: dict[int, Any], out: Path) -> None:
    """Measure both jobs of a pair in turns, and record each."""
    loops = {side: Loop(Job(**pair[side]), rank, groups) for side in ("before", "after")}
    times: dict[str, list[float]] = {side: [] for side in loops}
    has_workers = any(loop.job.workers for loop in loops.values())
    for _ in range(ROUNDS):
        for _ in range(TURNS_OF_WORKERS if has_workers else TURNS):
            for side, loop in loops.items():
                in_turn(loop, lambda loop=loop, side=side: times[side].append(seconds_of_step(loop)))
        is_certain = torch.tensor([rank == 0 and noise(times["before"], times["after"]) <= ENOUGH])
        dist.broadcast(is_certain, 0)  # all ranks measure as long
        if is_certain:
            break
    for number in range(RECORDINGS):
        for side, loop in loops.items():
            path = out / f"{pair['name']}.{side}.{number}.{rank}.json.gz"
            in_turn(loop, lambda loop=loop, path=path: record(loop, path))
    if rank == 0:
        (out / f"{pair['name']}.times.json").write_text(json.dumps(times))


def in_turn(loop: Loop, function: Callable[[], Any]) -> None:
    """Run something on the ranks that take part; the others wait."""
    dist.barrier()
    if loop.takes_part:
        function()
    dist.barrier()


def run_rank(rank: int, store: str, pairs: list[dict[str, Any]], out: str, seconds: float) -> None:
    """What a rank does."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    groups = {ranks: dist.new_group(list(range(ranks))) for ranks in (1, RANKS)}
    begin = time.monotonic()
    for pair in pairs:
        is_late = torch.tensor([time.monotonic() - begin > seconds])
        dist.broadcast(is_late, 0)  # all ranks stop at the same pair
        if is_late:
            break
        run_pair(pair, rank, groups, Path(out))
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        arguments = (f"{folder}/store", json.loads(Path(sys.argv[1]).read_text()), sys.argv[2], float(sys.argv[3]))
        mp.spawn(run_rank, arguments, nprocs=RANKS)
