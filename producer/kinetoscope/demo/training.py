"""The training of the demo, as one of its processes runs it."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn import Module
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from .. import Tracer, cyclic

BATCH = 32
PIXELS = 32
CLASSES = 8
WARMUP = 2


def network() -> Module:
    """A convolutional network with about 100,000 parameters."""

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
                loss.backward()
            with tracer.marker("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    for path in tracer.saved_traces:
        print(path, flush=True)  # noqa: T201
    dist.destroy_process_group()


def train_in_processes(processes: int, *arguments: object) -> None:
    """Train as some processes, with the further arguments of `train`."""
    multiprocessing.spawn(train, (processes, *arguments), nprocs=processes)  # type: ignore[attr-defined, no-untyped-call]
