"""Make these snapshots again, on a GPU of 80 GB: allocations that fail for a reason that is known.

Each runs in a process of its own, which begins with an empty allocator. `outside` needs CuPy.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

GB = 1 << 30


def empty(size: float) -> Tensor:
    return torch.empty(int(size * GB), dtype=torch.uint8, device="cuda")


def full() -> None:
    """Fills the device with blocks that are in use."""
    activations = []
    while True:
        activations.append(empty(2))


def fragmented() -> None:
    """Frees every other part of large segments, so that enough memory is unused, but none of it is in one piece."""
    parts = []
    for _ in range(13):
        segment = empty(5)
        del segment  # cached: its parts follow
        parts += [empty(1) for _ in range(5)]
    del parts[1::2]
    empty(20)


def private_pool() -> None:
    """Captures a graph whose pool keeps its memory."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensors = [torch.zeros(4 * GB, dtype=torch.uint8, device="cuda") for _ in range(12)]
        total = tensors[0].add(1)
        del tensors
    del total
    empty(40)


def other_stream() -> None:
    """Leaves unused memory to a side stream, in segments of which a small part is in use."""
    parts = []
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(10):
            segment = empty(6)
            del segment
            parts += [empty(0.5), empty(5.5)]
    torch.cuda.synchronize()
    del parts[1::2]
    parts += [empty(5) for _ in range(8)]


def outside() -> None:
    """Has another library take most of the device."""
    import cupy

    memory = cupy.cuda.Memory(60 * GB)
    tensors = [empty(4) for _ in range(6)]
    del memory, tensors


def too_large() -> None:
    """Requests more than the device has."""
    model = empty(1)

    def attention_scores(batch: int, length: int) -> Tensor:
        return torch.empty(batch, 16, length, length, device="cuda")

    attention_scores(8, 32768)
    del model


def leak() -> None:
    """Keeps each step's output, and with it the graph of its gradient."""
    model = nn.Sequential(*(nn.Linear(8192, 8192) for _ in range(4))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    outputs = []
    while True:
        output = model(torch.randn(16384, 8192, device="cuda"))
        outputs.append(output)
        output.mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def limit() -> None:
    """Exceeds the process's own limit."""
    torch.cuda.set_per_process_memory_fraction(0.1)
    tensors = [empty(1) for _ in range(20)]
    del tensors


def expandable() -> None:
    """Frees every third block of an expandable segment, and goes on with larger ones."""
    tensors = [empty((index % 7 + 1) / 4) for index in range(60)]
    del tensors[::3]
    tensors += [empty(6) for _ in range(20)]


def training_all() -> None:
    """Trains for three steps; nothing fails."""
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(torch.randn(16, 256, 512, device="cuda")).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


CASES: tuple[Callable[[], None], ...] = (
    full, fragmented, private_pool, other_stream, outside, too_large, leak, limit, expandable, training_all,
)  # fmt: skip


def run(case: Callable[[], None], folder: Path) -> None:
    torch.empty(1, device="cuda")
    stacks = "all" if case is training_all else "python"
    torch.cuda.memory._record_memory_history(max_entries=200_000, stacks=stacks)
    try:
        case()
    except torch.OutOfMemoryError as error:
        print(case.__name__, error)
    path = folder / f"{case.__name__}.pickle"
    torch.cuda.memory._dump_snapshot(str(path))
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def main(folder: str, name: str = "") -> None:
    """Makes all snapshots, or the one that is named."""
    for case in CASES:
        if name == case.__name__:
            run(case, Path(folder))
        elif not name:
            settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if case is expandable else {}
            subprocess.run(
                [sys.executable, __file__, folder, case.__name__], env={**os.environ, **settings}, check=True
            )


if __name__ == "__main__":
    main(*(sys.argv[1:] or [str(Path(__file__).parent)]))
