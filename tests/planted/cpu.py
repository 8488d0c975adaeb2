"""Record real small trainings on the CPU with planted causes: `python -m planted.cpu FOLDER SEED`.

All are recorded by one process, each by a Tracer of its own. Their timestamps are the machine's, so a seed gives the
same workloads, not the same bytes.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

STEPS, WARMUP = 5, 2


class Workload(NamedTuple):
    """What a step does.

    Attributes:
        step: Does it; takes the step's number.
        batches: What steps read, if they read.
        close: Called at the end.
        has_stacks: Whether Python's frames are recorded.
    """

    step: Callable[[int, Any], object]
    batches: Callable[[], Any] | None = None
    close: Callable[[], object] | None = None
    has_stacks: bool = False


class Samples:
    """A data set that takes a while for each sample."""

    def __init__(self, seconds: float, number: int) -> None:
        self.seconds, self.number = seconds, number

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> Any:
        import torch

        time.sleep(self.seconds)
        return torch.full((64,), float(index))


def compute(milliseconds: float, _step: int = 0, _batch: Any = None) -> None:
    """Large matmuls and what lies between them, for about so long on one core."""
    import torch

    weight = torch.ones(512, 512)
    data = torch.ones(512, 512)
    until = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until:
        data = torch.relu(torch.mm(data, weight)).clamp_(max=1.0)


def _loader(seconds: float, workers: int, number: int) -> Any:
    import torch

    return iter(torch.utils.data.DataLoader(Samples(seconds, number), batch_size=4, num_workers=workers))


def slow_loader(rng: Any) -> Workload:
    """The loader sleeps in the training process."""
    seconds = float(rng.uniform(0.003, 0.01))
    step = partial(compute, float(rng.uniform(4, 10)))
    return Workload(step, partial(_loader, seconds, 0, 64))


def new_workers(rng: Any) -> Workload:
    """The loader's worker is started in each step."""
    busy = float(rng.uniform(5, 10))

    def step(_number: int, _batch: Any) -> None:
        next(_loader(0.0, 1, 4))
        compute(busy)

    return Workload(step, has_stacks=True)


def collecting(rng: Any) -> Workload:
    """Python's garbage collection runs in each step, over many objects."""
    objects = [[number] for number in range(int(rng.integers(30_000, 120_000)))]
    busy = float(rng.uniform(5, 15))

    def step(_number: int, _batch: Any) -> None:
        gc.collect()
        compute(busy)

    return Workload(step, close=objects.clear, has_stacks=True)


def locked(rng: Any) -> Workload:
    """Another thread holds a lock that the step needs."""
    lock, stop = threading.Lock(), threading.Event()
    held, busy = float(rng.uniform(0.02, 0.05)), float(rng.uniform(4, 10))

    def hold() -> None:
        while not stop.is_set():
            with lock:
                time.sleep(held)
            time.sleep(0.002)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()

    def step(_number: int, _batch: Any) -> None:
        with lock:
            compute(busy)

    def close() -> None:
        stop.set()
        thread.join()

    return Workload(step, close=close)


def waiting_for_a_thread(rng: Any) -> Workload:
    """The main thread waits for the result of another one."""
    seconds, busy = float(rng.uniform(0.015, 0.05)), float(rng.uniform(4, 10))

    def step(_number: int, _batch: Any) -> None:
        thread = threading.Thread(target=time.sleep, args=(seconds,))
        thread.start()
        thread.join()
        compute(busy)

    return Workload(step, has_stacks=bool(rng.integers(2)))


def tiny_operators(rng: Any) -> Workload:
    """Thousands of operators on a few numbers each."""
    import torch

    data = torch.ones(8)
    count = int(rng.integers(800, 2000))

    def step(_number: int, _batch: Any) -> None:
        for _ in range(count):
            torch.add(data, data).mul_(2.0)

    return Workload(step)


def loop_of_an_optimizer(rng: Any) -> Workload:
    """Adam that goes parameter by parameter over hundreds of small ones."""
    import torch

    parameters = [torch.nn.Parameter(torch.ones(16)) for _ in range(int(rng.integers(100, 200)))]
    optimizer = torch.optim.Adam(parameters, foreach=False)
    for parameter in parameters:
        parameter.grad = torch.ones(16)

    def step(_number: int, _batch: Any) -> None:
        compute(3.0)
        optimizer.step()

    return Workload(step)


def one_operator(rng: Any) -> Workload:
    """One operator takes nearly all of the step: a sort, or a convolution."""
    import torch

    if rng.integers(2):
        data = torch.rand(int(rng.integers(100_000, 300_000)))

        def step(_number: int, _batch: Any) -> None:
            torch.sort(data)
            compute(1.0)
    else:
        pictures, weight = torch.rand(4, 16, 64, 64), torch.rand(32, 16, 3, 3)

        def step(_number: int, _batch: Any) -> None:
            for _ in range(8):
                torch.conv2d(pictures, weight)
            compute(1.0)

    return Workload(step)


def cold(rng: Any) -> Workload:
    """The first step of the window does what later ones don't: start-up."""
    extra, busy = float(rng.uniform(200, 500)), float(rng.uniform(8, 15))

    def step(number: int, _batch: Any) -> None:
        compute(busy)
        if number == WARMUP:
            compute(extra)

    return Workload(step)


def _spin(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def neighbor(rng: Any) -> Workload:
    """Other processes use all cores."""
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_spin, args=(1.5,), daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for other in others:
        other.start()

    def close() -> None:
        for other in others:
            other.join()

    step = partial(compute, float(rng.uniform(15, 25)))
    return Workload(step, close=close)


def healthy(rng: Any) -> Workload:
    """Large matmuls: nothing to fix, though one family dominates."""
    step = partial(compute, float(rng.uniform(15, 30)))
    return Workload(step)


WORKLOADS: tuple[tuple[Callable[[Any], Workload], int], ...] = (
    (slow_loader, 5),
    (new_workers, 2),
    (collecting, 4),
    (locked, 3),
    (waiting_for_a_thread, 4),
    (tiny_operators, 4),
    (loop_of_an_optimizer, 4),
    (one_operator, 4),
    (cold, 4),
    (neighbor, 2),
    (healthy, 6),
)
"""What is recorded, and how often."""

TRUTHS: dict[str, tuple[str, frozenset[str], bool]] = {
    "slow_loader": ("cpu_slow_loader", frozenset({"data_loading"}), False),
    "new_workers": ("cpu_new_workers", frozenset({"worker_start", "data_loading"}), False),
    "collecting": ("cpu_garbage_collection", frozenset({"garbage_collection"}), False),
    "locked": ("cpu_lock", frozenset({"main_thread_waits"}), True),
    "waiting_for_a_thread": ("cpu_thread_join", frozenset({"main_thread_waits"}), True),
    "tiny_operators": ("cpu_tiny_operators", frozenset({"small_operators"}), False),
    "loop_of_an_optimizer": ("cpu_optimizer", frozenset({"optimizer", "small_operators"}), False),
    "one_operator": ("cpu_one_operator", frozenset({"host_operator"}), False),
    "cold": ("cpu_cold_first_step", frozenset({"warm_up"}), False),
    # Without counters of the scheduler nothing shows the neighbors: silence is as good.
    "neighbor": (
        "cpu_busy_neighbor",
        frozenset({"main_thread_waits", "host_threads", "nothing_to_fix", "host_operator"}),
        True,
    ),
    "healthy": ("cpu_healthy", frozenset({"nothing_to_fix", "host_operator"}), False),
}
"""For each workload its cause, the rules that a fair expert would accept first, and whether silence is fair."""


def record(workload: Workload, path: Path) -> None:
    """Record a few steps of it into a file."""
    from kinetoscope import Tracer, cyclic

    batches = workload.batches() if workload.batches else None
    with tempfile.TemporaryDirectory() as folder:
        schedule = cyclic(wait=0, warmup=WARMUP, active=STEPS, repeat=1)
        with Tracer(folder, run="run", schedule=schedule, with_stack=workload.has_stacks, requests=False) as tracer:
            for number in range(WARMUP + STEPS):
                workload.step(number, next(batches) if batches else None)
                tracer.step()
        if workload.close:
            workload.close()
        shutil.copyfile(tracer.saved_traces[0], path)


def record_all(folder: Path, seed: int) -> None:
    """Record each workload as often as it's wanted."""
    import torch

    from planted.generator import generator

    torch.set_num_threads(1)
    compute(50)
    for make, count in WORKLOADS:
        for number in range(count):
            name = f"{make.__name__}.{number}"
            record(make(generator(seed, name)), folder / f"{name}.json.gz")


if __name__ == "__main__":
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    record_all(Path(sys.argv[1]), int(sys.argv[2]))
