"""A small real training on several processes, recorded: something to look at if you have no training at hand.

    python -m kinetoscope.demo LOGDIR [--steps N] [--processes N]

A convolutional network learns to tell generated pictures apart, data-parallel over gloo, and each process records its
own traces with `Tracer`. It runs on the CPU in half a minute at most and ends by itself.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.nn import Module
    from torch.utils.data import DataLoader

BATCH = 32
PIXELS = 32
CLASSES = 8
WARMUP = 2


def network() -> Module:
    """A convolutional network with about 100,000 parameters."""
    from torch import nn

    def block(inner: int, outer: int) -> list[Module]:
        return [nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU(), nn.MaxPool2d(2)]

    features = PIXELS // 8
    return nn.Sequential(
        *block(3, 16),
        *block(16, 32),
        *block(32, 64),
        nn.Flatten(),
        nn.Linear(64 * features * features, 64),
        nn.ReLU(),
        nn.Linear(64, CLASSES),
    )


def pictures(batches: int, rank: int) -> DataLoader[tuple[object, ...]]:
    """Noisy stripes, one direction per class; each rank has its own."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    generator = torch.Generator().manual_seed(rank)
    labels = torch.randint(CLASSES, (batches * BATCH,), generator=generator)
    angle = (labels * torch.pi / CLASSES).view(-1, 1, 1)
    y, x = torch.meshgrid(torch.arange(PIXELS), torch.arange(PIXELS), indexing="ij")
    stripes = torch.sin(x * angle.cos() + y * angle.sin()).unsqueeze(1).expand(-1, 3, -1, -1)
    return DataLoader(
        TensorDataset(stripes + torch.randn(stripes.shape, generator=generator), labels),
        batch_size=BATCH,
        shuffle=True,
        generator=generator,
    )


def train(rank: int, processes: int, rendezvous: str, logdir: str, run: str, steps: int) -> None:
    """Train as one process."""
    import torch
    import torch.distributed as dist
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    from . import Tracer, cyclic

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=processes)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    windows = 1 if steps % 2 else 2
    schedule = cyclic(wait=1, warmup=WARMUP, active=steps // windows, repeat=windows)
    with Tracer(logdir, run=run, schedule=schedule, profile_memory=True, with_flops=True) as tracer:
        for images, labels in tracer.steps(pictures(windows * (1 + WARMUP) + steps, rank)):
            with tracer.marker("forward"):
                loss = cross_entropy(model(images), labels)
            with tracer.marker("backward"):
                loss.backward()  # type: ignore[no-untyped-call]
            with tracer.marker("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    for path in tracer.saved_traces:
        print(path, flush=True)  # noqa: T201
    dist.destroy_process_group()


def record(logdir: str, *, steps: int = 8, processes: int = 2, run: str | None = None) -> None:
    """Train and record; the traces of all processes are in one run's folder."""
    # torch's C++ side reports each recording on standard error; the Tracer logs what matters.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # gloo looks up the host's own name, which not every machine can resolve.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    from torch import multiprocessing

    with tempfile.TemporaryDirectory(prefix="kinetoscope-demo-") as folder:
        rendezvous = (Path(folder) / "rendezvous").as_uri()
        name = run or time.strftime("demo-%Y%m%d-%H%M%S")
        arguments = (processes, rendezvous, logdir, name, steps)
        multiprocessing.spawn(train, arguments, nprocs=processes)  # type: ignore[attr-defined, no-untyped-call]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m kinetoscope.demo", description="Record a small real training.")
    parser.add_argument("logdir", help="where the run's folder is created; pass it to TensorBoard")
    parser.add_argument("--steps", type=int, default=8, help="how many steps are recorded (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="how many processes train (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.processes < 1:
        parser.error("--steps and --processes must be at least 1")
    logging.basicConfig(level=logging.WARNING)
    record(options.logdir, steps=options.steps, processes=options.processes)


if __name__ == "__main__":
    main()
